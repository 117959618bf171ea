"""Programs that several tests of lesson 03 use."""

from __future__ import annotations

import labkit

MIB = 2**20


def device(card: str = "A100"):
    return labkit.device_timeline(card)


def three_stages(chunks: int, events: bool, size: int = 64 * MIB):
    """The sample with a stream for each stage."""
    with device() as d:
        x, y = d.host("x", size), d.host("y", size, filled=False)
        a, b = d.buffer("a", size), d.buffer("b", size)
        streams = [d.stream(name) for name in ("in", "f", "out")]
        for p, q, r, t in zip(
            x.split(chunks), a.split(chunks), b.split(chunks), y.split(chunks), strict=True
        ):
            d.copy_in(p, q, streams[0])
            hand_over(d, events, streams[0], streams[1])
            d.kernel("f", reads=q, writes=r, takes="1ms", stream=streams[1])
            hand_over(d, events, streams[1], streams[2])
            d.copy_out(r, t, streams[2])
    return d.timeline()


def hand_over(d, events: bool, first, second) -> None:
    if events:
        event = d.event()
        event.record(first)
        event.wait(second)
