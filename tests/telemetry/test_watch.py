"""Warnings: each is raised by what it names, by nothing less, and for the devices it names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from labkit.telemetry.series import Reading, Series
from labkit.telemetry.watch import Watch, names

LIMITS = {"power": 700.0, "temperature": 87.0, "memory": 100.0}
CALM = {"utilization": 60.0, "power": 400.0, "temperature": 60.0, "memory": 50.0}


def sample(*gpus: Mapping[str, float], host: float | None = None) -> list[Reading]:
    readings = [
        Reading(
            Series(
                f"gpu.{number}.{metric}", "x", "%", "measured", "gpu", "80.0 GiB" if metric == "memory" else "",
                device=f"GPU {number}", limit=LIMITS.get(metric),
            ),
            value,
        )
        for number, gpu in enumerate(gpus)
        for metric, value in {**CALM, **gpu}.items()
    ]  # fmt: skip
    if host is not None:
        series = Series("memory", "Memory", "%", "measured", "memory", "23.5 GiB", device="CPU", limit=100.0)
        readings.append(Reading(series, host))
    return readings


def watched(readings: list[Reading], samples: int = 12) -> tuple[str, ...]:
    watch = Watch()
    said: tuple[str, ...] = ()
    for number in range(samples):
        said = watch.look(number / 2, readings)
    return said


@pytest.mark.parametrize(
    ("gpu", "sentence"),
    [
        ({}, None),
        ({"utilization": 100}, None),
        ({"utilization": 100, "power": 150}, "GPU 0: 100 % busy at 150 W of 700 W: probably waiting"),
        ({"utilization": 50, "power": 100}, None),
        ({"memory": 97}, "GPU 0: memory 97 % full (of 80.0 GiB): the next allocation may fail"),
        ({"memory": 94}, None),
        ({"temperature": 84}, "GPU 0: at 84 °C: clocks are lowered at 87 °C"),
        ({"temperature": 80}, None),
        ({"slowed_by_heat": 100}, "GPU 0: slowed down by heat"),
        ({"slowed_by_hardware": 100}, "GPU 0: slowed down by the hardware"),
        ({"at_power_limit": 100}, "GPU 0: at the power limit of 700 W"),
        ({"at_power_limit": 0, "slowed_by_heat": 0}, None),
    ],
)
def test_a_rule_speaks_where_it_should(gpu: Mapping[str, float], sentence: str | None) -> None:
    said = watched(sample(gpu))
    assert said == () if sentence is None else said[0].startswith(sentence)


def test_an_uneven_load_names_both_ends() -> None:
    gpus = [{"utilization": 95.0}, {"utilization": 90.0}, {"utilization": 20.0}]
    assert watched(sample(*gpus)) == ("The load is uneven: GPU 0 is 95 % busy, GPU 2 20 %",)
    assert watched(sample({"utilization": 95.0}, {"utilization": 80.0})) == ()


def ranks(*shares: tuple[float, float]) -> list[Reading]:
    """Ranks that compute and wait so many per cent of the time."""
    return [
        Reading(Series(f"rank.{rank}.{key}", key, "%", "measured", "rank", device=f"Rank {rank}"), value)
        for rank, pair in enumerate(shares)
        for key, value in zip(("compute", "wait"), pair, strict=True)
    ]


def test_ranks_that_wait_for_another_are_told_for_which() -> None:
    said = watched(ranks((10, 88), (99, 0), (30, 65)))
    assert said == ("Ranks 0, 2 wait up to 88 % of the time for rank 1, which computes 99 % of it",)
    assert watched(ranks((99, 0), (20, 70)))[0].startswith("Rank 1 waits 70 % of the time for rank 0")
    assert watched(ranks((95, 3), (80, 15))) == ()
    assert watched(ranks((5, 90), (5, 90))) == ()  # all wait, for a link and not for one of them
    assert watched(ranks((5, 0), (95, 0))) == ()  # idle, but not waiting


def test_ranks_that_have_ended_are_history() -> None:
    watch = Watch()
    said = [watch.look(number / 2, ranks((10, 88), (99, 0))) for number in range(4)]
    assert said[0] == ()
    assert len(said[3]) == 1
    assert watch.look(2.0, sample({})) == ()


def test_the_next_run_is_not_blamed_for_the_last_one() -> None:
    watch = Watch()
    for number in range(6):
        watch.look(number / 2, ranks((10, 88), (99, 0)))
    watch.look(3.0, sample({}))
    assert [watch.look(3.5 + number / 2, ranks((97, 1), (98, 0))) for number in range(5)] == [()] * 5


def test_a_gpu_that_is_not_read_for_a_moment_stays_under_watch() -> None:
    watch = Watch()
    hot = sample({"temperature": 84.0})
    for number in range(6):
        watch.look(number / 2, hot)
    watch.look(3.0, [Reading(reading.series, None, "too slow") for reading in hot])
    assert watch.look(3.5, hot)[0].startswith("GPU 0: at 84 °C")


def test_alike_devices_share_a_sentence() -> None:
    waiting = {"utilization": 100.0, "power": 140.0}
    (said,) = watched(sample(*[waiting] * 4))
    assert said.startswith("GPUs 0 to 3: 100 % busy at 140 W of 700 W")


def test_main_memory_is_watched_too() -> None:
    assert watched(sample(host=98.0)) == (
        "CPU: memory 98 % full (of 23.5 GiB): the next allocation may fail",
    )


def test_one_peak_is_no_alarm_and_a_warning_goes_when_its_cause_has_gone() -> None:
    watch = Watch()
    calm, hot = sample({}), sample({"temperature": 86.0})
    for number in range(12):
        assert watch.look(number / 2, hot if number == 6 else calm) == ()
    said = [watch.look(6 + number / 2, hot) for number in range(14)]
    assert said[-1] != ()
    assert [watch.look(13 + number / 2, calm) for number in range(14)][-1] == ()


def test_figures_in_a_standing_sentence_do_not_flicker() -> None:
    watch = Watch()
    said = {
        watch.look(number / 2, sample({"utilization": 100.0, "power": 150.0 + number}))
        for number in range(4, 16)
    }
    assert len(said) <= 3  # nothing yet, the sentence, and the same with newer figures


def test_gaps_and_own_metrics_are_passed_over() -> None:
    lost = [Reading(one.series, None, "the GPU is lost") for one in sample({})]
    own = Reading(Series("own.memory", "memory", "%", "measured", "own"), 99.0)
    assert watched([*lost, own]) == ()


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (["GPU 3"], "GPU 3:"),
        (["GPU 0", "GPU 1"], "GPUs 0, 1:"),
        (["GPU 1", "GPU 2", "GPU 3"], "GPUs 1 to 3:"),
        (["GPU 0", "GPU 2", "GPU 3"], "GPUs 0, 2, 3:"),
        (["GPU 0", "CPU"], "GPU 0, CPU:"),
    ],
)
def test_names_of_devices(devices: list[str], said: str) -> None:
    assert names(devices) == said
