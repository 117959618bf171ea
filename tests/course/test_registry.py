"""Exercises by name, their hints, solutions and texts, and the commands that list them."""

from __future__ import annotations

import ast
import inspect
import json

import pytest

import labkit
from labkit import cli
from labkit.course import advice
from labkit.course.registry import KINDS
from labkit.course.result import CheckResult
from labkit.course.store import record
from labkit.errors import LabkitError

NAMES = [exercise.name for exercise in labkit.exercises()]


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch):
    """As after a restart of the kernel."""
    monkeypatch.setattr(advice, "_hints", {})
    monkeypatch.setattr(advice, "_asked", set())


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("01.saxpi", "01.saxpy"),
        ("saxpy", "01.saxpy"),
        ("01.Blur", "01.blur"),
        ("transpoze", "02.transpose"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name, nearest):
    with pytest.raises(LabkitError, match=f"There is no exercise '{name}'. Did you mean '{nearest}'"):
        labkit.exercise(name)


def test_a_word_of_several_lessons_suggests_them_all():
    with pytest.raises(LabkitError, match=r"Did you mean '01\.break_even' or '10\.break_even'\?"):
        labkit.exercise("break_even")


@pytest.mark.parametrize("name", ["zzzzzzzzz", "", 7, None, ["01.saxpy"]])
def test_a_name_with_nothing_near_points_to_the_list(name):
    with pytest.raises(LabkitError, match=r"labkit\.exercises\(\) lists them all"):
        labkit.exercise(name)


def test_lesson_01_has_five_core_exercises_and_a_claim():
    kinds = [exercise.kind for exercise in labkit.exercises("01")]
    assert kinds.count("core") == 5
    assert kinds.count("claim") == 1


def test_a_lesson_without_exercises_is_an_error():
    with pytest.raises(LabkitError, match="there are: 00, 01"):
        labkit.exercises("99")


@pytest.mark.parametrize("name", NAMES)
def test_every_exercise_is_complete(name):
    exercise = labkit.exercise(name)
    assert exercise.kind in KINDS
    assert exercise.function.isidentifier()
    assert 1 <= exercise.minutes <= 60
    assert len(exercise.hints) >= 3
    assert exercise.function in exercise.task or exercise.kind == "claim"
    assert len(exercise.wrong) >= 4
    assert len({wrong.label for wrong in exercise.wrong}) == len(exercise.wrong)
    for wrong in exercise.wrong:
        assert ast.parse(wrong.source)
        assert wrong.outcome in ("failed", "error")
        assert wrong.says


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_shows_itself_the_same_way_everywhere(name):
    exercise = labkit.exercise(name)
    assert repr(exercise).startswith(
        f"{name}: {exercise.title} ({exercise.kind}, about {exercise.minutes} min)\n"
    )
    assert exercise._repr_mimebundle_()["text/plain"] == repr(exercise)
    assert set(exercise._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_hints_come_one_by_one_and_stay_at_the_last():
    exercise = labkit.exercise("01.saxpy")
    texts = [exercise.hint().text for _ in range(4)]
    assert texts[0] == exercise.hints[0]
    assert (
        texts[2]
        == texts[3]
        == exercise.hints[2] + " That was the last hint; solution() shows one way to do it."
    )
    assert exercise.hint(1).text == exercise.hints[0]
    assert exercise.hint().heading == "hint 2 of 3"
    for step in (0, 4, "1"):
        with pytest.raises(LabkitError, match="has hints 1 to 3"):
            exercise.hint(step)


def test_a_solution_opens_after_a_pass():
    exercise = labkit.exercise("01.saxpy")
    record(CheckResult("01.saxpy", "passed", "Right."))
    assert "def saxpy" in exercise.solution().text


def test_a_solution_opens_when_asked_twice_or_plainly():
    exercise = labkit.exercise("01.saxpy")
    assert "ask again" in exercise.solution().text
    assert "def saxpy" in exercise.solution().text
    assert "def blur" in labkit.exercise("01.blur").solution(reveal=True).text


def test_an_exercise_without_a_table_says_so():
    with pytest.raises(LabkitError, match=r"01\.saxpy has no table of its own"):
        labkit.exercise("01.saxpy").data()


def test_the_list_for_people_and_for_tools(capsys):
    assert cli.main(["exercises"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in lines] == NAMES
    one = labkit.exercise("01.vector_add")
    assert [one.name, "core", "10", "min", *one.title.split()] in [row.split() for row in lines]
    assert cli.main(["exercises", "01", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == [name for name in NAMES if name.startswith("01.")]
    assert found[0]["function"] == "vector_add"
    assert cli.main(["exercises", "99"]) == 2


def test_progress_for_people_and_for_tools(capsys):
    record(CheckResult("01.saxpy", "passed", "Right."))
    assert cli.main(["progress"]) == 0
    assert "1 of" in capsys.readouterr().out
    assert cli.main(["progress", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] == 1


@pytest.mark.parametrize("name", [one.name for one in labkit.exercises() if one.table is not None])
def test_every_learner_gets_equally_many_cases(name, monkeypatch):
    """Otherwise "33 calls compared" in a saved notebook would be another number in yours."""
    exercise, counts = labkit.exercise(name), set()
    given = getattr(exercise.plan, "calls", None)
    if given is None:
        pytest.skip("looked at as a whole")
    for who in "abcdefgh":
        monkeypatch.setenv("LABKIT_LEARNER", who)
        arguments = [exercise.data()] if inspect.signature(given).parameters else []
        counts.add(len(list(given(*arguments))))
    assert len(counts) == 1
