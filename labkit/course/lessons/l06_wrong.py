"""Lesson 06: typical wrong rings, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, wrong

_IMPORTS = (
    "from labkit.network import exchange, irecv, isend, recv, send\n"
    "from labkit.network.collectives import chunks\n\n"
)


def on_ranks(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    lines = [f"    {line}" if line else "" for line in body.strip("\n").split("\n")]
    return wrong(label, outcome, says, f"{_IMPORTS}\ndef {signature}:\n" + "\n".join(lines))


def _scatter(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return on_ranks("reduce_scatter(data, rank, ranks)", label, outcome, says, _RING + body.strip("\n"))


def _gather(label: str, says: str, body: str, outcome: str = "failed") -> Wrong:
    return on_ranks("all_gather(data, rank, ranks)", label, outcome, says, _RING + body.strip("\n"))


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
