"""Lesson 03: recorded programs against their gates. All of them are exact: what was submitted, what waits for what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from labkit.compute.device_model import hazards
from labkit.compute.device_model.flow import Flow, Piece
from labkit.compute.device_model.operations import (
    COPY_IN,
    COPY_OUT,
    HOST_WAIT,
    HOST_WORK,
    KERNEL,
    Operation,
    Region,
    Wait,
    from_dict,
)
from labkit.compute.device_model.order import Order
from labkit.course.checks import Call
from labkit.hardware.units import show_bytes, show_time

Trouble = tuple[str, str] | None

_HAZARD = {
    hazards.TOO_EARLY: "two streams do not wait for each other by themselves: put both on one stream, or record an "
    "event after the first and let the second's stream wait for it.",
    hazards.OVERWRITES: "a place that is used again is free only when its last reader is done: give each chunk a "
    "place of its own, or let the writer wait for the reader.",
    hazards.BOTH_WRITE: "two operations on one place need an order between them.",
    hazards.NEVER_WRITTEN: "check which part each call reads, and that its writer is submitted before it.",
}
_WHY = {
    "stream": "both are on {stream}, and a stream does one thing after the other.",
    "event": "an event holds the second back until the first is done: record events where the data are ready, not "
    "where a chunk is finished.",
    "default stream": "a call without stream= goes to the default stream, which waits for all others, and they for it.",
    "host": "the host waits for the first before it submits the second: let streams wait for each other, and the host "
    "for nothing.",
}


def pipeline(call: Call, returned: Any) -> Trouble:
    """A program that brings chunks of x through a kernel into y, with copies and kernels side by side."""
    chunks, chunk_s = call.arguments["chunks"], call.arguments["chunk_s"]
    operations = _operations(returned)
    return (
        _counted(operations, chunks)
        or _durations(operations, chunk_s)
        or _hazards(operations)
        or _arrived(operations, call.arguments["size"])
        or _side_by_side(operations)
    )


def three_streams(call: Call, returned: Any) -> Trouble:
    """The same, with one stream for each stage."""
    operations = _operations(returned)
    return _stage_streams(operations) or pipeline(call, returned)


def training(call: Call, returned: Any) -> Trouble:
    """Steps whose losses come to the host without any step waiting for it."""
    size, steps = call.arguments["size"], call.arguments["steps"]
    operations = _operations(returned)
    kernels = [one for one in operations if one.kind == KERNEL]
    if len(kernels) != steps:
        return (
            f"There are {_count(len(kernels), 'kernel')} for {_count(steps, 'step')}.",
            "each step is one kernel.",
        )
    return (
        _durations(operations, call.arguments["step_s"])
        or _hazards(operations)
        or _losses(operations, size, steps)
        or _read_by_host(operations, 4 * steps)
        or _held_by_host(operations)
    )


def _operations(returned: Any) -> tuple[Operation, ...]:
    """The record; what cannot be one is no operations at all."""
    try:
        return tuple(from_dict(one) for one in returned)
    except (TypeError, ValueError):
        return ()


def _counted(operations: Sequence[Operation], chunks: int) -> Trouble:
    for kind, name in ((COPY_IN, "copies in"), (KERNEL, "kernels"), (COPY_OUT, "copies out")):
        found = sum(one.kind == kind for one in operations)
        if found == 0:
            begin = f"There are no {name}" if operations else "Nothing was submitted to d"
            return f"{begin}.", "each chunk needs a copy in, a kernel, and a copy out."
        if found != chunks:
            why = "each chunk is copied in, worked on, and copied out once: x.split(chunks) gives the parts."
            return f"There are {found} {name} for {chunks} chunks.", why
    return None


def _durations(operations: Sequence[Operation], each_s: float) -> Trouble:
    for one in operations:
        if one.kind == KERNEL and not (one.reads and one.writes):
            message = f"Kernel '{one.name}' {'writes' if one.reads else 'reads'} nothing."
            return (
                message,
                "say what it touches: reads=..., writes=...; hazards can only be found in what is said.",
            )
        if one.kind == KERNEL and not math.isclose(one.seconds, each_s, rel_tol=1e-9):
            message = f"{_named(one)} takes {show_time(one.seconds)}, and one takes {show_time(each_s)}."
            return message, "give the duration that the function was called with: takes=..."
    return None


def _hazards(operations: Sequence[Operation]) -> Trouble:
    found = hazards.find(operations)
    if not found:
        return None
    rest = f" ({_count(len(found), 'hazard')} in all)" if len(found) > 1 else ""
    return found[0].message[:-1] + rest + ".", _HAZARD[found[0].kind]


def _arrived(operations: Sequence[Operation], size: int) -> Trouble:
    """Every byte of y has to be the byte of x at its place, after one kernel."""
    where = Region("y", 0, size, "host", True, True, size)
    pieces = Flow(operations).of(where)
    gap = hazards.first_gap(where, [_region(where, piece) for piece in pieces])
    if gap is not None:
        missing = f"y[{show_bytes(gap[0])} : {show_bytes(gap[1])}]"
        return (
            f"Nothing is ever copied into {missing}.",
            "every part of the result has to come back to its part of y.",
        )
    for piece in pieces:
        if piece.kernels != 1:
            times = (
                "without going through the kernel" if not piece.kernels else f"after {piece.kernels} kernels"
            )
            return (
                f"{_place('y', piece)} comes from x {times}.",
                "each part goes through the kernel exactly once.",
            )
        if not piece.straight or (piece.source, piece.first) != ("x", piece.start):
            came = f"{piece.source}[{show_bytes(piece.first)} : {show_bytes(piece.last)}]"
            why = "the parts of x, of the device's arrays and of y belong together: use the same part in all calls."
            return f"{_place('y', piece)} holds the result for {came}.", why
    return None


def _region(where: Region, piece: Piece) -> Region:
    return Region(where.buffer, piece.start, piece.stop, where.place, True, True, where.whole)


def _place(name: str, piece: Piece) -> str:
    return f"{name}[{show_bytes(piece.start)} : {show_bytes(piece.stop)}]"


def _side_by_side(operations: Sequence[Operation]) -> Trouble:
    """A chunk's copy in must be free to run beside the kernel of the chunk before, and a kernel beside its copy out."""
    order = Order(operations)
    copies, kernels, results = _chunks(operations)
    for number in range(len(kernels) - 1):
        for early, late in ((kernels[number], copies[number + 1]), (results[number], kernels[number + 1])):
            if order.ordered(early, late):
                return _one_after_other(order, (early, number + 1), (late, number + 2))
            if order.ordered(late, early):
                return _one_after_other(order, (late, number + 2), (early, number + 1))
    return None


