"""``labkit.monitor()``: watch what the machine does while cells run, and keep it."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Iterator

from labkit.errors import LabkitError
from labkit.telemetry import machine, sampler
from labkit.telemetry.own import OwnMetrics
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Reading
from labkit.telemetry.watch import Watch
from labkit.widgets.live_plot import LivePlot
from labkit.widgets.monitor_delivery import running_kernel


class Monitor(LivePlot):
    """Samples this machine in the background, draws it live where it is displayed, and records it.

    Made by `labkit.monitor`. Sampling ends with `stop`, or when nothing refers to the monitor any more.
    """

    WHAT = "live plot of this machine and of your own metrics"

    def __init__(self, interval: float = sampler.DEFAULT_INTERVAL):
        super().__init__(Recording(interval, machine=machine.described()))
        self._began = time.monotonic()
        self._own = OwnMetrics()
        self._watch = Watch()
        self._changed_spans: dict[int, None] = {}
        sampler.shared().subscribe(self, interval)

    def metric(self, name: str, value: float, *, provenance: str = "measured") -> None:
        """Plot a number of your own in a panel of its own.

        Parameters
        ----------
        name : str
            Its name, the same at every call; a unit in it is used, as in ``"images/s"`` or ``"step (ms)"``.
        value : float
            The number; of several within one sampling interval the last is kept.
        provenance : str
            ``"measured"``, ``"emulated"`` or ``"modelled"``: where the number comes from.
        """
        self._own.set(name, value, provenance)

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Mark the region of time in which the body runs, on the plot and in the recording."""
        number = self._recording.begin(str(name), self._now())
        self._changed_spans[number] = None
        try:
            yield
        finally:
            self._recording.end(number, self._now())
            self._changed_spans[number] = None

    def stop(self) -> None:
        """Take no more samples; the plot and the recording stay."""
        if not self._running:
            return
        self._running = False
        sampler.shared().unsubscribe(self)
        last = self._own.readings()
        if any(reading.value is not None for reading in last):
            self._append(self._now(), last)
        if self._view is not None:
            self._view.finish()

    @contextlib.contextmanager
    def record(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Write what happens while the body runs, and nothing else, to a file for ``labkit.replay(file)``.

        Raises
        ------
        LabkitError
            At the end, when the file cannot be written.
        """
        start = self._now()
        try:
            yield
        finally:
            self._recording.between(start, self._now()).save(path)

    def take(self, now: float, readings: list[Reading]) -> None:
        """Record one sample and show it. Called by the sampler, from its thread."""
        if not self._running:
            return
        self._append(now - self._began, readings + self._own.readings())
        self._notices = self._watch.look(now, readings)
        changed, self._changed_spans = self._changed_spans, {}
        if self._view is not None:
            self._view.push(list(changed), self._notices)

    def _append(self, at: float, readings: list[Reading]) -> None:
        values = {reading.series: reading.value for reading in readings}
        self._recording.append(at, values, {reading.series: reading.reason for reading in readings})

    def _now(self) -> float:
        return time.monotonic() - self._began


def monitor(interval: float = sampler.DEFAULT_INTERVAL) -> Monitor:
    """Watch this machine: GPUs, processor, memory, the emulator, and metrics of your own.

    In a notebook the result, as the last line of a cell, is a live plot. Running the same cell again stops
    the monitor it made before. Anywhere else it records, for ``figure()`` and ``save()``.

    Parameters
    ----------
    interval : float
        Seconds between samples, 0.1 at least.

    Raises
    ------
    LabkitError
        When the interval is not a number of seconds from 0.1 to 3600.
    """
    if not isinstance(interval, int | float) or not sampler.MIN_INTERVAL <= interval <= 3600:
        raise LabkitError(
            f"The interval is in seconds, from {sampler.MIN_INTERVAL} to 3600, not {interval!r}."
        )
    new = Monitor(float(interval))
    _replace_in_cell(new)
    return new


_by_cell: dict[str, tuple[str, weakref.WeakSet[Monitor]]] = {}


def _replace_in_cell(new: Monitor) -> None:
    """Stop what an earlier run of this notebook cell started: its output, and so its plot, are gone."""
    cell, run = _cell_and_run()
    if not cell:
        return
    earlier, monitors = _by_cell.get(cell, ("", weakref.WeakSet()))
    if earlier != run:
        for old in list(monitors):
            old.stop()
        monitors = weakref.WeakSet()
    monitors.add(new)
    _by_cell[cell] = run, monitors


def _cell_and_run() -> tuple[str, str]:
    """Identity of the running cell and of this run of it, as the notebook's front end tells; else empty."""
    kernel = running_kernel()
    message = kernel.get_parent() if kernel is not None else {}
    cell = str(message.get("metadata", {}).get("cellId") or "")
    return cell, str(message.get("header", {}).get("msg_id", ""))
