"""Rings and pairs that use the best links: from the matrix that ``nvidia-smi topo -m`` prints, or bandwidths.

A ring is as fast as its worst edge, since every rank waits for its neighbour; so both searches first make the
worst edge as good as can be, and then (pairs) the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.reports.topo import Topology

MAX_GPUS = 16
# Near to far, as the legend of nvidia-smi orders them; NVLinks come first, more of them are better.
_PATHS = ("SYS", "NODE", "PHB", "PXB", "PIX")
_BEST = float("inf")
_NVLINKS = re.compile(r"NV(\d+)")

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Order:
    """A ring (each with the next, the last with the first) or pairs, and the links they use.

    Attributes
    ----------
    kind : str
        ``"ring"`` or ``"pairs"``.
    groups : tuple of tuples of str
        One ring, or the pairs; with an odd number of devices one stays alone and is in no pair.
    edges : tuple of str
        The links used, as the matrix names them.
    worst : str
        The worst of them; empty where there is none.
    """

    kind: str
    groups: tuple[tuple[str, ...], ...]
    edges: tuple[str, ...]
    worst: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        joined = " ".join("-".join(group) for group in self.groups)
        return f"Order({self.kind} {joined}, worst link {self.worst or 'none'})"


def link_rank(link: str | None) -> int:
    """How good a link of the matrix is, for comparison; higher is better.

    Raises
    ------
    LabkitError
        For a link that was cut away, or that is not known.
    """
    if link and (found := _NVLINKS.fullmatch(link)):
        return len(_PATHS) + int(found[1])
    if link == "SOC":  # what SYS was called before driver 384
        return 0
    if link not in _PATHS:
        raise LabkitError(f"The link {link!r} is not one of NV1 to NV18, {', '.join(reversed(_PATHS))}.")
    return _PATHS.index(link)


def ring_order(matrix: Topology | Sequence[Sequence[float]]) -> Order:
    """A ring through all GPUs whose worst edge is as good as possible.

    Parameters
    ----------
    matrix : Topology, or rows of numbers
        A read report; or a symmetric matrix of bandwidths (the worse direction counts), as `peers` measures.
    """
    names, score, labels = _graph(matrix)
    if len(names) < 3:
        used = [(0, 1)] if len(names) == 2 else []
        return _order("ring", [tuple(range(len(names)))], used, names, score, labels)
    for level in sorted({score[i][j] for i in range(len(names)) for j in range(i)}, reverse=True):
        if (ring := _cycle(score, level)) is not None:
            edges = list(zip(ring, ring[1:] + ring[:1], strict=True))
            return _order("ring", [tuple(ring)], edges, names, score, labels)
    raise AssertionError("with every edge allowed there is a ring")


def pairings(matrix: Topology | Sequence[Sequence[float]]) -> Order:
    """Pairs of GPUs: the worst pair's link as good as possible, then all links together."""
    names, score, labels = _graph(matrix)
    everybody = (1 << len(names)) - 1
    starts = [everybody] if len(names) % 2 == 0 else [everybody & ~(1 << i) for i in range(len(names))]
    found = [_pairs(tuple(map(tuple, score)), start) for start in starts]
    best = max(found, key=lambda one: one[:2])[2] if found else ()
    return _order("pairs", list(best), list(best), names, score, labels)


def _graph(matrix: Any) -> tuple[list[str], Matrix, list[list[str]]]:
    """Names, scores both ways, and what edges are called."""
    if isinstance(matrix, Topology):
        names = list(matrix.gpus)
        links = [[matrix.link(one, other) for other in names] for one in names]
        score = [
            [_BEST if i == j else float(link_rank(link)) for j, link in enumerate(row)]
            for i, row in enumerate(links)
        ]
        labels = [[str(link) for link in row] for row in links]
    else:
        size = range(len(matrix))
        names = [str(i) for i in size]
        score = [[float(min(matrix[i][j], matrix[j][i])) for j in size] for i in size]
        labels = [[f"{value:.4g}" for value in row] for row in score]
    if len(names) > MAX_GPUS:
        raise LabkitError(
            f"Orders are searched among at most {MAX_GPUS} GPUs of one machine, not {len(names)}."
        )
    return names, score, labels


def _cycle(score: Matrix, level: float) -> list[int] | None:
    """A ring over edges of at least ``level``; dead ends (visited, last) are remembered."""
    size = len(score)
    near = [[j for j in range(size) if j != i and score[i][j] >= level] for i in range(size)]
    dead: set[tuple[int, int]] = set()

    def extend(path: list[int], visited: int) -> list[int] | None:
        last = path[-1]
        if len(path) == size:
            return path if 0 in near[last] else None
        if (visited, last) in dead:
            return None
        for following in near[last]:
            if not visited >> following & 1:
                whole = extend([*path, following], visited | 1 << following)
                if whole is not None:
                    return whole
        dead.add((visited, last))
        return None

    return extend([0], 1)


@cache
def _pairs(
    score: tuple[tuple[float, ...], ...], free: int
) -> tuple[float, float, tuple[tuple[int, int], ...]]:
    """Worst edge, sum and pairs of the best perfect matching of those who are free."""
    if not free:
        return _BEST, 0.0, ()
    first = (free & -free).bit_length() - 1
    best: tuple[float, float, tuple[tuple[int, int], ...]] = (-1.0, -1.0, ())
    for other in range(first + 1, len(score)):
        if free >> other & 1:
            worst, total, rest = _pairs(score, free & ~(1 << first) & ~(1 << other))
            edge = score[first][other]
            found = min(worst, edge), total + edge, ((first, other), *rest)
            best = max(best, found, key=lambda one: one[:2])
    return best


def _order(
    kind: str,
    groups: Sequence[tuple[int, ...]],
    edges: Sequence[tuple[int, int]],
    names: Sequence[str],
    score: Matrix,
    labels: Sequence[Sequence[str]],
) -> Order:
    named = tuple(tuple(names[i] for i in group) for group in groups)
    worst = min(edges, key=lambda edge: score[edge[0]][edge[1]], default=None)
    used = tuple(labels[i][j] for i, j in edges)
    return Order(kind, named, used, labels[worst[0]][worst[1]] if worst else "")
