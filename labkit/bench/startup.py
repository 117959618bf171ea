"""What labkit costs before it does anything for you: its import, and a lesson in a kernel; time and memory.

Memory is the proportional set size, PSS, of Linux: private pages, and a fair share of those that are shared.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.bench import Figure
from labkit.compute import child
from labkit.course import files
from labkit.errors import LabkitError

PROBE = Path(__file__).with_name("probe.py")
CELL_SECONDS = 120


def figures(quick: bool) -> Iterable[Figure]:
    """Import and first saxpy on the emulator, in fresh processes; then lesson 01 in a fresh kernel."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise LabkitError("Memory is read from /proc/PID/smaps_rollup, which only Linux has.")
    yield from _import_figures(3 if quick else 11)
    yield _lesson_figure(1 if quick else 3)


def _import_figures(repeats: int) -> Iterator[Figure]:
    probes = [_probe() for _ in range(repeats)]
    detail = f"above import numpy, median of {repeats} fresh processes"
    seconds = statistics.median(probe["seconds"] for probe in probes)
    memory = statistics.median(probe["MiB"] for probe in probes)
    heavy = sorted({name for probe in probes for name in probe["heavy"]})
    yield Figure("import labkit and first saxpy", seconds, "s", "at most", 0.15, detail)
    yield Figure("memory of both", memory, "MiB", "at most", 15, detail)
    among = ", ".join(heavy) or "none of numba, torch, plotly"
    yield Figure("heavy packages loaded by both", len(heavy), "packages", "at most", 0, among)


def _probe() -> dict[str, Any]:
    command = [sys.executable, "-P", str(PROBE)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise LabkitError(f"The first saxpy failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    found = json.loads(done.stdout)
    if not found["right"]:
        raise LabkitError("The first saxpy gave a wrong result, so its time means nothing.")
    return found


def _environment() -> dict[str, str]:
    return {**child.environment(), "LABKIT_BACKEND": "emulator"}


def _lesson_figure(repeats: int) -> Figure:
    cells = _code_cells(files.notebook("notebooks", "01"))
    pairs = [(_kernel_MiB(["1"]), _kernel_MiB(cells)) for _ in range(repeats)]
    memory = statistics.median(lesson - bare for bare, lesson in pairs)
    bare, lesson = pairs[-1]
    detail = f"PSS: bare {bare:.1f}, with lesson {lesson:.1f} MiB; median of {repeats}, without a GPU"
    return Figure("a kernel that has run lesson 01", memory, "MiB", "at most", 80, detail)


def _code_cells(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _kernel_MiB(cells: Iterable[str]) -> float:
    with _kernel() as (client, pid):
        for cell in cells:
            reply = client.execute_interactive(cell, output_hook=lambda _: None, timeout=CELL_SECONDS)
            if reply["content"]["status"] != "ok":
                raise LabkitError(f"Lesson 01 failed: {reply['content'].get('evalue', 'a cell')}.")
        return _pss_MiB(pid)


@contextmanager
def _kernel() -> Iterator[tuple[Any, int]]:
    """A fresh kernel of this Python: its client, and its process."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=_environment(), cwd=os.curdir)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield client, manager.provisioner.pid  # type: ignore[union-attr]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _pss_MiB(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
