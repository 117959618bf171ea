"""How a wire is held to its bandwidth, latency and loss: one queueing discipline at each of its ends.

What leaves a device waits in a token bucket filter (tbf). Where the kernel has netem, that does latency and
loss as well, and the bandwidth with them; elsewhere latency and loss are not shaped, and the cluster says so.
A cut wire throws away what is sent into it, as a pulled cable does: neither end is told.
"""

from __future__ import annotations

from dataclasses import replace

from labkit.errors import LabkitError
from labkit.network.cluster.plan import Plan, Shape

_BURST_S = 1e-3  # what may pass at once: a busy processor is late by that much, and the link loses nothing
_SHORT_BURST_S = 0.25e-3  # where a queue is asked for
_LEAST_BURST = 1 << 17  # packets of 64 KiB with all their headers, as TCP hands them down, are not cut up
_QUEUE_S = 20e-3
_LEAST_QUEUE = 1 << 20
_PACKET = 1500


def command(device: str, shape: Shape, netem: bool) -> str:
    """The line for ``tc -batch`` that gives ``device`` this shape.

    Unless the shape says otherwise, a queue holds 20 ms of traffic, and 1 MiB at least: what comes on top is lost.
    Where a queue is asked for, bursts are as short as on a real line, which costs more of the processor.
    """
    head = f"qdisc replace dev {device} root"
    if shape.cut:
        return f"{head} blackhole"
    if netem and (shape.latency or shape.loss):
        return f"{head} netem{_netem(shape)}"
    if shape.bandwidth is None:
        return f"{head} pfifo limit 1000" if shape.queue is None else f"{head} bfifo limit {shape.queue}"
    rate = shape.bandwidth
    burst = max(_LEAST_BURST, round(rate * _BURST_S))
    if shape.queue is not None:
        burst = max(2 * _PACKET, round(rate * _SHORT_BURST_S))
    limit = max(_LEAST_QUEUE, round(rate * _QUEUE_S)) if shape.queue is None else shape.queue
    return f"{head} tbf rate {round(8 * rate)}bit burst {burst} limit {limit}"


def _netem(shape: Shape) -> str:
    rate = shape.bandwidth or 1.25e9
    waiting = rate * _QUEUE_S if shape.queue is None else shape.queue
    least = 1000 if shape.queue is None else 1
    words = f" limit {max(least, round((rate * shape.latency + waiting) / _PACKET))}"  # packets
    words += f" delay {round(1e6 * shape.latency)}us" if shape.latency else ""
    words += f" loss {100 * shape.loss:g}%" if shape.loss else ""
    return words + (f" rate {round(8 * shape.bandwidth)}bit" if shape.bandwidth else "")


def note(shapes: list[Shape], netem: bool) -> str:
    """What cannot be had on this kernel, in a sentence; empty when all can."""
    if netem:
        return ""
    wanted = ["latency"] if any(shape.latency for shape in shapes) else []
    wanted += ["loss"] if any(shape.loss for shape in shapes) else []
    if not wanted:
        return ""
    what = " and ".join(wanted)
    return (
        f"This kernel has no netem, so {what} {'are' if len(wanted) > 1 else 'is'} not shaped: "
        "links have the latency of this machine; their bandwidth is as asked."
    )


def possible(plan: Plan, netem: bool) -> Plan:
    """The plan without what this kernel cannot do, so that nothing is shown that is not there."""
    if netem:
        return plan
    return plan.reshaped({wire.name: replace(wire.shape, latency=0.0, loss=0.0) for wire in plan.wires})


def share(value: float | str) -> float:
    """A share of packets from 0.01 or ``"1%"``.

    Raises
    ------
    LabkitError
        For what is neither.
    """
    try:
        return float(value[:-1]) / 100 if isinstance(value, str) and value.endswith("%") else float(value)
    except (TypeError, ValueError):
        raise LabkitError(
            f"loss={value!r} is no share of packets: give 0.01 or '1%' for one in a hundred."
        ) from None


def check(shape: Shape) -> Shape:
    """``shape``, when a wire can have it.

    Raises
    ------
    LabkitError
        For a bandwidth that tbf cannot keep, or a loss that is no share.
    """
    if shape.bandwidth is not None and not 1e3 <= shape.bandwidth <= 5e10:
        raise LabkitError(
            f"A link of {shape.bandwidth:g} bytes/s cannot be kept: give 8 kbit/s to 400 Gbit/s, "
            "None for no limit, or .cut() for nothing at all."
        )
    if not 0 <= shape.loss < 1:
        raise LabkitError(
            f"loss={shape.loss:g} is no share of packets: give 0.01 for one in a hundred, less than 1."
        )
    if shape.queue is not None and not 2 * _PACKET <= shape.queue <= 1 << 30:
        raise LabkitError(
            f"A queue of {shape.queue} bytes is of no use: give {2 * _PACKET} bytes (two packets) to 1 GiB, or None."
        )
    if shape.latency > 10:
        raise LabkitError(f"A latency of {shape.latency:g} s is too long to be of use: give at most 10 s.")
    return shape
