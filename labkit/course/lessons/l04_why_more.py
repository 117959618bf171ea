"""Lesson 04: what is wrong with an estimate of memory, a claim, a quantised layer or a crossing, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.compute import convolving
from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons import l04_cases as cases
from labkit.course.messages import shown
from labkit.hardware.units import show_bytes

Trouble = tuple[str, str] | None


def memory(call: Call, returned: Any) -> Trouble:
    asked = ", ".join(cases.PARTS)
    if not isinstance(returned, dict) or sorted(map(str, returned)) != sorted(cases.PARTS):
        return f"training_bytes returned {shown(returned)}.", f"a dictionary is asked for, with {asked}."
    for part in cases.PARTS:
        if trouble := explain.not_a_number(returned[part]):
            return f"training_bytes returned {trouble} for {part}.", "bytes are asked for."
        got, wanted = float(returned[part]), call.expected[part]
        if not math.isclose(got, wanted, rel_tol=1e-9):
            message = f"{part} takes {show_bytes(wanted)} on each rank, and yours is {show_bytes(got)}."
            return message, _memory_why(call, part, got, wanted)
    return None


def _memory_why(call: Call, part: str, got: float, wanted: float) -> str:
    job = call.arguments
    numbers = {"sgd": 0, "momentum": 1, "adam": 2}[job["optimizer"]]
    mixed = job["precision"] == "mixed"
    divided = job["ranks"] if wanted and part != "activations" else 1
    each = job["parameters"]
    guesses: list[tuple[float, str]] = []
    if part == "optimizer" and mixed:
        guesses = [
            (
                4 * numbers * each,
                "the fp32 master copy is missing: 4 more bytes a parameter in mixed precision.",
            ),
            (
                2 * numbers * each,
                "the optimizer keeps its numbers in fp32 in mixed precision too, and a master copy.",
            ),
            (
                (4 + 2 * numbers) * each,
                "the optimizer's numbers are fp32 in mixed precision too: 4 bytes each.",
            ),
        ]
    if part == "optimizer":
        guesses.append((4 * each, "Adam remembers two numbers a parameter, momentum one, plain SGD none."))
    guesses += _zero_guesses(job, got, wanted, divided)
    if part == "activations":
        values = job["activation_values"]
        guesses = [
            (4.0 * values, "in mixed precision activations are 16-bit numbers: 2 bytes each."),
            (2.0 * values, "in fp32 each activation takes 4 bytes."),
            (0.0, "the activations are missing."),
            (wanted / job["ranks"], "ZeRO does not divide activations: each rank has its own samples."),
        ]
    elif part != "optimizer":
        guesses += [(2 * wanted, "in mixed precision these are 16-bit numbers: 2 bytes each.")]
        guesses += [(wanted / 2, "in fp32 each takes 4 bytes.")]
    return next((why for guess, why in guesses if _same(got, guess) or _same(got, guess / divided)), "")


def _zero_guesses(job: dict[str, Any], got: float, wanted: float, divided: int) -> list[tuple[float, str]]:
    rule = "stage 1 divides the optimizer's part by the ranks, stage 2 the gradients too, stage 3 the weights too."
    return [(wanted * job["ranks"], rule), (wanted / job["ranks"], rule)] if job["ranks"] > 1 else []


def _same(got: float, guess: float) -> bool:
    return math.isclose(got, guess, rel_tol=1e-9)


claim = claims.Judge(
    verdicts=("misleading",),
    reasons=dict.fromkeys(
        ("false", "unsourced"), "something does halve, and for this network it is most of the memory."
    ),
    otherwise="does it hold for a network whose memory is mostly weights and optimizer?",
    number=claims.Figure(
        units={"gb": 1, "gigabyte": 1, "gigabytes": 1},
        unit_hint="memory is in 'GB' here.",
        right=((24.6, 24.8),),
        wrong="48 GB do not become {value} GB.",
        whys=(
            (23.95, 24.05, "that is half of everything; the 16 bytes a parameter stay as they are."),
            (1.3, 1.45, "that is the state alone; the halved activations come on top."),
            (23.25, 23.4, "those are the activations alone; the state comes on top."),
            (
                24.25,
                24.4,
                "weights and gradients shrink by half, but a master copy of 4 bytes comes on top: 16 bytes again.",
            ),
        ),
    ),
    left_out=(
        "activation",
        "state",
        "master",
        "16 bytes",
        "up to",
        "adam",
        "optimizer",
        "tensor core",
        "peak",
    ),
    asked="what decides whether the claim holds.",
    hint="think of what halves and what does not, and of what 'three times' was measured on.",
)


def int8(call: Call, returned: Any) -> Trouble:
    weights, x = call.arguments["weights"], call.arguments["x"]
    if not isinstance(returned, (tuple, list)) or len(returned) != 4:
        return f"int8_layer returned {shown(returned)}.", "four things are asked for: q, scales, size, bound."
    q, scales, size, bound = returned
    for name, value, shape, kind in (
        ("q", q, weights.shape, "int8"),
        ("scales", scales, weights.shape[:1], "float32"),
    ):
        if not isinstance(value, np.ndarray) or value.shape != shape or str(value.dtype) != kind:
            return f"{name} is {shown(value)}.", f"an array of shape {shape}, dtype {kind}, is asked for."
    return (
        _scales(weights, scales)
        or _stored(weights, q, scales)
        or _size(weights, size)
        or _bound(x, scales, bound)
    )


def _scales(weights: Any, scales: Any) -> Trouble:
    wanted = np.abs(weights).max(1) / 127
    for row, (got, value) in enumerate(zip(scales.tolist(), wanted.tolist(), strict=True)):
        if (value == 0 and math.isfinite(got)) or math.isclose(got, value, rel_tol=1e-4):
            continue
        return f"scales[{row}] is {number(got)}, expected {number(value)}.", _scale_why(weights, row, got)
    return None


def _scale_why(weights: Any, row: int, got: float) -> str:
    top, low = float(weights[row].max()), float(weights[row].min())
    value = max(top, -low) / 127
    if value == 0:
        return "a row of zeros has the largest magnitude 0: any scale but NaN or infinity will do."
    guesses = {
        float(np.abs(weights).max()) / 127: "one scale for all rows: an outlier in one spoils the others.",
        value * 127 / 128: "divide by 127: +128 is no int8.",
        top / 127: "the largest value decided, not the largest magnitude: negative weights would be clipped.",
        (top - low)
        / 255: "that is the scale of a code with a zero point; here zero stays zero: magnitude / 127.",
        1 / value: "this is the inverse: a scale is what one step of q is worth.",
    }
    return next((why for guess, why in guesses.items() if math.isclose(got, guess, rel_tol=1e-4)), "")


def _stored(weights: Any, q: Any, scales: Any) -> Trouble:
    exact = weights / np.where(scales == 0, 1, scales)[:, None]
    off = np.abs(q - exact)
    if not (off > 0.5 + 1e-3).any():
        return None
    row, column = (int(n) for n in np.unravel_index(int(np.argmax(off)), off.shape))
    exactly = number(float(exact[row, column]))
    message = f"q[{row}, {column}] is {int(q[row, column])}, and weights / scale is {exactly} there."
    if off.max() <= 1 + 1e-3 and np.array_equal(q, np.trunc(exact).astype(np.int8)):
        return message, "int8 cuts digits off: round to the nearest whole number first, np.rint."
    if np.array_equal(q, np.rint(weights).astype(np.int8)):
        return message, "the weights were rounded as they are: divide by their row's scale first."
    return message, "each weight becomes the nearest whole number of scales."


def _size(weights: Any, size: Any) -> Trouble:
    if trouble := explain.not_a_number(size):
        return f"size is {trouble}.", "a number of bytes is asked for."
    rows, columns = weights.shape
    wanted = rows * columns + 4 * rows
    if int(size) == wanted:
        return None
    guesses = {
        rows * columns: "the scales are missing: 4 bytes a row.",
        4 * rows * columns: "that is the layer in fp32.",
        4 * rows * columns + 4 * rows: "int8 takes one byte a weight.",
        rows * columns + 4: "there is a scale for every row.",
    }
    return f"size is {shown(size)} bytes, expected {wanted}.", guesses.get(int(size), "")


def _bound(x: Any, scales: Any, bound: Any) -> Trouble:
    wanted = scales.astype(np.float64) / 2 * np.abs(x).sum()
    if isinstance(bound, (list, tuple)) and not any(explain.not_a_number(one) for one in bound):
        bound = np.array(bound, np.float64)
    if not isinstance(bound, np.ndarray) or bound.shape != wanted.shape or bound.dtype.kind != "f":
        return (
            f"bound is {shown(bound)}.",
            f"an array of shape {wanted.shape} is asked for, one number an output.",
        )
    off = ~np.isclose(bound, wanted, rtol=1e-3, atol=1e-9 + 1e-6 * wanted.max())
    if not off.any():
        return None
    row = int(np.argmax(off))
    guesses = (
        (scales / 2, "that bounds one weight; an output adds up the errors of a whole row, times x."),
        (scales * np.abs(x).sum(), "rounding is off by half a scale at most, not by a whole one."),
        (np.abs(scales / 2 * x.sum()), "errors can have either sign: add up the magnitudes of x, not x."),
        (scales / 2 * len(x), "each weight's error is multiplied by its x."),
        (scales / 2 * np.abs(x).max() * len(x), "that holds, but a tighter one is asked for: add up |x|."),
    )
    message = f"bound[{row}] is {number(float(bound[row]))}, expected {number(float(wanted[row]))}."
    return message, explain.guess(bound, [(np.asarray(g, np.float64), why) for g, why in guesses])


def fft(call: Call, returned: Any) -> Trouble:
    n, wanted = call.arguments["n"], call.expected
    if wanted is None and returned is None:
        return None
    if wanted is None:
        return (
            f"fft_crossover({n}) is {shown(returned)}.",
            "up to n taps the FFT never wins here: return None.",
        )
    if returned is not None and (trouble := explain.not_a_number(returned)):
        return f"fft_crossover returned {trouble}.", "a whole number of taps is asked for."
    if returned == wanted:
        return None
    why = next((text for text, count in _COUNTS.items() if returned == _crossing(n, count)), "")
    return f"For {n} samples the FFT wins from {wanted} taps on, and yours is {shown(returned)}.", why


def _crossing(n: int, count: Callable[[int, int], float]) -> int | None:
    return next((k for k in range(1, n + 1) if count(n, k) < 2 * n * k), None)


def _with(
    transforms: int, product: int, logarithm: Callable[[float], float], pad: bool
) -> Callable[[int, int], float]:
    def count(n: int, k: int) -> float:
        length = convolving.padded(n, k) if pad else n
        return transforms * 5 * length * logarithm(length) + product * length

    return count


_COUNTS = {
    "three transforms are due: both there, and the product back.": _with(2, 6, math.log2, True),
    "one transform is not enough: both there, and the product back.": _with(1, 6, math.log2, True),
    "the product of the transforms is missing: 6 operations for each of N numbers.": _with(
        3, 0, math.log2, True
    ),
    "the logarithm is to base 2: each stage halves the length.": _with(3, 6, math.log, True),
    "N is the next power of two from n + k - 1 on, so that the ends do not wrap around.": _with(
        3, 6, math.log2, False
    ),
}
