"""``labkit.replay(file)``: a recording comes to life again, for lessons and demonstrations."""

from __future__ import annotations

import os

from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording
from labkit.telemetry.sampler import Sampler
from labkit.telemetry.series import Reading
from labkit.telemetry.sources.replay import ReplaySource
from labkit.telemetry.watch import Watch
from labkit.widgets.live_plot import LivePlot

SLOWEST, FASTEST = 1.0, 20.0
STEP = 0.25  # seconds between steps, at most


class Replay(LivePlot):
    """Plays a recording into a live plot. Made by `labkit.replay`."""

    NAME = "labkit replay"
    WHAT = "a recording, shown again as it grew"

    def __init__(self, whole: Recording, speed: float):
        self._whole = whole
        copy = Recording(whole.interval, max(1, len(whole)), whole.began, whole.machine)
        super().__init__(
            copy, f"a recording at {speed:g} times its speed; {whole.machine or 'made elsewhere'}"
        )
        self._source = ReplaySource(whole, speed)
        self._watch = Watch()
        self._open: dict[int, int] = {}  # number of a span in the whole recording -> in the copy
        self._sampler = Sampler(list)
        self._sampler.subscribe(self, max(0.1, min(STEP, whole.interval / speed)))

    def stop(self) -> None:
        """Stop where it is; the plot stays."""
        if self._running:
            self._running = False
            self._sampler.unsubscribe(self)
            if self._view is not None:
                self._view.finish()

    def take(self, now: float, readings: list[Reading]) -> None:
        """Append what is due. Called by the replay's own sampler, from its thread."""
        if not self._running:
            return
        for at, values in self._source.due():
            known = [Reading(series, value) for series, value in values.items()]
            self._notices = self._watch.look(at, known)
            self._recording.append(at, values, {})
            changed = self._spans(at)
            if self._view is not None:
                self._view.push(changed, self._notices)
        if self._source.ended:
            self.stop()

    def _spans(self, at: float) -> list[int]:
        """Open and close the spans whose time has come; the copy's numbers of those that changed."""
        changed = []
        for number, span in self._whole.numbered_spans().items():
            if number not in self._open and span.start <= at:
                self._open[number] = self._recording.begin(span.name, span.start)
                changed.append(self._open[number])
            if span.end is not None and span.end <= at and number in self._open:
                copy = self._open[number]
                if self._recording.numbered_spans()[copy].end is None:
                    self._recording.end(copy, span.end)
                    changed.append(copy)
        return changed


def replay(file: str | os.PathLike[str] | Recording, speed: float = 1.0) -> Replay:
    """Show a recording again: as the last line of a cell, it is a live plot.

    Parameters
    ----------
    file : path, name or Recording
        What ``mon.save()`` wrote, or the name of a recording that comes with labkit
        (`labkit.telemetry.traces` lists them).
    speed : float
        Seconds of the recording in each second, 1 to 20.

    Raises
    ------
    LabkitError
        When there is no such recording, it is empty, or the speed is not between 1 and 20.
    """
    from labkit.telemetry import traces

    if not isinstance(speed, int | float) or not SLOWEST <= speed <= FASTEST:
        raise LabkitError(f"The speed is a number from {SLOWEST:g} to {FASTEST:g}, not {speed!r}.")
    recording = file if isinstance(file, Recording) else traces.open(file)
    if not len(recording):
        raise LabkitError("This recording holds no sample, so there is nothing to show.")
    return Replay(recording, float(speed))
