"""Lesson 05: who is said to hold up the others in a modelled recording, when, and what is given as evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.course import explain
from labkit.course.checks import Call
from labkit.course.messages import shown
from labkit.telemetry.recording import Recording
from labkit.telemetry.traces import spinning

Trouble = tuple[str, str] | None
EDGE = 2.0  # seconds by which an end of the interval may miss: four samples


def spin(call: Call, returned: Any) -> Trouble:
    """The rank, a series that shows it, and the interval, in that order."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 4:
        return f"guilty returned {shown(returned)}.", "four things are asked for: rank, series, start, end."
    rank, series, start, end = returned
    told, recording = spinning.truth(call.arguments["run"]), spinning.recorded(call.arguments["run"])
    if not isinstance(rank, (int, np.integer)) or isinstance(rank, bool) or not 0 <= rank < spinning.RANKS:
        return f"The rank is {shown(rank)}.", f"it is a number from 0 to {spinning.RANKS - 1}."
    for value in (start, end):
        if trouble := explain.not_a_number(value):
            return f"The interval's ends are seconds, and one is {trouble}.", ""
    return (
        _guilty(recording, told, int(rank))
        or _interval(told, float(start), float(end))
        or _evidence(recording, told, series)
    )


def _guilty(recording: Recording, told: spinning.Truth, rank: int) -> Trouble:
    if rank == told.rank:
        return None
    computes = _mean(recording, f"rank.{rank}.compute", told)
    message = f"Rank {rank} is not the one."
    if rank == told.frugal:
        always = "its card draws less than the others all the time, when all is well as much as later"
        return message, f"{always}; {_victim(computes)}"
    return message, _victim(computes)


def _victim(computes: float) -> str:
    return (
        f"while the others are held up it computes {computes:.0f} % of its time and waits for the rest, so it is a "
        "victim; the guilty one is the one that does not wait."
    )


def _mean(recording: Recording, key: str, told: spinning.Truth) -> float:
    times, _ = recording.samples()
    return float(np.nanmean(recording.values(key)[(times > told.start) & (times <= told.end)]))


def _interval(told: spinning.Truth, start: float, end: float) -> Trouble:
    if end <= start:
        return f"The interval ends before it begins ({start:g} to {end:g} s).", ""
    if abs(start - told.start) <= EDGE and abs(end - told.end) <= EDGE:
        return None
    message = f"Rank {told.rank} it is, but not from {start:g} to {end:g} s."
    if start < told.network[1] and end > told.network[0]:
        why = "a part of that is when all four wait alike, for the network: then nobody is guilty."
    elif start >= told.start - EDGE and end <= told.end + EDGE:
        why = "it goes on for longer than that."
    elif end < told.start or start > told.end:
        why = "then all four compute most of the time."
    else:
        why = "in a part of that all four compute most of the time."
    return message, why


def _evidence(recording: Recording, told: spinning.Truth, series: Any) -> Trouble:
    known = [one.key for one in recording.series]
    if series not in known:
        return f"There is no series {shown(series)}.", f"there are: {', '.join(known)}."
    device, rank, metric = str(series).split(".")
    if device == "rank" or (metric == "power" and told.cause == "work"):
        return None
    if metric == "temperature" and told.cause == "heat" and int(rank) == told.rank:
        return None
    message = f"{series} is no evidence."
    if metric == "utilization":
        return message, "it reads 100 % for all four from beginning to end: waiting in NCCL is a kernel, too."
    if metric == "power":
        return (
            message,
            "here all four draw as much: the guilty card's clocks were lowered. What do the ranks say?",
        )
    return message, "it would look the same if nobody waited."
