"""One question to a process of its own: what it loads and allocates is gone when it has answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import labkit
from labkit.errors import LabkitError

LIMIT_S = 60.0


def environment() -> dict[str, str]:
    """The environment in which a child finds this very labkit, however the parent found it."""
    home = str(Path(labkit.__file__).parents[1])
    paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def command(module: str) -> list[str]:
    # -P: a file of the learner's called numpy.py, beside the notebook, must not be imported in its stead.
    return [sys.executable, "-P", "-m", module]


def ask(module: str, question: Any, limit_s: float = LIMIT_S) -> Any:
    """Run ``python -m module``: one line of JSON to its stdin, the last line of its stdout is the answer.

    Raises
    ------
    LabkitError
        When it takes longer than ``limit_s`` seconds (it is killed then), or fails.
    """
    line = json.dumps(question) + "\n"
    try:
        done = subprocess.run(
            command(module), input=line, capture_output=True, text=True, timeout=limit_s, env=environment()
        )
    except subprocess.TimeoutExpired:
        raise LabkitError(
            f"A measurement took more than {limit_s:g} s and was stopped; is this machine busy?"
        ) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise LabkitError(f"The process that measures ({module}) failed: {last}")
    return json.loads(done.stdout.splitlines()[-1])
