"""Lesson 07, stretch exercises and claim: what is wrong, and why where the mistake is typical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import difference
from labkit.course.lessons import l07_cases as cases
from labkit.course.lessons.l07_record import embedding, layers
from labkit.course.lessons.l07_why import Trouble, flights, recorded, total
from labkit.course.messages import shown
from labkit.errors import LabkitError
from labkit.hardware.units import show_bytes
from labkit.network.training.schedules import Schedule, Step, one_f_one_b


def _two_arrays(results: list[Any], names: tuple[str, str], wanted: Callable[[int], tuple[Any, Any]]) -> Any:
    """What is wrong with the two arrays of each rank: rank, name, got, wanted, message; or nothing."""
    for rank, pair in enumerate(results):
        if not isinstance(pair, list) or len(pair) != 2:
            return (
                rank,
                "",
                None,
                None,
                f"Rank {rank} returned {shown(pair)}; ({', '.join(names)}) is asked for.",
            )
        for name, got, right in zip(names, pair, wanted(rank), strict=True):
            if not isinstance(got, np.ndarray) or got.shape != right.shape:
                shape = got.shape if isinstance(got, np.ndarray) else shown(got)
                return (
                    rank,
                    name,
                    None,
                    right,
                    f"Rank {rank}: {name} is {shape}, expected shape {right.shape}.",
                )
            found = difference(got.astype(right.dtype), right)
            if found is not None:
                return rank, name, got, right, found.sentence(f"Rank {rank}: {name}")
    return None


def two_layers(call: Call, returned: Any) -> Trouble:
    results, events = recorded(returned)
    if trouble := flights(events):
        return trouble
    found = _two_arrays(results, ("y", "dx"), lambda _: call.expected)
    if found is not None:
        _, name, got, right, message = found
        return message, "" if got is None else _layers_why(call, name, got, right)
    y, dx = call.expected
    seen = [
        size for what, _, size in events[0] if what in ("all_reduce", "launch", "all_to_all", "broadcast")
    ]
    if sorted(seen) == sorted([y.nbytes, dx.nbytes]):
        return None
    message = f"{len(seen)} collectives of {seen} bytes were used; two all-reduces of {[y.nbytes, dx.nbytes]} suffice."
    return (
        message,
        "between the two layers each rank goes on with its own hidden features: nothing is sent there.",
    )


def _layers_why(call: Call, name: str, got: Any, right: Any) -> str:
    a = call.arguments
    w, ranks = layers(a["samples"], a["features"], a["hidden"], a["seed"]), a["ranks"]
    bias = w["down_bias"]
    if name == "y":
        return (
            explain.guess(
                got,
                (
                    (
                        right + (ranks - 1) * bias,
                        "down_bias was added on every rank, and so world_size times.",
                    ),
                    (right - bias, "down_bias is missing."),
                    (right / ranks, "the shares are parts of one sum: add them, without dividing."),
                    (
                        (right - bias) / ranks + bias,
                        "the shares are parts of one sum: add them, without dividing.",
                    ),
                ),
            )
            or "each rank has a share of every element of y: the sum over the ranks is y."
        )
    return "each rank has a share of every element of dx as well: backward needs an all-reduce of its own."


def pipeline(call: Call, returned: Any) -> Trouble:
    """Every stage's list by itself, then all of them together."""
    a = call.arguments
    for stage, given in enumerate(returned):
        if trouble := _steps(stage, given, a["micro_batches"]):
            return trouble
    steps = tuple(tuple(Step(*one) for one in given) for given in returned)
    return _played(Schedule("yours", a["stages"], a["micro_batches"], steps))


def _steps(stage: int, given: Any, micro_batches: int) -> Trouble:
    if not isinstance(given, (list, tuple)):
        return f"one_f_one_b returned {shown(given)}.", "a list of (what, micro_batch) is asked for."
    wanted = [(what, m) for m in range(micro_batches) for what in ("forward", "backward")]
    found = [tuple(one) if isinstance(one, (list, tuple)) else one for one in given]
    strange = next((one for one in found if one not in wanted), None)
    if strange is not None:
        why = f'entries are ("forward", m) or ("backward", m), with m from 0 to {micro_batches - 1} here.'
        return f"The list of stage {stage} has the entry {shown(strange)}.", why
    odd = next((one for one in wanted if found.count(one) != 1), None)
    if odd is not None:
        return (
            f"In the list of stage {stage}, {odd} comes {found.count(odd)} times.",
            "every step comes once.",
        )
    return None


def _played(mine: Schedule) -> Trouble:
    right = one_f_one_b(mine.stages, mine.micro_batches)
    try:
        bubble = mine.bubble(1.0, 1.0)
    except LabkitError:
        message = f"The {mine.stages} stages wait for each other for ever."
        return (
            message,
            "backward needs its own forward and the next stage's backward; when does each get its first?",
        )
    for stage in range(mine.stages):
        kept, most = mine.kept(stage), right.kept(stage)
        if kept > most:
            message = f"Stage {stage} keeps the activations of {kept} micro-batches at once; {most} suffice."
            why = "that is GPipe: all forward first. Run a backward as soon as the first can come."
            return (
                message,
                why if kept == mine.micro_batches else "fewer forward steps before the first backward.",
            )
    if bubble > right.bubble(1.0, 1.0) + 1e-9:
        message = (
            f"The pipeline idles for {bubble:.0%} of its time; {right.bubble(1.0, 1.0):.0%} is possible."
        )
        return (
            message,
            "the last stage has its backward at once; each stage before it runs one more forward ahead.",
        )
    return None


