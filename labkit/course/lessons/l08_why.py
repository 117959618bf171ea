"""Lesson 08: what is wrong with a crossover, a hierarchy, a checkpoint interval or a claim, and why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import difference, number
from labkit.course.lessons import l08_failing
from labkit.course.lessons.l03_cases import fitted
from labkit.course.lessons.l08_cases import meeting
from labkit.course.lessons.l08_record import contribution
from labkit.course.messages import shown
from labkit.hardware.units import show_time

Trouble = tuple[str, str] | None


def crossover(call: Call, returned: Any) -> Trouble:
    wanted = call.expected
    infinite = isinstance(returned, (float, np.floating)) and math.isinf(returned)
    if not infinite and (trouble := explain.not_a_number(returned)):
        return f"crossover returned {trouble}.", "one number is asked for: a size in bytes."
    value = float(returned)
    if value == wanted or math.isclose(value, wanted, rel_tol=1e-6, abs_tol=1e-9):
        return None
    message = f"crossover returned {number(value)} bytes, expected {number(wanted)}."
    return message, _crossover_why(call.arguments, value, wanted)


def _crossover_why(table: dict[str, Any], value: float, wanted: float) -> str:
    if math.isinf(wanted):
        return "here eager is faster at every size, and the lines never cross: return math.inf."
    if wanted == 0.0:
        return "here rendezvous is faster from the first byte on: return 0.0."
    n, both = np.asarray(table["sizes"], float), (table["eager_s"], table["rendezvous_s"])
    lines = [(alpha, 1 / beta) for alpha, beta, _ in (fitted(table["sizes"], seconds, 0) for seconds in both)]
    (start, slope), (later, flatter) = lines
    faster = [size for size, e, r in zip(n, *both, strict=True) if r < e]
    short_cuts = (
        ([_ends(n[-2:], seconds[-2:]) for seconds in both], _LARGEST),
        ([_ends(n[[0, -1]], np.asarray(seconds)[[0, -1]]) for seconds in both], _TWO),
        ([tuple(np.polyfit(n, seconds, 1)[::-1]) for seconds in both], _ABSOLUTE),
    )
    guesses = (
        *((meeting(pair), why) for pair, why in short_cuts),
        *(((b[0] - a[0]) / (a[1] - b[1]), why) for (a, b), why in short_cuts),
        (faster[0] if faster else math.nan, "this is a row of the table: the lines cross between two rows."),
        ((later - start) / flatter, "divide by the difference of the slopes, not by one of them."),
        ((later - start) / slope, "divide by the difference of the slopes, not by one of them."),
        (-wanted, "the sign is wrong: more start-up of rendezvous over more seconds a byte of eager."),
        (later / slope, "eager has a start-up too: take the difference of the two."),
        (wanted / 1024, "this is in KiB; bytes are asked for."),
    )
    return next((why for guess, why in guesses if math.isclose(guess, value, rel_tol=1e-6)), "")


_LARGEST = (
    "this fits the largest sizes alone, where start-ups cannot be seen: fit all rows, by relative errors."
)
_TWO = "this is a line through the first and last row alone: least squares takes all rows."
_ABSOLUTE = (
    "this minimises errors in seconds, so the largest sizes decide alone, and start-ups are lost: divide each error by "
    "its time."
)


def _ends(sizes: Any, seconds: Any) -> tuple[float, float]:
    slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    return float(seconds[0] - slope * sizes[0]), float(slope)


def hierarchical(call: Call, returned: Any) -> Trouble:
    """Sums right on every rank; then the bytes that leave each node, and who sends them."""
    nodes, per_node, elements = (call.arguments[name] for name in ("nodes", "per_node", "elements"))
    try:
        data = [np.asarray(one) for one in returned["data"]]
        messages = [tuple(map(int, one)) for one in returned["messages"]]
        kinds = list(map(str, returned["kinds"]))
    except (TypeError, ValueError, KeyError):
        return (
            "What hierarchical did cannot be read.",
            "work on data in place, with labkit's own collectives.",
        )
    return (
        _sums(data, nodes * per_node, elements, per_node)
        or _over_the_wire(messages, nodes, per_node, elements)
        or _ready_made(kinds, nodes, per_node)
    )


def _ready_made(kinds: list[str], nodes: int, per_node: int) -> Trouble:
    """No phase inside a node can be an all-reduce and send so little: then labkit's whole function was called."""
    if nodes == 1 or per_node == 1 or kinds != ["all_reduce"]:
        return None
    why = "the task is to write it, from ring_reduce_scatter, ring_all_reduce and ring_all_gather."
    return "The sums are right, and a ready-made hierarchical_all_reduce has made them.", why


def _sums(data: list[np.ndarray], world: int, elements: int, per_node: int) -> Trouble:
    brought = [contribution(rank, elements) for rank in range(world)]
    total = np.sum(brought, axis=0)
    for rank, got in enumerate(data):
        if got.shape != total.shape or got.dtype != total.dtype:
            return f"data of rank {rank} has become {shown(got)}.", "write into data: data[...] = ..."
        if (found := difference(got, total)) is not None:
            node = rank - rank % per_node
            own = np.sum(brought[node : node + per_node], axis=0)
            return f"On rank {rank}, {found.sentence('data')}", _sum_why(got, total, own, brought[rank])
    return None


def _sum_why(got: np.ndarray, total: np.ndarray, own: np.ndarray, brought: np.ndarray) -> str:
    right = got == total
    if (got == brought).all():
        return "data is as it was: collectives work in place, so hand them data itself, or a slice of it."
    if (got == own).all():
        return "this is the sum inside the node alone: the second phase, across nodes, is missing."
    if right.any() and (got[~right] != own[~right]).any():
        return (
            "this rank's own chunk is right and the others are not: the last phase gathers them in the node."
        )
    return "who adds up with whom? members of the second phase have the same place in their nodes."


