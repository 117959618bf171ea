"""Places for ranks on a machine that several people share: so many at once, first come, first served.

A place is an empty file in a folder for all users; a run holds the lock on as many as it has ranks. Locks
end with their process, however it ends. Whoever has to wait takes a ticket with the time on it, and only the
oldest ticket may gather places, so a big run is not overtaken for ever by small ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from labkit.errors import LabkitError
from labkit.hardware.units import show_time

CAP = "LABKIT_RANKS_AT_ONCE"
_FOLDER = "LABKIT_LEASE"
_POLL_S = 0.05
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


def places() -> int:
    """How many ranks may run at once on this machine: four a core, or what ``LABKIT_RANKS_AT_ONCE`` says."""
    told = os.environ.get(CAP, "")
    if told and not (told.isdecimal() and int(told)):
        raise LabkitError(f"{CAP}={told!r} is not a number of ranks: set it to 1 or more, or unset it.")
    return int(told) if told else max(8, 4 * (os.cpu_count() or 1))


@contextlib.contextmanager
def lease(ranks: int, limit_s: float, waiting: Callable[[int], None]) -> Iterator[None]:
    """Hold places for ``ranks`` ranks (for more than there are: all places) while the body runs.

    Parameters
    ----------
    limit_s : float
        How long to wait for them.
    waiting : callable
        Called once, with the number of runs that came earlier, when there is a wait.

    Raises
    ------
    LabkitError
        When they are not free in time.
    """
    folder = _folder()
    count = places()
    held: list[int] = []
    ticket = _take_ticket(folder)
    try:
        _gather(folder, min(ranks, count), count, held, ticket, limit_s, waiting)
        _drop(ticket)
        yield
    finally:
        _drop(ticket)
        for file in held:
            os.close(file)


def _folder() -> Path:
    folder = Path(os.environ.get(_FOLDER) or Path(tempfile.gettempdir()) / "labkit-lease")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o1777)  # everybody's, and each may remove only what is theirs
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise LabkitError(f"{folder} should be a folder of locks and is not: remove it, or set {_FOLDER}.")
    return folder


def _gather(
    folder: Path,
    wanted: int,
    count: int,
    held: list[int],
    ticket: tuple[Path, int],
    limit_s: float,
    waiting: Callable[[int], None],
) -> None:
    began = time.monotonic()
    told = False
    while True:
        ahead = _ahead(folder, ticket[0].name)
        if not ahead:
            _collect(folder, wanted, count, held)
        if len(held) == wanted:
            return
        if not told:
            waiting(ahead)
            told = True
        if time.monotonic() - began > limit_s:
            raise LabkitError(
                f"No {wanted} of the {count} places for ranks on this machine came free in "
                f"{show_time(limit_s)}: other notebooks are running; ask for fewer ranks, or try again."
            )
        time.sleep(_POLL_S)


def _collect(folder: Path, wanted: int, count: int, held: list[int]) -> None:
    mine = {os.fstat(file).st_ino for file in held}
    for number in range(count):
        if len(held) == wanted:
            return
        file = _open_place(folder / f"place-{number}")
        if os.fstat(file).st_ino in mine or not _locked(file):
            os.close(file)
        else:
            held.append(file)


def _open_place(path: Path) -> int:
    # Linux may refuse O_CREAT for another user's file in a folder for all, so that is for the first one only.
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, _FLAGS)
    with contextlib.suppress(FileExistsError):
        file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
        os.fchmod(file, 0o644)  # readable by all, whatever the umask: that is enough to lock it
        return file
    return os.open(path, _FLAGS)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_ticket(folder: Path) -> tuple[Path, int]:
    """A file that is locked before anybody can see its name as a ticket."""
    file, name = tempfile.mkstemp(prefix="new-", dir=folder)
    os.fchmod(file, 0o644)
    _locked(file)
    path = folder / f"ticket-{time.time_ns():020}-{os.getpid()}"
    os.rename(name, path)
    return path, file


def _drop(ticket: tuple[Path, int]) -> None:
    with contextlib.suppress(FileNotFoundError):
        ticket[0].unlink()
        os.close(ticket[1])


def _ahead(folder: Path, mine: str) -> int:
    """How many living tickets are older; those of the dead are swept up."""
    return sum(
        _alive(folder / name) for name in os.listdir(folder) if name.startswith("ticket-") and name < mine
    )


def _alive(ticket: Path) -> bool:
    try:
        file = os.open(ticket, _FLAGS)
    except FileNotFoundError:
        return False
    try:
        if not _locked(file):
            return True
        with contextlib.suppress(OSError):  # another user's: ignored is enough
            ticket.unlink()
        return False
    finally:
        os.close(file)
