"""What a run of ranks raises when one of them, or all together, cannot go on."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.errors import LabkitError


class RankError(LabkitError):
    """A rank failed, ended or never came to an end.

    Attributes
    ----------
    rank : int or None
        The rank that failed first; None when all were still at work at the time limit.
    kind : str
        ``"exception"``, ``"exit"``, ``"crash"``, ``"killed"`` or ``"timeout"``.
    others : mapping of int to str
        What each other rank was doing at that moment.
    """

    def __init__(self, message: str, *, rank: int | None, kind: str, others: Mapping[int, str]):
        super().__init__(message)
        self.rank = rank
        self.kind = kind
        self.others = dict(others)
