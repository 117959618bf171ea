"""From the registry: every stub not attempted, every solution passed, every wrong answer told why."""

from __future__ import annotations

import dataclasses

import pytest

import labkit
from labkit import cli
from labkit.course import sources, verify
from labkit.course.wrong import Wrong
from labkit.errors import LabkitError


@pytest.fixture(scope="module")
def proofs():
    return verify.verify()


ANSWERS = [
    pytest.param(exercise.name, label, id=f"{exercise.name}: {label}")
    for exercise in labkit.exercises()
    for label in ("stub", "solution", *(wrong.label for wrong in exercise.wrong))
]


@pytest.mark.parametrize(("exercise", "label"), ANSWERS)
def test_the_answer_gets_what_it_deserves(proofs, exercise, label):
    (proof,) = [p for p in proofs if (p.exercise, p.answer) == (exercise, label)]
    assert proof.holds, str(proof)


def test_verify_fails_when_one_answer_is_not_told_why(capsys, monkeypatch):
    claim = labkit.exercise("01.claim")
    source = 'claim = {"verdict": "true", "number": 6912, "unit": "lanes", "left_out": "FLOP/s"}'
    odd = (Wrong("odd", source, "failed", "words that are never said"), *claim.wrong[:2])
    claim = dataclasses.replace(claim, wrong=odd)
    monkeypatch.setattr(verify, "exercises", lambda lesson: (claim,))
    assert cli.main(["author", "verify", "01"]) == 1
    text = capsys.readouterr().out
    assert "NOT OK  01.claim         odd" in text
    assert "'words that are never said' in: 01.claim: failed" in text
    assert "3 wrong answers (wanted: at least 4 wrong answers)" in text
    assert "6 answers checked: 2 not as they should be." in text


def test_verify_passes_and_keeps_the_authors_progress_out(capsys, monkeypatch):
    claim = labkit.exercise("01.claim")
    monkeypatch.setattr(verify, "exercises", lambda lesson: (claim,))
    assert cli.main(["author", "verify", "01"]) == 0
    assert "all hold." in capsys.readouterr().out
    assert labkit.progress().passed == 0


def test_an_unknown_lesson_is_a_sentence(capsys):
    assert cli.main(["author", "verify", "77"]) == 2
    assert "There is no lesson '77'" in capsys.readouterr().err


def test_definitions_leave_out_what_a_cell_does():
    code = (
        "import math\n# a comment\n@f\ndef g(x):\n    # inside\n    return x\nr = g(1)\nK = 2 * 3\nprint(K)\n"
    )
    assert sources.definitions(code) == "import math\n@f\ndef g(x):\n    # inside\n    return x\nK = 2 * 3"


def test_a_missing_exercise_names_the_notebook():
    with pytest.raises(LabkitError, match=r"has no code cell with the tag 'exercise:01\.nothing'"):
        sources.text("solutions", "01.nothing")


def test_code_that_defines_something_else_is_refused():
    with pytest.raises(LabkitError, match="defines no 'f'"):
        sources.answer("g = 1", "f")
