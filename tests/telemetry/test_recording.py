"""The ring, the spans, and the file."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.telemetry import recording as recordings
from labkit.telemetry.recording import CAPACITY, MAX_SPANS, Recording, Span
from labkit.telemetry.recording_file import load
from labkit.telemetry.series import PROVENANCES, Series
from labkit.telemetry.sources.nvml.probes import quick_probes, unhurried_probes


def series(key: str, provenance: str = "measured") -> Series:
    return Series(key, key.upper(), "%", provenance, "own", of="1 GiB")


A, B = series("a"), series("b")


def test_ring_keeps_the_newest_samples_in_order() -> None:
    recording = Recording(0.5, capacity=4)
    for number in range(10):
        recording.append(number / 2, {A: float(number)}, {})
    times, values = recording.samples()
    assert times.tolist() == [3.0, 3.5, 4.0, 4.5]
    assert values.tolist() == [[6, 7, 8, 9]]
    assert recording.samples(last=1)[1].tolist() == [[9]]
    assert len(recording) == 4


def test_series_that_comes_later_has_a_gap_before_and_absent_ones_after() -> None:
    recording = Recording(0.5)
    recording.append(0.5, {A: 1.0}, {})
    recording.append(1.0, {A: 2.0, B: 3.0}, {})
    recording.append(1.5, {B: None}, {B: "no permission"})
    np.testing.assert_equal(recording.values("a"), [1, 2, np.nan])
    np.testing.assert_equal(recording.values("b"), [np.nan, 3, np.nan])
    assert recording.reasons == ("", "no permission")


def test_old_values_never_show_through_when_a_slot_is_used_again() -> None:
    recording = Recording(0.5, capacity=2)
    recording.append(0, {A: 1.0, B: 1.0}, {})
    recording.append(1, {A: 2.0, B: 2.0}, {})
    recording.append(2, {A: 3.0}, {})
    np.testing.assert_equal(recording.values("b"), [2, np.nan])


def test_unknown_series_is_answered_with_what_there_is() -> None:
    recording = Recording(0.5)
    recording.append(0, {A: 1.0}, {})
    with pytest.raises(LabkitError, match="it has: a"):
        recording.values("c")


def test_spans_nest_stay_open_and_make_room() -> None:
    recording = Recording(0.5)
    outer = recording.begin("outer", 1.0)
    inner = recording.begin("inner", 2.0)
    recording.end(inner, 3.0)
    assert recording.spans == (Span("outer", 1.0), Span("inner", 2.0, 3.0))
    for number in range(MAX_SPANS):
        recording.end(recording.begin("many", float(number)), number + 0.5)
    recording.end(outer, 9.0)
    assert len(recording.spans) == MAX_SPANS
    assert {span.name for span in recording.spans} == {"many"}


def test_an_hour_of_eight_gpus_fits_in_five_megabytes() -> None:
    pynvml = pytest.importorskip("pynvml")
    metrics = [m for probe in (*quick_probes(pynvml), *unhurried_probes(pynvml)) for m in probe.metrics]
    recording = Recording(0.5)
    gpus = [
        Series(f"gpu.{gpu}.{metric.key}", "x", metric.unit, "measured", metric.group)
        for gpu in range(8)
        for metric in metrics
    ]
    cores = [Series(f"cpu.{core}", "x", "%", "measured", "cores") for core in range(64)]
    recording.append(0.0, dict.fromkeys(gpus + cores, 1.0), {})
    assert CAPACITY * recording.interval == 3600
    assert len(metrics) >= 18
    assert recording.nbytes <= 5e6


def test_shares_of_a_device_are_kept_to_a_sixteenth_of_a_per_cent() -> None:
    recording = Recording(0.5)
    share = Series("cpu", "CPU", "%", "measured", "cpu")
    for number in range(1001):
        recording.append(number / 2, {share: number / 10}, {})
    np.testing.assert_allclose(recording.values("cpu"), np.arange(1001) / 10, atol=1 / 32)


def test_series_that_never_has_a_value_takes_no_memory() -> None:
    recording = Recording(0.5)
    recording.append(0.0, {A: 1.0}, {})
    before = recording.nbytes
    recording.append(0.5, {A: 1.0, B: None}, {B: "not supported"})
    assert recording.nbytes == before
    np.testing.assert_equal(recording.values("b"), [np.nan, np.nan])


def test_a_part_begins_at_zero_and_cuts_spans() -> None:
    recording = Recording(0.5, machine="a computer")
    for number in range(10):
        recording.append(number / 2, {A: float(number)}, {})
    recording.end(recording.begin("before", 0.0), 1.0)
    recording.end(recording.begin("across", 1.0), 3.0)
    recording.begin("open", 2.5)
    part = recording.between(2.0, 4.0)
    assert part.samples()[0].tolist() == [0, 0.5, 1, 1.5, 2]
    assert part.values("a").tolist() == [4, 5, 6, 7, 8]
    assert part.spans == (Span("across", 0.0, 1.0), Span("open", 0.5, None))
    assert (part.machine, part.began) == ("a computer", recording.began + 2)


def test_too_many_series_are_refused() -> None:
    recording = Recording(0.5, capacity=2)
    with pytest.raises(LabkitError, match="at most"):
        recording.append(0, {series(str(number)): 1.0 for number in range(2000)}, {})


def test_reading_while_writing_sees_whole_samples() -> None:
    recording = Recording(0.1, capacity=64)
    stop = threading.Event()

    def write() -> None:
        number = 0.0
        while not stop.is_set():
            recording.append(number, {A: number, B: number}, {})
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            times, values = recording.samples()
            if len(values) == 2:
                assert (np.diff(times) == 1).all()
                assert (values[0] == values[1]).all()
    finally:
        stop.set()
        writer.join()


NUMBERS = st.none() | st.floats(-1e6, 1e6, width=32)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    table=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20),
    spans=st.lists(st.tuples(NAMES, st.floats(0, 100), st.none() | st.floats(0, 100)), max_size=5),
    provenance=st.sampled_from(PROVENANCES),
    name=NAMES,
)
def test_saved_recording_comes_back_whole(
    tmp_path_factory: pytest.TempPathFactory,
    table: list[tuple[Any, Any]],
    spans: list[tuple[str, float, float | None]],
    provenance: str,
    name: str,
) -> None:
    recording = Recording(0.25, capacity=8, began=1e9)
    first = Series("first", name, "ms", provenance, "own")
    for number, (one, two) in enumerate(table):
        recording.append(number * 0.25, {first: one, B: two}, {B: "because"})
    for label, start, end in spans:
        number = recording.begin(label, start)
        if end is not None:
            recording.end(number, end)
    path = recording.save(tmp_path_factory.mktemp("saved") / "run.npz")
    back = load(path)
    assert (back.series, back.spans, back.reasons) == (recording.series, recording.spans, recording.reasons)
    assert (back.interval, back.began) == (0.25, 1e9)
    for mine, theirs in zip(recording.samples(), back.samples(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_file_is_what_the_documentation_says(tmp_path: Path) -> None:
    recording = Recording(0.5)
    recording.append(0.5, {A: 1.0}, {})
    path = recording.save(tmp_path / "run")
    assert path == tmp_path / "run.npz"
    assert sorted(tmp_path.iterdir()) == [path]
    with np.load(path, allow_pickle=False) as file:
        assert (file["time"].dtype, file["values"].dtype, file["about"].dtype) == ("f8", "f4", "u1")
        about = json.loads(bytes(file["about"]))
    assert (about["format"], about["version"]) == ("labkit-recording", 1)
    assert about["series"][0]["provenance"] == "measured"


def write_recording(path: Path, **changes: Any) -> None:
    about = {
        "format": "labkit-recording",
        "version": 1,
        "interval": 0.5,
        "began": 0.0,
        "series": [],
        "spans": [],
    }
    content = np.frombuffer(json.dumps({**about, **changes}).encode(), np.uint8)
    np.savez(path, time=np.zeros(2), values=np.zeros((0, 2), np.float32), about=content)


def test_newer_format_is_refused_with_advice(tmp_path: Path) -> None:
    write_recording(tmp_path / "new.npz", version=2)
    with pytest.raises(LabkitError, match="newer labkit"):
        load(tmp_path / "new.npz")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"series": [{"key": "a"}]},
        {"series": 7},
        {"spans": [{}]},
        {"version": "one"},
        {"series": [{**A.to_dict(), "reason": ""}]},
    ],
)
def test_damaged_recordings_are_refused_in_one_sentence(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_recording(tmp_path / "bad.npz", **changes)
    with pytest.raises(LabkitError, match="is not a labkit recording, or it is damaged"):
        load(tmp_path / "bad.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 cut off", b"\x93NUMPY\x01\x00"])
def test_files_of_another_kind_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.npz"
    path.write_bytes(content)
    with pytest.raises(LabkitError, match="is not a labkit recording"):
        load(path)


def test_missing_file_and_missing_folder_are_explained(tmp_path: Path) -> None:
    with pytest.raises(LabkitError, match="There is no recording at"):
        load(tmp_path / "none.npz")
    with pytest.raises(LabkitError, match="could not be saved"):
        Recording(0.5).save(tmp_path / "no" / "folder.npz")


def test_locks_are_new_after_a_fork() -> None:
    recording = Recording(0.5)
    held = recording._lock
    recordings._after_fork()
    assert recording._lock is not held
