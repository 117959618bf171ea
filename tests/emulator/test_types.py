"""Types: what the emulator infers must be what numba.cuda infers, operator by operator and type by type."""

from __future__ import annotations

import itertools
import operator as op

import numpy as np
import pytest
from emulator.support import define

from labkit.compute.emulator import jit
from labkit.compute.emulator.lower import Lowering
from labkit.compute.emulator.program import Block, Builder
from labkit.compute.emulator.values import Scalar

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]
OPERATORS = {
    "+": op.add,
    "-": op.sub,
    "*": op.mul,
    "/": op.truediv,
    "//": op.floordiv,
    "%": op.mod,
    "<<": op.lshift,
    ">>": op.rshift,
    "&": op.and_,
    "|": op.or_,
    "^": op.xor,
    "<": op.lt,
    "==": op.eq,
}
UNARY = ["-x", "~x", "not x", "+x", "abs(x)", "int(x)", "float(x)", "bool(x)", "round(x)"]
MATH = ["sqrt", "floor", "ceil", "exp", "log", "sin", "tanh", "fabs", "isnan", "trunc"]


def inferred(expression: str, **arguments: str) -> str:
    """The emulator's type of an expression over parameters of the given types."""
    function = jit(define(f"def f({', '.join(arguments)}):\n    return {expression}\n"), device=True)
    values = [Scalar(np.dtype(dtype), f"p{k}") for k, dtype in enumerate(arguments.values())]
    return type_of_call(function, values)


def type_of_call(function, values: list[Scalar]) -> str:
    """The type of a device function's result, as a kernel that calls it would see it."""
    lowering = Lowering(Builder("caller"), function.source)
    lowering.inlined = ()
    lowering.b.place(Block(1))
    return str(lowering.inline(function.source, values, function.source.tree).type)


def oracle(expression: str, **arguments: str) -> str | None:
    """numba.cuda's type of the same, or None when numba refuses it."""
    from numba import cuda, types

    numba_types = {"bool": types.boolean, **{d: getattr(types, d) for d in DTYPES if d != "bool"}}
    function = define(f"def f({', '.join(arguments)}):\n    return {expression}\n")
    signature = tuple(numba_types[d] for d in arguments.values())
    try:
        return (
            str(cuda.compile_ptx(function, signature, device=True, cc=(8, 0))[1]).split("(")[0].split("[")[0]
        )
    except Exception:
        return None


@pytest.fixture(scope="module", autouse=True)
def needs_compiler(require):
    require("compiler")


@pytest.mark.parametrize("operator", OPERATORS)
def test_binary_operators_have_numbas_types(operator):
    from numba.cuda.descriptor import cuda_target

    wrong = []
    for left, right in itertools.product(DTYPES, DTYPES):
        expected = typing_of(cuda_target.typing_context, OPERATORS[operator], left, right)
        if expected is None:
            continue
        found = inferred(f"x {operator} y", x=left, y=right)
        if found != expected:
            wrong.append(f"{left} {operator} {right}: {found}, numba says {expected}")
    assert not wrong, "\n".join(wrong)


def typing_of(context, function, *names: str) -> str | None:
    """What numba's CUDA typing context says about a function of the given types."""
    from numba import types

    context.refresh()
    arguments = tuple(types.boolean if n == "bool" else getattr(types, n) for n in names)
    try:
        signature = context.resolve_function_type(function, arguments, {})
    except Exception:
        return None
    return str(signature.return_type) if signature else None


@pytest.mark.parametrize("function", [min, max, np.minimum, np.fmax])
def test_min_and_max_have_numbas_types(function):
    from numba.cuda.descriptor import cuda_target

    name = f"np.{function.__name__}" if isinstance(function, np.ufunc) else function.__name__

    for left, right in itertools.product(DTYPES, DTYPES):
        expected = typing_of(cuda_target.typing_context, function, left, right)
        if expected is not None:
            assert inferred(f"{name}(x, y)", x=left, y=right) == expected, (left, right)


@pytest.mark.parametrize("expression", UNARY + [f"math.{name}(x)" for name in MATH])
def test_functions_of_one_number_have_numbas_types(expression):
    for dtype in ("int32", "uint8", "int64", "float32", "float64"):
        expected = oracle(expression, x=dtype)
        if expected is not None:
            assert inferred(expression, x=dtype) == expected, dtype


@pytest.mark.parametrize(
    "expression",
    [
        "x ** 2",
        "i ** 2",
        "x ** -1",
        "x ** 100",
        "i ** -3",
        "i ** 100",
        "x * 2.0",
        "x + 1",
        "i + 1",
        "1 if x > 0 else 2.0",
        "x if i else i",
        "x and i",
        "i or x",
        "1 < i < 5",
        "not x",
        "math.pow(x, x)",
        "math.atan2(x, i)",
        "x // 1",
        "i % 3 == 0",
        "(x, i)[1]",
        "divmod(i, 2)[0]",
        "np.float32(i) * x",
        "np.int32(x) + np.int32(i)",
        "math.pi * x",
    ],
)
def test_mixed_expressions_have_numbas_types(expression):
    expected = oracle(expression, x="float32", i="int32")
    assert expected is not None
    assert inferred(expression, x="float32", i="int32") == expected


def test_a_variable_takes_the_common_type_where_paths_meet():
    body = "    if i > 2:\n        v = i\n    else:\n        v = x\n    return v\n"
    source = "def f(x, i):\n" + body
    from numba import cuda, types

    expected = str(cuda.compile_ptx(define(source), (types.float32, types.int64), device=True, cc=(8, 0))[1])
    values = [Scalar(np.dtype(np.float32), "p0"), Scalar(np.dtype(np.int64), "p1")]
    assert type_of_call(jit(define(source), device=True), values) == expected == "float64"
