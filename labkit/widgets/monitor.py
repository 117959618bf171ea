"""``labkit.monitor()``: watch what the machine does while cells run, and keep it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import LabkitError
from labkit.telemetry import sampler
from labkit.telemetry.own import OwnMetrics
from labkit.telemetry.recording import Recording
from labkit.telemetry.series import Reading
from labkit.widgets.monitor_delivery import running_kernel

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from labkit.widgets.monitor_view import LiveView

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
NO_WIDGET = (
    "labkit monitor: recording only, because anywidget is not installed (pip install 'gpu-labkit[lab]'); "
    "figure() draws what was recorded"
)


class Monitor:
    """Samples this machine in the background, draws it live where it is displayed, and records it.

    Made by `labkit.monitor`. Sampling ends with `stop`, or when nothing refers to the monitor any more.
    """

    def __init__(self, interval: float = sampler.DEFAULT_INTERVAL):
        self._began = time.monotonic()
        self._own = OwnMetrics()
        self._recording = Recording(interval)
        self._changed_spans: dict[int, None] = {}
        self._view: LiveView | None = None
        self._running = True
        sampler.shared().subscribe(self, interval)

    def __repr__(self) -> str:
        if running_kernel() is not None and not _has_anywidget():
            return NO_WIDGET
        return "labkit monitor (live plot of this machine and of your own metrics)"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if running_kernel() is not None and _has_anywidget():
            bundle[VIEW_MIME] = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return bundle

    @property
    def widget(self) -> LiveView:
        """The live plot as a widget, to be placed in layouts of other widgets.

        Raises
        ------
        LabkitError
            When anywidget is not installed.
        """
        if not _has_anywidget():
            raise LabkitError("The live plot needs anywidget: pip install 'gpu-labkit[lab]'.")
        if self._view is None or self._view.comm is None:  # not yet shown, or closed by hand
            from labkit.widgets.monitor_view import LiveView, retire

            self._view = LiveView(self._recording)
            weakref.finalize(self, retire, self._view).atexit = False
            if not self._running:
                self._view.finish()
        return self._view

    @property
    def recording(self) -> Recording:
        """What was sampled so far; it keeps growing until `stop`."""
        return self._recording

    @property
    def running(self) -> bool:
        """Whether samples are being taken."""
        return self._running

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

    def figure(self) -> Figure:
        """The recording as a Plotly figure: percentages above, one panel for each other unit below.

        Raises
        ------
        LabkitError
            When there is no sample yet, or Plotly is not installed.
        """
        from labkit.widgets.monitor_figure import recording_figure

        return recording_figure(self._recording)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recording to a file that `labkit.telemetry.recording` describes and ``load`` reads."""
        return self._recording.save(path)

    def take(self, now: float, readings: list[Reading]) -> None:
        """Record one sample and show it. Called by the sampler, from its thread."""
        if not self._running:
            return
        self._append(now - self._began, readings + self._own.readings())
        changed, self._changed_spans = self._changed_spans, {}
        if self._view is not None:
            self._view.push(list(changed))

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


def _has_anywidget() -> bool:
    return importlib.util.find_spec("anywidget") is not None
