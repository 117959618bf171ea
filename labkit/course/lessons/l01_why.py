"""Lesson 01: what is wrong with an answer, and one sentence of why where the mistake is a typical one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call, Launch
from labkit.course.compare import Difference, number
from labkit.course.lessons.l01_cases import serial_share
from labkit.course.messages import shown

_STRIDE = (
    "every element from {start} on is untouched, and {start} is the number of threads: after its first "
    "element a thread has to go on, does your loop stride by cuda.gridsize(1)?"
)
_START = (
    "only the first block's threads did their share: cuda.threadIdx.x starts at 0 in every block, so start at "
    "cuda.grid(1)."
)
_EDGE_BLANK = (
    "only pixels at the edge were not written: they need a value too, with the nearest pixels as neighbours."
)
_EDGE = "only pixels at the edge are wrong: bring each neighbour's row and column back into the image first."


def vector_add(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    return explain.vector(launch, got, launch.expected[name], found)


def saxpy(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    start = explain.untouched_from(found)
    if start == launch.threads and start > 1:
        return _STRIDE.format(start=start)
    if found.untouched.size and np.array_equal(found.wrong, _not_first_block(launch, got.size)):
        return _START
    a, x, y = (launch.arguments[key] for key in ("a", "x", "y"))
    guesses = (
        (a * x, "this is a * x: y was not added."),
        (x + y, "this is x + y: x was not multiplied by a."),
        (a * y + x, "this is a * y + x: x and y changed places."),
        (a * (x + y), "this is a * (x + y): only x is multiplied by a."),
    )
    return explain.guess(got, guesses) or explain.vector(launch, got, launch.expected[name], found)


def _not_first_block(launch: Launch, size: int) -> np.ndarray:
    """Elements that no thread of the first block takes, when all go on by the number of threads in the grid."""
    return np.arange(size) % launch.threads >= launch.block[0]


def blur(launch: Launch, name: str, got: np.ndarray, found: Difference) -> str:
    image, expected = launch.arguments["image"], launch.expected[name]
    guesses = (
        (9 * expected, "this is nine times too much: a mean is the sum divided by nine."),
        (image, "the image came out unchanged: read the eight neighbours as well."),
    )
    inside = found.wrong[1:-1, 1:-1]
    if inside.size and not inside.any():
        return _EDGE_BLANK if found.untouched.sum() == found.count else _EDGE
    if found.untouched.sum() == found.count and found.count < got.size:
        return "some pixels were not written: is each index compared with its own side, rows with shape[0]?"
    return explain.guess(got, guesses) or explain.any_shape(got, expected, found)


def amdahl(call: Call, returned: Any) -> tuple[str, str] | None:
    trouble = explain.not_a_number(returned)
    if trouble:
        return f"amdahl_limit returned {trouble}.", "one number is asked for, such as 7.5."
    if math.isclose(returned, call.expected, rel_tol=1e-6):
        return None
    message = f"amdahl_limit returned {number(float(returned))}, expected {number(call.expected)}."
    return message, _amdahl_why(call, float(returned))


def _amdahl_why(call: Call, returned: float) -> str:
    workers, seconds = (np.asarray(call.arguments[key], float) for key in ("workers", "seconds"))
    share = serial_share(call.arguments["workers"], call.arguments["seconds"])
    last = (seconds[-1] / seconds[0] - 1 / workers[-1]) / (1 - 1 / workers[-1])
    guesses = (
        (share, "this is the serial share itself: the limit of the speed-up is 1 / s."),
        (
            seconds[0] / seconds.min(),
            "this is the best speed-up in the table: with still more workers there is more.",
        ),
        (1 / last, "this follows from the last row alone: least squares takes all rows."),
        (1 - share, "this is the share that can be divided among workers: the limit is 1 / s."),
    )
    return explain.guess(np.float64(returned), guesses)


def break_even(call: Call, returned: Any) -> tuple[str, str] | None:
    wanted = call.expected
    if returned is None or wanted is None:
        return None if returned is wanted else _never(returned, wanted)
    trouble = explain.not_a_number(returned)
    if trouble:
        return f"break_even returned {trouble}.", "a whole number of elements, or None, is asked for."
    if isinstance(returned, (int, np.integer)):
        message = f"break_even returned {int(returned)}, expected {wanted}."
        return None if returned == wanted else (message, _break_even_why(call, float(returned)))
    kind = f"break_even returned {number(returned)}, a {type(returned).__name__}, expected {wanted}, an int."
    return kind, "elements are counted: return a whole number (math.floor gives an int)."


def _never(returned: Any, wanted: Any) -> tuple[str, str]:
    message = f"break_even returned {shown(returned)}, expected {shown(wanted)}."
    if wanted is None:
        return (
            message,
            "every further element costs the GPU as much as the CPU or more: it never wins, return None.",
        )
    return message, "the GPU gains with every element here, so from some size on it wins."


def _break_even_why(call: Call, returned: float) -> str:
    if returned == call.expected - 1:
        return (
            "at that size the GPU is not faster yet, or both are equally fast: strictly faster is asked for."
        )
    if returned == call.expected + 1:
        return "one element fewer is enough already."
    cpu, gpu, launch, latency, rate, size = call.arguments.values()
    copy = size / rate
    guesses = (
        (launch / (cpu - gpu - copy), "the latency of the copies is missing."),
        (latency / (cpu - gpu - copy), "the launch is missing."),
        ((launch + latency) / (cpu - gpu), "the time that the copies take is missing."),
        ((launch + latency) / (cpu - copy), "the GPU's own work is missing."),
    )
    near = [why for value, why in guesses if value > 0 and abs(value - returned) <= 1]
    return near[0] if near else ""


claim = claims.Judge(
    verdicts=("misleading",),
    reasons={
        "false": "GPUs are sometimes that much faster; the trouble is what the claim counts to get there.",
        "unsourced": "no source is needed to see what is wrong: the two counts are of different things.",
    },
    otherwise="is one of a GPU's 'thousands' the same kind of thing as one of a CPU's '4 to 8'?",
    number=claims.Figure(
        units={"lane": 1},
        loosely=True,
        unit_hint="what an A100 has thousands of are 'lanes'.",
        right=((108 * 64, 108 * 64),),
        wrong="An A100 does not have {value} fp32 lanes.",
        whys=(
            (108, 108, "that counts the SMs; each has 64 fp32 lanes."),
            (-math.inf, math.inf, "multiply the SMs by the lanes in each."),
        ),
    ),
    left_out=("flop", "byte", "bandwidth", "lane", "simd", "throughput"),
    asked="what has to be compared instead of cores.",
    hint="think of what a kernel needs: operations a second and bytes a second.",
)
