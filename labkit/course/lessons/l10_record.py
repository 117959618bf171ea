"""Lesson 10, in the answer's own process: the answer on a small world of ranks, step after step, and what it sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labkit.course.sandbox import tensors
from labkit.network.collectives import ring_all_gather, ring_all_reduce
from labkit.network.context import rank_context
from labkit.network.stage import play

Answer = Callable[..., Any]
LR, BETA1, BETA2, EPS = 0.01, 0.9, 0.99, 1e-6


def gradients(ranks: int, steps: int, shape: int | tuple[int, ...], seed: int) -> np.ndarray:
    """(ranks, steps, *shape), float32: ranks agree roughly, and elements differ in size."""
    random = np.random.default_rng((1010, seed))
    shape = (shape,) if isinstance(shape, int) else shape
    common = random.normal(size=(1, steps, *shape)) + 0.5
    own = random.normal(size=(ranks, steps, *shape))
    return ((common + 0.7 * own) * random.lognormal(sigma=0.8, size=shape)).astype(np.float32)


def signs(answer: Answer) -> Answer:
    """For ``answer(gradient, residual)``, called for every step on every rank."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, steps, elements, seed):
        from labkit.course.lessons.l10_record import record_signs

        return record_signs(_labkit_answer, ranks, steps, elements, seed)

    return _labkit_recorded


def record_signs(answer: Answer, ranks: int, steps: int, elements: int, seed: int) -> dict[str, Any]:
    def on_one_rank(own: np.ndarray) -> list[Any]:
        residual, returned = np.zeros(elements, np.float32), []
        for gradient in own:
            pair = arrays(answer(gradient.copy(), residual.copy()))
            returned.append(pair)
            if not pair_of(pair, residual.shape):
                break
            residual = np.asarray(pair[1], np.float32)
        return returned

    played = play(on_one_rank, ranks, [(own,) for own in gradients(ranks, steps, elements, seed)])
    return {"returned": list(played.results), "sent": list(played.bytes_sent)}


def arrays(value: Any) -> Any:
    """What an answer returned; arrays in place of tensors."""
    if not isinstance(value, (tuple, list)):
        return value
    return tuple(tensors.to_array(one) if tensors.is_tensor(one) else one for one in value)


def pair_of(value: Any, shape: Sequence[int]) -> bool:
    """Whether this is two arrays of that shape."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    return all(isinstance(one, np.ndarray) and one.shape == tuple(shape) for one in value)


def adam(answer: Answer) -> Answer:
    """For ``answer(w, gradients, warm_up, mean, sign_mean, lr, beta1, beta2, eps)``, called once on every rank."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, steps, warm_up, elements, seed):
        from labkit.course.lessons.l10_record import record_adam

        return record_adam(_labkit_answer, ranks, steps, warm_up, elements, seed)

    return _labkit_recorded


def record_adam(
    answer: Answer, ranks: int, steps: int, warm_up: int, elements: int, seed: int
) -> dict[str, Any]:
    calls: list[list[str]] = [[] for _ in range(ranks)]
    start = np.linspace(-1, 1, elements, dtype=np.float32)

    def on_one_rank(rank: int, own: np.ndarray) -> Any:
        def mean(x: Any) -> np.ndarray:
            calls[rank].append("full")
            total = np.array(x, np.float32)
            ring_all_reduce(total)
            return total / ranks

        def sign_mean(x: Any, residual: Any) -> tuple[np.ndarray, np.ndarray]:
            calls[rank].append("signs")
            return signs_averaged(np.asarray(x, np.float32) + np.asarray(residual, np.float32))

        return answer(start.copy(), own.copy(), warm_up, mean, sign_mean, LR, BETA1, BETA2, EPS)

    own = gradients(ranks, steps, elements, seed)
    played = play(on_one_rank, ranks, list(enumerate(own)))
    return {"weights": list(played.results), "calls": calls, "sent": list(played.bytes_sent)}


def signs_averaged(corrected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The average of all ranks' signs and scales, and what this rank's own leave out."""
    scale = np.abs(corrected).mean(dtype=np.float32, keepdims=True)
    message = np.concatenate([scale.view(np.uint8), np.packbits(corrected >= 0)])
    rows = np.empty((rank_context().world_size, len(message)), np.uint8)
    rows[rank_context().rank] = message
    ring_all_gather(rows)
    sent = [_decoded(row, len(corrected)) for row in rows]
    return np.asarray(np.mean(sent, 0, dtype=np.float32)), corrected - sent[rank_context().rank]


def _decoded(message: np.ndarray, elements: int) -> np.ndarray:
    scale = message[:4].copy().view(np.float32)[0]
    return np.where(np.unpackbits(message[4:], count=elements), scale, -scale)


def low_rank(answer: Answer) -> Answer:
    """For ``answer(matrix, residual, q)``, called for every step on every rank."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, steps, rows, columns, rank, seed):
        from labkit.course.lessons.l10_record import record_low_rank

        return record_low_rank(_labkit_answer, ranks, steps, rows, columns, rank, seed)

    return _labkit_recorded


def record_low_rank(
    answer: Answer, ranks: int, steps: int, rows: int, columns: int, rank: int, seed: int
) -> dict[str, Any]:
    start = np.random.default_rng((1011, seed)).normal(size=(columns, rank)).astype(np.float32)

    def on_one_rank(own: np.ndarray) -> list[Any]:
        residual, q, returned = np.zeros((rows, columns), np.float32), start, []
        for matrix in own:
            three = arrays(answer(matrix.copy(), residual.copy(), q.copy()))
            returned.append(three)
            if not three_of(three, rows, columns, rank):
                break
            residual, q = (np.asarray(one, np.float32) for one in three[1:])
        return returned

    own = gradients(ranks, steps, (rows, columns), seed)
    played = play(on_one_rank, ranks, [(one,) for one in own])
    return {"returned": list(played.results), "sent": list(played.bytes_sent)}


def three_of(value: Any, rows: int, columns: int, rank: int) -> bool:
    """Whether this is an approximation, a residual and the next Q."""
    shapes = ((rows, columns), (rows, columns), (columns, rank))
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return False
    pairs = zip(value, shapes, strict=True)
    return all(isinstance(one, np.ndarray) and one.shape == shape for one, shape in pairs)
