"""The judge that the claims of all lessons share: what it accepts, in which order it looks, and what it says."""

from typing import Any

import pytest

from labkit.course import claims
from labkit.course.registry import exercises

JUDGE = claims.Judge(
    verdicts=("false",),
    reasons={"true": "measure it."},
    otherwise="not quite.",
    number=claims.Figure(
        units={"gb/s": 1, "tb/s": 1e3},
        unit_hint="a rate is in 'GB/s'.",
        right=((90, 110),),
        wrong="It is not {value} {unit}.",
        whys=((800, 900, "these are bits."), (0, 900, "too little or too much.")),
    ),
    left_out=("direction",),
    asked="the way.",
    hint="there are two.",
)
RIGHT = {"verdict": "False", "number": 100, "unit": "GB per second", "left_out": ["Directions", "size"]}


@pytest.mark.parametrize(
    "change", [{}, {"unit": " gb / s"}, {"number": 0.09, "unit": "TB/s"}, {"left_out": "one DIRECTION"}]
)
def test_right_in_many_words(change: dict[str, Any]) -> None:
    assert JUDGE({**RIGHT, **change}) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": " ", "verdict": "true"}, ("claim has nothing under 'number' yet.", "")),
        ({"verdict": "true", "number": 5}, ("'true' is not the best verdict.", "measure it.")),
        ({"verdict": "mostly_true"}, ("'mostly true' is not the best verdict.", "not quite.")),
        ({"unit": "Gb", "left_out": "?"}, ("The unit is 'Gb'; a rate is in 'GB/s'.", "")),
        ({"number": 850}, ("It is not 850 GB per second.", "these are bits.")),
        ({"number": 0.85, "unit": "TB/s"}, ("It is not 0.85 TB/s.", "these are bits.")),
        ({"number": 901}, ("It is not 901 GB per second.", "")),
        ({"left_out": "size"}, ("Under 'left_out', name the way.", "there are two.")),
    ],
)
def test_what_is_said_of_the_first_thing_that_is_wrong(change: dict[str, Any], said: Any) -> None:
    assert JUDGE({**RIGHT, **change}) == said


def test_an_unknown_verdict_is_told_the_options() -> None:
    said = "it should be 'true', 'mostly true', 'misleading', 'false' or 'unsourced'."
    assert said in str(JUDGE({**RIGHT, "verdict": "maybe"}))


def test_every_lesson_uses_it_and_accepts_verdicts_that_exist() -> None:
    judges: list[Any] = [
        getattr(one.plan, "judge", None) for one in exercises() if one.name.endswith(".claim")
    ]
    assert len(judges) == 11
    assert all(isinstance(judge, claims.Judge) for judge in judges)
    assert all({*judge.verdicts, *judge.reasons} <= set(claims.VERDICTS) for judge in judges)
