"""Lesson 06: typical wrong rings, trees and shifts, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, wrong

_IMPORTS = (
    "from labkit.network import exchange, irecv, isend, recv, send\n"
    "from labkit.network.collectives import chunks\n\n"
)


def _ranks(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    lines = [f"    {line}" if line else "" for line in body.strip("\n").split("\n")]
    return wrong(label, outcome, says, f"{_IMPORTS}\ndef {signature}:\n" + "\n".join(lines))


def _scatter(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return _ranks("reduce_scatter(data, rank, ranks)", label, outcome, says, _RING + body.strip("\n"))


def _gather(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return _ranks("all_gather(data, rank, ranks)", label, outcome, says, _RING + body.strip("\n"))


def _cast(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return _ranks("broadcast(data, root, rank, ranks)", label, outcome, says, body)


def _shift(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return _ranks("shift(data, rank, ranks)", label, outcome, says, body)


_RING = """
part = chunks(len(data), ranks)
right, left = (rank + 1) % ranks, (rank - 1) % ranks
"""

REDUCE_SCATTER = (
    _scatter(
        "starts one chunk late",
        "start one chunk earlier",
        """
for step in range(ranks - 1):
    mine = data[part[(rank - step - 1) % ranks]]
    coming = np.empty_like(mine)
    exchange(data[part[(rank - step) % ranks]], right, coming, left)
    mine += coming
""",
    ),
    _scatter(
        "the last step is missing",
        "are missing (2 steps were taken)",
        """
for step in range(ranks - 2):
    mine = data[part[(rank - step - 2) % ranks]]
    coming = np.empty_like(mine)
    exchange(data[part[(rank - step - 1) % ranks]], right, coming, left)
    mine += coming
""",
    ),
    _scatter(
        "adds twice",
        "in it more than once",
        """
for step in range(ranks - 1):
    mine = data[part[(rank - step - 2) % ranks]]
    coming = np.empty_like(mine)
    exchange(data[part[(rank - step - 1) % ranks]], right, coming, left)
    mine += coming
    mine += coming
""",
    ),
    _scatter(
        "adds to the chunk that was sent",
        "the shares of ranks 1, 2 and 3 are missing",
        """
for step in range(ranks - 1):
    out = data[part[(rank - step - 1) % ranks]]
    coming = np.empty_like(out)
    exchange(out, right, coming, left)
    out += coming
""",
    ),
    _scatter(
        "overwrites instead of adding",
        "are missing",
        """
for step in range(ranks - 1):
    exchange(data[part[(rank - step - 1) % ranks]], right, data[part[(rank - step - 2) % ranks]], left)
""",
    ),
    _scatter(
        "sends everything every time",
        "sends 192 bytes, target 48 bytes",
        """
mine = data[part[rank]]
total, passing = data.copy(), data.copy()
for step in range(ranks - 1):
    coming = np.empty_like(data)
    exchange(passing, right, coming, left)
    total, passing = total + coming, coming
data[:] = total
""",
    ),
    _scatter(
        "turns to the left",
        "its right neighbour is rank 1",
        """
for step in range(ranks - 1):
    mine = data[part[(rank + step + 2) % ranks]]
    coming = np.empty_like(mine)
    exchange(data[part[(rank + step + 1) % ranks]], left, coming, right)
    mine += coming
""",
    ),
    _scatter(
        "everybody sends first",
        "rank 0 waits to send to rank 1",
        """
for step in range(ranks - 1):
    mine = data[part[(rank - step - 2) % ranks]]
    coming = np.empty_like(mine)
    send(data[part[(rank - step - 1) % ranks]], right)
    recv(coming, left)
    mine += coming
""",
    ),
    _scatter(
        "everybody receives first",
        "rank 0 waits to receive from rank 3",
        """
for step in range(ranks - 1):
    mine = data[part[(rank - step - 2) % ranks]]
    coming = np.empty_like(mine)
    recv(coming, left)
    send(data[part[(rank - step - 1) % ranks]], right)
    mine += coming
""",
    ),
    _scatter(
        "chunks of the same length",
        "Rank 0 has 3303 in element 2, expected 3333",
        """
size = len(data) // ranks
for step in range(ranks - 1):
    k, j = (rank - step - 1) % ranks, (rank - step - 2) % ranks
    mine = data[j * size : (j + 1) * size]
    coming = np.empty_like(mine)
    exchange(data[k * size : (k + 1) * size], right, coming, left)
    mine += coming
""",
    ),
    _scatter(
        "everything to rank 0 and back",
        "in step",
        """
if rank == 0:
    coming = np.empty_like(data)
    for source in range(1, ranks):
        recv(coming, source)
        data += coming
    for to in range(1, ranks):
        send(data, to)
else:
    send(data, 0)
    recv(data, 0)
""",
    ),
    _scatter(
        "no index but the step",
        "Rank",
        """
for step in range(ranks - 1):
    mine = data[part[step + 1]]
    coming = np.empty_like(mine)
    exchange(data[part[step]], right, coming, left)
    mine += coming
""",
    ),
    _scatter("nothing is sent", "no rank has sent anything", "data *= ranks"),
)

ALL_GATHER = (
    _gather(
        "sends its own chunk every time",
        "belongs",
        """
for step in range(ranks - 1):
    exchange(data[part[rank]], right, data[part[(rank - step - 1) % ranks]], left)
""",
    ),
    _gather(
        "the last step is missing",
        "has not come to rank 0 (2 steps were taken)",
        """
for step in range(ranks - 2):
    exchange(data[part[(rank - step) % ranks]], right, data[part[(rank - step - 1) % ranks]], left)
""",
    ),
    _gather(
        "starts one chunk early",
        "has not come to rank",
        """
for step in range(ranks - 1):
    exchange(data[part[(rank - step - 1) % ranks]], right, data[part[(rank - step - 2) % ranks]], left)
""",
    ),
    _gather(
        "everybody sends to everybody",
        "sends to rank 1 in step 2",
        """
for step in range(1, ranks):
    source = (rank - step) % ranks
    exchange(data[part[rank]], (rank + step) % ranks, data[part[source]], source)
""",
    ),
    _gather(
        "sends everything every time",
        "target 48 bytes",
        """
for step in range(ranks - 1):
    coming = np.empty_like(data)
    exchange(data, right, coming, left)
    mine = part[(rank - step - 1) % ranks]
    data[mine] = coming[mine]
""",
    ),
    _gather(
        "everybody sends first",
        "rank 0 waits to send to rank 1",
        """
for step in range(ranks - 1):
    send(data[part[(rank - step) % ranks]], right)
    recv(data[part[(rank - step - 1) % ranks]], left)
""",
    ),
    _gather(
        "chunks of the same length",
        "chunk 3 has not come to rank 0",
        """
size = -(-len(data) // ranks)
for step in range(ranks - 1):
    k, j = (rank - step) % ranks, (rank - step - 1) % ranks
    exchange(data[k * size : (k + 1) * size], right, data[j * size : (j + 1) * size], left)
""",
    ),
    _gather(
        "one rank begins",
        "steps, target 3",
        """
for step in range(ranks - 1):
    out, into = data[part[(rank - step) % ranks]], data[part[(rank - step - 1) % ranks]]
    if rank == 0:
        send(out, right)
        recv(into, left)
    else:
        recv(into, left)
        send(out, right)
""",
    ),
)

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
        "sent and never waited for, received too late",
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
