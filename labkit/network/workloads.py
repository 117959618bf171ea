"""Work for ranks: a picture whose tiles cost differently, and a plate whose parts need their neighbours.

Both run on the device of the rank that calls them, or without ranks on the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError

RATE = 0.2  # diffusivity * time step / spacing**2, without unit; above 1/4 errors grow from step to step
_SIEVE = 8  # turns between two looks at who is out: a look costs more than a turn


@dataclass(frozen=True)
class Picture:
    """A part of the complex plane, seen through ``width`` x ``height`` pixels, in tiles of whole rows.

    Attributes
    ----------
    left, top, step : float
        The first pixel's number, and the distance of pixels.
    limit : int
        Turns after which a point counts as inside the set.
    tiles : int
        Bands of rows; the first ones are one row higher where it does not divide.
    """

    width: int = 720
    height: int = 540
    left: float = -2.1
    top: float = -1.3
    step: float = 0.003
    limit: int = 1500
    tiles: int = 24

    def rows(self, tile: int) -> slice:
        """Which rows a tile has."""
        from labkit.network.splitting import static

        return static(self.height, self.tiles)[tile]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def mandelbrot_tile(picture: Picture, tile: int) -> NDArray[np.int32]:
    """How many turns of z = z * z + c each pixel of a tile stays within 2: int32 (rows, columns).

    Points that are out leave the computation, so that a tile costs about as much as the turns in it.
    """
    import torch

    rows, device = picture.rows(tile), _device()
    x = torch.arange(picture.width, dtype=torch.float32, device=device) * picture.step + picture.left
    y = torch.arange(rows.start, rows.stop, dtype=torch.float32, device=device) * picture.step + picture.top
    real, imaginary = x.repeat(len(y)), y.repeat_interleave(len(x))
    turns = torch.zeros(len(real), dtype=torch.int32, device=device)
    with _one_thread():
        _turn(real, imaginary, turns, picture.limit)
    return turns.reshape(len(y), len(x)).cpu().numpy()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """A rank is a core: threads that share a tile's short loops would cost more than they bring, and blur what it
    costs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _turn(real: Any, imaginary: Any, turns: Any, limit: int) -> None:
    """Count the turns of all points, in place."""
    import torch

    inside = torch.arange(len(real), device=real.device)
    a, b, count = torch.zeros_like(real), torch.zeros_like(real), torch.zeros_like(turns)
    for turn in range(limit):
        squares: Any = (a * a, b * b)
        within = squares[0] + squares[1] <= 4
        count += within
        if turn % _SIEVE == _SIEVE - 1:
            turns[inside[~within]] = count[~within]
            kept = (a, b, count, real, imaginary, inside, squares[0], squares[1])
            a, b, count, real, imaginary, inside, *squares = (one[within] for one in kept)
            if not len(inside):
                return
        a, b = squares[0] - squares[1] + real, 2 * a * b + imaginary
    turns[inside] = count


def assembled(picture: Picture, parts: Sequence[dict[int, Any]]) -> NDArray[np.int32]:
    """The whole picture, int32 (height, width), of each rank's tiles by number.

    Raises
    ------
    LabkitError
        When a tile is missing.
    """
    every = {tile: rows for part in parts for tile, rows in part.items()}
    missing = [tile for tile in range(picture.tiles) if tile not in every]
    if missing:
        raise LabkitError(f"Tile {missing[0]} was rendered by no rank.")
    return np.concatenate([every[tile] for tile in range(picture.tiles)])


def plate(rows: int, columns: int) -> NDArray[np.float64]:
    """A cold plate with two hot places, in degrees: float64 (rows, columns)."""
    y, x = np.indices((rows, columns), dtype=np.float64)
    y, x = y / rows, x / columns
    first = np.exp(-40 * ((y - 0.30) ** 2 + (x - 0.35) ** 2))
    return 100 * first + 60 * np.exp(-80 * ((y - 0.70) ** 2 + (x - 0.60) ** 2))


def heat_step(padded: Any) -> Any:
    """One step of the heat equation: each point moves towards the mean of its four neighbours.

    Parameters
    ----------
    padded : array or tensor, (rows + 2, columns)
        The part, with one row more above and one below: the neighbours' rows, or zeros where the plate ends. To the
        left and right it ends, and beyond its ends it is 0 degrees.

    Returns
    -------
    array or tensor, (rows, columns)
        The part one step later; every point's value depends on nothing but its five values, to the last bit.
    """
    here = padded[1:-1]
    around = padded[:-2] + padded[2:]
    around[:, 1:] += here[:, :-1]
    around[:, :-1] += here[:, 1:]
    return here + RATE * (around - 4 * here)


def heat_serial(whole: Any, steps: int) -> Any:
    """The whole plate, (rows, columns), after some steps, in one process."""
    for _ in range(steps):
        padded = _zeros(whole, len(whole) + 2)
        padded[1:-1] = whole
        whole = heat_step(padded)
    return whole


def heat_ranks(part: Any, steps: int, gather: bool = False) -> Any:
    """This rank's rows of the plate after some steps, called by all ranks together; rank 0 has the top rows.

    Before each step neighbours exchange their outermost rows, the halo. All else stays where it is.

    Parameters
    ----------
    part : array or tensor, (rows, columns)
        This rank's rows, contiguous.
    gather : bool
        Send far too much instead: before each step, all rows to each neighbour. All parts have the same height then.
    """
    from labkit.network import p2p

    here = p2p.endpoint()
    padded = _zeros(part, len(part) + 2)
    padded[1:-1] = part
    for _ in range(steps):
        for other, mine, halo in ((here.rank - 1, 1, 0), (here.rank + 1, -2, -1)):
            if 0 <= other < here.size:
                _swap(padded, other, mine, halo, gather)
        padded[1:-1] = heat_step(padded)
    return padded[1:-1]


def _swap(padded: Any, other: int, mine: int, halo: int, everything: bool) -> None:
    from labkit.network import p2p

    if not everything:
        p2p.exchange(padded[mine], other, padded[halo], other)
        return
    theirs = _zeros(padded, len(padded) - 2)
    p2p.exchange(padded[1:-1], other, theirs, other)
    padded[halo] = theirs[-1 if halo == 0 else 0]


def _zeros(like: Any, rows: int) -> Any:
    """An array or tensor of zeros with so many rows, of the kind and on the device of ``like``."""
    shape = (rows, like.shape[1])
    return np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)


def my_rows(whole: NDArray[Any]) -> Any:
    """This rank's rows of an array, where it computes: a tensor on its GPU, or an array of its own."""
    from labkit.network.context import rank_context

    here = rank_context()
    part = np.array_split(whole, here.world_size)[here.rank].copy()
    if _device() == "cpu":
        return part
    import torch

    return torch.from_numpy(part).to(here.device)


def in_memory(part: Any) -> NDArray[Any]:
    """What `my_rows` gave, and what became of it, as a NumPy array."""
    return np.array(part) if isinstance(part, np.ndarray) else np.asarray(part.cpu())


def _device() -> str:
    """Where this rank computes; the CPU outside of ranks.

    A single GPU is left alone: a second rank would compute on a core, and workers are compared that are alike.
    """
    from labkit.network.context import inside_rank, rank_context

    if not inside_rank() or rank_context().device_name == "cpu":
        return "cpu"
    import torch

    return rank_context().device_name if torch.cuda.device_count() > 1 else "cpu"
