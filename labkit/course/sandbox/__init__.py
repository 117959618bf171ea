"""Run an answer in a process of its own, with a limit on its time, its memory and what it prints.

Every run starts a fresh interpreter (about a quarter of a second; two to four seconds with PyTorch) and leaves no
process behind: not when the answer hangs, not when it forks, and not when the notebook's kernel is killed meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labkit.course.sandbox import wire
from labkit.errors import LabkitError

_KEEPER = Path(__file__).with_name("keeper.py")
_GRACE_S = 15.0  # beyond an answer's own time and that to start: ending, and a machine that is busy
_LONGEST_S = 86_400.0
_MARK = "LABKIT_CHECK_FOLDER"  # in the environment of everything that a check starts
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Limits:
    """What an answer may use: seconds of wall time, bytes of resident memory, bytes of output kept.

    ``start_s`` are the seconds its process may take before the answer's own time begins.
    """

    seconds: float = 10.0
    memory: int = 2**30
    printed: int = 4000
    start_s: float = 60.0

    @staticmethod
    def usual(seconds: float | None = None) -> Limits:
        """The usual limits; ``LABKIT_CHECK_SECONDS`` sets the time for a slower or a faster machine."""
        given: Any = seconds
        what = "seconds"
        if given is None:
            given, what = os.environ.get("LABKIT_CHECK_SECONDS") or Limits.seconds, "LABKIT_CHECK_SECONDS"
        try:
            wanted = float(given)
        except (TypeError, ValueError, OverflowError):
            wanted = math.nan
        if math.isnan(wanted):
            raise LabkitError(f"{what} should be a number of seconds, not {given!r}.")
        return Limits(seconds=min(max(0.1, wanted), _LONGEST_S))


@dataclass(frozen=True)
class Run:
    """How a run ended, and what it left for each case.

    ``end`` is "exited", "timeout", "memory", "processes" or "lost"; ``status`` the exit status, negative for a signal.
    ``cases`` holds (document, arrays) for each case that left a readable result, in order, up to the first
    without.
    """

    end: str
    status: int
    printed: str
    seconds: float
    cases: tuple[tuple[dict[str, Any], dict[str, np.ndarray]], ...] = field(repr=False)
    unreadable: str = ""


def run(job: dict[str, Any], arrays: dict[str, np.ndarray], limits: Limits) -> Run:
    """Run ``job`` (see :mod:`labkit.course.sandbox.worker`) under ``limits``.

    Raises
    ------
    LabkitError
        When this machine cannot run answers in processes of their own.
    """
    _possible()
    try:
        with tempfile.TemporaryDirectory(prefix="labkit-check-", ignore_cleanup_errors=True) as folder:
            return _run(job, arrays, limits, Path(folder))
    except OSError as error:
        raise LabkitError(
            f"The check could not be run on this machine ({error.strerror or error})."
        ) from error


def _run(job: dict[str, Any], arrays: dict[str, np.ndarray], limits: Limits, folder: Path) -> Run:
    wire.write(folder / "job", job, arrays)
    settings = {
        "path": _search_path(),
        "seconds": limits.seconds,
        "start_s": limits.start_s,
        "memory": limits.memory,
        "printed": limits.printed,
    }
    (folder / "keeper.json").write_text(json.dumps(settings), encoding="utf-8")
    report = _keep(folder, limits)
    cases, unreadable = _results(folder, len(job["cases"]))
    return Run(report["end"], report["status"], report["printed"], report["seconds"], cases, unreadable)


def _search_path() -> list[str]:
    """Where modules are found: as in the notebook, but its own folder last, so that no file there hides a library."""
    try:
        here = [os.getcwd()]
    except OSError:  # a working folder that was deleted
        here = []
    return [os.path.join(*here, entry) for entry in sys.path if entry] + here


def _possible() -> None:
    if not hasattr(os, "fork"):
        raise LabkitError(
            "Checks run answers in a process of their own, which needs Linux or macOS; use WSL2 here."
        )
    if importlib.util.find_spec("psutil") is None:
        raise LabkitError(
            "Checks need psutil: install it with  pip install 'gpu-labkit[lab]'  and check again."
        )


def _keep(folder: Path, limits: Limits) -> dict[str, Any]:
    """Start the keeper, wait for its report, and leave no process whatever happens meanwhile."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", str(_KEEPER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | _ONE_THREAD | {_MARK: str(folder)},
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        text = _read(keeper.stdout.fileno(), time.monotonic() + limits.start_s + limits.seconds + _GRACE_S)
    finally:
        keeper.stdin.close()  # if the report has not come, this makes the keeper end what it started
        try:
            keeper.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(keeper.pid, signal.SIGKILL)
            keeper.wait()
        keeper.stdout.close()
        if keeper.returncode:
            _end_orphans(folder)
    return _report(text, keeper.returncode)


def _end_orphans(folder: Path) -> None:
    """End what a keeper that was itself ended has left behind: its processes carry the check's folder."""
    import psutil

    ended = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(_MARK) == str(folder):
                process.kill()
                ended.append(process)
    psutil.wait_procs(ended, timeout=3)


def _read(source: int, give_up: float) -> bytes:
    pieces = []
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while selector.select(max(0.0, give_up - time.monotonic())):
            piece = os.read(source, 1 << 16)
            if not piece:
                break
            pieces.append(piece)
    return b"".join(pieces)


def _report(text: bytes, status: int) -> dict[str, Any]:
    try:
        return json.loads(text)
    except ValueError:
        return {"end": "lost", "status": status, "printed": "", "seconds": 0.0}


def _results(
    folder: Path, count: int
) -> tuple[tuple[tuple[dict[str, Any], dict[str, np.ndarray]], ...], str]:
    cases = []
    for number in range(count):
        path = folder / f"case-{number}"
        if not os.path.lexists(path):
            break
        try:
            cases.append(wire.read(path))
        except wire.WireError as error:
            return tuple(cases), str(error)
    return tuple(cases), ""