def _chunks(operations: Sequence[Operation]) -> tuple[list[Operation], list[Operation], list[Operation]]:
    """Copies in, kernels and copies out, each in the order of the chunks of x that they work on."""
    found: dict[str, list[tuple[int, Operation]]] = {COPY_IN: [], KERNEL: [], COPY_OUT: []}
    for place, one in enumerate(operations):
        if one.kind in found:
            source = one.reads[0] if one.kind != COPY_OUT else one.writes[0]
            first = Flow(operations[:place]).of(source)[0].first if one.kind == KERNEL else source.start
            found[one.kind].append((first, one))
    copies, kernels, results = ([one for _, one in sorted(group, key=_first)] for group in found.values())
    return copies, kernels, results


def _first(pair: tuple[int, Operation]) -> int:
    return pair[0]


def _one_after_other(order: Order, first: tuple[Operation, int], second: tuple[Operation, int]) -> Trouble:
    (early, chunk), (late, other) = first, second
    message = f"No overlap: {_named(late)} of chunk {other} cannot start before {_named(early)} of chunk {chunk} has "
    return f"{message}ended.", _reason(order.reason(early, late), late)


def _reason(chain: Sequence[Wait], second: Operation) -> str:
    kinds = [wait.why for wait in chain]
    for kind in ("host", "default stream", "event"):
        if kind in kinds:
            return _WHY[kind]
    return _WHY["stream"].format(stream=second.stream)


