"""When samples may be sent, and how they are packed: the parts of the live plot that need no kernel."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.telemetry.recording import Span
from labkit.telemetry.series import Series
from labkit.widgets import monitor_wire as wire
from labkit.widgets.monitor_delivery import BUSY_LIMIT, SILENCE, Delivery, NoKernel, Pulse

SHARE = Series("cpu", "CPU", "%", "measured", "cpu")
OWN_SHARE = Series("own.accuracy %", "accuracy %", "%", "measured", "own")
POWER = Series("gpu.0.power", "GPU 0 power", "W", "measured", "gpu power", of="700 W")


def test_sending_pauses_after_thirty_silent_seconds() -> None:
    delivery = Delivery(100.0)
    delivery.pass_time(100.0 + SILENCE - 0.1, kernel_answers=True)
    assert not delivery.paused
    delivery.pass_time(100.0 + SILENCE, kernel_answers=True)
    assert delivery.paused


def test_time_in_which_the_kernel_could_not_read_does_not_count() -> None:
    delivery = Delivery(0.0)
    delivery.pass_time(60.0, kernel_answers=False)
    assert not delivery.paused
    delivery.pass_time(60.0 + SILENCE, kernel_answers=True)
    assert delivery.paused


def test_a_kernel_busy_for_very_long_is_not_sent_to_for_ever() -> None:
    delivery = Delivery(0.0)
    delivery.pass_time(BUSY_LIMIT, kernel_answers=False)
    assert delivery.paused


def test_view_that_returns_has_missed_samples_and_the_pause_is_over() -> None:
    delivery = Delivery(0.0)
    assert not delivery.heard()
    delivery.pass_time(SILENCE, kernel_answers=True)
    delivery.pass_time(5000.0, kernel_answers=True)
    assert delivery.heard()
    delivery.pass_time(5001.0, kernel_answers=True)
    assert not delivery.paused


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=60))
def test_paused_exactly_when_the_countable_silence_is_too_long(steps: list[tuple[float, bool]]) -> None:
    delivery, now, countable, whole = Delivery(0.0), 0.0, 0.0, 0.0
    for elapsed, answers in steps:
        now += elapsed
        if countable < SILENCE and whole < BUSY_LIMIT:
            whole += elapsed
            countable += elapsed if answers else 0.0
        delivery.pass_time(now, answers)
    assert delivery.paused == (
        countable == pytest.approx(SILENCE) or countable > SILENCE or whole >= BUSY_LIMIT
    ) or (abs(countable - SILENCE) < 1e-6)


def test_pulse_asks_one_question_at_a_time() -> None:
    class Loop:
        def __init__(self) -> None:
            self.asked: list[object] = []

        def add_callback(self, callback: object) -> None:
            self.asked.append(callback)

    loop = Loop()
    pulse = Pulse(loop)
    assert pulse.answers()
    assert [pulse.answers() for _ in range(3)] == [False] * 3
    assert len(loop.asked) == 1
    loop.asked[0]()  # type: ignore[operator]
    assert pulse.answers()
    assert NoKernel().answers()


def test_row_is_time_then_a_byte_for_shares_and_four_for_the_rest() -> None:
    row = wire.encode(
        np.array([1.5]), np.array([[50.0], [0.25], [np.nan]], np.float32), [SHARE, OWN_SHARE, POWER]
    )
    seconds, share, own, power = struct.unpack("<dBff", row)
    assert (seconds, share, own) == (1.5, 100, 0.25)
    assert np.isnan(power)


@given(st.lists(st.floats(0, 100, width=32) | st.just(float("nan")), min_size=1, max_size=30))
def test_shares_survive_within_a_quarter_per_cent(values: list[float]) -> None:
    rows = wire.encode(np.arange(len(values), dtype=float), np.array([values], np.float32), [SHARE])
    back = np.frombuffer(rows, wire.row_type([SHARE]))
    for value, byte in zip(values, back["v0"], strict=True):
        if np.isnan(value):
            assert byte == wire.BYTE_GAP
        else:
            assert abs(byte / wire.STEPS - value) <= 0.25 + 1e-6


def test_history_is_rows_one_after_the_other() -> None:
    values = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], np.float32)
    whole = wire.encode(np.array([0.5, 1.0, 1.5]), values, [SHARE, POWER])
    parts = [
        wire.encode(np.array([t]), values[:, i : i + 1], [SHARE, POWER])
        for i, t in enumerate((0.5, 1.0, 1.5))
    ]
    assert whole == b"".join(parts)


def test_description_leaves_out_what_is_empty_and_keeps_provenance_and_reason() -> None:
    assert wire.describe(SHARE, "") == {"name": "CPU", "unit": "%", "group": "cpu", "byte": 1}
    emulated = Series("emulator", "Emulated GPU", "%", "emulated", "emulator")
    assert wire.describe(emulated, "asleep")["from"] == "emulated"
    assert wire.describe(POWER, "no permission")["reason"] == "no permission"


def test_span_row_tells_open_from_closed() -> None:
    assert wire.span_row(3, Span("copy", 1.25)) == [3, "copy", 1.25, None]
    assert wire.span_row(3, Span("copy", 1.25, 2.5)) == [3, "copy", 1.25, 2.5]
