"""Lesson 05: what is wrong with the way between two GPUs or with a claim, and why where the mistake is typical."""

from __future__ import annotations

import math
from typing import Any

from labkit.course import claims, explain
from labkit.course.checks import Call
from labkit.course.lessons import l05_cases as cases
from labkit.course.messages import shown
from labkit.hardware.units import show_time

Trouble = tuple[str, str] | None


def way(call: Call, returned: Any) -> Trouble:
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        return f"way returned {shown(returned)}.", "three things are asked for: legs, bytes copied, seconds."
    legs, copied, seconds = returned
    used, bytes_, wanted_s = call.expected
    if not isinstance(legs, (list, tuple)) or list(legs) != used:
        return f"The legs are {shown(legs)}, expected {used}.", _legs_why(call.arguments["environment"], legs)
    for name, value in (("bytes copied", copied), ("seconds", seconds)):
        if trouble := explain.not_a_number(value):
            return f"The {name} are {trouble}.", "a number is asked for."
    if copied != bytes_:
        return f"{shown(copied)} bytes are copied in your way, expected {bytes_:,}.", _copied_why(
            call, copied
        )
    if not math.isclose(seconds, wanted_s, rel_tol=1e-9):
        return f"It takes {show_time(float(seconds))} in your way, expected {show_time(wanted_s)}.", _way_why(
            call, seconds
        )
    return None


def _legs_why(environment: dict[str, str], legs: Any) -> str:
    p2p, shm = (environment.get(name) for name in (cases.P2P_OFF, cases.SHM_OFF))
    if "0" in (p2p, shm):
        return "a switch that is set to 0 takes nothing away."
    if shm == "1" and p2p != "1":
        return (
            "GPUs that reach each other directly need no shared memory: without it nothing changes for them."
        )
    if isinstance(legs, (list, tuple)) and "socket" in legs and p2p == shm == "1":
        return "the socket joins the hosts' memories: the data have to get there and back to a GPU."
    return "directly if they may, else through the host's shared memory, else through a socket."


def _copied_why(call: Call, copied: Any) -> str:
    size, used = call.arguments["size"], call.expected[0]
    if copied == size:
        return "this counts the message once; each leg copies it again."
    if "socket" in used and copied == size * len(used):
        return "a socket copies twice: into the kernel, and out of it."
    return ""


def _way_why(call: Call, seconds: Any) -> str:
    size, legs = call.arguments["size"], [call.arguments["legs"][leg] for leg in call.expected[0]]
    guesses = (
        (sum(size / rate for _, rate in legs), "the alphas are missing: every leg has to start."),
        (
            max(alpha + size / rate for alpha, rate in legs),
            "this is the slowest leg; here one begins when the last has ended.",
        ),
        (
            sum(a for a, _ in legs) + size / min(r for _, r in legs),
            "this takes the slowest rate for all; each leg has its own.",
        ),
        (legs[0][0] + sum(size / rate for _, rate in legs), "only the first leg's alpha is in it."),
    )
    return next((why for guess, why in guesses if math.isclose(guess, seconds, rel_tol=1e-9)), "")


claim = claims.Judge(
    verdicts=("false",),
    otherwise="there is a figure, and it is measured: thousands of clock cycles are not zero.",
    number=claims.Figure(
        units=dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1),
        unit_hint="such a latency is in 'us'.",
        right=((2, 3.4),),
        wrong="A small write to a peer was not measured at {value} us.",
        whys=(
            (
                15,
                25,
                "that is a copy with peer access off, through the host; the claim speaks of NVLink.",
            ),
            (0.05, 0.4, "that is what one NVSwitch adds, a part of the way."),
            (1.6, 2, "that is how the CPU sees it; ask for a write timed on the GPU."),
        ),
    ),
    left_out=("peer access", "p2p", "switch", "nvlink 3", "nvlink3", "size", "host", "generation"),
    asked="what such a latency depends on.",
    hint="think of peer access, of what lies between the cards, of the generation, of the message's size.",
)
