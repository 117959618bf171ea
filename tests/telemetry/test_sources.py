"""Readings of the processor, the memory and the emulator, and a learner's own numbers."""

from __future__ import annotations

import math
import sys
import time
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.telemetry.own import MAX_OWN, OwnMetrics, unit_of
from labkit.telemetry.series import Series
from labkit.telemetry.sources import default_sources
from labkit.telemetry.sources.emulator import ACTIVITY, EmulatorSource
from labkit.telemetry.sources.host import MISSING, HostSource, busy_percent


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_host_sees_a_busy_core_and_memory() -> None:
    source = HostSource()
    spin(0.5)
    readings = {reading.series.key: reading for reading in source.read()}
    cores = [reading.value for key, reading in readings.items() if key.startswith("cpu.")]
    assert cores
    assert max(value for value in cores if value is not None) > 50
    assert readings["cpu"].value == pytest.approx(sum(cores) / len(cores))  # type: ignore[arg-type]
    assert 0 < readings["memory"].value < 100  # type: ignore[operator]
    assert readings["memory"].series.of.endswith("GiB")
    assert {reading.series.provenance for reading in readings.values()} == {"measured"}


def test_host_without_psutil_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    readings = HostSource().read()
    assert [(reading.value, reading.reason) for reading in readings] == [(None, MISSING)] * 2


@given(*[st.floats(0, 1e9)] * 4)
def test_busy_share_is_a_percentage_or_nothing(b0: float, t0: float, b1: float, t1: float) -> None:
    share = busy_percent((b0, t0), (b1, t1))
    assert (share is None) == (t1 - t0 <= 0)
    assert share is None or 0 <= share <= 100


def test_emulator_is_looked_for_and_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, ACTIVITY, raising=False)
    source = EmulatorSource()
    assert source.read() == []
    assert ACTIVITY not in sys.modules


def test_emulator_series_is_the_share_of_time_in_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    activity = types.SimpleNamespace(busy_s=5.0, launches=1)
    monkeypatch.setitem(sys.modules, ACTIVITY, activity)
    source = EmulatorSource()
    time.sleep(0.2)
    activity.busy_s += 0.1
    (reading,) = source.read()
    assert reading.series.provenance == "emulated"
    assert reading.value is not None
    assert 25 < reading.value <= 51
    time.sleep(0.01)
    assert source.read()[0].value == 0.0


def test_emulator_that_appears_later_counts_from_its_appearance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, ACTIVITY, raising=False)
    source = EmulatorSource()
    source.read()
    time.sleep(0.1)
    monkeypatch.setitem(sys.modules, ACTIVITY, types.SimpleNamespace(busy_s=99.0))
    assert source.read()[0].value == 100.0


def test_real_emulator_is_seen_at_work() -> None:
    import numpy as np

    from labkit.compute.emulator import jit

    def fill(out):  # type: ignore[no-untyped-def]
        out[0] = 1.0

    kernel = jit(fill)
    out = np.zeros(1)
    kernel[1, 1](out)
    source = EmulatorSource()
    end = time.perf_counter() + 0.2
    while time.perf_counter() < end:
        kernel[1, 1](out)
    (reading,) = source.read()
    assert reading.value is not None
    assert reading.value > 5


def test_default_sources_read_and_close() -> None:
    sources = default_sources()
    try:
        keys = {reading.series.key for source in sources for reading in source.read()}
    finally:
        for source in sources:
            source.close()
    assert {"cpu", "memory"} <= keys


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("images/s", "images/s"),
        ("step time (ms)", "ms"),
        ("bandwidth [GB/s]", "GB/s"),
        ("copied GB/s", "GB/s"),
        ("latency ms", "ms"),
        ("accuracy %", "%"),
        ("loss", ""),
        ("train/", ""),
        ("", ""),
    ],
)
def test_unit_is_read_from_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_own_metric_gives_its_last_value_once() -> None:
    own = OwnMetrics()
    for value in (1, 2, 3.5):
        own.set("loss", value, "measured")
    assert [(r.series.name, r.value) for r in own.readings()] == [("loss", 3.5)]
    assert own.readings()[0].value is None
    own.set("loss", 3.5, "measured")
    assert own.readings()[0].value == 3.5


def test_own_metric_that_is_not_a_finite_number_is_a_gap() -> None:
    own = OwnMetrics()
    own.set("loss", float("inf"), "modelled")
    (reading,) = own.readings()
    assert reading.value is not None
    assert math.isnan(reading.value)
    assert reading.series.provenance == "modelled"


@pytest.mark.parametrize(
    ("name", "value", "provenance", "words"),
    [
        ("loss", "high", "measured", "one number"),
        ("loss", [1, 2], "measured", "one number"),
        ("loss", None, "measured", "one number"),
        ("", 1, "measured", "needs a name"),
        (7, 1, "measured", "needs a name"),
        ("loss", 1, "guessed", "provenance"),
    ],
)
def test_mistakes_with_own_metrics_are_explained(
    name: object, value: object, provenance: str, words: str
) -> None:
    with pytest.raises(LabkitError, match=words):
        OwnMetrics().set(name, value, provenance)  # type: ignore[arg-type]


def test_too_many_own_metrics_are_refused_with_advice() -> None:
    own = OwnMetrics()
    for number in range(MAX_OWN):
        own.set(f"loss {number}", 1, "measured")
    own.set("loss 0", 2, "measured")
    with pytest.raises(LabkitError, match="Keep the name the same"):
        own.set("one more", 1, "measured")


def test_series_insists_on_a_provenance_and_names_it() -> None:
    with pytest.raises(ValueError, match="provenance"):
        Series("x", "X", "%", "guessed", "own")
    assert Series("x", "Step", "ms", "modelled", "own").label == "Step (ms), modelled"
    assert Series("x", "images/s", "images/s", "measured", "own").label == "images/s, measured"
