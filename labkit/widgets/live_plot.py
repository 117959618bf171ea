"""What a live monitor and a replay share: a recording that grows, and the ways to look at it."""

from __future__ import annotations

import importlib.util
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import LabkitError
from labkit.telemetry.recording import Recording
from labkit.widgets.monitor_delivery import running_kernel

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from labkit.widgets.monitor_view import LiveView

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
WITHOUT_WIDGETS = (
    "<p>The live plot needs a page that shows Jupyter widgets, and this one does not. It records all the same: "
    "<code>print(mon)</code> tells the state in words, <code>mon.figure()</code> draws it.</p>"
)
NOT_INSTALLED = (
    "recording only, because anywidget is not installed (pip install 'gpu-labkit[lab]'); "
    "print() tells the state in words, figure() draws what was recorded"
)


class LivePlot:
    """Shows a recording while it grows; where widgets cannot be shown, as text and as a figure."""

    NAME = "labkit monitor"
    WHAT = ""

    def __init__(self, recording: Recording, origin: str = ""):
        self._recording = recording
        self._origin = origin
        self._running = True
        self._notices: tuple[str, ...] = ()
        self._view: LiveView | None = None

    def __repr__(self) -> str:
        if running_kernel() is not None and not _has_anywidget():
            return f"{self.NAME}: {NOT_INSTALLED}"
        return f"{self.NAME} ({self.WHAT})"

    def __str__(self) -> str:
        from labkit.widgets.monitor_text import recording_text

        state = "running" if self._running else "stopped"
        return recording_text(self._recording, f"{self.NAME}, {state}", self._notices)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if running_kernel() is not None:
            bundle["text/html"] = WITHOUT_WIDGETS
            if _has_anywidget():
                model = self.widget.model_id
                bundle[VIEW_MIME] = {"version_major": 2, "version_minor": 0, "model_id": model}
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

            self._view = LiveView(self._recording, self._origin)
            weakref.finalize(self, retire, self._view).atexit = False
            if not self._running:
                self._view.finish()
        return self._view

    @property
    def recording(self) -> Recording:
        """What there is so far; it keeps growing until ``stop()``."""
        return self._recording

    @property
    def running(self) -> bool:
        """Whether samples still come."""
        return self._running

    @property
    def warnings(self) -> tuple[str, ...]:
        """What deserves attention now, in sentences; empty when nothing does."""
        return self._notices

    def figure(self, everything: bool = False) -> Figure:
        """The recording as a Plotly figure: percentages above, one panel for each other unit below.

        Parameters
        ----------
        everything : bool
            Also what the live plot hides at first: temperatures, clocks, disks, networks.

        Raises
        ------
        LabkitError
            When there is no sample yet, or Plotly is not installed.
        """
        from labkit.widgets.monitor_figure import recording_figure

        return recording_figure(self._recording, everything)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write what there is so far to a file, for ``labkit.replay(file)``; `recording_file` describes it."""
        return self._recording.save(path)


def _has_anywidget() -> bool:
    return importlib.util.find_spec("anywidget") is not None
