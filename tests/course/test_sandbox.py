"""The process an answer runs in ends with its notebook; the file it leaves is believed only if it adds up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from course import bad_answers as bad
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import labkit
from labkit.course import run_check
from labkit.course.sandbox import Limits, values, wire
from labkit.errors import LabkitError

NOTEBOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from course import bad_answers
import labkit
try:
    print(labkit.exercise("01.amdahl").check(bad_answers.ignores_signals, seconds=60))
except KeyboardInterrupt:
    print("interrupted")
"""


def notebook():
    """A process that checks an answer that never returns, and the processes below it once they are there."""
    folder = os.path.dirname(os.path.dirname(__file__))
    process = subprocess.Popen([sys.executable, "-c", NOTEBOOK, folder], stdout=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 10
    while len(family := psutil.Process(process.pid).children(recursive=True)) < 2:
        assert time.monotonic() < give_up
        time.sleep(0.02)
    time.sleep(0.3)
    return process, family


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_the_death_of_the_notebook_ends_its_checks(number):
    process, family = notebook()
    os.kill(process.pid, number)
    text, _ = process.communicate(timeout=10)
    assert psutil.wait_procs(family, timeout=5)[1] == []
    assert text == ("interrupted\n" if number == signal.SIGINT else "")


def test_checks_may_run_at_the_same_time():
    exercise = labkit.exercise("01.amdahl")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(exercise.check, [bad.right, bad.returns_nan] * 2))
    assert [r.outcome for r in results] == ["passed", "failed"] * 2
    assert labkit.progress().passed == 1


def test_a_lost_keeper_is_one_clear_outcome(new_children):
    def amdahl_limit(workers, seconds):
        import os
        import time

        os.kill(os.getppid(), 9)
        time.sleep(60)

    result = run_check.run_check(labkit.exercise("01.amdahl"), amdahl_limit, Limits(seconds=3))
    assert result.outcome == "error"
    assert "was lost" in result.message
    assert new_children() == set()


def test_the_time_limit_can_be_set_for_a_machine(monkeypatch):
    monkeypatch.setenv("LABKIT_CHECK_SECONDS", "0.5")
    result = labkit.exercise("01.amdahl").check(bad.loops_forever)
    assert "was stopped after 0.5 s" in result.message
    monkeypatch.setenv("LABKIT_CHECK_SECONDS", "inf")
    assert labkit.exercise("01.amdahl").check(bad.right).passed
    with pytest.raises(LabkitError, match="seconds should be a number of seconds, not 'ten'"):
        labkit.exercise("01.amdahl").check(bad.right, seconds="ten")
    monkeypatch.setenv("LABKIT_CHECK_SECONDS", "soon")
    with pytest.raises(LabkitError, match="LABKIT_CHECK_SECONDS should be a number of seconds, not 'soon'"):
        labkit.exercise("01.amdahl").check(bad.right)


@given(
    st.dictionaries(
        st.text(max_size=5), arrays.arrays(st.sampled_from(["<f4", "<i8", "|b1", ">c16"]), (2, 3))
    )
)
def test_arrays_travel_unchanged(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("wire") / "file"
    wire.write(path, {"a": [1, None]}, found)
    document, back = wire.read(path)
    assert document == {"a": [1, None]}
    assert {n: (a.dtype, a.tobytes()) for n, a in back.items()} == {
        n: (a.dtype, a.tobytes()) for n, a in found.items()
    }


def header(table):
    text = json.dumps({"document": {}, "arrays": table}).encode()
    return wire.MAGIC + len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"pickle",
        wire.MAGIC,
        wire.MAGIC + b"\x05\0\0\0\0\0\0\0{[[[[",
        wire.MAGIC + b"\x02\0\0\0\0\0\0\0{}",
        header([["a", "<f8", [10**12]]]),
        header([["a", "<f8", [-1]]]),
        header([["a", "|O", [1]]]) + b"12345678",
        header([["a", "<f8", [1]]]) + b"123",
        header([["a", "<f8", [1]]]) + b"123456789",
        header([["a", "<f8", [True]]]) + b"12345678",
        header([[7, "<f8", [1]]]) + b"12345678",
        header([["a"]]),
        header(7),
    ],
)
def test_a_file_that_does_not_add_up_is_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(wire.WireError):
        wire.read(path)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(plain)
def test_plain_values_travel_unchanged(value):
    encoder = values.Encoder()
    form = json.loads(json.dumps(encoder.encode(value)))
    back = values.decode(form, encoder.arrays)
    assert back == value
    assert type(back) is type(value)


def test_numpy_values_keep_their_type():
    encoder = values.Encoder()
    scalar, array = values.decode(encoder.encode((np.float32(1.5), np.arange(3))), encoder.arrays)
    assert type(scalar) is np.float32
    assert array.tolist() == [0, 1, 2]
