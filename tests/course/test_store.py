"""Progress survives threads, processes and damage, and never makes a check fail."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import labkit
from labkit.course import seeds, store
from labkit.course.result import CheckResult

PASSED = CheckResult("01.saxpy", "passed", "Right.")
FAILED = CheckResult("01.saxpy", "failed", "Wrong.")


def line(name="01.saxpy"):
    return next(line for line in labkit.progress().lines if line.name == name)


def test_nothing_is_written_before_the_first_check():
    assert labkit.progress().passed == 0
    assert not store.file().exists()


def test_the_best_outcome_is_kept_and_tries_are_counted():
    for result in (FAILED, PASSED, FAILED):
        assert store.record(result) == result
    assert (line().outcome, line().attempts) == ("passed", 3)
    assert labkit.progress().passed == 1


def test_a_stub_is_no_try():
    store.record(CheckResult("01.saxpy", "not attempted", "Begin."))
    assert line().attempts == 0


def test_threads_and_processes_may_write_at_once():
    code = (
        "from labkit.course import store, result\n"
        "for _ in range(20): assert not store.record(result.CheckResult('01.saxpy', 'failed', '')).notes"
    )
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        notes = [result.notes for result in pool.map(store.record, [FAILED] * 40)]
    assert [other.wait(60) for other in others] == [0, 0]
    assert notes == [()] * 40
    assert line().attempts == 80


def test_a_damaged_file_is_set_aside_and_kept():
    store.folder().mkdir(parents=True)
    store.file().write_bytes(b"this is no database, but somebody may want it back" * 100)
    result = store.record(PASSED)
    assert result.passed
    assert "your progress file was damaged; it is kept as" in result.notes[0]
    (kept,) = store.folder().glob("progress.damaged-*")
    assert kept.read_bytes().startswith(b"this is no database")
    assert line().outcome == "passed"
    assert store.record(PASSED).notes == ()


def test_damage_in_the_middle_is_noticed_too():
    for number in range(200):
        store.record(CheckResult(f"01.made{number}", "passed", ""))
    content = bytearray(store.file().read_bytes())
    content[100:] = b"\x37" * (len(content) - 100)
    store.file().write_bytes(content)
    assert "damaged" in labkit.progress().note
    assert len(list(store.folder().glob("progress.damaged-*"))) == 1


@pytest.mark.parametrize("kind", ["a file in the way", "a database of another program"])
def test_what_cannot_be_kept_is_a_note_and_no_failure(kind, monkeypatch, tmp_path):
    home = tmp_path / "elsewhere"
    monkeypatch.setenv("LABKIT_HOME", str(home))
    if kind == "a file in the way":
        home.write_text("not a folder")
    else:
        home.mkdir()
        with sqlite3.connect(home / "progress.sqlite3") as other:
            other.execute("create table exercise (something text)")
        other.close()
    result = store.record(PASSED)
    assert result.passed
    assert result.notes[0].startswith("progress was not kept: ")


def test_where_progress_is_kept(monkeypatch):
    monkeypatch.setenv("LABKIT_HOME", "~/mine")
    assert store.folder() == Path.home() / "mine"
    monkeypatch.delenv("LABKIT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", os.sep + "data")
    assert store.folder() == Path(os.sep, "data", "labkit")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert store.folder() == Path.home() / ".local" / "share" / "labkit"


def test_every_learner_has_a_table_and_keeps_it(monkeypatch):
    monkeypatch.delenv("LABKIT_LEARNER", raising=False)
    exercise = labkit.exercise("01.amdahl")
    mine = exercise.data()
    assert exercise.data() == mine
    assert seeds.learner() == seeds.learner()
    monkeypatch.setenv("LABKIT_LEARNER", "ada")
    ada = exercise.data()
    assert ada != mine
    monkeypatch.setenv("LABKIT_HOME", "/nonexistent/home")
    assert exercise.data() == ada


def test_the_summary_in_three_forms():
    store.record(PASSED)
    progress = labkit.progress()
    assert repr(progress).startswith(f"1 of {len(progress.lines)} exercises passed\n")
    assert "01.saxpy         passed         1 try" in repr(progress)
    assert "<progress value='1'" in progress._repr_html_()
    assert progress.to_dict()["passed"] == 1
    told = {one["name"]: one["outcome"] for one in progress.to_dict()["exercises"]}
    assert told["01.saxpy"] == "passed"
    assert list(told) == [one.name for one in labkit.exercises()]
