"""Lesson 09: answers that the learner finds by simulation, and that are simulated again to judge them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.messages import shown
from labkit.errors import LabkitError
from labkit.hardware.units import show_time

Trouble = tuple[str, str] | None
ALGORITHMS = ("ring", "double-tree", "halving-doubling", "hierarchical", "in-switch")
CHUNKS = (1, 16)
# One job of each row, so that no algorithm is the best for all: (servers, how many, sizes).
_JOBS = {
    "A": (("dgx-a100",), (1,), ("64KiB", "512KiB", "4MiB")),
    "B": (("dgx-a100", "dgx-h100"), (8,), ("16KiB", "64KiB", "256KiB")),
    "C": (("dgx-a100", "dgx-h100"), (4, 8), ("512MiB", "1GiB", "4GiB")),
    "D": (("dgx-a100", "dgx-h100"), (2, 4), ("16MiB", "24MiB", "32MiB")),
}
GRADIENTS, SERVERS = "102.4MB", 8  # of ResNet-50 in single precision, and how many servers the claim has


def jobs(random: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Four jobs, each a system and a size."""
    found = {}
    for letter, (servers, counts, sizes) in _JOBS.items():
        chosen = (str(random.choice(servers)), int(random.choice(counts)), str(random.choice(sizes)))
        found[letter] = dict(zip(("server", "nodes", "size"), chosen, strict=True))
    return found


@functools.cache
def times(server: str, nodes: int, size: str) -> dict[tuple[str, int], float]:
    """(algorithm, chunks) -> simulated seconds, of those that are possible on such a system."""
    from labkit.network.fabric import fabric

    made, found = fabric(server, nodes=nodes), {}
    for algorithm, chunks in itertools.product(ALGORITHMS, CHUNKS):
        try:
            result = made.all_reduce(size, algorithm, chunks=chunks, protocol="simple")
        except LabkitError:
            continue  # switches that cannot add
        found[algorithm, chunks] = result.seconds
    return found


def at_scale(jobs: dict[str, dict[str, Any]]) -> Iterator[Call]:
    for job in jobs.values():
        way, seconds = min(times(**job).items(), key=lambda item: item[1])
        yield Call(dict(job), (*way, seconds))


def judge_scale(call: Call, returned: Any) -> Trouble:
    job = call.arguments
    if not isinstance(returned, (list, tuple)) or len(returned) != 3 or not isinstance(returned[0], str):
        return (
            f"fastest returned {shown(returned)}.",
            "three are asked for: algorithm, chunks, simulated seconds.",
        )
    algorithm, chunks, seconds = returned
    known = times(**job)
    if algorithm not in ALGORITHMS or chunks not in CHUNKS:
        ways = f"choose among {', '.join(ALGORITHMS)}, in 1 or 16 chunks."
        return f"fastest returned {shown(algorithm)} in {shown(chunks)} chunks.", ways
    way = (algorithm, int(chunks))
    if way not in known:
        return f"{algorithm} is not possible here.", "the simulator says why: these switches cannot add."
    if trouble := explain.not_a_number(seconds):
        return f"The seconds are {trouble}.", "three are asked for: algorithm, chunks, simulated seconds."
    took, least = known[way], call.expected[2]
    if not math.isclose(seconds, took, rel_tol=1e-3):
        message = f"{algorithm}, chunks={chunks}: {show_time(took)} simulated, not {shown(seconds)} s."
        return message, _seconds_why(float(seconds), took)
    if took <= least * (1 + 1e-6):
        return None
    message = (
        f"{algorithm}, chunks={chunks}: {show_time(took)} simulated; another way takes {show_time(least)}."
    )
    return message, _choice_why(way, call.expected[:2])


def _seconds_why(seconds: float, took: float) -> str:
    if math.isclose(seconds, 1e3 * took, rel_tol=1e-3) or math.isclose(seconds, 1e6 * took, rel_tol=1e-3):
        return "seconds are asked for."
    if seconds < took:
        return "was it simulated with protocol='simple'? Without it a message costs nothing but its wire."
    return ""


def _choice_why(given: tuple[str, int], best: tuple[str, int]) -> str:
    if given[0] == best[0]:
        return (
            "more chunks keep all links busy."
            if best[1] > given[1]
            else "each chunk pays the start of a message."
        )
    if given[0] == "ring":
        return "a single ring takes 2(n - 1) steps, and leaves a server by one card of eight."
    if best[0] == "hierarchical":
        return "for this size the bytes on the network decide: reduce inside the servers first."
    return "for this size the number of steps decides, not the bytes."


@functools.cache
def speedup(of: str = "hierarchical", over: str = "ring") -> float:
    """How many times faster the one all-reduce is than the other, on eight DGX A100 with eight rails."""
    from labkit.network.fabric import fabric

    made = fabric("dgx-a100", nodes=SERVERS)
    return made.all_reduce(GRADIENTS, over).seconds / made.all_reduce(GRADIENTS, of).seconds


def _ratio(value: Any, unit: Any) -> claims.Trouble:
    """The right ratio and what mistakes lead to come from the simulator, so they are made when asked for."""
    right, rails = speedup(), speedup(over="rails")
    eight = "that is against eight rings, one a rail; the task asks for one flat ring."
    guesses = (
        (1.5, "that is 12 over 8, the claim's own numbers; simulate the topology stated in the task."),
        (1 / right, "upside down: the time of the flat ring over that of the hierarchical one."),
        (rails, eight),
        (1 / rails, eight),
        (1.0, "with one GPU a server there is nothing to reduce inside; the stated servers have eight."),
    )
    figure = claims.Figure(
        units={"time": 1},
        loosely=True,
        unit_hint="a ratio is in 'times'.",
        right=(claims.around(right, 0.02),),
        wrong="The hierarchical all-reduce is not {value} times faster there.",
        whys=tuple((*claims.around(guess, 0.01), why) for guess, why in guesses),
    )
    return figure(value, unit)


claim = claims.Judge(
    verdicts=("unsourced",),
    otherwise="nobody says who measured it, on what: such a figure can be neither confirmed nor refuted.",
    number=_ratio,
    left_out=(
        "topolog",
        "network",
        "size",
        "bytes",
        "gpus",
        "cards",
        "baseline",
        "algorithm",
        "source",
        "compared",
    ),
    asked="what one would have to know to repeat it.",
    hint="think of the network, of the bytes, of the GPUs in a node, of what it was compared with.",
    blank="There is nothing under '{key}' yet.",
)
