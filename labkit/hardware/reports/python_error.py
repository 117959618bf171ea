"""Errors of programs and of the driver: messages that name themselves, found anywhere in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from labkit.hardware.reports.base import Reader, Report, Table, show
from labkit.hardware.reports.error_patterns import PATTERNS, memory, suspicious
from labkit.hardware.reports.text import quote

_EXCEPTION = re.compile(
    r"\s*(?:\S{1,40}: )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|NotFound))\b:?"
)
_RANK = re.compile(r"\[?[Rr]ank[ :]?(\d{1,6})\]?|\[default(\d{1,6})\]|\[\d+,(\d{1,6})\]<std")
_MOST = 200


@dataclass(frozen=True)
class ErrorSeen:
    """One error: `what` it is in one word, the message as printed, how often, and what its text says.

    `what` is one of the names in ``error_patterns``: ``out_of_memory``, ``unsupported_arch``, ``old_driver``, ...
    """

    what: str
    exception: str | None
    message: str
    count: int
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True, repr=False)
class PythonErrors(Report):
    """The errors of a file, in order of appearance."""

    kind = "python_error"
    title = "errors"
    errors: tuple[ErrorSeen, ...]

    def headline(self) -> str:
        return (
            f"{self.title}: {', '.join(dict.fromkeys(error.what for error in self.errors)).replace('_', ' ')}"
        )

    def table(self) -> Table:
        rows = [
            (error.what.replace("_", " "), show(error.exception), str(error.count), error.message)
            for error in self.errors
        ]
        return ("what", "exception", "times", "message"), tuple(rows)


@dataclass
class _Draft:
    what: str
    exception: str | None
    message: str
    details: dict[str, Any]
    count: int = 1


class PythonErrorReader(Reader):
    """Like the reader of NCCL's log, takes single lines from anywhere."""

    kind = "python_error"

    def __init__(self) -> None:
        super().__init__()
        self.drafts: dict[str, _Draft] = {}
        self.exception: str | None = None
        self.age = 0

    @classmethod
    def starts(cls, line: str) -> bool:
        return suspicious(line)

    def take(self, line: str) -> bool:
        if not suspicious(line):
            self.age += 1
            return False
        if named := _EXCEPTION.match(line):
            self.exception, self.age = named[1], 0
        for what, pattern in PATTERNS:
            if found := pattern.search(line):
                self._add(what, found, line)
                return True
        return bool(named and self._other(line, named[1]))

    def _other(self, line: str, name: str) -> bool:
        """An exception that this module has no word for: kept as it is, when it speaks of a device."""
        if not re.search(r"CUDA|NCCL|GPU|cuDNN|CUBLAS|NVML", line, re.IGNORECASE) or name.endswith("Warning"):
            return False
        self._add("other", None, line)
        return True

    def _add(self, what: str, found: re.Match[str] | None, line: str) -> None:
        details = {
            key: value for key, value in (found.groupdict() if found else {}).items() if value is not None
        }
        if what == "out_of_memory":
            details |= memory(line)
        rank = _RANK.search(line)
        if rank:
            details["rank"] = next(group for group in rank.groups() if group)
        key = f"{what} {re.sub(r'[0-9]+', '#', line)[-200:]}" + (
            str(details.get("rank")) if what == "timeout" else ""
        )
        if key in self.drafts:
            self.drafts[key].count += 1
        elif len(self.drafts) < _MOST:
            exception = self.exception if self.age < 40 else None
            self.drafts[key] = _Draft(what, exception, quote(line), details)
            self.keep(f"error{len(self.drafts) - 1}", line)

    def finish(self) -> PythonErrors | None:
        if not self.drafts:
            return None
        errors = tuple(
            ErrorSeen(draft.what, draft.exception, draft.message, draft.count, draft.details)
            for draft in self.drafts.values()
        )
        return PythonErrors(errors=errors, quotes=self.quotes)
