"""Lesson 08, in the answer's own process: a training on several ranks that is killed at given points and starts anew.

The ranks are threads, the model is real (scores of a digit from its pixels, fitted with momentum), the files are real,
and a kill spares nobody. Every update is written into the model itself, so that what a resumed model has learnt from,
and in which order, can be read off at the end.
"""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np

from labkit.course import datasets
from labkit.errors import LabkitError

_RATE, _MOMENTUM = 0.2, 0.9


class Killed(BaseException):
    """The node has gone: no ``except Exception`` of an answer survives that."""


class Model:
    """Weights (64, 10), float64, and the samples of every update that went into them, in order."""

    def __init__(self) -> None:
        self.weights = np.zeros((64, 10))
        self.seen: list[list[int]] = []


class Optimizer:
    """Momentum, of the shape of the weights."""

    def __init__(self) -> None:
        self.momentum = np.zeros((64, 10))


class Life:
    """What all ranks share between a start and its end.

    Parameters
    ----------
    world : int
    kill : (str, int)
        What ends it: ``("update", 3)`` in the third update, ``("save", 2)`` half way through the second file,
        ``("", 0)`` nothing.
    settings : dict
        Samples, batch, epochs, and every how many updates a checkpoint is due.
    """

    def __init__(self, world: int, kill: tuple[str, int], settings: dict[str, int]):
        self.world, self.kill, self.settings = world, kill, settings
        self.updates = self.saves = 0
        self.savers: list[int] = []
        self.shares: dict[int, tuple[list[int], np.ndarray]] = {}
        self.dead = self.out_of_step = False
        self._coming = self._left = 0
        self._counts = threading.Lock()  # who comes and who leaves must see each other
        self._meet = threading.Barrier(world, self._all_here)
        digits = datasets.digits()
        self._pixels = digits.images[: settings["samples"]].reshape(-1, 64).astype(np.float64)
        self._labels = digits.labels[: settings["samples"]]

    def gradient(self, weights: np.ndarray, samples: list[int]) -> np.ndarray:
        """These samples' part of the mean gradient of the whole batch."""
        pixels, labels = self._pixels[samples], self._labels[samples]
        scores = np.exp(pixels @ weights)
        scores /= scores.sum(axis=1, keepdims=True)
        scores[np.arange(len(labels)), labels] -= 1
        return pixels.T @ scores / self.settings["batch"]

    def loss(self, weights: np.ndarray) -> float:
        """Mean over all samples."""
        scores = np.exp(self._pixels @ weights)
        return float(
            -np.log((scores / scores.sum(1, keepdims=True))[range(len(scores)), self._labels]).mean()
        )

    def all_reduce(self, rank: int, samples: list[int], gradient: np.ndarray) -> tuple[list[int], np.ndarray]:
        """Everybody's samples and the sum of the gradients."""
        self.shares[rank] = samples, gradient
        with self._counts:
            self._coming += 1
            in_vain = self._left
        if in_vain:
            self._stop_out_of_step()
        self._wait()
        batch, total = self.result
        self._wait()  # nobody brings the next share before all have taken this sum
        return batch, total

    def _wait(self) -> None:
        try:
            self._meet.wait()
        except threading.BrokenBarrierError:
            raise Killed from None
        if self.dead:
            raise Killed

    def leave(self) -> None:
        """A rank returns: whoever waits for its share, now or later, waits in vain."""
        with self._counts:
            self._left += 1
            in_vain = self._coming
        if in_vain:
            self._stop_out_of_step()

    def _stop_out_of_step(self) -> None:
        self.out_of_step = True
        self._meet.abort()

    def _all_here(self) -> None:
        """Run by one rank when all have come, twice for each update."""
        if not self.shares:
            return
        self._coming = 0  # they have come, and nobody else can come or leave now
        if self.kill == ("update", self.updates + 1):
            self.dead = True
            return
        self.updates += 1
        parts = [self.shares[rank] for rank in range(self.world)]
        self.result = sorted(one for samples, _ in parts for one in samples), np.sum([g for _, g in parts], 0)
        self.shares = {}

    def end(self) -> None:
        self.dead = True
        self._meet.abort()


class Job:
    """What an answer works with: one rank's view of the training.

    Attributes
    ----------
    rank, world : int
        This rank and how many there are now; another start may have more or fewer.
    samples, batch, epochs, steps_per_epoch, steps : int
        ``batch`` counts the samples of all ranks together; ``steps`` those of all epochs.
    every : int
        Steps from one checkpoint to the next.
    """

    def __init__(self, life: Life, rank: int):
        self._life, self.rank, self.world = life, rank, life.world
        self.samples, self.batch = life.settings["samples"], life.settings["batch"]
        self.epochs, self.every = life.settings["epochs"], life.settings["every"]
        self.steps_per_epoch = self.samples // self.batch
        self.steps = self.epochs * self.steps_per_epoch

    def new(self) -> tuple[Model, Optimizer]:
        """A model that has learnt nothing, and its optimizer."""
        return Model(), Optimizer()

    def order(self, epoch: int) -> list[int]:
        """All samples in the order of this epoch, the same on every rank."""
        return order(self.samples, epoch)

    def update(self, model: Model, optimizer: Optimizer, samples: Any) -> None:
        """One step: the gradient of this rank's samples, summed over all ranks, into the model of each."""
        mine = [int(one) for one in samples]
        batch, total = self._life.all_reduce(self.rank, mine, self._life.gradient(model.weights, mine))
        learn(model, optimizer, total, batch)

    def save(self, state: Any, path: Any) -> None:
        """Write ``state`` to the file ``path``, which takes a while: a node may be killed half way."""
        life, data = self._life, pickle.dumps(state)
        life.savers.append(self.rank)
        life.saves += 1
        if life.kill == ("save", life.saves):
            Path(path).write_bytes(data[: len(data) // 2])
            life.end()
            raise Killed
        Path(path).write_bytes(data)

    def load(self, path: Any) -> Any:
        """What a file holds; LabkitError when it was not written to its end."""
        try:
            return pickle.loads(Path(path).read_bytes())
        except (EOFError, pickle.UnpicklingError):
            raise LabkitError("the checkpoint is cut off: a node was killed while it wrote it") from None


def learn(model: Model, optimizer: Optimizer, gradient: np.ndarray, batch: list[int]) -> None:
    """A step with momentum, and the samples that it came from."""
    optimizer.momentum = _MOMENTUM * optimizer.momentum + gradient
    model.weights = model.weights - _RATE * optimizer.momentum
    model.seen = [*model.seen, batch]


def order(samples: int, epoch: int) -> list[int]:
    """The order of an epoch."""
    return [int(one) for one in np.random.default_rng((808, epoch)).permutation(samples)]
