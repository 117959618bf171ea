"""A learner's own random numbers: the same at every call, different for every learner."""

from __future__ import annotations

import hashlib
import os

import numpy as np

from labkit.course import store


def learner() -> str:
    """Who is learning: ``LABKIT_LEARNER``, or an identifier drawn once and kept with the progress."""
    return os.environ.get("LABKIT_LEARNER", "").strip() or store.learner()


def generator(purpose: str, who: str | None = None) -> np.random.Generator:
    """A generator seeded by the learner and the purpose (an exercise's name)."""
    key = f"{learner() if who is None else who}\0{purpose}".encode()
    return np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:8], "little"))
