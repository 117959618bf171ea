"""Whatever an answer does, a check ends in time with one clear result, and leaves no process behind."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections import OrderedDict, defaultdict
from types import FunctionType, SimpleNamespace
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
from course import bad_answers as bad

import labkit
from labkit.course import run_check
from labkit.course.sandbox import Limits

SECONDS = 1.0
LIMITS = Limits(seconds=SECONDS, memory=300 * 2**20)

CASES = [
    (bad.right, "passed", "Right for every table"),
    (bad.loops_forever, "error", "was stopped after 1 s"),
    (bad.holds_the_lock_forever, "error", "was stopped after 1 s"),
    (bad.ignores_signals, "error", "was stopped after 1 s"),
    (bad.leaves, "error", "ended its process (exit status 0)"),
    (bad.crashes, "error", "ended by SIGSEGV"),
    (bad.captures_a_gigabyte, "error", "refers to 1,024 MiB of data (GIGABYTE)"),
    (bad.patches_numpy, "failed", "returned 1, expected"),
    (bad.patches_labkit, "failed", "returned 1, expected"),
    (bad.exits, "error", "raised SystemExit in line"),
    (bad.interrupts, "error", "raised KeyboardInterrupt in line"),
    (bad.closes_descriptors, "passed", "Right for every table"),
    (bad.prints_a_verdict, "error", "ended its process"),
    (bad.writes_garbage, "error", "left a result that cannot be read"),
    (bad.forges_a_document, "error", "left a result that cannot be read"),
    (bad.leaves_a_link, "error", "left a result that cannot be read"),
    (bad.leaves_a_pipe, "error", "left a result that cannot be read"),
    (bad.returns_nan, "failed", "returned nan"),
    (bad.returns_a_text, "failed", "returned a str: '7.5'"),
    (bad.returns_a_list, "failed", "returned a list: [1, 2]"),
    (bad.returns_a_generator, "failed", "returned a generator"),
    (bad.returns_a_huge_array, "failed", "returned a ndarray (array of shape (1048576, 1024)"),
    (bad.returns_a_huge_integer, "failed", "an integer of 100001 bits"),
    (bad.returns_a_nest, "failed", "returned a list"),
    (bad.returns_a_hostile_object, "failed", "a Hostile that cannot be printed"),
    (bad.raises_with_a_hostile_message, "error", "raised Loud in line"),
    (bad.raises_half_a_character, "error", r"of its cell: half \udc80 of one"),
    (bad.raises_something_that_escapes, "error", "raised Escapes in line"),
    (bad.returns_a_number_that_equals_everything, "failed", "returned 1, expected"),
    (bad.returns_a_subclass, "passed", "Right for every table"),
    (bad.returns_an_anonymous_object, "failed", "an object (<object object>)"),
    (bad.hops_from_process_to_process, "passed", "Right for every table"),
    (bad.leaves_a_sleeper_and_ends_its_keeper, "error", "was lost"),
    (bad.fills_the_disk, "error", "File too large"),
    (bad.recurses, "error", "raised RecursionError in line"),
    (bad.reads_input, "error", "raised EOFError in line"),
]


def check(answer, limits=LIMITS):
    return run_check.run_check(labkit.exercise("01.amdahl"), answer, limits)


@pytest.fixture
def processes():
    """The living descendants of this process that the test has started; servers of earlier tests do not count."""
    before = set(psutil.Process().children(recursive=True))

    def living():
        family = set(psutil.Process().children(recursive=True)) - before
        return [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    return living


def sleepers():
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "labkit-test-sleeper" in " ".join(process.info["cmdline"] or []):
            found.append(process)
    return found


@pytest.mark.parametrize(
    ("answer", "outcome", "says"), CASES, ids=lambda value: getattr(value, "__name__", None)
)
def test_one_clear_outcome(answer, outcome, says, processes):
    before = time.monotonic()
    result = check(answer)
    assert result.outcome == outcome, result
    assert (repr(result) + result._repr_html_()).encode()
    assert says in repr(result)
    assert time.monotonic() - before < SECONDS + 5
    assert processes() == []
    assert sleepers() == []


def test_the_message_names_the_line_of_the_answer():
    result = check(bad.exits)
    line = bad.exits.__code__.co_firstlineno + 1
    assert f"in line {line} of its cell" in result.message


def test_a_gigabyte_of_output_is_drained_and_its_ends_are_kept():
    before = psutil.Process().memory_info().rss
    result = check(bad.prints_a_gigabyte, Limits(seconds=20))
    assert "first words" in result.printed
    assert "bytes left out" in result.printed
    assert len(result.printed) < 10_000
    assert psutil.Process().memory_info().rss - before < 50 * 2**20
    assert result.passed


@pytest.mark.parametrize("answer", [bad.eats_memory, bad.eats_memory_in_a_child])
def test_memory_is_limited_in_an_answer_and_its_children(answer, processes):
    result = check(answer, Limits(seconds=20, memory=300 * 2**20))
    assert result.outcome == "error"
    assert "more than 300 MiB of memory" in result.message
    assert processes() == []


def test_processes_are_limited(processes):
    result = check(bad.starts_hundreds, Limits(seconds=10, memory=2**40))
    assert "had started more than 100 processes" in result.message
    assert processes() == []


def test_forked_children_and_grandchildren_end_with_the_check():
    assert check(bad.forks_sleepers).passed
    assert sleepers() == []


def test_the_notebooks_own_modules_are_unharmed():
    close, error = np.isclose, labkit.KernelError
    check(bad.patches_numpy)
    check(bad.patches_labkit)
    assert np.isclose is close
    assert labkit.KernelError is error
    assert check(bad.right).passed


def test_nothing_stays_in_the_temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    check(bad.right)
    check(bad.loops_forever)
    assert os.listdir(folder) == []


class AnyAttribute:
    def __getattr__(self, name):
        raise ValueError(name)


class SaysItIsAFunction:
    __class__ = property(lambda self: FunctionType)


class HasNoClass:
    __class__ = property(lambda self: 1 / 0)


class EndsTheProgram:
    def __repr__(self):
        raise SystemExit


class AnyClassAttribute(type):
    def __getattr__(cls, name):
        raise ValueError(name)


ODD = [
    AnyAttribute,
    SaysItIsAFunction,
    HasNoClass,
    EndsTheProgram,
    lambda: AnyClassAttribute("Odd", (), {}),
    Mock,
    lambda: Mock(spec=bad.right),
]


@pytest.mark.parametrize("make", ODD)
def test_objects_that_lie_or_raise_are_described(make):
    odd = make()
    assert "should be a function" in check(odd).message
    kernel = run_check.run_check(labkit.exercise("01.vector_add"), odd, LIMITS)
    assert "should be a kernel" in kernel.message
    claim = run_check.run_check(labkit.exercise("01.claim"), {"verdict": odd}, LIMITS)
    assert claim.outcome == "failed"


@pytest.mark.parametrize("make", ODD[:3])
def test_an_answer_may_refer_to_objects_that_lie_or_raise(make, monkeypatch):
    monkeypatch.setattr(bad, "GIGABYTE", make())
    assert check(bad.captures_a_gigabyte).outcome == "error"


def test_what_is_too_large_inside_an_object_is_not_copied_first(monkeypatch):
    monkeypatch.setattr(bad, "GIGABYTE", SimpleNamespace(inside=np.ones(2**25)))
    tracemalloc.start()
    result = check(bad.captures_a_gigabyte)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "refers to more than 64 MiB of data (GIGABYTE)" in result.message
    assert peak < 100 * 2**20


@pytest.mark.parametrize("make", [OrderedDict, lambda items: defaultdict(str, items)])
def test_a_claim_may_be_any_kind_of_dictionary(make):
    words = {"verdict": np.str_("misleading"), "number": 6912, "unit": "lanes", "left_out": "FLOP/s"}
    assert run_check.run_check(labkit.exercise("01.claim"), make(words), LIMITS).passed


def test_many_checks_leave_nothing_in_the_notebook():
    me = psutil.Process()

    def state():
        return me.num_fds(), threading.active_count(), me.children(), np.geterr(), np.get_printoptions()

    check(bad.right)
    before, memory = state(), me.memory_info().rss
    for _ in range(5):
        for answer in (bad.right, bad.exits, bad.leaves, bad.patches_numpy):
            check(answer)
    assert state() == before
    assert me.memory_info().rss - memory < 5 * 2**20


@pytest.mark.parametrize(
    "answer", [7, "text", None, [1], int, labkit, np.ones(3), bad.Hostile()], ids=lambda v: type(v).__name__
)
def test_other_things_are_no_function(answer):
    result = check(answer)
    assert result.outcome == "error"
    assert "should be a function" in result.message


def test_another_number_of_parameters_is_named():
    def amdahl_limit(workers):
        return 1.0

    result = check(amdahl_limit)
    assert result.outcome == "error"
    assert "amdahl_limit(workers, seconds) is asked for, and yours is amdahl_limit(workers)" in result.message
