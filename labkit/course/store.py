"""What a learner has passed, kept in one small SQLite file in the user's data directory.

Every call opens a connection of its own and closes it, so threads and notebooks share nothing but the file.
The rollback journal is used, not the write-ahead log, because home directories are often on NFS. A check
never fails because its result could not be kept: the result says so in a note.
"""

from __future__ import annotations

import contextlib
import html
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labkit.course.result import NOT_ATTEMPTED, PASSED, CheckResult

_TABLES = """
create table if not exists learner (id text not null);
create table if not exists exercise (
    name text primary key, outcome text not null, attempts integer not null, passed_at real, changed_at real
    not null
);
"""
_BUSY_S = 10.0
_unsaved = secrets.token_hex(8)  # the learner of this process, when nothing can be kept


def folder() -> Path:
    """Where labkit keeps what belongs to this user: ``LABKIT_HOME``, else in the user's data directory."""
    if chosen := os.environ.get("LABKIT_HOME"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_DATA_HOME"):
        return Path(base) / "labkit"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "labkit"
    return Path.home() / ".local" / "share" / "labkit"


def file() -> Path:
    return folder() / "progress.sqlite3"


@contextlib.contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """A connection in a transaction: committed at the end, rolled back when something is raised."""
    folder().mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file(), timeout=_BUSY_S, isolation_level=None)
    try:
        connection.execute("begin immediate")
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        yield connection
        connection.execute("commit")
    finally:
        connection.close()


def _sound(action: Any) -> tuple[Any, str]:
    """``action(connection)`` and a note; a file that is no database is set aside, and another begun."""
    note = ""
    for _ in range(2):
        seen = _identity()
        try:
            with _opened() as connection:
                return action(connection), note
        except sqlite3.OperationalError as error:
            return None, f"progress was not kept: {file()} cannot be used ({error})."
        except sqlite3.DatabaseError:
            note = _set_aside(seen)
        except OSError as error:
            return None, f"progress was not kept: {folder()} cannot be used ({error.strerror})."
    return None, note or f"progress was not kept: {file()} cannot be read."


def _identity() -> int | None:
    try:
        return file().stat().st_ino
    except OSError:
        return None


def _set_aside(seen: int | None) -> str:
    """Rename the damaged file, unless another process has done so and begun a new one."""
    target = file().with_name(
        f"progress.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.sqlite3"
    )
    try:
        if _identity() == seen:
            file().rename(target)
            journal = Path(f"{file()}-journal")
            if journal.exists():  # left over from the damaged file, it must not be applied to the new one
                journal.rename(f"{target}-journal")
            return f"your progress file was damaged; it is kept as {target}, and a new one was begun."
    except OSError:
        pass
    return ""


def record(result: CheckResult) -> CheckResult:
    """Keep the outcome of a check; returns the result, with a note when something about that went wrong."""
    if result.outcome == NOT_ATTEMPTED:
        return result
    now = time.time()
    passed_at = now if result.passed else None

    def save(connection: sqlite3.Connection) -> None:
        connection.execute(
            """insert into exercise values (?, ?, 1, ?, ?) on conflict (name) do update set
               outcome = case when outcome = 'passed' then outcome else excluded.outcome end,
               attempts = attempts + 1,
               passed_at = coalesce(passed_at, excluded.passed_at),
               changed_at = excluded.changed_at""",
            (result.exercise, result.outcome, passed_at, now),
        )

    _, note = _sound(save)
    return replace(result, notes=(*result.notes, note)) if note else result


def outcome(name: str) -> str:
    """The best outcome so far of the exercise ``name``."""
    rows, _ = _rows()
    return rows.get(name, (NOT_ATTEMPTED, 0))[0]


def learner() -> str:
    """This user's random identifier, drawn at the first call."""

    def find(connection: sqlite3.Connection) -> str:
        row = connection.execute("select id from learner").fetchone()
        if row is None:
            row = (secrets.token_hex(8),)
            connection.execute("insert into learner values (?)", row)
        return str(row[0])

    return _sound(find)[0] or _unsaved


def _rows() -> tuple[dict[str, tuple[str, int]], str]:
    def read(connection: sqlite3.Connection) -> list[tuple[str, str, int]]:
        return connection.execute("select name, outcome, attempts from exercise").fetchall()

    if not file().exists():
        return {}, ""
    rows, note = _sound(read)
    return {name: (result, attempts) for name, result, attempts in rows or ()}, note


@dataclass(frozen=True)
class Line:
    """One exercise and how far the learner is with it."""

    name: str
    title: str
    kind: str
    minutes: int
    outcome: str
    attempts: int


@dataclass(frozen=True)
class Progress:
    """Every exercise of the course with its best outcome so far."""

    lines: tuple[Line, ...]
    note: str = ""

    @property
    def passed(self) -> int:
        return sum(line.outcome == PASSED for line in self.lines)

    def __repr__(self) -> str:
        rows = [
            f"  {line.name:<16} {line.outcome:<14} {_tries(line.attempts):<10} {line.title}"
            for line in self.lines
        ]
        head = f"{self.passed} of {len(self.lines)} exercises passed"
        return "\n".join([head, *rows, *([f"note: {self.note}"] if self.note else [])])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{line.name}</code></td><td style='text-align:left'>{html.escape(line.title)}</td>"
            f"<td>{line.outcome}</td><td>{_tries(line.attempts)}</td></tr>"
            for line in self.lines
        )
        note = f"<div>note: {html.escape(self.note)}</div>" if self.note else ""
        return (
            f"<div class='labkit-progress'><label>{self.passed} of {len(self.lines)} exercises passed "
            f"<progress value='{self.passed}' max='{len(self.lines)}'></progress></label>"
            f"<table>{rows}</table>{note}</div>"
        )

    def to_dict(self) -> dict[str, Any]:
        lines = [vars(line).copy() for line in self.lines]
        return {"passed": self.passed, "exercises": lines, "note": self.note}


def _tries(count: int) -> str:
    return "" if count == 0 else "1 try" if count == 1 else f"{count} tries"


def summary() -> Progress:
    """How far this learner is with every exercise."""
    from labkit.course import registry

    rows, note = _rows()
    lines = [
        Line(e.name, e.title, e.kind, e.minutes, *rows.get(e.name, (NOT_ATTEMPTED, 0)))
        for e in registry.exercises()
    ]
    return Progress(tuple(lines), note)
