"""All-reduce that knows where ranks sit: in servers, in rows and columns, on a torus."""

from __future__ import annotations

import math

import numpy as np

from labkit.errors import LabkitError
from labkit.network.fabric.schedule import Messages, Steps, joined
from labkit.network.fabric.team import Team


def rails(team: Team, size: float) -> Steps:
    """As many rings as a server has ranks, each with its share of the data, so that every network card is used.

    Ring c enters the first server at its c-th rank and leaves it at the one before; the next server is passed the
    other way round, and so the ring leaves and enters servers on the same rail (but once, for an odd number of
    servers). NCCL builds its channels in this spirit.
    """
    columns = _a_server(team)
    rows = team.size // columns
    patterns = []
    for ring in range(columns):
        forth = (ring + np.arange(columns)) % columns
        order = [row * columns + (forth if row % 2 == 0 else forth[::-1]) for row in range(rows)]
        here = np.concatenate(order)
        one, next_one = (ring * len(team.nodes) + team.spread(local) for local in (here, np.roll(here, -1)))
        patterns.append(Messages.of(one, next_one, size / columns / team.size))
    steps = 2 * (team.size - 1)
    return Steps(np.tile(team.nodes, columns), (joined(patterns),), ((0, steps),))


def hierarchical(team: Team, size: float) -> Steps:
    """Reduce-scatter in each server, all-reduce between equal numbers of all servers, all-gather in each server.

    Over the network a server then sends 2(m - 1)/m of the size for m servers, however many GPUs it has, spread
    over all its cards.
    """
    return _rows_and_columns(team, size, _a_server(team))


def _a_server(team: Team) -> int:
    """How many ranks a server has, if all have equally many, one after another."""
    servers = {gpu: number for number, server in enumerate(team.topology.servers()) for gpu in server}
    names = list(team.topology.graph.nodes)
    homes = np.array([servers[names[team.nodes[rank]]] for rank in team.groups[0]])
    counts = np.bincount(homes)[np.unique(homes)]
    if len(set(counts.tolist())) != 1 or (np.diff(homes) != 0).sum() != len(counts) - 1:
        raise LabkitError(
            "This algorithm needs equally many ranks in every server, and those of a server one after another; "
            f"here servers hold {', '.join(map(str, counts.tolist()[:8]))}: place ranks 'linear'."
        )
    return int(counts[0])


def two_dimensional(team: Team, size: float, columns: int | None = None) -> Steps:
    """Rings along rows, then along columns, then along rows again; by default as square as n allows."""
    n = team.size
    if columns is None:
        columns = max(side for side in range(1, math.isqrt(n) + 1) if n % side == 0)
    if not isinstance(columns, int) or columns < 1 or n % columns:
        raise LabkitError(f"columns={columns!r} does not divide the {n} ranks.")
    return _rows_and_columns(team, size, columns)


def _rows_and_columns(team: Team, size: float, columns: int) -> Steps:
    rows = team.size // columns
    row, column = np.divmod(np.arange(team.size), columns)
    across = row * columns + (column + 1) % columns
    along = ((row + 1) % rows) * columns + column
    here = team.spread(np.arange(team.size))
    patterns = (
        Messages.of(here, team.spread(across), size / columns),
        Messages.of(here, team.spread(along), size / team.size),
    )
    program = ((0, columns - 1), (1, 2 * (rows - 1)), (0, columns - 1))
    return Steps(team.nodes, patterns, tuple(entry for entry in program if entry[1]))


def torus(team: Team, size: float) -> Steps:
    """As many rings at once as a GPU has links: each part of the data takes the dimensions in another order.

    A d-dimensional torus is cut into 2d parts. A part is reduce-scattered along one dimension, what is left along
    the next, and so on, then gathered back; parts start in different dimensions and go round both ways, so all 2d
    links of a GPU are busy in both directions (bucket algorithm; Sack and Gropp, PPoPP 2012). Bound: 2 (n - 1)/n
    size / (2d beta).
    """
    dims = team.topology.dims
    if team.size != math.prod(dims) or (np.diff(team.nodes) != 1).any() or len(team.groups) != 1:
        raise LabkitError(
            "The torus all-reduce needs all GPUs of a ring or torus, placed 'linear', in one group."
        )
    used = [dimension for dimension, side in enumerate(dims) if side > 1]
    turns = [used[i:] + used[:i] for i in range(len(used))]
    parts = [_part(dims, turn, way, size / (2 * len(turns))) for turn in turns for way in (1, -1)]
    patterns = []
    for moves in zip(*parts, strict=True):
        # Every part is a place of its own on each GPU: what one part received, another does not wait for.
        sources = [number * team.size + np.arange(team.size) for number in range(len(parts))]
        targets = [number * team.size + target for number, (target, _) in enumerate(moves)]
        sizes = np.repeat([amount for _, amount in moves], team.size)
        patterns.append(Messages.of(np.concatenate(sources), np.concatenate(targets), sizes))
    forth, back = range(len(patterns)), reversed(range(len(patterns)))
    return Steps(
        np.tile(team.nodes, len(parts)), tuple(patterns), tuple((step, 1) for step in (*forth, *back))
    )


def _part(dims: tuple[int, ...], order: list[int], way: int, size: float) -> list[tuple[np.ndarray, float]]:
    """Of each step of the reduce-scatter of one part: whom every GPU sends to, and how many bytes."""
    moves = []
    for dimension in order:
        size /= dims[dimension]
        at = np.array(np.unravel_index(np.arange(math.prod(dims)), dims))
        at[dimension] = (at[dimension] + way) % dims[dimension]
        moves += [(np.ravel_multi_index(tuple(at), dims), size)] * (dims[dimension] - 1)
    return moves
