"""Real small data for the lessons that train: handwritten digits and English prose, both already on disk.

The digits are the test part of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine
Learning Repository, 1998, doi 10.24432/C50P49, licence CC BY 4.0): thirteen people's handwriting, 8 x 8 pixels of 0 to
16. The prose is the reference manual that every Python brings along for ``help()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabkitError

_DIGITS = Path(__file__).with_name("data") / "digits.npz"
_HELD_OUT = 360  # images, a fifth
_SHUFFLE = 4  # of the digits: the file goes writer by writer, and held-out digits should be of all of them


@dataclass(frozen=True, repr=False)
class Digits:
    """Handwritten digits, in an order that is the same everywhere.

    Attributes
    ----------
    images : numpy.ndarray
        Shape (n, 1, 8, 8), float32, 0 (paper) to 1 (ink): one grey channel, as a convolution wants it.
    labels : numpy.ndarray
        Shape (n,), int64: which digit.
    test_images, test_labels : numpy.ndarray
        The same of the 360 images held out.
    """

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Digits({len(self.labels)} images of 8 x 8 to learn from, {len(self.test_labels)} held out)"


def digits() -> Digits:
    """1,797 handwritten digits, 1,437 of them to learn from."""
    with np.load(_DIGITS, allow_pickle=False) as archive:
        images = archive["images"].astype(np.float32)[:, None] / 16
        labels = archive["labels"].astype(np.int64)
    order = np.random.default_rng(_SHUFFLE).permutation(len(labels))
    learn, test = order[_HELD_OUT:], order[:_HELD_OUT]
    return Digits(images[learn], labels[learn], images[test], labels[test])


@dataclass(frozen=True, repr=False)
class Text:
    """A text as numbers, one a character.

    Attributes
    ----------
    codes : numpy.ndarray
        Shape (characters,), int64, positions in ``alphabet``.
    alphabet : str
        The characters that occur, sorted.
    """

    codes: NDArray[np.int64]
    alphabet: str

    def encode(self, words: str) -> NDArray[np.int64]:
        """The codes of some words; LabkitError for a character that the text does not have."""
        strange = sorted(set(words) - set(self.alphabet))
        if strange:
            raise LabkitError(f"The text has no character {strange[0]!r}; it has {self.alphabet!r}.")
        return np.array([self.alphabet.index(one) for one in words], np.int64)

    def decode(self, codes: NDArray[np.int64]) -> str:
        """The characters of some codes."""
        return "".join(self.alphabet[code] for code in codes)

    def __repr__(self) -> str:
        return f"Text({len(self.codes):,} characters, {len(self.alphabet)} different ones)"


def text(characters: int = 200_000) -> Text:
    """The first ``characters`` characters of Python's reference manual, in lower case, ASCII alone.

    The manual of another Python version differs in places, and figures learnt from it with it.
    """
    from pydoc_data import topics

    prose = "\n".join(topics.topics[name] for name in sorted(topics.topics))
    kept = "".join(one for one in prose.lower() if one == "\n" or " " <= one <= "~")[:characters]
    alphabet = "".join(sorted(set(kept)))
    lookup = np.zeros(128, np.int64)
    lookup[[ord(one) for one in alphabet]] = np.arange(len(alphabet))
    return Text(lookup[np.frombuffer(kept.encode("ascii"), np.uint8)], alphabet)
