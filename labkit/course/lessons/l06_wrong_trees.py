"""Lesson 06: typical wrong trees and shifts, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l06_wrong import on_ranks
from labkit.course.wrong import Wrong


def _cast(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return on_ranks("broadcast(data, root, rank, ranks)", label, outcome, says, body)


def _shift(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return on_ranks("shift(data, rank, ranks)", label, outcome, says, body)


BROADCAST = (
    _cast(
        "the root sends to all",
        "rank 0 sends all 3 messages itself",
        """
if rank == root:
    for to in range(ranks):
        if to != root:
            send(data, to)
else:
    recv(data, root)
""",
    ),
    _cast(
        "a chain",
        "3 steps, target 2",
        """
me = (rank - root) % ranks
if me > 0:
    recv(data, (rank - 1) % ranks)
if me < ranks - 1:
    send(data, (rank + 1) % ranks)
""",
    ),
    _cast(
        "rank 0 is always the root",
        "count ranks from the root",
        """
reach = 1
while reach < ranks:
    if rank < reach and rank + reach < ranks:
        send(data, rank + reach)
    elif reach <= rank < 2 * reach:
        recv(data, rank - reach)
    reach *= 2
""",
    ),
    _cast(
        "only for powers of two",
        "cannot exchange messages with rank",
        """
me = (rank - root) % ranks
reach = 1
while reach < ranks:
    if me < reach:
        send(data, (me + reach + root) if me + reach + root < 2 * reach else (me + reach + root) % ranks)
    elif me < 2 * reach:
        recv(data, (me - reach + root) % ranks)
    reach *= 2
""",
        outcome="error",
    ),
    _cast(
        "one level is missing",
        "nobody has sent anything to rank",
        """
me = (rank - root) % ranks
reach = 1
while 2 * reach < ranks:
    if me < reach and me + reach < ranks:
        send(data, (me + reach + root) % ranks)
    elif reach <= me < 2 * reach:
        recv(data, (me - reach + root) % ranks)
    reach *= 2
""",
    ),
    _cast(
        "everybody receives, nobody sends",
        "waits to receive from rank 0",
        """
if rank != root:
    recv(data, root)
""",
    ),
    _cast(
        "by doubling, but with exchange",
        "messages, target",
        """
me = (rank - root) % ranks
reach = 1
while reach < ranks:
    partner = me ^ reach
    if me < 2 * reach and partner < ranks:
        other = (partner + root) % ranks
        if me < reach:
            exchange(data, other, data.copy(), other)
        else:
            coming = data.copy()
            exchange(data, other, coming, other)
            data[:] = coming
    reach *= 2
""",
    ),
)

SHIFT = (
    _shift(
        "as it was",
        "rank 0 waits to send to rank 1",
        """
coming = np.empty_like(data)
send(data, (rank + 1) % ranks)
recv(coming, (rank - 1) % ranks)
return coming
""",
    ),
    _shift(
        "receives first",
        "rank 0 waits to receive from rank 3",
        """
coming = np.empty_like(data)
recv(coming, (rank - 1) % ranks)
send(data, (rank + 1) % ranks)
return coming
""",
    ),
    _shift(
        "rank 0 alone the other way round",
        "one rank after another",
        """
if ranks == 1:
    return data.copy()
coming = np.empty_like(data)
if rank == 0:
    send(data, 1)
    recv(coming, ranks - 1)
else:
    recv(coming, rank - 1)
    send(data, (rank + 1) % ranks)
return coming
""",
    ),
    _shift(
        "a world of one",
        "Rank 0 cannot exchange messages with rank 0",
        """
coming = np.empty_like(data)
exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks)
return coming
""",
        outcome="error",
    ),
    _shift(
        "into the array that is being sent",
        "changed the data of its message",
        """
if ranks > 1:
    exchange(data, (rank + 1) % ranks, data, (rank - 1) % ranks)
return data
""",
        outcome="error",
    ),
    _shift(
        "the wrong way round",
        "send to the right, receive from the left",
        """
coming = data.copy()
if ranks > 1:
    exchange(data, (rank - 1) % ranks, coming, (rank + 1) % ranks)
return coming
""",
    ),
    _shift(
        "nobody waits for what comes",
        "that is its own",
        """
coming = data.copy()
if ranks > 1:
    irecv(coming, (rank - 1) % ranks)
    isend(data, (rank + 1) % ranks)
return coming
""",
    ),
    _shift(
        "receives first, in two branches",
        "waits to receive",
        """
coming = data.copy()
if ranks > 1 and rank > 0:
    recv(coming, rank - 1)
    send(data, (rank + 1) % ranks)
elif ranks > 1:
    recv(coming, ranks - 1)
    send(data, 1)
return coming
""",
    ),
    _shift(
        "returns its own data",
        "return what was received",
        """
coming = data.copy()
if ranks > 1:
    exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks)
return data
""",
    ),
)
