"""Everything a process has started, found through /proc, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time


def signal_group(process: int, number: int, group: bool = True) -> None:
    """Signal a rank, and with it (unless told otherwise) the process group it leads.

    A rank that has moved to another group is still reached by its own number.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if group and os.getpgid(process) == process:
            os.killpg(process, number)
        else:
            os.kill(process, number)


def descendants(ancestor: int) -> set[int]:
    """Processes below ``ancestor``, as the system knows them now; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found: set[int] = set()
    border = [ancestor]
    while border:
        new = children.get(border.pop(), [])
        found.update(new)
        border.extend(new)
    return found


def _parents() -> list[tuple[int, int]]:
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
    except FileNotFoundError:
        return []
    pairs = []
    for name in names:
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # the name in parentheses may hold anything, so the fields are counted from its end
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                pairs.append((int(name), int(parent)))
    return pairs


def kill_descendants() -> bool:
    """Kill every process below this one; True when there was one."""
    found = descendants(os.getpid())
    for process in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    return bool(found)


def end_descendants(limit_s: float = 3.0) -> None:
    """Kill and reap everything below this process."""
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        alive = kill_descendants()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not alive:
            return
        time.sleep(0.002)