def _named(one: Operation) -> str:
    return "the kernel" if one.kind == KERNEL else f"the {one.kind}"


def _stage_streams(operations: Sequence[Operation]) -> Trouble:
    """One stream for each kind of operation, and three in all."""
    used = {
        kind: {one.stream for one in operations if one.kind == kind} for kind in (COPY_IN, KERNEL, COPY_OUT)
    }
    for kind, streams in used.items():
        if len(streams) > 1:
            what = {COPY_IN: "Copies in", KERNEL: "Kernels", COPY_OUT: "Copies out"}[kind]
            message = f"{what} are on {len(streams)} streams: {', '.join(sorted(streams))}."
            return (
                message,
                "this sample keeps one stream for each stage, and repairs what is missing between them.",
            )
    if all(used.values()) and len(set.union(*used.values())) < 3:
        return "Two stages share a stream.", "this sample keeps three streams, one for each stage."
    return None


def _losses(operations: Sequence[Operation], size: int, steps: int) -> Trouble:
    """Each loss has to come from the kernel that read that step's part of x."""
    where = Region("losses", 0, 4 * steps, "host", False, True, 4 * steps)
    pieces = Flow(operations).of(where)
    gap = hazards.first_gap(where, [_region(where, piece) for piece in pieces])
    if gap is not None:
        return (
            f"The loss of step {gap[0] // 4} never reaches the host.",
            "copy every step's loss out, or all at once.",
        )
    for step, part in enumerate(Region("x", 0, size, "host", True, False, size).split(steps)):
        for piece in pieces:
            if piece.start < 4 * step + 4 and 4 * step < piece.stop and _other(piece, part):
                said = f"{piece.source}[{show_bytes(piece.first)} : {show_bytes(piece.last)}]"
                return (
                    f"The loss of step {step} is that of {said}, not of {part}.",
                    "one part of x and of losses a step.",
                )
    return None


def _other(piece: Piece, part: Region) -> bool:
    return (piece.source, piece.first, piece.last, piece.kernels) != ("x", part.start, part.stop, 1)


def _read_by_host(operations: Sequence[Operation], size: int) -> Trouble:
    where = Region("losses", 0, size, "host", False, True, size)
    read = [
        region
        for one in operations
        if one.kind == HOST_WORK
        for region in one.reads
        if region.buffer == "losses"
    ]
    gap = hazards.first_gap(where, read)
    if gap is None:
        return None
    message = f"The host never looks at the loss of step {gap[0] // 4}."
    return message, "the losses are there to be looked at: d.host_work(..., reads=...) at the end."


def _held_by_host(operations: Sequence[Operation]) -> Trouble:
    """No step may be submitted after the host has waited for an earlier one."""
    order = Order(operations)
    kernels = [one for one in operations if one.kind == KERNEL]
    for one in kernels:
        held = [wait for wait in operations if wait.kind == HOST_WAIT and order.ordered(wait, one)]
        if held:
            message = (
                f"Step {kernels.index(one)} is submitted only after the host has waited ({held[-1].name})."
            )
            return message, _hidden(held[-1].name)
    return _copies_ahead(operations, order, kernels)


def _copies_ahead(operations: Sequence[Operation], order: Order, kernels: Sequence[Operation]) -> Trouble:
    copies = sorted((one for one in operations if one.kind == COPY_IN), key=lambda one: one.reads[0].start)
    for step, (kernel, copy) in enumerate(zip(kernels, copies[1:], strict=False)):
        if not order.free(kernel, copy):
            message = f"The copy in for step {step + 1} cannot run beside the kernel of step {step}."
            return message, _reason(order.reason(kernel, copy), copy)
    return None


def _hidden(name: str) -> str:
    if "pageable" in name:
        return (
            "losses lies in pageable memory, so each copy into it makes the host wait, without any synchronize: keep "
            "the losses on the device and copy them out once, after the last step."
        )
    return "a look at every step's loss costs a wait at every step: keep the losses on the device, and look at the end."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
