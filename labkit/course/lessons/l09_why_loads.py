"""Lesson 09: what is wrong with an answer about loads of links, and why, where the mistake is a typical one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.course import explain
from labkit.course.checks import Call
from labkit.course.compare import number
from labkit.course.lessons import l09_cases as cases
from labkit.course.messages import shown

Trouble = tuple[str, str] | None


def hot_link(call: Call, returned: Any) -> Trouble:
    table = call.arguments
    if not isinstance(returned, (list, tuple)) or len(returned) != 3 or not isinstance(returned[0], str):
        return f"hot_link returned {shown(returned)}.", "a name, bytes and seconds are asked for."
    name, size, seconds = returned
    right, bytes_there, seconds_there = call.expected
    if name not in table["links"]:
        return f"There is no link {name!r}.", "give the name as it stands in links, such as 'leaf0->spine1'."
    if name != right:
        message = (
            f"The hot link is not {name}: it needs {cases.needed(table)[name]:.4g} s, and another one more."
        )
        return message, _hot_why(table, name)
    for what, value, wanted, unit in (
        ("it carries", size, bytes_there, "bytes"),
        ("it needs", seconds, seconds_there, "s"),
    ):
        if trouble := explain.not_a_number(value):
            return f"{right} is the hot link, but {what} {trouble}.", "numbers are asked for."
        if not math.isclose(float(value), wanted, rel_tol=1e-9):
            message = (
                f"{right} is the hot link, but {what} {number(wanted)} {unit}, not {number(float(value))}."
            )
            return message, _carried_why(table, right, float(value))
    return None


def _hot_why(table: dict[str, Any], name: str) -> str:
    guesses = (
        (
            cases.most_bytes(table),
            "it carries the most bytes, but it is fast: divide by the rate of each link.",
        ),
        (
            cases.most_flows(table),
            "it has the most transfers, but they are small: add up bytes, then divide.",
        ),
        (
            cases.slowest(table),
            "it is the slowest link, but little crosses it: divide its bytes by its rate.",
        ),
        (cases.both_ways(table), "two directions of a cable are two links: do not add them up."),
    )
    return next((why for guess, why in guesses if guess == name), "")


def _carried_why(table: dict[str, Any], name: str, value: float) -> str:
    crossing = [size for size, path in table["flows"] if name in path]
    back = "->".join(name.split("->")[::-1])
    total = cases.carried(table)
    rate = table["links"][name]
    guesses = (
        (max(crossing), "this is its largest transfer alone: add up all that cross it."),
        (len(crossing), "this is how many transfers cross it: add up their bytes."),
        (total[name] + total.get(back, 0), "the other direction is a link of its own: do not add it."),
        (rate / total[name], "this is the rate over the bytes: seconds are bytes over rate."),
        (8 * total[name] / rate, "rates are in bytes a second here: no factor of 8."),
        (total[name] / rate, "first the bytes, then the seconds."),
    )
    return next((why for guess, why in guesses if math.isclose(guess, value, rel_tol=1e-9)), "")


def leaf(call: Call, returned: Any) -> Trouble:
    table = call.arguments
    if not isinstance(returned, (list, tuple)) or len(returned) != 2:
        return (
            f"leaf returned {shown(returned)}.",
            "two numbers are asked for: hosts and the oversubscription.",
        )
    for part, value in zip(("the hosts", "the oversubscription"), returned, strict=True):
        if trouble := explain.not_a_number(value):
            return f"leaf returned {trouble} for {part}.", "two numbers are asked for."
    hosts, ratio = (float(value) for value in returned)
    wanted, over = call.expected
    if hosts != wanted:
        return f"leaf allows {number(hosts)} hosts, expected {wanted}.", _hosts_why(table, hosts)
    if math.isclose(ratio, over, rel_tol=1e-9, abs_tol=1e-12):
        return None
    message = f"The oversubscription with {wanted} hosts is {number(ratio)}, expected {number(over)}."
    return message, _ratio_why(table, wanted, ratio)


def _hosts_why(table: dict[str, Any], hosts: float) -> str:
    room, free = cases.by_uplinks(table), table["ports"] - table["uplinks"]
    if cases.own_time(table) > table["seconds"]:
        return "a host's own link is too slow for its bytes, so not even one host can do it: 0 hosts."
    if hosts > free and math.isclose(hosts, math.floor(room)):
        return f"the uplinks would carry that many, but only {free} ports are left for hosts."
    if hosts == table["ports"]:
        return "the uplinks take ports of the switch too."
    guesses = (
        (free, "that is every free port: do the uplinks carry so many hosts' bytes in the time?"),
        (math.ceil(room), "one host too many: round down, or the step takes longer than it may."),
        (math.floor(8 * room), "rates are in Gbit/s, traffic in GB: there are 8 bits in a byte."),
        (math.floor(room / 8), "the factor of 8 is on the wrong side: Gbit/s over 8 is GB/s."),
        (
            math.floor(2 * room),
            "a link's rate holds in each direction; only one carries what the hosts send up.",
        ),
        (
            math.floor(room / table["uplinks"]),
            "that is one uplink: there are several, and traffic is spread over all.",
        ),
        (
            math.floor(table["uplinks"] * table["uplink_Gbps"] / table["host_Gbps"]),
            "that is 1:1, without any oversubscription: hosts need not send all of the time.",
        ),
        (room, "hosts are whole: round down."),
    )
    near = [why for guess, why in guesses if hosts in (guess, min(guess, free))]
    return near[0] if near else ""


def _ratio_why(table: dict[str, Any], hosts: int, ratio: float) -> str:
    over = hosts * table["host_Gbps"] / (table["uplinks"] * table["uplink_Gbps"])
    guesses = (
        (
            1 / over if over else math.nan,
            "upside down: what the hosts could send, over what the uplinks carry.",
        ),
        (
            hosts / table["uplinks"],
            "links were counted, not rates: an uplink and a host's link differ in speed.",
        ),
        (
            (table["ports"] - table["uplinks"])
            * table["host_Gbps"]
            / (table["uplinks"] * table["uplink_Gbps"]),
            "that is with a host at every free port: take the hosts you allow.",
        ),
        (2 * over, "the same direction counts on both sides."),
        (over / 2, "the same direction counts on both sides."),
    )
    return next((why for guess, why in guesses if math.isclose(guess, ratio, rel_tol=1e-6)), "")


def place(call: Call, returned: Any) -> Trouble:
    table = call.arguments
    ranks, room = sum(map(len, table["groups"])), table["racks"] * table["hosts"]
    host_of = _hosts(returned, ranks)
    if host_of is None:
        return (
            f"place returned {shown(returned)}.",
            f"a list of {ranks} hosts is asked for: entry r is that of rank r.",
        )
    if outside := [host for host in host_of if not 0 <= host < room]:
        return (
            f"There is no host {outside[0]}.",
            f"hosts are 0 to {room - 1}; host h stands in rack h // hosts.",
        )
    if len(set(host_of)) < ranks:
        twice = next(host for host in host_of if host_of.count(host) > 1)
        why = (
            "these look like racks: give hosts."
            if max(host_of) < table["racks"]
            else "a host takes one rank."
        )
        return f"Host {twice} is given to {host_of.count(twice)} ranks.", why
    name, size = hottest(table, host_of)
    if size <= call.expected * (1 + 1e-9):
        return None
    message = f"The hottest link is {name} with {size / 1e9:.3g} GB; gate {call.expected / 1e9:.3g} GB."
    return message, _place_why(table, host_of)


def _hosts(returned: Any, ranks: int) -> list[int] | None:
    if not isinstance(returned, (list, tuple, np.ndarray)) or len(returned) != ranks:
        return None
    if any(
        isinstance(host, (bool, np.bool_)) or not isinstance(host, (int, np.integer)) for host in returned
    ):
        return None
    return [int(host) for host in returned]


def hottest(table: dict[str, Any], host_of: Sequence[int]) -> tuple[str, float]:
    """The link that carries most, and its bytes, as the simulator counts them for all rings at once."""
    from labkit.network.fabric import fabric

    racks = fabric("leaf-spine", racks=table["racks"], hosts=table["hosts"])
    rings = [
        (one, other, cases.sent(table["groups"][n]), ()) for n, one, other in cases.edges(table["groups"])
    ]
    loads = racks.run(rings, placement=list(host_of)).links
    place = int(np.argmax(loads.bytes))
    return loads.names[place], float(loads.bytes[place])


def _place_why(table: dict[str, Any], host_of: list[int]) -> str:
    if host_of == list(range(len(host_of))):
        return "rank r is on host r: what talks to each other is scattered over the racks."
    most = cases.gate(table["groups"])
    for (_, rack), crossing in cases.uplinks(table, host_of).items():
        if sum(cases.sent(table["groups"][n]) for n in crossing) <= most * (1 + 1e-9):
            continue
        again = next((n for n in crossing if crossing.count(n) > 1), None)
        if again is not None:
            return (
                f"the ring of group {again} leaves rack {rack} {crossing.count(again)} times: neighbours in a ring "
                "belong in one rack, so that it leaves once."
            )
        return (
            f"{len(crossing)} rings leave rack {rack}: place the largest groups first, and each group that fits "
            "into one rack whole."
        )
    return ""
