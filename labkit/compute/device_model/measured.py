"""The same program on this machine's GPU: real streams, real copies, times from CUDA events.

Kernels are played by one that multiplies and adds until about as much time has passed as the program says: their
durations are given, what is measured is how copies and kernels fall together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.compute.device_model import hazards
from labkit.compute.device_model.operations import COPY_IN, COPY_OUT, HOST_WAIT, HOST_WORK, KERNEL, Operation
from labkit.compute.device_model.recorder import DEFAULT_STREAM, Device
from labkit.compute.device_model.timeline import Timeline
from labkit.errors import LabkitError

_ROUNDS = 20_000
_THREADS = 256


def measure(device: Device) -> Timeline:
    """Run a recorded program on this machine's GPU and return when each operation really ran.

    What the host does itself is left out of the result, but not of the run.

    Raises
    ------
    LabkitError
        When there is no GPU here, or not enough memory for the program's arrays.
    """
    from labkit.compute import cuda
    from labkit.hardware import usable_gpu, why_no_gpu

    card = usable_gpu()
    if cuda.BACKEND != "gpu" or card is None:
        raise LabkitError(f"Nothing can be measured: {why_no_gpu() or 'the emulator is in use'}")
    return _Run(device.operations).timeline(card.name)


class _Run:
    """One run on whatever ``labkit.cuda`` is here."""

    def __init__(self, operations: Sequence[Operation]):
        from labkit.compute import cuda

        self.cuda: Any = cuda
        self.operations = operations
        self.streams: dict[str, Any] = {DEFAULT_STREAM: cuda.default_stream()}
        self.arrays: dict[str, Any] = {}
        for one in operations:
            if one.stream and one.stream not in self.streams:
                self.streams[one.stream] = cuda.stream()
            for region in (*one.reads, *one.writes):
                if region.buffer not in self.arrays:
                    self.arrays[region.buffer] = self._array(region)
        self.rounds_a_second = self._calibrate()

    def timeline(self, name: str) -> Timeline:
        self._play()  # the first time maps memory and compiles
        origin, marks = self._play()
        chosen = [one for one in self.operations if one.kind in (COPY_IN, KERNEL, COPY_OUT)]
        spans = tuple(tuple(self._seconds(origin, mark) for mark in marks[one.number]) for one in chosen)
        said = ("Kernels are stand-ins that take about as long as the program says.",)
        kept = {one.number: place for place, one in enumerate(chosen)}
        return Timeline(
            tuple(_without_host(one, kept) for one in chosen),
            spans,  # type: ignore[arg-type]
            "measured",
            name,
            hazards.find(self.operations),
            said,
        )

    def _seconds(self, origin: Any, mark: Any) -> float:
        return float(self.cuda.event_elapsed_time(origin, mark)) / 1e3

    def _array(self, region: Any) -> Any:
        if region.place == "device":
            return self.cuda.device_array(region.whole, np.uint8)
        return (
            self.cuda.pinned_array(region.whole, np.uint8)
            if region.pinned
            else np.zeros(region.whole, np.uint8)
        )

    def _part(self, region: Any) -> Any:
        return self.arrays[region.buffer][region.start : region.stop]

    def _play(self) -> tuple[Any, dict[int, tuple[Any, Any]]]:
        cuda = self.cuda
        cuda.synchronize()
        origin = cuda.event()
        origin.record(self.streams[DEFAULT_STREAM])
        marks: dict[int, tuple[Any, Any]] = {}
        for one in self.operations:
            if one.kind in (HOST_WORK, HOST_WAIT):
                self._host(one, marks)
                continue
            stream = self.streams[one.stream]
            for wait in one.waits:
                if wait.why == "event":
                    marks[wait.on][1].wait(stream)
            marks[one.number] = cuda.event(), cuda.event()
            marks[one.number][0].record(stream)
            self._submit(one, stream)
            marks[one.number][1].record(stream)
        cuda.synchronize()
        return origin, marks

    def _host(self, one: Operation, marks: dict[int, tuple[Any, Any]]) -> None:
        for wait in one.waits:
            if wait.on in marks:
                marks[wait.on][1].synchronize()
        if one.kind == HOST_WORK:
            _busy_wait(one.seconds)

    def _submit(self, one: Operation, stream: Any) -> None:
        from labkit.compute.device_model.spin import spin

        if one.kind == COPY_IN:
            self._part(one.writes[0]).copy_to_device(self._part(one.reads[0]), stream=stream)
        elif one.kind == COPY_OUT:
            self._part(one.reads[0]).copy_to_host(self._part(one.writes[0]), stream=stream)
        else:
            rounds = max(1, int(one.seconds * self.rounds_a_second))
            spin[1, _THREADS, stream](rounds, self.scratch)

    def _calibrate(self) -> float:
        """How many rounds the stand-in kernel does in a second."""
        from labkit.compute.device_model.spin import spin

        cuda = self.cuda
        self.scratch = cuda.device_array(_THREADS, np.float32)
        stream = cuda.stream()
        spin[1, _THREADS, stream](1, self.scratch)
        begin, end = cuda.event(), cuda.event()
        begin.record(stream)
        spin[1, _THREADS, stream](_ROUNDS, self.scratch)
        end.record(stream)
        end.synchronize()
        return _ROUNDS / max(1e-9, self._seconds(begin, end))


def _without_host(one: Operation, kept: dict[int, int]) -> Operation:
    """The operation renumbered; waits on the host's own doings are left out."""
    from dataclasses import replace

    waits = tuple(replace(wait, on=kept[wait.on]) for wait in one.waits if wait.on in kept)
    return replace(one, number=kept[one.number], waits=waits, how="measured")


def _busy_wait(seconds: float) -> None:
    import time

    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