def _over_the_wire(messages: list[tuple[int, ...]], nodes: int, per_node: int, elements: int) -> Trouble:
    """Bytes from node to node against 2 (m - 1) / m of the data out of each node, from all of its ranks alike."""
    sent = [0] * (nodes * per_node)
    for source, to, size in messages:
        if source // per_node != to // per_node:
            sent[source] += size
    left = [sum(sent[node * per_node : (node + 1) * per_node]) for node in range(nodes)]
    target = 2 * (nodes - 1) * 8 * elements // nodes
    worst = max(range(nodes), key=lambda node: left[node])
    if left[worst] > target:
        message = f"{left[worst]:,} bytes leave node {worst}, target {target:,} (2 (m - 1) / m of the data)."
        return message, _wire_why(left[worst], nodes, per_node, elements)
    busiest = max(range(len(sent)), key=lambda rank: sent[rank])
    if sent[busiest] > target // per_node:
        message = (
            f"Rank {busiest} sends {sent[busiest]:,} bytes over the slow link, target {target // per_node:,}."
        )
        return (
            message,
            "one rank speaks for its node: let each rank carry its own chunk, over its own network card.",
        )
    return None


def _wire_why(left: int, nodes: int, per_node: int, elements: int) -> str:
    size, world = 8 * elements, nodes * per_node
    if left == per_node * 2 * (nodes - 1) * size // nodes:
        return (
            f"that is {per_node} times the target: every rank sends all of its data across, where its own chunk, 1 / "
            "per_node of it, is enough."
        )
    if left == 2 * (world - 1) * size // world:
        return "that is what one flat ring over all ranks sends: first add up inside the nodes, where links are fast."
    if left >= per_node * 2 * (world - 1) * size // world:
        return "that is a ring whose every hop leaves a node: ring order matters, and so does adding up inside first."
    return "add up inside the nodes first: only one chunk a rank has to cross."


def goodput(call: Call, returned: Any) -> Trouble:
    """Time with this interval under seeded failures, within 1.1 of the best interval that was found."""
    table = call.arguments
    if trouble := explain.not_a_number(returned):
        return (
            f"interval returned {trouble}.",
            "one number is asked for: seconds of work between checkpoints.",
        )
    mean = table["node_mtbf_s"] / table["nodes"]
    given = float(returned)
    if given <= 0:
        return (
            f"interval returned {number(given)} s.",
            "work between two checkpoints takes longer than nothing.",
        )
    best, least = l08_failing.best(mean, table["checkpoint_s"], table["restart_s"])
    taken = (
        math.inf
        if given < best / 300
        else l08_failing.seconds(given, mean, table["checkpoint_s"], table["restart_s"])
    )
    if taken <= 1.1 * least:
        return None
    much = (
        "is never done"
        if math.isinf(taken)
        else f"takes {taken / least:.2f} times as long as with {show_time(best)}"
    )
    message = f"With a checkpoint every {show_time(given)} the job {much}, target 1.1 (seeded failures)."
    return message, _goodput_why(table, given, mean, best)


def _goodput_why(table: dict[str, float], given: float, mean: float, best: float) -> str:
    writing, again = table["checkpoint_s"], table["restart_s"]
    guesses = (
        (
            math.sqrt(2 * writing * table["node_mtbf_s"]),
            "the MTBF is one node's: a job on n nodes fails n times as often.",
        ),
        (mean, "that is the time between two failures: half of all work would be lost."),
        (2 * writing * mean, "the root is missing: sqrt(2 * checkpoint * mtbf / nodes)."),
        (
            math.sqrt(2 * again * mean),
            "a restart costs the same however often you save: what is traded is a checkpoint's own time.",
        ),
        (writing, "as long as a checkpoint takes: half of the time would go into writing."),
        (math.sqrt(2 * writing * mean) / 3600, "this is in hours; seconds are asked for."),
        (
            math.sqrt(2 * writing * table["node_mtbf_s"]) / table["nodes"],
            "divide the MTBF by the number of nodes before taking the root.",
        ),
    )
    found = [why for guess, why in guesses if math.isclose(guess, given, rel_tol=1e-4)]
    if found:
        return found[0]
    return (
        "too seldom: a failure throws away much work."
        if given > best
        else "too often: writing takes too much time."
    )


claim = claims.Judge(
    verdicts=("false",),
    reasons={
        "unsourced": "there are sources, data sheets of switches; they speak of something else than the claim does.",
    },
    otherwise="the sentence speaks of InfiniBand's latency; no message between two machines is that fast.",
    number=claims.Figure(
        units={
            "us": 1,
            "µs": 1,
            "μs": 1,
            "microseconds": 1,
            "ns": 1e-3,
            "nanoseconds": 1e-3,
            "s": 1e6,
        },
        unit_hint="a latency is in 'us' or 'ns'.",
        right=((1.35, 1.95),),
        wrong="A small RDMA write through a fabric does not take {value} {unit}.",
        whys=(
            (
                0.05,
                0.2,
                "that is the time to pass one switch; both network cards and the way to memory come on top.",
            ),
            (0.55, 0.95, "that is two cards joined by a cable; the question has a fabric in between."),
            (2.4, 4.2, "that is from GPU to GPU, with MPI; the question is about a plain RDMA write."),
            (9, 51, "that is TCP through the kernel; RDMA leaves the kernel out."),
        ),
    ),
    left_out=("switch", "end to end", "end-to-end", "port", "adapter", "card", "hca", "nic"),
    asked="what the 100 ns are the latency of, or what they leave out.",
    hint="whose data sheet has a number below 100 ns? What else does a message pass on its way?",
)
