"""Explicit signatures of ``cuda.jit``: read in all the forms that numba takes, and applied to arguments.

A kernel with signatures is compiled for them alone: numbers are converted to the type that the signature names, and
arrays of another type are refused, as numba does.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.compute.emulator.arguments import Argument
from labkit.compute.emulator.typenames import (
    NAMES,
    TYPE_NAMES,
    ArrayName,
    ScalarName,
    Signature,
    VoidName,
    layout_of,
)
from labkit.compute.emulator.types import ArrayType
from labkit.errors import KernelError


def is_signature(thing: Any) -> bool:
    """Whether what stands in ``cuda.jit(...)`` is a signature, or several, and not the function."""
    if isinstance(thing, (str, list, tuple, Signature, *TYPE_NAMES)):
        return True
    return type(thing).__module__.startswith("numba") and not hasattr(thing, "py_func")


def read_all(given: Any) -> tuple[Signature, ...]:
    """The signatures in ``"void(int32)"``, ``(float32[:], int32)``, ``void(...)`` or a list of such.

    Raises
    ------
    KernelError
        Of kind ``signature`` when one cannot be read.
    """
    if given is None:
        return ()
    return tuple(read(each) for each in (given if isinstance(given, list) else [given]))


def read(given: Any) -> Signature:
    """One signature."""
    if isinstance(given, Signature):
        return Signature(given.result, tuple(_type(a, given) for a in given.arguments))
    if isinstance(given, str):
        return _from_text(given)
    if isinstance(given, tuple):
        return Signature(None, tuple(_type(each, given) for each in given))
    if hasattr(given, "return_type") and hasattr(given, "args"):
        result = None if given.return_type is None else _type(given.return_type, given)
        return Signature(result, tuple(_type(each, given) for each in given.args))
    return Signature(None, (_type(given, given),))


def _type(thing: Any, signature: Any) -> Any:
    """A scalar, array or void type, whoever made it."""
    if isinstance(thing, TYPE_NAMES):
        return thing
    if hasattr(thing, "ndim") and hasattr(thing, "layout"):
        return ArrayName(_dtype(thing.dtype, signature), thing.ndim, thing.layout)
    if str(thing) in ("none", "void") or thing is None:
        return NAMES["void"]
    dtype = _dtype(thing, signature)
    return ScalarName(str(dtype), dtype)


def _dtype(thing: Any, signature: Any) -> np.dtype:
    try:
        return (
            thing
            if isinstance(thing, np.dtype)
            else np.dtype(thing if isinstance(thing, type) else str(thing))
        )
    except TypeError:
        pass
    if type(thing).__name__ == "Record" and type(thing).__module__.startswith("numba"):
        from numba.np.numpy_support import as_dtype

        return as_dtype(thing)
    raise _unreadable(signature, f"'{thing}' is not a type the emulator knows")


def _from_text(text: str) -> Signature:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise _unreadable(text, "it is not a valid expression") from None
    value = _evaluate(node, text)
    if isinstance(value, Signature):
        return value
    return Signature(None, value if isinstance(value, tuple) else (value,))


def _evaluate(node: ast.expr, text: str) -> Any:
    """A type expression; names are looked up in numba's list of types and nowhere else."""
    if isinstance(node, ast.Name) and node.id in NAMES:
        return NAMES[node.id]
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return NAMES[node.attr]
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(each, text) for each in node.elts)
    if isinstance(node, ast.Subscript):
        element = _evaluate(node.value, text)
        return _array(element, node.slice, text)
    if isinstance(node, ast.Call) and not node.keywords:
        result = _evaluate(node.func, text)
        return Signature(result, tuple(_evaluate(each, text) for each in node.args))
    raise _unreadable(text, f"'{ast.unparse(node)}' is not a type the emulator knows")


def _array(element: Any, axes: ast.expr, text: str) -> ArrayName:
    parts = axes.elts if isinstance(axes, ast.Tuple) else [axes]
    plain = all(isinstance(p, ast.Slice) and p.lower is p.upper is None for p in parts)
    if not plain or not isinstance(element, ScalarName):
        raise _unreadable(text, "an array type is written with colons, one an axis, like float32[:, :]")
    steps = [ast.unparse(p.step) if isinstance(p, ast.Slice) and p.step else None for p in parts]
    return ArrayName(element.dtype, *layout_of(tuple(slice(None, None, 1 if s == "1" else s) for s in steps)))


def _unreadable(signature: Any, why: str) -> KernelError:
    return KernelError(
        f"The signature {str(signature)!r} cannot be read: {why}. Write it like 'void(float32[:], int32)'.",
        kind="signature",
    )


