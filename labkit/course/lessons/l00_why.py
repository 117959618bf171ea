"""Lesson 00: what is wrong with an answer, and one sentence of why where the mistake is a typical one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons.l00_cases import FIGURES, LAYERS, TOLERANCE, Printed, Truth
from labkit.course.lessons.l00_reports import FAULTS, Pasted
from labkit.course.messages import shown
from labkit.telemetry import traces
from labkit.telemetry.recording import Recording

Trouble = tuple[str, str] | None
SHORTEST = 3.0  # seconds that an interval has to last
EDGE = 1.0  # seconds by which it may reach beyond the work


def per_second(call: Call, returned: Any) -> Trouble:
    trouble = explain.not_a_number(returned)
    if trouble:
        return f"per_second returned {trouble}.", "one number is asked for: return it, do not print it."
    if math.isclose(returned, call.expected, rel_tol=1e-9):
        return None
    done, seconds = call.arguments["done"], call.arguments["seconds"]
    guesses = (
        (seconds / done if done else math.nan, "this is seconds for each: turn the fraction round."),
        (done // seconds, "the digits after the point are gone: / divides, // cuts off."),
        (done * seconds, "this multiplies: a rate is what was done divided by the time."),
    )
    message = f"per_second returned {number(float(returned))}, expected {number(call.expected)}."
    return message, explain.guess(np.float64(returned), guesses)


def units(answer: dict[str, Any]) -> Trouble:
    for key, figure in FIGURES.items():
        if key not in answer or answer[key] is None:
            return f"There is nothing for figure {key} yet ({figure.text}).", ""
        trouble = explain.not_a_number(answer[key])
        if trouble:
            return f"Figure {key} is {trouble}; a plain number of GB/s is asked for.", ""
        if not math.isclose(answer[key], figure.GBps, rel_tol=TOLERANCE):
            message = (
                f"Figure {key} ({figure.text}) is not {number(float(answer[key]))} GB/s one way for each GPU."
            )
            return message, _units_why(figure, float(answer[key]))
    return None


def _units_why(figure: Printed, value: float) -> str:
    ratio = value / figure.GBps
    reasons = [
        (8.0, figure.bits, "networks and lanes are sold in bits: eight of them are a byte."),
        (
            2.0,
            figure.both_ways,
            "vendors of NVLink and PCIe add the two directions; one of them is asked for.",
        ),
        (2.0, figure.text.startswith("four"), "four ports for eight GPUs: two GPUs share each."),
        (float(figure.gpus), figure.gpus > 1, f"{figure.gpus} GPUs share this figure."),
        (
            2.0 * figure.gpus,
            figure.gpus > 1 and figure.both_ways,
            "this is the sum of all GPUs and directions.",
        ),
        (8.0 * figure.gpus, figure.gpus > 1 and figure.bits, f"bits, and {figure.gpus} GPUs share them."),
        (0.5, not figure.both_ways, "this figure is for one direction already."),
        (0.125, not figure.bits, "this figure is in bytes already: GB, not Gb."),
    ]
    return next(
        (why for factor, fits, why in reasons if fits and math.isclose(ratio, factor, rel_tol=TOLERANCE)), ""
    )


def report(call: Call, returned: Any) -> Trouble:
    truth: Pasted = call.expected
    if not isinstance(returned, (tuple, list)) or [type(part) for part in returned] != [str, str]:
        return (
            f"find_fault returned {shown(returned)}.",
            "two texts are asked for: return fault, line",
        )
    fault, line = (" ".join(part.split()) for part in returned)
    named = next((one for one in FAULTS if one.lower() == fault.lower()), None)
    if named is None:
        return f"{shown(fault)} is none of the four faults: {', '.join(FAULTS)}.", ""
    if named != truth.fault:
        return f"'{named}' is not what is wrong here.", _fault_why(truth, named)
    there = [" ".join(one.split()) for one in truth.text.splitlines()]
    if line not in there:
        return f"{shown(line)} is no line of this report.", "copy a whole line, as it stands."
    if line not in truth.lines:
        return f"The line {shown(line)} does not show it.", f"which line names {_WHERE[truth.fault]}?"
    return None


_WHERE = {
    "driver too old": "the driver",
    "build without CUDA": "what PyTorch was built for",
    "card too new": "the card",
    "card too old": "the card",
}


def _fault_why(truth: Pasted, fault: str) -> str:
    if fault == "build without CUDA":
        return f"this PyTorch was built for CUDA {truth.cuda}: the report says so in its third fact."
    if truth.cuda == "None":
        return "before you compare versions: which CUDA was this PyTorch built for?"
    if fault == "driver too old":
        return f"the driver {truth.driver} is new enough for programs built for CUDA {truth.cuda}."
    if truth.fault == "driver too old":
        return f"CUDA {truth.cuda} makes code for {truth.card}; look at the driver under it."
    return f"compare the year of {truth.card} with that of CUDA {truth.cuda}: which came first?"


def layers(call: Call, returned: Any) -> Trouble:
    if not isinstance(returned, dict):
        return f"name_layers returned {shown(returned)}.", "a dictionary with A, B and C is asked for."
    for name, truth in call.expected.items():
        trouble = _layer(name, call.arguments["runs"][name], truth, returned.get(name))
        if trouble:
            return trouble
    return None


def _layer(name: str, run: str, truth: Truth, given: Any) -> Trouble:
    if given is None:
        return f"name_layers says nothing of {name}.", ""
    if not isinstance(given, (tuple, list)) or len(given) != 4:
        return f"{name} is {shown(given)}.", "four things are asked for: layer, series, start, end."
    layer, series, start, end = given
    if layer not in LAYERS:
        return f"{name}: {shown(layer)} is none of the three layers: {', '.join(LAYERS)}.", ""
    recording = traces.open(run)
    if layer != truth.layer:
        return f"{name} ({run}) is not limited by {layer}.", _LAYER_WHY[layer]
    return _evidence(name, recording, truth, series) or _interval(name, recording, truth, start, end)


_LAYER_WHY = {
    "compute": "then everything that can compute would do so all the time; power, not utilisation, tells on a GPU.",
    "communication": "then a line of bytes a second would lie flat at what a link can carry, while the rest waits.",
    "scheduling": "then work would be waiting while somebody who could do it is idle.",
}


def _evidence(name: str, recording: Recording, truth: Truth, series: Any) -> Trouble:
    known = [one.key for one in recording.series]
    if series not in known:
        return f"{name} has no series {shown(series)}.", f"there are: {', '.join(known)}."
    if series in truth.series:
        return None
    if str(series).endswith("utilization"):
        why = "a GPU that waits for others reads 100 % too: which series tells work from waiting?"
    elif str(series).endswith("/s") and str(series).startswith("own."):
        why = "it shows that the run is slow, not why."
    else:
        why = f"which series would look different if it were not {truth.layer}?"
    return f"{name}: {series} is no evidence of {truth.layer}.", why


def _interval(name: str, recording: Recording, truth: Truth, start: Any, end: Any) -> Trouble:
    for value in (start, end):
        trouble = explain.not_a_number(value)
        if trouble:
            return f"{name}: the interval's ends are seconds, and one is {trouble}.", ""
    (work,) = recording.spans
    last = float(recording.samples()[0][-1]) if work.end is None else work.end
    if end <= start:
        return f"{name}: the interval ends before it begins ({start:g} to {end:g} s).", ""
    if end - start < SHORTEST:
        return f"{name}: {end - start:g} s is too short to tell.", f"choose {SHORTEST:g} s at least."
    if start < work.start - EDGE or end > last + EDGE:
        return (
            f"{name}: from {start:g} to {end:g} s there is rest as well.",
            f"the work lasts from {work.start:.1f} to {last:.1f} s (the span on the plot).",
        )
    if truth.below is not None and _mean(recording, truth.below[0], start, end) > truth.below[1]:
        return f"{name}: between {start:g} and {end:g} s both workers are busy.", "it goes wrong later."
    return None


def _mean(recording: Recording, key: str, start: float, end: float) -> float:
    times, _ = recording.samples()
    inside = (times >= start) & (times <= end)
    return float(np.nanmean(recording.values(key)[inside]))


def _capability(value: Any, unit: Any) -> Trouble:
    trouble = explain.not_a_number(value)
    if trouble:
        return f"The number is {trouble}; it should be a plain number, such as 7.5.", ""
    if "capab" not in str(unit).lower() and "sm" not in str(unit).lower():
        return f"The unit is {shown(unit)}; it is a 'compute capability'.", ""
    if math.isclose(value, 8.0):
        return None
    if math.isclose(value, 8.6):
        return "8.6 is the card's own.", "which older one, of the same major version, does it run as well?"
    if math.isclose(value, 80.0):
        return "80 is how file names write it.", "write it with its point."
    return (
        f"Code for {value:g} is not what was meant.",
        "within one major version, newer cards run older code.",
    )


claim = claims.Judge(
    verdicts=("mostly true",),
    reasons={
        "true": "as a rule of thumb it holds; is there really no older code that runs on such a card?",
        "false": "compilers do know this card from CUDA 11.1 on; what else is there that runs on it?",
    },
    otherwise="it is a good rule with an exception: name the exception.",
    number=_capability,
    left_out=("major", "compatib", "ptx", "sm_80", "8.0", "binary"),
    asked="what lets older code run on a newer card.",
    hint="look at the rule of compute capabilities.",
)
