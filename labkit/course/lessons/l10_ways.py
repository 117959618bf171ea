"""Lesson 10: the right way through each exercise, and the ways that typical mistakes take.

What an answer returns is compared with all of them, so that a mistake can be named.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.network.collectives import ring_all_gather, ring_all_reduce
from labkit.network.context import rank_context

SIGNS = {
    "no feedback": "without error feedback, what the signs leave out is lost: the residual is added to the gradient "
    "before it is sent, and what is left of the two is the new one.",
    "unused": "without error feedback, what the signs leave out is lost: the residual has to be added to the gradient "
    "before it is sent.",
    "of the average": "this is the residual of the *average*: a rank keeps what its *own* message left out, "
    "gradient + residual - scale * sign.",
    "scale missing": "the scale is missing: signs alone say +1 and -1, however small a gradient is. Each rank sends "
    "mean(|x|) along, and its signs are multiplied by that.",
    "largest": "the scale is the largest magnitude; the one that is nearest to all elements is their mean, mean(|x|).",
    "root": "the scale is the root of the mean square; signs come nearest to x with mean(|x|).",
    "of the gradient": "the scale is that of the gradient; what is sent is the gradient with its residual, and it has "
    "a scale of its own.",
    "sum": "this is the sum over the ranks: divide by their number.",
    "apart": "scales and signs were averaged apart: each rank's signs belong to its own scale.",
    "old one lost": "the new residual forgets the old one: it is (gradient + residual) - sent, not gradient - sent.",
    "alone": "this is what this rank sent itself: the average is over what all ranks sent.",
}


def sign_mean(gradient: np.ndarray, residual: np.ndarray, way: str = "") -> tuple[np.ndarray, np.ndarray]:
    """One step of sign compression with error feedback on one rank; ``way`` is a mistake of `SIGNS`, or none."""
    x = gradient if way in ("no feedback", "unused") else gradient + residual
    scales = {
        "scale missing": 1.0,
        "largest": np.abs(x).max(),
        "root": np.sqrt(np.mean(x**2)),
        "of the gradient": np.abs(gradient).mean(),
    }
    scale = np.float32(scales.get(way, np.abs(x).mean()))
    signs = np.where(x >= 0, np.float32(1), np.float32(-1))
    sent = _gathered(np.concatenate([[scale], signs]).astype(np.float32))
    own = scale * signs
    everybody = sent[:, :1] * sent[:, 1:]
    mean = everybody.sum(0) if way == "sum" else everybody.mean(0)
    if way == "apart":
        mean = sent[:, 0].mean() * sent[:, 1:].mean(0)
    if way == "alone":
        mean = own
    left = {
        "no feedback": np.zeros_like(x),
        "of the average": x - mean,
        "old one lost": gradient - own,
    }
    return mean, left.get(way, x - own)


def _gathered(own: np.ndarray) -> np.ndarray:
    rows = np.empty((rank_context().world_size, len(own)), own.dtype)
    rows[rank_context().rank] = own
    ring_all_gather(rows)
    return rows


ADAM = {
    "moving variance": "the variance still moves after the warm-up: each rank knows only its own gradient then, so "
    "it has to stay as it was.",
    "variance of signs": "the variance still moves after the warm-up, by the averaged signs: their size says nothing "
    "about a single weight any more. It has to stay as it was.",
    "no feedback": "the residual is not kept from step to step: hand back to sign_mean what it returned the last time.",
    "gradient": "the gradient is compressed; 1-bit Adam sends the momentum, beta1 * m + (1 - beta1) * g, which is "
    "smoother.",
    "own momentum": "each rank goes on with its own momentum: take the average that sign_mean returns as the new "
    "momentum, or the ranks' weights drift apart.",
    "fresh momentum": "the momentum begins at zero again after the warm-up: it goes on from where it was.",
    "local squares": "the variance of the warm-up averages squares of each rank's own gradient: square the averaged "
    "gradient.",
    "corrected": "the moments are corrected for their start at zero; as in the paper, they are not to be here.",
    "no root": "the step divides by v: it is m / (sqrt(v) + eps).",
    "one short": "the warm-up is one step short: gradients 0 to warm_up - 1 belong to it.",
}


def one_bit_adam(
    w: np.ndarray,
    gradients: np.ndarray,
    warm_up: int,
    mean: Any,
    sign_mean: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    way: str = "",
) -> np.ndarray:
    """All steps on one rank; ``way`` is a mistake of `ADAM`, or none."""
    m, v, residual = (np.zeros_like(w) for _ in range(3))
    warm_up -= way == "one short"
    for t, g in enumerate(gradients):
        if t < warm_up:
            average = mean(g)
            m = beta1 * m + (1 - beta1) * average
            square = mean(g**2) if way == "local squares" else average**2
            v = beta2 * v + (1 - beta2) * square
        else:
            if way == "fresh momentum" and t == warm_up:
                m = np.zeros_like(m)
            m, residual = _compressed(m, g, residual, sign_mean, beta1, way)
            if way in ("moving variance", "variance of signs"):
                v = beta2 * v + (1 - beta2) * (g if way == "moving variance" else m) ** 2
        corrected = (1 - beta1 ** (t + 1), 1 - beta2 ** (min(t, warm_up - 1) + 1))
        first, second = corrected if way == "corrected" else (1, 1)
        w = w - lr * (m / first) / ((v / second if way == "no root" else np.sqrt(v / second)) + eps)
    return w


def _compressed(
    m: np.ndarray, g: np.ndarray, residual: np.ndarray, sign_mean: Any, beta1: float, way: str
) -> tuple[np.ndarray, np.ndarray]:
    own = g if way == "gradient" else beta1 * m + (1 - beta1) * g
    mean, left = sign_mean(own, residual)
    left = np.zeros_like(left) if way == "no feedback" else left
    if way == "gradient":
        return beta1 * m + (1 - beta1) * mean, left
    return (own if way == "own momentum" else mean), left


LOW_RANK = {
    "no feedback": "without error feedback, what a matrix of low rank leaves out is lost: P and Q are made of matrix "
    "+ residual, and what P Q' leaves out of that is the new residual.",
    "not orthonormal": "P is not orthonormal: without np.linalg.qr after averaging, P Q' is no projection, and its "
    "size is off.",
    "of the average": "this is the residual of the *average*: a rank keeps what its own P Q' left out, with its own Q "
    "before averaging.",
    "own p": "P is this rank's own: average P over the ranks before it is made orthonormal, so that all project alike.",
    "own q": "Q is this rank's own: average Q as well, or ranks end with different gradients.",
    "cold": "the Q that is returned is the one that came in: the next step should start from the new one.",
    "sum": "P or Q is the sum over the ranks: divide by their number.",
}


@np.errstate(all="ignore")  # some mistakes grow without bound
def power_sgd(
    matrix: np.ndarray, residual: np.ndarray, q: np.ndarray, way: str = ""
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of PowerSGD on one rank; ``way`` is a mistake of `LOW_RANK`, or none."""
    x = matrix if way == "no feedback" else matrix + residual
    p = x @ q
    p = p if way == "own p" else _mean(p)
    p = p if way == "not orthonormal" else np.linalg.qr(p)[0]
    own = x.T @ p
    mean = own if way == "own q" else _mean(own) * (rank_context().world_size if way == "sum" else 1)
    left = np.zeros_like(x) if way == "no feedback" else x - p @ (mean if way == "of the average" else own).T
    return p @ mean.T, left, q if way == "cold" else mean


def _mean(own: np.ndarray) -> np.ndarray:
    total = np.ascontiguousarray(own, np.float32).copy()
    ring_all_reduce(total)
    return total / rank_context().world_size
