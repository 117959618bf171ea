"""Timings of the CPU: what comes back, and that nothing hangs. How fast it is, no test says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labkit.compute import child, compiled, host, rates
from labkit.compute.filters import FILTERS
from labkit.errors import LabkitError

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def crew():
    with host.Workers(3) as workers:
        yield workers


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("shape", [(3, 5), (64, 33), (301, 20)])
def test_workers_give_exactly_what_one_process_gives(crew, filter, shape):
    image = RNG.random(shape, np.float32)
    alone, _ = host.alone(filter, image)
    together, run = crew.run(filter, image)
    np.testing.assert_array_equal(together, alone)
    assert (run.workers, run.pixels, run.start_s) == (3, image.size, 0.0)


@pytest.mark.parametrize("shape", [(2, 4), (0, 4), (0, 0)])
def test_more_workers_than_rows(crew, shape):
    image = RNG.random(shape, np.float32)
    result, _ = crew.run("brighten", image)
    np.testing.assert_array_equal(result, host.alone("brighten", image)[0])


def test_every_step_of_a_run_is_on_the_clock():
    image = RNG.random((64, 64), np.float32)
    _, run = host.fresh("denoise", image, 2)
    steps = (run.start_s, run.send_s, run.work_s, run.receive_s)
    assert all(seconds > 0 for seconds in steps)
    assert run.total_s == pytest.approx(sum(steps))
    assert run.to_dict()["how"] == "measured"
    assert json.loads(json.dumps(run.to_dict()))["workers"] == 2
    assert "denoise, 2 workers" in run._repr_html_()


def test_alone_starts_nothing_and_copies_nothing():
    _, run = host.alone("brighten", RNG.random((8, 8), np.float32))
    assert (run.workers, run.start_s, run.send_s, run.receive_s) == (0, 0.0, 0.0, 0.0)
    assert run.who == "no worker"


def test_best_keeps_the_fastest():
    runs = [host.Run("brighten", 0, 1, 0.0, 0.0, seconds, 0.0) for seconds in (3.0, 1.0, 2.0)]
    answers = iter(runs)
    assert host.best(lambda: (np.empty(0), next(answers)), 3) is runs[1]


def test_a_worker_that_dies_is_reported_and_the_crew_is_gone():
    crew = host.Workers(2)
    processes = list(crew._crew)
    processes[1].kill()
    with pytest.raises(LabkitError, match="ended unexpectedly"):
        crew.run("brighten", RNG.random((64, 64), np.float32))
    assert all(process.poll() is not None for process in processes)


def test_a_worker_that_is_stuck_is_stopped():
    crew = host.Workers(1)
    crew.limit_s = 0.5
    with pytest.raises(LabkitError, match=r"within 0.5 s"):
        crew.run("denoise", RNG.random((6000, 6000), np.float32))


def test_workers_end_with_the_block():
    with host.Workers(2) as crew:
        processes = list(crew._crew)
    assert [process.returncode is not None for process in processes] == [True, True]


def test_unknown_filter_and_empty_crew_are_sentences(crew):
    with pytest.raises(LabkitError, match="no filter 'sharpen'"):
        crew.run("sharpen", np.zeros((2, 2), np.float32))
    with pytest.raises(LabkitError, match="at least one worker"):
        host.Workers(0)


def test_enlarge_repeats_or_cuts():
    image = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(host.enlarge(image, 3, 4), [[0, 1, 2, 0], [3, 4, 5, 3], [0, 1, 2, 0]])
    np.testing.assert_array_equal(host.enlarge(image, 1, 2), [[0, 1]])


def test_cpu_curves_come_from_a_child_and_say_who_computed():
    curves = compiled.cpu_curves([64, 1024])
    assert set(curves) == set(FILTERS)
    for curve in curves.values():
        assert curve.how == "measured"
        assert curve.sizes == (64, 1024)
        assert all(seconds > 0 for seconds in curve.seconds)
        assert "Numba" in curve.label


def test_without_numba_the_child_times_numpy_and_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    answer = compiled.answer({"sizes": [49, 100]})
    assert answer["by"] == "one core, NumPy"
    assert set(answer["seconds"]) == set(FILTERS)


def test_the_compiled_filters_compute_what_numpy_computes():
    _, filters = compiled._filters()
    image = RNG.random((40, 50), np.float32)
    inner = np.s_[3:-3, 3:-3]
    for name, functions in filters.items():
        for function in functions:
            np.testing.assert_allclose(function(image)[inner], host.alone(name, image)[0][inner], rtol=1e-5)


def test_a_child_that_takes_too_long_is_a_sentence():
    with pytest.raises(LabkitError, match=r"more than 0.01 s"):
        compiled.cpu_curves([64], limit_s=0.01)


def test_a_child_that_fails_is_a_sentence():
    with pytest.raises(LabkitError, match="failed: "):
        child.ask("labkit.compute.compiled", {"sizes": "a lot"})


def test_rates_of_this_cpu_are_those_of_a_computer():
    found = rates.measure()
    assert found.how == "measured"
    assert 1e8 < found.flops < 1e15
    assert 1e8 < found.bytes_per_s < 1e14


def test_rates_of_a_card_are_the_catalogue_s():
    card = rates.catalogued("A100")
    assert (card.flops, card.bytes_per_s, card.how) == (19.5e12, 2039e9, "data sheet")
