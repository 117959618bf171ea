"""Flows on links, nothing else: the simulator's engine for whoever brings their own network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.fabric import engine


def simulate_flows(
    links: Mapping[str, tuple[float | str, float | str]],
    flows: Iterable[tuple[float | str, Iterable[str], float | str]],
) -> np.ndarray:
    """When each flow ends, if those that share a link share it max-min fairly.

    A flow becomes active when the latencies of all its links have passed since its start, and then drains.
    The result is modelled: no switch buffers, no lost packets, no congestion control that takes time.

    Parameters
    ----------
    links : mapping
        Name -> (bytes/s, latency in seconds); strings such as ``"25Gbit/s"`` and ``"5us"`` are understood.
    flows : iterable of (bytes, link names, start in seconds)
        A flow that names a link twice crosses it twice.

    Returns
    -------
    numpy.ndarray
        Finish times in seconds, float64, one a flow, in the order given.

    Raises
    ------
    LabkitError
        For a link without bandwidth, a negative latency, size or start, and a link that does not exist.
    """
    names = {name: place for place, name in enumerate(links)}
    capacity, latency = _links(links)
    rows = [_flow(row, number, names) for number, row in enumerate(flows)]
    route_at = np.cumsum([0] + [len(route) for _, route, _ in rows], dtype=np.int32)
    route = np.array([link for _, route, _ in rows for link in route], dtype=np.int32)
    nobody, no_one = np.zeros(len(rows) + 1, np.int32), np.zeros(0, np.int32)
    _, finish = engine.run(
        capacity,
        np.array([math.fsum(latency[route]) for _, route, _ in rows]),
        np.array([size for size, _, _ in rows], float),
        np.array([start for _, _, start in rows], float),
        route_at,
        route,
        np.ones(len(route)),
        nobody[:-1],
        nobody,
        no_one,
    )
    return finish


def rate(value: Any, where: str) -> float:
    """Bandwidth of a link in bytes/s; LabkitError, naming the link, unless it is above zero."""
    number = _number(value, "rate", f"the bandwidth of {where}")
    if number <= 0:
        raise LabkitError(
            f"The link {where} has no bandwidth, so a flow on it would never end: give bytes/s above zero."
        )
    return number


def delay(value: Any, where: str) -> float:
    """Latency of a link in seconds; LabkitError, naming the link, when it is negative."""
    return _number(value, "time", f"the latency of {where}")


def _number(value: Any, kind: str, what: str) -> float:
    try:
        return parse(value, kind)
    except LabkitError as error:
        raise LabkitError(f"{what[0].upper()}{what[1:]} cannot be used: {error}") from None


def _links(links: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(name, *_pair(name, value)) for name, value in links.items()]
    return (
        np.array([rate(bandwidth, name) for name, bandwidth, _ in pairs], float),
        np.array([delay(latency, name) for name, _, latency in pairs], float),
    )


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    try:
        bandwidth, latency = value
    except (TypeError, ValueError):
        raise LabkitError(
            f"The link {name} is {value!r}, and should be (bytes/s, latency in seconds)."
        ) from None
    return bandwidth, latency


def _flow(row: Any, number: int, names: Mapping[str, int]) -> tuple[float, list[int], float]:
    try:
        size, route, start = row
    except (TypeError, ValueError):
        raise LabkitError(f"Flow {number} is {row!r}, and should be (bytes, [link names], start).") from None
    route = [route] if isinstance(route, str) else list(route)
    if missing := [name for name in route if name not in names]:
        raise LabkitError(f"Flow {number} crosses {missing[0]!r}, which is not among the {len(names)} links.")
    what = f"flow {number}"
    return (
        _number(size, "size", f"the size of {what}"),
        [names[name] for name in route],
        _number(start, "time", f"the start of {what}"),
    )
