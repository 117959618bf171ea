"""The plan card: kept, revised, and careful with what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import labkit
from labkit.course import plan as plans
from labkit.errors import LabkitError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_an_empty_card_asks_its_questions() -> None:
    card = labkit.plan()
    assert card.open == ("requirement", "hardware", "software", "test")
    assert repr(card).count("(open)") == 4
    assert "accepted" in card._repr_html_()


def test_a_card_is_kept_and_revised() -> None:
    first = labkit.plan("00", requirement="a <film> by Monday")
    second = labkit.plan("03", hardware="one GPU")
    assert labkit.plan() == second
    assert (second.requirement, second.hardware, second.lesson) == ("a <film> by Monday", "one GPU", "03")
    assert plans.revisions() == (first, second)
    assert "a &lt;film&gt; by Monday" in second._repr_html_()


def test_the_same_again_is_no_revision() -> None:
    labkit.plan("00", test="it runs")
    labkit.plan("00", test="it runs")
    assert len(plans.revisions()) == 1


@pytest.mark.parametrize("entries", [{"budget": "1"}, {"test": 3}])
def test_what_does_not_belong_on_the_card_is_refused(entries: dict[str, object]) -> None:
    with pytest.raises(LabkitError, match="requirement, hardware, software, test"):
        labkit.plan("00", **entries)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '[{"requirement": 1}]'])
def test_a_damaged_file_is_begun_anew(home: Path, text: str) -> None:
    home.mkdir()
    (home / "plan.json").write_text(text)
    labkit.plan("00", test="it runs")
    assert labkit.plan().test == "it runs"


def test_a_card_that_cannot_be_kept_is_said_so(home: Path) -> None:
    home.write_text("a file where the folder should be")
    with pytest.raises(LabkitError, match="cannot be kept"):
        labkit.plan("00", test="it runs")
