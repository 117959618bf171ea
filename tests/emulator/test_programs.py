"""Whole programs, written for numba.cuda in the manner of its documentation, run unmodified."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import labkit

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))

# What a machine without numba answers, whatever is installed here.
WITHOUT_NUMBA = """
import runpy, sys, warnings
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "numba_cuda"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
import labkit
with labkit.as_numba():
    for path in sys.argv[1:]:
        runpy.run_path(path, run_name="__main__")
assert "numba" not in sys.modules
"""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_programs_run_on_the_emulator(program, capsys):
    with labkit.as_numba():
        runpy.run_path(str(program), run_name="__main__")
    assert "agree" in capsys.readouterr().out


def test_programs_run_without_numba():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA, *map(str, PROGRAMS)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("agree") == len(PROGRAMS)
