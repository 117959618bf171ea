"""The event loop: when does each flow end, if flows that share a link share it max-min fairly?

A flow waits for the flows it depends on, then for its latency, and then drains its bytes at the rate its links
leave it. Rates change only when a flow becomes active or ends, so time jumps from event to event (Bertsekas and
Gallager, Data Networks, 2nd edition, section 6.5.2, for max-min fairness and progressive filling).

Two things keep it fast. Flows that end together are taken together; and rates are filled anew only for flows
that are joined, through shared links, to one that came or went: nobody else can notice.

Everything compiled lives in this one file, because numba's cache on disk does not see a change in another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.errors import LabkitError

SAME_TIME = 1e-12  # events closer than this share of the clock are one event
WAITING, FLYING, ACTIVE, DONE = 0, 1, 2, 3

# `left` bytes at time `since`; `key` is the time of the flow's next event, `where` its place in the queue.
FLOW = np.dtype(
    [(name, "f8") for name in ("key", "left", "since", "rate", "old", "start", "finish")]
    + [(name, "i4") for name in ("where", "turn", "waits", "state")],
    align=True,
)
# `room` bytes/s left for a `load` of flows; `key` is their quotient, the fair share; `head` the first active hop.
LINK = np.dtype(
    [(name, "f8") for name in ("key", "capacity", "room", "load")]
    + [(name, "i4") for name in ("where", "turn", "head")],
    align=True,
)
# One flow on one link, a cell of the doubly linked list of that link's active flows. `weight`: see `run`.
HOP = np.dtype(
    [("weight", "f8"), *((name, "i4") for name in ("link", "owner", "after", "before"))], align=True
)


def compiled(function: Callable[..., Any]) -> Any:
    """numba's njit, kept on disk where a cache can be written."""
    try:
        from numba import njit
    except ImportError:
        raise LabkitError(
            "The fabric simulator needs numba: pip install 'gpu-labkit[lab]' brings it."
        ) from None
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return njit(nogil=True)(function)


# A binary heap of numbered items, flows by time or links by fair share; `where` finds one whose key has changed.


@compiled
def _rise(heap, items, place):
    item = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        if items[heap[parent]].key <= items[item].key:
            break
        heap[place] = heap[parent]
        items[heap[place]].where = place
        place = parent
    heap[place] = item
    items[item].where = place