def zero(call: Call, returned: Any) -> Trouble:
    a, wanted = call.arguments, call.expected
    if returned == wanted and not isinstance(returned, bool):
        return None
    needs = [cases.bytes_a_rank(a["parameters"], a["ranks"], stage) + a["activations"] for stage in range(4)]
    listed = ", ".join(f"{stage}: {need / cases.GB:.1f}" for stage, need in enumerate(needs))
    message = (
        f"zero_stage returned {shown(returned)}, expected {wanted} (GB needed a rank, by stage: {listed})."
    )
    why = [text for value, text in zero_guesses(**a) if value == returned]
    return message, why[0] if len(why) == 1 else "stages divide, one after the other: " + _PARTS


def zero_guesses(parameters: float, ranks: int, memory: float, activations: float) -> list[tuple[Any, str]]:
    """What typical mistakes lead to."""

    def first(weights: float, gradients: float, optimizer: float, more: float = activations) -> int | None:
        sizes = ((optimizer, 1), (gradients, 2), (weights, 3))
        needs = (
            sum(size / (ranks if s >= since else 1) for size, since in sizes) * parameters for s in range(4)
        )
        return next((s for s, need in enumerate(needs) if need + more <= memory), None)

    return [
        (first(2, 2, 12, 0), "the activations are missing."),
        (
            first(2, 2, 12, activations / ranks),
            "no ZeRO stage divides activations: they are each rank's own.",
        ),
        (first(2, 2, 8), "the optimizer keeps 12 bytes a parameter: fp32 weights, and two moments."),
        (first(4, 4, 8), "with mixed precision weights and gradients have 2 bytes each, the optimizer 12."),
        (first(2, 2, 0), "the optimizer's 12 bytes a parameter are missing."),
    ]


_PARTS = (
    "1 the optimizer's 12 bytes, 2 also the gradients' 2, 3 also the weights' 2; the lowest that fits counts."
)


def lookup(call: Call, returned: Any) -> Trouble:
    results, events = recorded(returned)
    rows, totals = call.expected
    found = _two_arrays(results, ("rows", "gradient"), lambda rank: (rows[rank], totals[rank]))
    if found is not None:
        rank, name, got, right, message = found
        return message, "" if got is None else _lookup_why(call, rank, name, got, right)
    return _exchanged(call, events)


def _lookup_why(call: Call, rank: int, name: str, got: Any, right: Any) -> str:
    if name == "rows":
        together = sorted(map(tuple, got.round(9))) == sorted(map(tuple, right.round(9)))
        return "the rows are right and their order is the owners', not that of ids." if together else ""
    a = call.arguments
    _, ids, gradients = embedding(a["rows"], a["features"], a["counts"], a["seed"])
    size = a["rows"] // len(a["counts"])
    once = np.zeros((a["rows"], a["features"]))
    for one, slope in zip(ids, gradients, strict=True):
        for to in range(len(a["counts"])):
            mine = one // size == to
            once[one[mine]] += slope[mine]  # of rows that come twice, only the last one is added
    mine = once[rank * size : (rank + 1) * size]
    guesses = (
        (
            mine,
            "a row that is asked for twice gets both gradients: block[ids] += g adds only one; use np.add.at.",
        ),
        (right / len(a["counts"]), "the sum over all who asked is wanted, not the mean."),
    )
    return explain.guess(got, guesses)


def _exchanged(call: Call, events: Any) -> Trouble:
    a = call.arguments
    _, ids, _ = embedding(a["rows"], a["features"], a["counts"], a["seed"])
    size, ranks, row = a["rows"] // len(a["counts"]), len(a["counts"]), 8 * a["features"]
    for rank in range(ranks):
        away = int(np.sum(ids[rank] // size != rank))
        asked = sum(int(np.sum(one // size == rank)) for other, one in enumerate(ids) if other != rank)
        wanted = away * 8 + asked * row + away * row
        seen = total(events[rank], "all_to_all", "all_reduce", "broadcast", "launch")
        if seen > wanted:
            message = f"Rank {rank} sent {show_bytes(seen)}; {show_bytes(wanted)} suffice."
            why = "ids go to the owner alone, and only the rows that were asked for come back."
            return message, why
    return None


claim = claims.Judge(
    verdicts=("unsourced",),
    otherwise="it is possible, even easy; who measured it, with which software and batch?",
    number=claims.Figure(
        units={"%": 1, "percent": 1},
        loosely=True,
        unit_hint="an efficiency is in '%'.",
        right=((49.5, 50.5),),
        wrong="The efficiency is not {value} %.",
        whys=(
            (
                *claims.around(75, 0.02),
                "that is the time saved; how many times as fast is that, and of how many cards?",
            ),
            (*claims.around(87.5, 0.02), "that is the time saved at best."),
            (
                *claims.around(25, 0.02),
                "that is the time that is left; how many times as fast is that, and of how many cards?",
            ),
            (
                *claims.around(85.7, 0.02),
                "75 of 87.5 compares times saved; efficiency is speed-up over cards.",
            ),
            (*claims.around(0.5, 0.02), "in per cent, please."),
        ),
    ),
    left_out=(
        "batch",
        "link",
        "nvlink",
        "pcie",
        "software",
        "precision",
        "source",
        "measured",
        "bandwidth",
        "baseline",
    ),
    asked="what one would have to know to repeat it.",
    hint="think of the batch, the link between the cards, the precision, the software, the source.",
)
