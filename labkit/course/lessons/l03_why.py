"""Lesson 03: what is wrong with a fit, a plan, a claim or a way of feeding, and why where the mistake is typical."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labkit.compute.feeding import HEADER, SHARDS, number_of
from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons.l03_cases import duration, faster_sides
from labkit.course.lessons.l03_record import SIDE, images
from labkit.course.messages import shown
from labkit.hardware.units import show_bytes, show_time

Trouble = tuple[str, str] | None
LEAST_READ = 32 * 1024
_PARTS = ("alpha", "beta", "the prediction")
_UNITS = ("s", "bytes/s", "s")


def alpha_beta(call: Call, returned: Any) -> Trouble:
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        return (
            f"alpha_beta returned {shown(returned)}.",
            "three numbers are asked for: alpha, beta, prediction.",
        )
    for part, value in zip(_PARTS, returned, strict=True):
        if trouble := explain.not_a_number(value):
            return f"alpha_beta returned {trouble} for {part}.", "three numbers are asked for."
    for place, (value, wanted) in enumerate(zip(returned, call.expected, strict=True)):
        if not math.isclose(value, wanted, rel_tol=1e-6):
            unit = _UNITS[place]
            message = f"{_PARTS[place]} is {number(float(value))} {unit}, expected {number(wanted)} {unit}."
            return message, _alpha_beta_why(call, place, float(value))
    return None


def _alpha_beta_why(call: Call, place: int, value: float) -> str:
    n, t = (np.asarray(call.arguments[key], float) for key in ("sizes", "seconds"))
    size = call.arguments["size"]
    alpha, beta, _ = call.expected
    slope, start = np.polyfit(n, t, 1)
    guesses: tuple[tuple[float, str], ...]
    if place == 2:
        guesses = (
            (size / beta, "alpha is missing from the prediction: T = alpha + n / beta."),
            (alpha, "this is alpha alone: n / beta is missing from the prediction."),
            (alpha + size * beta, "beta is bytes a second: divide by it."),
        )
    else:
        absolute = "this minimises errors in seconds, so the largest sizes decide alone: divide each error by its time."
        ends = (t[-1] - t[0]) / (n[-1] - n[0])
        guesses = (
            ((start, 1 / slope)[place], absolute),
            ((t[0], n[-1] / t[-1])[place], _ONE_ROW[place]),
            ((t[0] - n[0] * ends, 1 / ends)[place], "this is the line through the first and last row alone."),
            ((np.inf, 1 / beta)[place], "this is seconds a byte; beta is bytes a second, its inverse."),
            ((np.inf, beta / 1e9)[place], "this is in GB/s; bytes a second are asked for."),
            ((alpha * 1e6, np.inf)[place], "this is in microseconds; seconds are asked for."),
        )
    found = [why for guess, why in guesses if np.isfinite(guess) and math.isclose(guess, value, rel_tol=1e-7)]
    return found[0] if found else ""


_ONE_ROW = (
    "this is the time of the smallest move alone: least squares takes all rows.",
    "this is the rate of the largest move, with its alpha still in it.",
)


def offload(call: Call, returned: Any) -> Trouble:
    table = call.arguments
    stages = len(table["cpu_s"])
    if not isinstance(returned, (tuple, list)) or len(returned) != stages:
        return (
            f"offload returned {shown(returned)}.",
            f"a list with {stages} entries is asked for, one a stage.",
        )
    wrong = [one for one in returned if not isinstance(one, str) or one not in ("cpu", "gpu")]
    if wrong:
        return f"The plan has the entry {shown(wrong[0])}.", "each entry is 'cpu' or 'gpu'."
    took, least = duration(returned, **table), duration(call.expected, **table)
    if took <= least * (1 + 1e-9):
        return None
    message = (
        f"Your plan {shown(list(returned))} takes {show_time(took)}; there is one of {show_time(least)}."
    )
    return message, _offload_why(table, tuple(returned))


def _offload_why(table: dict[str, Any], plan: tuple[str, ...]) -> str:
    stages = len(plan)
    guesses = (
        (
            there_and_back(table),
            "each stage was judged alone, with a move there and back: data may stay on the GPU.",
        ),
        (
            faster_sides(table),
            "moves are missing: each stage runs where it is faster, however far its data are.",
        ),
        (without_return(table), "the way back is missing: the result has to end on the CPU."),
        (("gpu",) * stages, "everything on the GPU: moves and stages that it is bad at cost more here."),
        (("cpu",) * stages, "everything on the CPU: here the GPU saves more than the moves cost."),
    )
    return next((why for guess, why in guesses if guess == plan), "")


def there_and_back(table: dict[str, Any]) -> tuple[str, ...]:
    """Each stage judged as if its data came from the CPU and went back there."""
    sizes, alpha, rate = table["bytes_between"], table["alpha_s"], table["bytes_per_s"]
    pairs = zip(table["cpu_s"], table["gpu_s"], sizes, sizes[1:], strict=False)
    return tuple("gpu" if g + 2 * alpha + (a + b) / rate < c else "cpu" for c, g, a, b in pairs)


def without_return(table: dict[str, Any]) -> tuple[str, ...]:
    """The best plan when the last move home is forgotten."""
    from labkit.course.lessons.l03_cases import best

    sizes = [*table["bytes_between"][:-1], -table["alpha_s"] * table["bytes_per_s"]]
    return best({**table, "bytes_between": sizes})


def feed(call: Call, returned: Any) -> Trouble:
    """Every sample once, from shards that one worker opens once, in large reads."""
    try:
        sums = [[tuple(map(int, one)) for one in worker["samples"]] for worker in returned]
        logs = [[(str(w), str(f), int(o), int(b)) for w, f, o, b in worker["log"]] for worker in returned]
    except (TypeError, ValueError, KeyError):
        return "The samples that feed gave cannot be read.", "yield each sample as bytes."
    shards = -(-call.arguments["samples"] // call.arguments["per_shard"])
    return _samples(call, sums) or _opens(logs, shards) or _reads(call, logs)


def _samples(call: Call, sums: Sequence[Sequence[tuple[int, ...]]]) -> Trouble:
    size = HEADER + SIDE * SIDE
    known = {zlib.crc32(sample): number_of(sample) for sample in _written(call.arguments["samples"])}
    seen: dict[int, int] = {}
    for worker, given in enumerate(sums):
        for length, crc in given:
            if length != size or crc not in known:
                message = f"Worker {worker} gave {length} bytes that are no sample; a sample has {size}."
                return (
                    message,
                    "cut what a read returns at multiples of sample_bytes, and let reads end at them too.",
                )
            if known[crc] in seen:
                message = (
                    f"Sample {known[crc]} comes twice: from worker {seen[known[crc]]} and worker {worker}."
                )
                return (
                    message,
                    "each shard belongs to one worker: take every workers-th, starting at your number.",
                )
            seen[known[crc]] = worker
    missing = sorted(set(known.values()) - set(seen))
    if missing:
        message = f"Sample {missing[0]} never comes; {len(missing):,} of {len(known):,} are missing."
        return message, "all shards together have to be read to their ends, the short last one too."
    return None


def _written(samples: int) -> Iterator[bytes]:
    """The samples of a check as they lie on the disk."""
    for place, image in enumerate(images(samples)):
        yield place.to_bytes(4, "little") * 2 + image.tobytes()


def _opens(logs: Sequence[Sequence[tuple[str, str, int, int]]], shards: int) -> Trouble:
    opened = [[file for what, file, *_ in log if what == "open"] for log in logs]
    stray = [file for files in opened for file in files if not file.startswith(SHARDS)]
    total = sum(map(len, opened))
    if stray:
        message = f"{total:,} opens, target {shards}: {stray[0]} is a loose file."
        return message, "each loose file costs an open for a single sample: read disk.files('shards')."
    if total > shards:
        return f"{total:,} opens, target {shards}.", "open each shard once, and by one worker alone."
    most, least = max(map(len, opened)), min(map(len, opened))
    if most - least > 1:
        message = f"One worker opens {most} shards and another {least}."
        return message, "share them out evenly: everybody waits for whoever has most."
    return None


def _reads(call: Call, logs: Sequence[Sequence[tuple[str, str, int, int]]]) -> Trouble:
    sizes: dict[str, int] = {}
    for log in logs:
        for what, file, offset, count in log:
            if what == "read":
                sizes[file] = max(sizes.get(file, 0), offset + count)
    for worker, log in enumerate(logs):
        for what, file, offset, count in log:
            if what == "read" and count < LEAST_READ and offset + count < sizes[file]:
                message = f"Worker {worker} reads {show_bytes(count)} at once from {file}, target 32 KiB."
                return (
                    message,
                    "one read should bring many samples: read a multiple of sample_bytes, and cut it up.",
                )
    return None


claim = claims.Judge(
    verdicts=("misleading",),
    reasons=dict.fromkeys(
        ("false", "unsourced"), "both numbers stand in data sheets; the trouble is what they are put beside."
    ),
    otherwise="is a slot of PCIe 4 what a GPU with NVLink 4 sits in?",
    number=claims.Figure(
        units={"time": 1},
        loosely=True,
        unit_hint="a ratio is in 'times'.",
        right=((6.5, 7.5),),
        wrong="An H100's NVLink is not {value} times its slot.",
        whys=(
            (13.5, 14.5, "that is NVLink 4 against PCIe 4; the slot that an H100 sits in is PCIe 5."),
            (3, 4, "one side is one way and the other both ways: take the same for both."),
            (0.3, 0.5, "that is one link of NVLink 4 against the slot; an H100 has 18 of them."),
        ),
    ),
    left_out=("direction", "both ways", "one way", "pcie 5", "pcie5", "gen5", "gen 5", "achieved"),
    asked="what the two numbers hide.",
    hint="think of the direction, of the slot that such a GPU really has, of peak and achieved.",
)