def check_length(signatures: Sequence[Signature], parameters: tuple[str, ...], name: str) -> None:
    """Refuse a signature that names more or fewer types than the function has parameters."""
    for signature in signatures:
        if len(signature.arguments) != len(parameters):
            raise KernelError(
                f"The signature {signature} of '{name}' names {len(signature.arguments)} type(s), but '{name}' takes "
                f"{len(parameters)} argument(s): {', '.join(parameters)}.",
                kind="signature",
            )


# -- arguments of a launch -----------------------------------------------------------------------------------------


def apply(
    signatures: Sequence[Signature], given: list[Argument], names: tuple[str, ...], kernel: str
) -> list[Argument]:
    """The arguments as the best fitting signature wants them.

    Raises
    ------
    KernelError
        Of kind ``arguments`` when none fits, with the first argument that does not.
    """
    fitting = [s for s in signatures if all(map(fits, s.arguments, given))]
    if not fitting:
        raise _no_match(signatures, given, names, kernel)
    best = min(fitting, key=lambda s: sum(_converted(a, g) for a, g in zip(s.arguments, given, strict=True)))
    return [_convert(wanted, argument) for wanted, argument in zip(best.arguments, given, strict=True)]


def fits(wanted: Any, argument: Argument) -> bool:
    kind = argument.kind
    if isinstance(wanted, ScalarName):
        return isinstance(kind, np.dtype) and (wanted.dtype.names is None or kind == wanted.dtype)
    if not isinstance(wanted, ArrayName) or not isinstance(kind, ArrayType):
        return False
    flags = argument.value.flags
    order = {"C": flags.c_contiguous, "F": flags.f_contiguous}.get(wanted.layout, True)
    return kind.dtype == wanted.dtype and kind.ndim == wanted.ndim and bool(order)


def _converted(wanted: Any, argument: Argument) -> int:
    """How far a number is from the type wanted: 0 the same, 1 exactly representable, 2 the rest."""
    if isinstance(wanted, ArrayName) or wanted.dtype == argument.kind:
        return 0
    return 1 if np.can_cast(argument.kind, wanted.dtype) else 2


def _convert(wanted: Any, argument: Argument) -> Argument:
    if isinstance(wanted, ArrayName) or wanted.dtype == argument.kind:
        return argument
    with np.errstate(all="ignore"):
        return Argument(wanted.dtype, np.asarray(argument.value).astype(wanted.dtype)[()])


def _no_match(
    signatures: Sequence[Signature], given: list[Argument], names: tuple[str, ...], kernel: str
) -> KernelError:
    wanted, argument, name = next(
        (w, a, n) for w, a, n in zip(signatures[0].arguments, given, names, strict=True) if not fits(w, a)
    )
    if len(signatures) > 1:
        expected = "no signature fits; there are " + " and ".join(map(repr, signatures))
    else:
        expected = f"its signature {signatures[0]} wants {wanted!r}"
    got = _describe(argument)
    advice = (
        f"convert it with .astype(np.{wanted.dtype})"
        if _only_dtype(wanted, argument)
        else "pass what it says"
    )
    return KernelError(
        f"Argument '{name}' of kernel '{kernel}' is {got}, but {expected}: {advice}, or leave the signature out.",
        kind="arguments",
    )


def _only_dtype(wanted: Any, argument: Argument) -> bool:
    kind = argument.kind
    return (
        isinstance(wanted, ArrayName)
        and isinstance(kind, ArrayType)
        and kind.ndim == wanted.ndim
        and (kind.dtype != wanted.dtype)
    )


def _describe(argument: Argument) -> str:
    kind = argument.kind
    if isinstance(kind, ArrayType):
        return f"an array of type {ArrayName(kind.dtype, kind.ndim, _order(argument.value))!r}"
    return f"a {kind} number" if isinstance(kind, np.dtype) else "a tuple"


def _order(data: np.ndarray) -> str:
    return "C" if data.flags.c_contiguous else "F" if data.flags.f_contiguous else "A"


def declared(signature: Signature | None) -> tuple[list[np.dtype | None], np.dtype | None]:
    """Of a device function: the scalar type each argument is converted to, and that of its result."""
    if signature is None:
        return [], None
    arguments = [a.dtype if isinstance(a, ScalarName) else None for a in signature.arguments]
    result = signature.result.dtype if isinstance(signature.result, ScalarName) else None
    return arguments, result


__all__ = ["Signature", "VoidName", "apply", "check_length", "declared", "is_signature", "read", "read_all"]