@compiled
def _sink(heap, items, count, place):
    item = heap[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and items[heap[child + 1]].key < items[heap[child]].key:
            child += 1
        if items[heap[child]].key >= items[item].key:
            break
        heap[place] = heap[child]
        items[heap[place]].where = place
        place = child
    heap[place] = item
    items[item].where = place


@compiled
def _push(heap, items, count, item):
    heap[count] = item
    _rise(heap, items, count)
    return count + 1


@compiled
def _pop(heap, items, count):
    """Take the item with the smallest key off; the new count."""
    count -= 1
    if count > 0:
        heap[0] = heap[count]
        _sink(heap, items, count, 0)
    return count


@compiled
def _moved(heap, items, count, item):
    """Put an item whose key has changed where it belongs."""
    _rise(heap, items, items[item].where)
    _sink(heap, items, count, items[item].where)


@compiled
def _join(flow, route_at, hops, links):
    """The flow becomes one of the active flows of its links."""
    for hop in range(route_at[flow], route_at[flow + 1]):
        first = links[hops[hop].link].head
        hops[hop].after, hops[hop].before = first, -1
        if first >= 0:
            hops[first].before = hop
        links[hops[hop].link].head = hop


@compiled
def _leave(flow, route_at, hops, links):
    for hop in range(route_at[flow], route_at[flow + 1]):
        before, after = hops[hop].before, hops[hop].after
        if before >= 0:
            hops[before].after = after
        else:
            links[hops[hop].link].head = after
        if after >= 0:
            hops[after].before = before


@compiled
def _note(flow, turn, count, route_at, hops, links, near):
    """Add the links of a flow to those near this turn's events; the new count."""
    for hop in range(route_at[flow], route_at[flow + 1]):
        link = hops[hop].link
        if links[link].turn != turn:
            links[link].turn = turn
            near[count] = link
            count += 1
    return count


@compiled
def _spread(turn, count, route_at, hops, links, flows, near, found):
    """From the first `count` links to all that are joined to them by flows; how many links and flows."""
    reached, done = 0, 0
    while done < count:
        hop = links[near[done]].head
        done += 1
        while hop >= 0:
            flow = hops[hop].owner
            if flows[flow].turn != turn:
                flows[flow].turn = turn
                found[reached] = flow
                reached += 1
                count = _note(flow, turn, count, route_at, hops, links, near)
            hop = hops[hop].after
    return count, reached


@compiled
def _weigh(count, hops, links, near, heap):
    """Queue the links by the share each could give all its flows; how many have any."""
    queued = 0
    for i in range(count):
        link = near[i]
        load, hop = 0.0, links[link].head
        while hop >= 0:
            load += hops[hop].weight
            hop = hops[hop].after
        links[link].room, links[link].load = links[link].capacity, load
        if load > 0:
            links[link].key = links[link].capacity / load
            queued = _push(heap, links, queued, link)
    return queued


@compiled
def _freeze(flow, fair, tightest, queued, route_at, hops, links, heap):
    """Take a flow's share off its other links; what they have left per flow can only grow."""
    for hop in range(route_at[flow], route_at[flow + 1]):
        link = hops[hop].link
        links[link].room -= fair * hops[hop].weight
        links[link].load -= hops[hop].weight
        if link != tightest:
            more = links[link].load > 0
            links[link].key = max(fair, links[link].room / links[link].load) if more else math.inf
            _moved(heap, links, queued, link)


@compiled
def _fill(count, route_at, hops, links, flows, near, heap):
    """Progressive filling: the link with the smallest fair share freezes its flows, then the next, and so on."""
    queued = _weigh(count, hops, links, near, heap)
    while queued > 0:
        tightest = heap[0]
        fair, load = links[tightest].key, links[tightest].load
        queued = _pop(heap, links, queued)
        hop = links[tightest].head if load > 0 else -1
        while hop >= 0:
            flow = hops[hop].owner
            if flows[flow].rate < 0:
                flows[flow].rate = fair
                _freeze(flow, fair, tightest, queued, route_at, hops, links, heap)
            hop = hops[hop].after


@compiled
def _alone(flow, route_at, hops, links):
    """The rate of a flow that shares its links with nobody; it may cross one several times."""
    rate = math.inf
    for hop in range(route_at[flow], route_at[flow + 1]):
        load = 0.0
        for other in range(route_at[flow], route_at[flow + 1]):
            if hops[other].link == hops[hop].link:
                load += hops[other].weight
        rate = min(rate, links[hops[hop].link].capacity / load)
    return rate


@compiled
def _refill(now, turn, touched, queued, route_at, hops, links, flows, queue, near, found, heap):
    """New rates for all that the links touched at `now` can concern, and the times they end at."""
    count, reached = _spread(turn, touched, route_at, hops, links, flows, near, found)
    if reached == 0:
        return
    for i in range(reached):
        flow = found[i]
        flows[flow].old, flows[flow].rate = flows[flow].rate, -1.0
    if reached == 1:
        flows[found[0]].rate = _alone(found[0], route_at, hops, links)
    else:
        _fill(count, route_at, hops, links, flows, near, heap)
    for i in range(reached):
        flow = found[i]
        old, rate = flows[flow].old, flows[flow].rate
        if rate != old:
            left = max(flows[flow].left - old * (now - flows[flow].since), 0.0)
            flows[flow].left, flows[flow].since, flows[flow].key = left, now, now + left / rate
            _moved(queue, flows, queued, flow)


@compiled
def _begin(flow, when, delay, queued, flows, queue):
    flows[flow].start, flows[flow].state = when, FLYING
    flows[flow].key = when + delay[flow]
    return _push(queue, flows, queued, flow)


@compiled
def _end(flow, now, queued, delay, release, next_at, next_flow, flows, queue):
    """The first flow of the queue is done: off with it, and on with those that waited for it alone."""
    queued = _pop(queue, flows, queued)
    flows[flow].state, flows[flow].finish = DONE, now
    for i in range(next_at[flow], next_at[flow + 1]):
        follower = next_flow[i]
        flows[follower].waits -= 1
        if flows[follower].waits == 0:
            queued = _begin(follower, max(release[follower], now), delay, queued, flows, queue)
    return queued


@compiled
def _loop(flows, links, hops, delay, release, route_at, next_at, next_flow):
    queue, found = np.empty(len(flows), np.int32), np.empty(len(flows), np.int32)
    heap, near = np.empty(len(links), np.int32), np.empty(len(links), np.int32)
    queued, turn = 0, 0
    for flow in range(len(flows)):
        if flows[flow].waits == 0:
            queued = _begin(flow, release[flow], delay, queued, flows, queue)
    while queued > 0:
        now = flows[queue[0]].key
        horizon, touched = now * (1 + SAME_TIME), 0
        turn += 1
        while queued > 0 and flows[queue[0]].key <= horizon:
            flow = queue[0]
            now, state = flows[flow].key, flows[flow].state
            if state == FLYING and flows[flow].left > 0 and route_at[flow + 1] > route_at[flow]:
                flows[flow].state, flows[flow].since, flows[flow].key = ACTIVE, now, math.inf
                _sink(queue, flows, queued, 0)
                _join(flow, route_at, hops, links)
                touched = _note(flow, turn, touched, route_at, hops, links, near)
                continue
            if state == ACTIVE:
                _leave(flow, route_at, hops, links)
                touched = _note(flow, turn, touched, route_at, hops, links, near)
            queued = _end(flow, now, queued, delay, release, next_at, next_flow, flows, queue)
        _refill(now, turn, touched, queued, route_at, hops, links, flows, queue, near, found, heap)


def run(capacity, delay, size, release, route_at, route_link, weight, waits, next_at, next_flow):
    """Start and finish of every flow, seconds; NaN for flows whose turn never came (a cycle in the schedule).

    Parameters
    ----------
    capacity : float64 array of links, bytes/s
    delay, size, release : float64 arrays of flows
        Seconds from start to first byte, bytes, and the earliest start in seconds.
    route_at, route_link, weight : int32, int32 and float64 arrays
        Flow f crosses ``route_link[route_at[f]:route_at[f + 1]]``. The weight of a hop counts the flows that
        cross the link as this one does: 1, or more where one flow stands for many alike.
    waits : int32 array of flows
        How many flows each waits for.
    next_at, next_flow : int32 arrays
        Flow f is waited for by ``next_flow[next_at[f]:next_at[f + 1]]``.
    """
    flows, links, hops = (
        np.zeros(len(size), FLOW),
        np.zeros(len(capacity), LINK),
        np.zeros(len(route_link), HOP),
    )
    flows["left"], flows["waits"] = size, waits
    flows["start"] = flows["finish"] = np.nan
    links["capacity"], links["head"] = capacity, -1
    hops["link"], hops["weight"] = route_link, weight
    hops["owner"] = np.repeat(np.arange(len(size), dtype=np.int32), np.diff(route_at))
    _loop(flows, links, hops, delay, release, route_at, next_at, next_flow)
    return flows["start"].copy(), flows["finish"].copy()
