"""Lesson 04: what is wrong with an accumulated gradient, a scaled step or a mixed-precision one, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import difference, number
from labkit.course.lessons import l04_cases as cases

Trouble = tuple[str, str] | None

_UNREADABLE = "something in it changed what the check had handed over."


def accumulate(call: Call, record: Any) -> Trouble:
    sizes, group, dtype = (call.arguments[key] for key in ("sizes", "group", "dtype"))
    wanted, parts = cases.stepped(sizes, group, dtype)
    try:
        found = [np.asarray(one) for one in record["gradients"]]
        largest = max(record["batches"], default=0)
    except (TypeError, ValueError, KeyError):
        return "The steps that accumulate took cannot be read.", _UNREADABLE
    if not found:
        return "optimizer.step() was never called.", ""
    if largest > max(sizes):
        message = f"The model was given {largest} samples at once; the largest batch has {max(sizes)}."
        return message, "a batch that large would not fit: one batch forward and backward after the other."
    if found[0].dtype != np.dtype(dtype):
        return f"The gradients are {found[0].dtype}, and the model is {dtype}.", "keep the model's own type."
    for step, (got, whole) in enumerate(zip(found, wanted, strict=False)):
        off = difference(got, whole.astype(dtype))
        if off is not None:
            before = wanted[step - 1] if step else None
            why = _gradient_why(call, step, got, whole, parts, before)
            return f"Step {step}: {off.sentence('gradient')}", why
    return _steps(len(found), len(wanted), len(sizes) // group)


def _gradient_why(call: Call, step: int, got: Any, whole: Any, parts: Any, before: Any) -> str:
    group, sizes = call.arguments["group"], call.arguments["sizes"]
    own = parts[step]
    total = sum(own)
    guesses: tuple[tuple[Any, str], ...] = (
        (
            np.zeros_like(whole),
            "no gradient was there: backward() before step(), and zero_grad() not between them.",
        ),
        (
            total,
            f"it is the sum of {len(own)} means: weight each loss by its share of the samples in its group.",
        ),
        (
            total / group if len(own) != group else np.nan * total,
            f"this group has {len(own)} batches, not {group}: divide by what the group really has.",
        ),
        (
            total / len(own),
            "each batch got the same weight, but they differ in size: weight by len(x) / samples of the group.",
        ),
        (total / len(sizes), "it was divided by the number of all batches: a group has fewer."),
        (own[-1], "it is the gradient of the group's last batch alone: zero_grad() only after a step."),
        (own[0], "it is the gradient of one batch alone: step only when a group is complete."),
    )
    found = [why for guess, why in guesses if _near(got, guess)]
    if found:
        return found[0]
    if before is not None:
        rest = got - before
        if any(_near(rest, guess) for guess in (whole, total / group, total / len(own), total)):
            return "gradients of the step before are still in it: zero_grad() after each step."
    return ""


def _near(got: Any, guess: Any) -> bool:
    return bool(np.allclose(got, guess, rtol=1e-3, atol=1e-5))


def _steps(found: int, wanted: int, full: int) -> Trouble:
    if found == wanted:
        return None
    message = f"{found} steps, expected {wanted}."
    if found == full < wanted:
        return message, "the last group is incomplete, and its samples count too: step for it as well."
    return message, "one step for each group, the last incomplete one included."


_SCALING = {
    "not unscaled": "the gradient is still multiplied by the scale: divide by it before clipping and stepping.",
    "clipped before unscaling": "it was clipped before it was unscaled: max_norm is meant for the true gradient.",
    "not clipped": "the gradient is longer than max_norm: shorten it to max_norm after unscaling.",
    "unscaled in fp16": "it was divided by the scale in fp16, where it underflows again: cast to float32 first.",
    "clipped by torch": "clip_grad_norm_ adds 1e-6 to the norm, and this max_norm is as small: take max_norm / norm.",
    "steps on infinity": "a step with an infinite or NaN gradient was taken: skip it.",
}
_SCALES = {
    "never halved": "an infinite or NaN gradient halves the scale, or the next one will be infinite too.",
    "never doubled": "after `patience` good steps the scale doubles.",
    "doubled at once": "the scale doubles only after `patience` good steps in a row.",
    "count kept": "a skipped step sets the count of good steps back to 0.",
}


def scaling(call: Call, record: Any) -> Trouble:
    weights, scales, goods = cases.scaling_run(**call.arguments)
    try:
        found = np.asarray(record["weights"], np.float64)
        own_scales, own_goods = ([float(n) for n in record[key]] for key in ("scales", "goods"))
        asked = [[float(n) for n in one] for one in record["asked"]]
    except (TypeError, ValueError, KeyError):
        return "scaler holds something that is no number.", "its entries 'scale' and 'good' are numbers."
    for step in range(len(weights)):
        if trouble := _asked(step, [one for one in asked if one[0] == step]):
            return trouble
        if not _same_weights(found[step], weights[step], weights):
            why = _weights_why(call, found[: step + 1])
            if not why and np.array_equal(found[step], found[step - 1] if step else np.zeros(cases.SIZE)):
                why = "the weights did not move: change them in place, as in weights -= ..."
            return _different(step, found[step], weights[step]), why
        if (own_scales[step], own_goods[step]) != (scales[step], goods[step]):
            return _scale(call, step, own_scales, own_goods, scales, goods)
    return None


def _asked(step: int, calls: list[list[float]]) -> Trouble:
    """Was the gradient asked for once, and of the loss multiplied by the scale?"""
    if len(calls) != 1:
        message = f"Step {step}: backward was called {len(calls)} times."
        return message, "call it once a step; a step whose gradient is not finite is skipped."
    _, factor, scale = calls[0]
    if factor != scale:
        message = f"Step {step}: backward was called with {number(factor)}, and the scale is {number(scale)}."
        return message, "without the scale these gradients are zero in fp16: backward(scaler['scale'])."
    return None


def _weights_why(call: Call, found: Any) -> str:
    """For the weights after each step up to the first wrong one."""
    return _mistake(_SCALING, call, lambda run: _same_weights(found, run[0][: len(found)], run[0]))


def _same_weights(found: Any, wanted: Any, scale_of: Any) -> bool:
    top = float(np.nanmax(np.abs(scale_of), initial=0))
    tolerance = 2e-3 * top if np.isfinite(top) else 0.0
    return bool(np.allclose(found, wanted, rtol=2e-3, atol=tolerance, equal_nan=True))


def _different(step: int, found: Any, wanted: Any) -> str:
    bad = ~np.isclose(found, wanted, rtol=2e-3, atol=0)
    at = int(np.argmax(bad))
    return f"After step {step} weights[{at}] is {number(float(found[at]))}, expected {number(float(wanted[at]))}."


def _mistake(texts: Mapping[str, str], call: Call, matches: Any) -> str:
    """The first typical mistake with which the run comes out as the answer's did."""
    runs = ((text, cases.scaling_run(**call.arguments, mistake=name)) for name, text in texts.items())
    return next((text for text, run in runs if matches(run)), "")


