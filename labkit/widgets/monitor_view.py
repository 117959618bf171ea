"""The live plot's widget: sends each new sample once, and only while a view acknowledges.

Messages to the view: ``[number, series, heard]`` with one row of ``monitor_wire`` (a fourth entry lists spans
that changed), or ``{"history": [number, series, heard], "spans": [...]}`` with many rows. ``number`` counts
samples, ``series`` says how many series a row holds, ``heard`` is the last sample whose acknowledgement has
arrived. From the view: ``{"ack": number}``, and ``{"hello": 1}`` when it has nothing to draw.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import resources
from typing import Any

import anywidget
import traitlets

from labkit.telemetry.recording import Recording
from labkit.widgets import monitor_wire as wire
from labkit.widgets.monitor_delivery import Delivery, kernel_pulse

HISTORY = 3600  # samples a view starts with: half an hour at two a second
HISTORY_SPANS = 400
NEW_SPANS = 40  # a message; a loop that opens thousands a second is recorded whole, and drawn in part
DESCRIBE_EVERY = 5.0  # seconds between descriptions when only a reason has changed
SCRIPTS = (
    "monitor_data.js",
    "monitor_scale.js",
    "monitor_draw.js",
    "monitor_spans.js",
    "monitor_legend.js",
    "monitor_picker.js",
    "monitor_view.js",
)


def _package_text(*names: str) -> str:
    folder = resources.files("labkit.widgets") / "js"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


class LiveView(anywidget.AnyWidget):
    """Draws a recording while it grows. Keeps the recording alive, not the monitor that fills it."""

    _esm = _package_text(*SCRIPTS)
    _css = _package_text("monitor.css")
    _series: Any = traitlets.List().tag(sync=True)
    _interval = traitlets.Float().tag(sync=True)
    _state = traitlets.Unicode("live").tag(sync=True)
    _notices: Any = traitlets.List().tag(sync=True)
    _origin = traitlets.Unicode("").tag(sync=True)

    def __init__(self, recording: Recording, origin: str = "") -> None:
        self._recording = recording
        self._number = 0
        self._heard = 0
        self._open_spans: set[int] = set()
        self._wants_history = False
        self._described_at = 0.0
        self._delivery = Delivery(time.monotonic())
        self._pulse = kernel_pulse()
        super().__init__(_interval=recording.interval, _series=self._descriptions(), _origin=origin)
        self.on_msg(self._on_view_message)

    @property
    def paused(self) -> bool:
        """Whether sending waits for a view."""
        return self._delivery.paused

    def push(self, changed_spans: Sequence[int] = (), notices: Sequence[str] = ()) -> None:
        """Send the newest sample. Called once a sample, from the sampler's thread."""
        self._number += 1
        if not self._may_send():
            return
        self._describe()
        if list(notices) != self._notices:
            self._notices = list(notices)
        if self._wants_history:
            self._send_history()
        else:
            self._send_sample(changed_spans)

    def finish(self) -> None:
        """No more samples will come: say so, and send what the last message left out."""
        if not self.paused:
            self._describe(at_once=True)
            self._send_history()
        self._state = "stopped"

    def _may_send(self) -> bool:
        delivery = self._delivery
        ask = delivery.doubtful and not delivery.paused
        delivery.pass_time(time.monotonic(), self._pulse.answers() if ask else True)
        return not delivery.paused

    def _send_sample(self, changed: Sequence[int]) -> None:
        series = self._recording.series
        content: list[Any] = [self._number, len(series), self._heard]
        spans = self._span_rows(changed)
        if spans:
            content.append(spans)
        times, values = self._recording.samples(last=1)
        self.send(content, buffers=[wire.encode(times, values, series[: len(values)])])

    def _send_history(self) -> None:
        self._wants_history = False
        spans = self._recording.numbered_spans()
        recent = dict(list(spans.items())[-HISTORY_SPANS:])
        self._open_spans = {number for number, span in recent.items() if span.end is None}
        times, values = self._recording.samples(last=HISTORY)
        series = self._recording.series[: len(values)]
        content = {
            "history": [self._number, len(series), self._heard],
            "spans": [wire.span_row(*item) for item in recent.items()],
        }
        self.send(content, buffers=[wire.encode(times, values, series)])

    def _span_rows(self, changed: Sequence[int]) -> list[list[Any]]:
        """Spans the view must hear of: first the ends of those it draws as open, then the newest."""
        if not changed and not self._open_spans:
            return []
        spans = self._recording.numbered_spans()
        ended = [
            number for number in self._open_spans if number not in spans or spans[number].end is not None
        ]
        newest = [number for number in changed if number in spans and number not in ended][-NEW_SPANS:]
        self._open_spans.difference_update(ended)
        self._open_spans.update(number for number in newest if spans[number].end is None)
        return [wire.span_row(number, spans[number]) for number in ended + newest if number in spans]

    def _descriptions(self) -> list[dict[str, Any]]:
        described = zip(self._recording.series, self._recording.reasons, strict=False)
        return [wire.describe(series, reason) for series, reason in described]

    def _describe(self, at_once: bool = False) -> None:
        """Tell the view of new series at once; of changed reasons now and then, as they may flicker."""
        now = time.monotonic()
        new = len(self._recording.series) != len(self._series)
        if new or at_once or now - self._described_at >= DESCRIBE_EVERY:
            self._described_at = now
            self._series = self._descriptions()

    def _on_view_message(self, _: Any, content: Any, __: Any) -> None:
        if not isinstance(content, dict):
            return
        number = content.get("ack")
        if isinstance(number, int):
            self._heard = max(self._heard, number)
        missed = self._delivery.heard()
        if missed or "hello" in content:
            self._wants_history = True
        if self._wants_history and self._state == "stopped":
            self._describe(at_once=True)
            self._send_history()


def retire(view: LiveView) -> None:
    """Close a view whose monitor is gone; ipywidgets would keep it, and its recording, for ever."""
    view.layout.close()
    view.close()
