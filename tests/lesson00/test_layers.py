"""Three recorded runs: every learner gets one for each layer, and every evidence holds in the recordings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.course import sources
from labkit.course.checks import Call
from labkit.course.lessons import l00_cases as cases
from labkit.course.lessons import l00_why as why
from labkit.telemetry import traces


@given(st.integers(0, 2**32))
def test_a_learner_gets_each_layer_once(seed: int) -> None:
    table = cases.layers_table(np.random.default_rng(seed))
    assert list(table) == ["A", "B", "C"]
    assert {cases.RUNS[run].layer for run in table.values()} == set(cases.LAYERS)


def test_learners_get_different_runs() -> None:
    tables = {tuple(cases.layers_table(np.random.default_rng(seed)).values()) for seed in range(300)}
    assert len(tables) == 48


@pytest.mark.parametrize("run", cases.RUNS)
def test_evidence_is_there_and_the_solutions_interval_holds(run: str) -> None:
    truth, recording = cases.RUNS[run], traces.open(run)
    keys = {series.key for series in recording.series}
    named = [series for series in truth.series if series in keys]
    assert named
    for series in named:
        answer = {"A": (truth.layer, series, 9, 15)}
        assert why.layers(Call({"runs": {"A": run}}, {"A": truth}), answer) is None


def during_work(run: str, key: str) -> np.ndarray:
    recording = traces.open(run)
    times, _ = recording.samples()
    return recording.values(key)[(times > 9) & (times < 15)]


def test_what_limits_the_measured_runs_can_be_seen() -> None:
    assert np.nanmean(during_work("run-1", "own.workers busy")) > 1.7
    received = during_work("run-2", "own.received MB/s")
    assert 4 < np.nanmean(received) < 8  # what the link carries
    assert np.nanmean(during_work("run-2", "own.workers busy")) < 1
    assert np.nanmean(during_work("run-3", "own.workers busy")) < 1.4
    assert np.nanmin(during_work("run-3", "own.images waiting")) > 50


def test_what_limits_the_modelled_runs_can_be_seen() -> None:
    for gpu in range(4):
        assert (during_work("run-4", f"gpu.{gpu}.utilization") == 100).all()
        assert (during_work("run-5", f"gpu.{gpu}.utilization") == 100).all()  # utilisation is no evidence
        assert (
            during_work("run-4", f"gpu.{gpu}.power").mean()
            > 2 * during_work("run-5", f"gpu.{gpu}.power").mean()
        )
    assert (during_work("run-6", "own.jobs waiting") > 0).all()
    assert (during_work("run-6", "gpu.3.utilization") == 0).all()


def test_the_solution_passes_for_every_table() -> None:
    solve = sources.answer(sources.text("solutions", "00.layers"), "name_layers")
    for order in itertools.permutations(cases.LAYERS):
        by_layer = [[run for run, truth in cases.RUNS.items() if truth.layer == layer] for layer in order]
        for chosen in itertools.product(*by_layer):
            (call,) = cases.layers_calls(dict(zip("ABC", chosen, strict=True)))
            assert why.layers(call, solve(call.arguments["runs"])) is None
