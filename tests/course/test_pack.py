"""A function travels with what it refers to, and without what its notebook happens to hold."""

from __future__ import annotations

import functools
import json
import math
import math as m
import os.path
import subprocess
import sys
import threading

import numpy as np
import pytest

from labkit.course import pack
from labkit.course.sandbox import unpack
from labkit.errors import LabkitError

FACTOR = 3
TABLE = np.arange(5.0)
NESTED = {"a": (1, [2.5, None])}
LARGE = np.broadcast_to(np.zeros(1), (2**24,))


def travelled(function):
    """``function`` as the answer's process rebuilds it."""
    package, arrays = pack.pack(function, "f")
    return unpack.function(json.loads(json.dumps(package)), arrays)


def helper(x):
    return x * FACTOR


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


triple = lambda x: x * FACTOR  # noqa: E731


@functools.lru_cache(maxsize=FACTOR)
def cached(n, base=FACTOR):
    return n + base


def modules(x):
    return math.floor(m.pi) + os.path.sep.count("/") + int(np.sqrt(x))


def data(_):
    return TABLE.sum() + NESTED["a"][1][0]


def closure():
    step = 10
    inner = helper

    def add(x):
        return inner(x) + step

    return add


@pytest.mark.parametrize(
    ("function", "argument"),
    [(helper, 4), (even, 6), (triple, 2), (cached, 1), (modules, 9), (data, 0), (closure(), 5)],
    ids=["global", "mutual recursion", "lambda", "decorated", "modules", "data", "closure"],
)
def test_a_function_returns_the_same_elsewhere(function, argument):
    assert travelled(function)(argument) == function(argument)


def test_a_function_without_a_text_travels_too():
    namespace = {"FACTOR": 5}
    exec("def f(x):\n    return x * FACTOR", namespace)
    assert travelled(namespace["f"])(2) == 10


def test_a_counter_in_a_closure_travels_too():
    count = 0

    def step(x):
        nonlocal count
        count += x
        return count

    assert travelled(step)(2) == 2
    assert count == 0


def test_too_much_data_is_refused_with_its_name():
    def f(x):
        return LARGE[0]

    with pytest.raises(
        LabkitError, match=r"'f' refers to 128 MiB of data \(LARGE\), and a check carries at most 64 MiB"
    ):
        pack.pack(f, "f")


def test_what_cannot_travel_is_named():
    gate = threading.Lock()

    def f(x):
        return gate.locked()

    with pytest.raises(LabkitError, match=r"'gate' \(lock\) cannot travel"):
        pack.pack(f, "f")


SCRIPT = """
import dataclasses
import numpy as np
from labkit.course import pack

@dataclasses.dataclass
class Point:
    x: float = 2.0

class Base:
    def value(self):
        return 40

class Derived(Base):
    pass

def area(scale):
    return Point().x * scale + Derived().value()

again = area

def f(scale):
    return again(scale)

package, arrays = pack.pack(f, "f")
assert "pickle" not in package, package
from labkit.course.sandbox import unpack
del Point, Base, Derived, area, again
print(unpack.function(package, arrays)(1.0))
"""


def test_classes_and_aliases_of_a_notebook_travel(tmp_path):
    path = tmp_path / "cell.py"
    path.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("42.0\n", "")
