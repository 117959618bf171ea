"""The learner's folder: filled, updated, and never written over."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from labkit.course.workfolder import Delivery, deliver, lesson_files
from labkit.errors import LabkitError

LESSON = "notebooks/01_a.ipynb"


class Course:
    """Lessons in one place and a learner's folder in another."""

    def __init__(self, home: Path):
        self.root, self.folder = home / "course", home / "mine"
        self.publish(
            "first", LESSON, "exercises/01_a.ipynb", "solutions/01_a.ipynb", "notebooks/images/a.png"
        )

    def publish(self, text: str, *names: str) -> None:
        for name in names:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def visit(self, update: bool = False, version: str = "0.2.0") -> Delivery:
        return deliver(self.root, self.folder, version, update)

    def mine(self, name: str = LESSON) -> str:
        return (self.folder / name).read_text()

    def work(self, text: str, name: str = LESSON) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


def test_the_first_visit_copies_lessons_but_no_solutions(course: Course) -> None:
    assert set(course.visit().copied) == {LESSON, "exercises/01_a.ipynb", "notebooks/images/a.png"}
    assert not (course.folder / "solutions").exists()


@pytest.mark.parametrize("update", [False, True])
def test_work_survives_every_visit(course: Course, update: bool) -> None:
    course.visit()
    course.work("my work")
    course.publish("second", LESSON)
    course.visit(update)
    course.visit(update)
    assert course.mine() == "my work"


def test_a_plain_visit_says_what_waits_and_changes_nothing(course: Course) -> None:
    course.visit()
    course.publish("second", LESSON)
    assert course.visit().waiting == (LESSON,)
    assert course.mine() == "first"


def test_update_replaces_the_untouched_and_puts_the_rest_beside(course: Course) -> None:
    course.visit()
    course.publish("second", LESSON, "exercises/01_a.ipynb")
    course.work("my work")
    delivery = course.visit(update=True)
    assert delivery.replaced == ("exercises/01_a.ipynb",)
    assert delivery.beside == ("notebooks/01_a.new-0.2.0.ipynb",)
    assert course.mine("exercises/01_a.ipynb") == course.mine("notebooks/01_a.new-0.2.0.ipynb") == "second"


def test_a_version_is_put_beside_once(course: Course) -> None:
    course.visit()
    course.work("my work")
    course.publish("second", LESSON)
    course.visit(update=True)
    (course.folder / "notebooks/01_a.new-0.2.0.ipynb").unlink()
    again = course.visit(update=True)
    assert (again.beside, again.waiting) == ((), ())


def test_work_on_a_version_put_beside_survives_too(course: Course) -> None:
    course.visit()
    course.work("my work")
    course.publish("second", LESSON)
    course.visit(update=True)
    course.work("more work", "notebooks/01_a.new-0.2.0.ipynb")
    course.publish("third", LESSON)
    assert course.visit(update=True).beside == ("notebooks/01_a.new-0.2.0-2.ipynb",)
    assert course.mine("notebooks/01_a.new-0.2.0.ipynb") == "more work"


def test_a_deleted_lesson_comes_back_fresh(course: Course) -> None:
    course.visit()
    (course.folder / LESSON).unlink()
    assert course.visit().copied == (LESSON,)


@pytest.mark.parametrize("manifest", ["{not json", "[]", None])
def test_without_a_readable_manifest_a_different_file_is_the_learners(
    course: Course, manifest: str | None
) -> None:
    course.visit()
    course.publish("second", LESSON)
    path = course.folder / ".labkit" / "manifest.json"
    path.unlink() if manifest is None else path.write_text(manifest)
    assert course.visit(update=True).beside == ("notebooks/01_a.new-0.2.0.ipynb",)
    assert course.mine() == "first"
    assert LESSON in json.loads(path.read_text())


def test_editors_leftovers_do_not_travel(course: Course) -> None:
    course.publish("x", "notebooks/.ipynb_checkpoints/01_a-checkpoint.ipynb", "notebooks/.hidden")
    assert set(lesson_files(course.root)) == {LESSON, "exercises/01_a.ipynb", "notebooks/images/a.png"}


def test_the_originals_are_served_as_they_are(course: Course) -> None:
    assert deliver(course.root, course.root, "0.2.0") == Delivery(course.root)
    assert not (course.root / ".labkit").exists()


def test_a_folder_that_is_a_file_is_a_sentence(course: Course) -> None:
    course.folder.write_text("")
    with pytest.raises(LabkitError, match="--dir"):
        course.visit()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no files, not even from root")
def test_a_folder_that_cannot_be_written_is_a_sentence(course: Course) -> None:
    course.folder = Path("/proc/lessons")
    with pytest.raises(LabkitError, match="cannot be copied into /proc/lessons"):
        course.visit()
