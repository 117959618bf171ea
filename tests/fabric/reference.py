"""An independent simulator: slow, plain, and of another make than the product's."""

from __future__ import annotations

import math

Links = dict[str, tuple[float, float]]
Flows = list[tuple[float, list[str], float]]


def finish_times(links: Links, flows: Flows) -> list[float]:
    """Finish of every flow: rates anew from scratch whenever one becomes active or ends."""
    active_from = [start + math.fsum(links[name][1] for name in route) for _, route, start in flows]
    left = [size for size, _, _ in flows]
    finish: list[float | None] = [
        at if size == 0 or not route else None
        for at, size, (_, route, _) in zip(active_from, left, flows, strict=True)
    ]
    clock = 0.0
    while None in finish:
        running = [f for f, at in enumerate(active_from) if finish[f] is None and at <= clock]
        rates = max_min(links, flows, running)
        coming = [at for f, at in enumerate(active_from) if finish[f] is None and at > clock]
        first_end = min((clock + left[f] / rates[f] for f in running), default=math.inf)
        then = min([first_end, *coming])
        for f in running:
            if clock + left[f] / rates[f] <= then * (1 + 1e-15):
                finish[f] = then
            left[f] -= rates[f] * (then - clock)
        clock = then
    return [time for time in finish if time is not None]


def max_min(links: Links, flows: Flows, running: list[int]) -> dict[int, float]:
    """Bottleneck by bottleneck: whoever crosses the link with the least to give each gets that, and is done."""
    rates: dict[int, float] = {}
    users = {name: [f for f in running if name in flows[f][1]] for name in links}
    while len(rates) < len(running):
        offers = {}
        for name, (bandwidth, _) in links.items():
            open_flows = [f for f in users[name] if f not in rates]
            if open_flows:
                spent = sum(rates[f] for f in users[name] if f in rates)
                offers[name] = (bandwidth - spent) / len(open_flows)
        tightest = min(offers, key=lambda name: offers[name])
        for f in users[tightest]:
            rates.setdefault(f, offers[tightest])
    return rates
