"""Lowering of bit functions, fma, half-precision functions, and the libdevice functions that NumPy has."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.library import floating, positional
from labkit.compute.emulator.values import Scalar, Value

if TYPE_CHECKING:
    from labkit.compute.emulator.lower import Lowering

UINT32 = np.dtype(np.uint32)
Handler = Callable[["Lowering", ast.Call], Value]

# libdevice name without its f (float32) ending -> the code for its arguments
CODES = {
    **{
        n: f"np.{n}({{0}})"
        for n in [
            "sqrt",
            "exp",
            "expm1",
            "exp2",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "floor",
        ]
    },
    **{n: f"np.{n}({{0}})" for n in ["ceil", "trunc", "fabs", "cbrt", "rint"]},
    **{f"a{n}": f"np.arc{n}({{0}})" for n in ["sin", "cos", "tan", "sinh", "cosh", "tanh"]},
    **{n: f"math_{n}({{0}})" for n in ("erf", "erfc", "lgamma")},
    **{n: f"np.{n}({{0}}, {{1}})" for n in ("fmod", "hypot", "copysign", "fmax", "fmin", "nextafter")},
    "tgamma": "math_gamma({0})",
    "nearbyint": "np.rint({0})",
    # half away from zero; |x| + 0.5 would itself be rounded
    "round": "np.copysign(np.trunc({0}) + (np.abs({0} - np.trunc({0})) >= 0.5) * np.sign({0}), {0})",
    "exp10": "np.power({0}.dtype.type(10), {0})",
    "rsqrt": "({0}.dtype.type(1) / np.sqrt({0}))",
    "rcbrt": "({0}.dtype.type(1) / np.cbrt({0}))",
    "sinpi": "np.sin({0} * {0}.dtype.type(np.pi))",
    "cospi": "np.cos({0} * {0}.dtype.type(np.pi))",
    "normcdf": "({0}.dtype.type(0.5) * math_erfc(-{0} * {0}.dtype.type(np.sqrt(0.5))))",
    "saturate": "np.fmin(np.fmax({0}, {0}.dtype.type(0)), {0}.dtype.type(1))",
    "pow": "np.power({0}, {1})",
    "atan2": "np.arctan2({0}, {1})",
    "fdim": "np.fmax({0} - {1}, {0}.dtype.type(0))",
    "fdivide": "({0} / {1})",
    "fma": "bits.fma({0}, {1}, {2})",
}
ARITHMETIC = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "rcp": "({0}.dtype.type(1) / {0})",
}
HALF = {
    **{f"h{n}": code for n, code in ARITHMETIC.items() if n != "rcp"},
    "hfma": "bits.fma({0}, {1}, {2})",
    "hneg": "(-{0})",
    "habs": "np.abs({0})",
    "hmax": "np.fmax({0}, {1})",
    "hmin": "np.fmin({0}, {1})",
    **{
        f"h{n}": f"np.{f}({{0}})"
        for n, f in {"sin": "sin", "cos": "cos", "exp": "exp", "exp2": "exp2", "log": "log"}.items()
    },
    **{f"h{n}": f"np.{n}({{0}})" for n in ("log2", "log10", "sqrt", "floor", "ceil", "rint", "trunc")},
    "hrsqrt": CODES["rsqrt"],
    "hrcp": ARITHMETIC["rcp"],
    "hexp10": CODES["exp10"],
}
HALF_TESTS = {"heq": "==", "hne": "!=", "hlt": "<", "hle": "<=", "hgt": ">", "hge": ">="}


def emit_code(lo: Lowering, code: str, values: list[Scalar], dtype: np.dtype, node: ast.Call) -> Scalar:
    count = next(n for n in (3, 2, 1) if f"{{{n - 1}}}" in code)
    if len(values) != count:
        raise lo.fail(node, f"{ast.unparse(node.func)}() with anything but {count} argument(s)")
    filled = code.format(*(v.code for v in values))
    return lo.emit(dtype, filled, tuple(values), node, operations=2 if "bits.fma" in code else 1)


def arguments(lo: Lowering, node: ast.Call) -> list[Scalar]:
    return positional(lo, node, len(node.args))


def libdevice_code(name: str) -> tuple[str, np.dtype] | None:
    """The code and the type of a libdevice function; None for those that NumPy has no counterpart of."""
    plain = name.removeprefix("fast_")
    if plain in CODES:
        return CODES[plain], ty.FLOAT64
    if plain.endswith("f") and plain[:-1] in CODES:
        return CODES[plain[:-1]], ty.FLOAT32
    prefix, _, rounding = plain.partition("_")
    if rounding == "rn" and prefix[:1] in "fd" and prefix[1:] in ARITHMETIC:
        return ARITHMETIC[prefix[1:]], ty.FLOAT32 if prefix[0] == "f" else ty.FLOAT64
    if rounding == "rn" and prefix in ("fsqrt", "dsqrt"):
        return CODES["sqrt"], ty.FLOAT32 if prefix[0] == "f" else ty.FLOAT64
    return None


def libdevice_call(lo: Lowering, name: str, node: ast.Call) -> Value:
    found = libdevice_code(name)
    if found is None:
        raise lo.fail(node, f"'libdevice.{name}', which NumPy has no counterpart of; write it with math.*")
    code, dtype = found
    return emit_code(lo, code, [lo.cast(v, dtype, node) for v in arguments(lo, node)], dtype, node)


def half_call(lo: Lowering, name: str, node: ast.Call) -> Value:
    values = [lo.cast(v, ty.FLOAT16, node) for v in arguments(lo, node)]
    if name in HALF_TESTS and len(values) == 2:
        return lo.emit(ty.BOOL, f"{values[0].code} {HALF_TESTS[name]} {values[1].code}", tuple(values), node)
    if name not in HALF:
        raise lo.fail(node, f"'cuda.fp16.{name}'; use +, -, *, / and comparisons on float16 numbers")
    return emit_code(lo, HALF[name], values, ty.FLOAT16, node)


def bit_function(name: str) -> Handler:
    def lower(lo: Lowering, node: ast.Call) -> Value:
        (value,) = positional(lo, node, 1)
        if value.type.kind not in "iu":
            raise lo.fail(node, f"cuda.{name} of {value.type}; it counts the bits of a whole number")
        result = value.type
        if name == "ffs":
            result = UINT32
        if name == "brev":
            result = ty.UINT64 if value.type == ty.UINT64 else UINT32
            value = lo.cast(value, result, node)
        # exact width: an index progression is kept in 64 bits otherwise
        code = f"bits.{name}(exact({value.code}, {lo.b.constant(value.type)}))"
        return lo.emit(result, code, (value,), node)

    return lower


def fma(lo: Lowering, node: ast.Call) -> Value:
    values = floating(lo, positional(lo, node, 3), node)
    return emit_code(lo, CODES["fma"], values, values[0].type, node)


def cbrt(lo: Lowering, node: ast.Call) -> Value:
    values = floating(lo, positional(lo, node, 1), node)
    return emit_code(lo, CODES["cbrt"], values, values[0].type, node)


BITS: dict[str, Handler] = {n: bit_function(n) for n in ("popc", "clz", "ffs", "brev")} | {
    "fma": fma,
    "cbrt": cbrt,
}