def _scale(call: Call, step: int, scales: Any, goods: Any, wanted_scales: Any, wanted_goods: Any) -> Trouble:
    why = _mistake(
        _SCALES,
        call,
        lambda run: (run[1][: step + 1], run[2][: step + 1]) == (scales[: step + 1], goods[: step + 1]),
    )
    if scales[step] != wanted_scales[step]:
        wanted = number(wanted_scales[step])
        return f"After step {step} scaler['scale'] is {number(scales[step])}, expected {wanted}.", why
    return f"After step {step} scaler['good'] is {number(goods[step])}, expected {wanted_goods[step]}.", why


_MIXED = {
    "not unscaled": "the gradient is still multiplied by the scale: divide by it.",
    "unscaled in fp16": "it was divided by the scale in fp16, where it underflows again: cast to float32 first.",
    "weights in fp16": "the update was added in fp16, where it is less than half a step: add it to the fp32 weights.",
    "uphill": "the weights went uphill: subtract lr times the gradient.",
}


def mixed(call: Call, record: Any) -> Trouble:
    wanted, start = cases.mixed_run(**call.arguments), np.array(cases.lines()[:2])
    try:
        found = np.array([np.asarray(one, np.float64) for one in record["master"]])
        seen, dtypes = record["seen"], list(record["dtypes"])
        factors = [float(one) for one in record["factors"]]
    except (TypeError, ValueError, KeyError):
        return "What mixed_step left in master cannot be read.", _UNREADABLE
    if found.shape != wanted.shape:
        return f"master has the shape {found.shape} after it, expected {wanted.shape}.", _UNREADABLE
    if len(seen) != call.arguments["steps"]:
        return f"forward was called {len(seen)} times in {call.arguments['steps']} steps.", "once a step."
    if (strange := next((d for one in seen for d in one if d != "float16"), "")) != "":
        return f"forward was given {strange} weights.", "hand it float16 copies of the master weights."
    if (strange := next((d for d in dtypes if d != "float32"), "")) != "":
        return (
            f"The master weights are {strange} afterwards.",
            "they stay float32: only the copies are float16.",
        )
    if off := [one for one in factors if one != call.arguments["scale"]]:
        message = (
            f"The loss went backward multiplied by {number(off[0])}, expected {call.arguments['scale']:g}."
        )
        return message, "without the scale most of its gradients are zero in fp16: (loss * scale).backward()."
    if np.allclose(found - start, wanted - start, rtol=2e-2, atol=2e-2 * np.abs(wanted - start).max()):
        return None
    at = int(np.argmax(np.abs(found - wanted).ravel()))
    name, index = ("slopes", "offsets")[at // cases.LINES], at % cases.LINES
    message = (
        f"After {call.arguments['steps']} steps the {name}[{index}] have moved by "
        f"{number(float((found - start).ravel()[at]))}, expected {number(float((wanted - start).ravel()[at]))}."
    )
    return message, _mixed_why(call, found, start, wanted)


def _mixed_why(call: Call, found: Any, start: Any, wanted: Any) -> str:
    for name, text in _MIXED.items():
        other = cases.mixed_run(**call.arguments, mistake=name)
        if np.allclose(found - start, other - start, rtol=2e-2, atol=1e-2 * np.abs(wanted - start).max()):
            return text
    if np.array_equal(found, start):
        return "the master weights did not move: change them in place, as in w -= ..."
    return ""
