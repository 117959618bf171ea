"""Lowering of names with a dot and of subscripts: coordinates, array attributes, loads and stores."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.values import ArrayRef, Intrinsic, Scalar, Static, Tuple, Value, Whole, describe

CUDA_MODULES = {"labkit.compute.cuda", "numba.cuda", "numba_cuda.numba.cuda"}

COORDINATES = {
    f"{name}.{axis}": (attribute, k)
    for name, attribute in (("threadIdx", "thread"), ("blockIdx", "block"))
    for k, axis in enumerate("xyz")
}
EXTENTS = {
    f"{name}.{axis}": (attribute, k)
    for name, attribute in (("blockDim", "block"), ("gridDim", "grid"))
    for k, axis in enumerate("xyz")
}


class SubscriptLowering:
    """The part of expression lowering that knows attributes and subscripts; the rest provides these."""

    b: Any
    binary: Any
    cast: Any
    const: Any
    scalar: Any
    emit: Any
    expr: Any
    fail: Any
    need_scalar: Any
    site: Any
    wrap: Any

    def expr_Attribute(self, node: ast.Attribute) -> Value:
        base = self.expr(node.value)
        if isinstance(base, Static):
            return self.static_attribute(base.value, node)
        if isinstance(base, ArrayRef):
            return self.array_attribute(base, node)
        if isinstance(base, Scalar) and base.type.kind == "c" and node.attr in ("real", "imag"):
            part = np.dtype(f"f{base.type.itemsize // 2}")
            return self.emit(part, f"{base.code}.{node.attr}", (base,), node)
        if isinstance(base, Scalar) and base.type.names and node.attr in base.type.names:
            return self.emit(base.type[node.attr], f"{base.code}[{node.attr!r}]", (base,), node)
        raise self.fail(node, f"attribute '{node.attr}' of {describe(base)}")

    def static_attribute(self, base: Any, node: ast.Attribute) -> Value:
        if isinstance(base, ModuleType) and base.__name__ in CUDA_MODULES:
            return self.intrinsic_value(Intrinsic(node.attr), node)
        if isinstance(base, Intrinsic):
            return self.intrinsic_value(Intrinsic(f"{base.path}.{node.attr}"), node)
        if isinstance(base, ModuleType) and hasattr(base, node.attr):
            return self.wrap(getattr(base, node.attr), node.attr)
        if isinstance(base, np.dtype) and node.attr == "type":
            return Static(base.type)
        raise self.fail(node, f"'{ast.unparse(node)}'")

    def intrinsic_value(self, intrinsic: Intrinsic, node: ast.AST) -> Value:
        """A coordinate or extent where the name is complete; otherwise the name so far."""
        path = intrinsic.path
        if path in COORDINATES:
            attribute, k = COORDINATES[path]
            return self.emit(ty.INT32, f"g.coordinate({attribute!r}, {k})", (), node, "move")
        if path in EXTENTS:
            attribute, k = EXTENTS[path]
            return self.emit(ty.INT32, f"g.extent({attribute!r}, {k})", (), node, "move")
        if path == "laneid":
            return self.emit(ty.INT32, "g.warp_lane()", (), node, "move")
        if path == "warpsize":
            return Scalar(ty.INT32, self.b.constant(np.int32(32)), 32)
        return Static(intrinsic)

    def array_attribute(self, base: ArrayRef, node: ast.Attribute) -> Value:
        if node.attr == "shape":
            return Tuple(tuple(self.length(base, k, node) for k in range(base.type.ndim)))
        if node.attr == "ndim":
            return self.const(base.type.ndim)
        if node.attr == "dtype":
            return Static(base.type.dtype)
        if node.attr == "size":
            lengths = [self.length(base, k, node) for k in range(base.type.ndim)]
            product = " * ".join(n.code for n in lengths)
            return self.emit(ty.INT64, product, tuple(lengths), node, "move") if lengths else self.const(1)
        raise self.fail(
            node, f"attribute '{node.attr}' of an array; .shape, .size, .ndim and .dtype are there"
        )

    def length(self, base: ArrayRef, k: int, node: ast.AST) -> Scalar:
        """The length of the k-th free axis of an array."""
        entry = base.pattern[base.axes[k]]
        if isinstance(entry, Whole) and entry.length is not None:
            return entry.length
        return self.emit(ty.INT64, f"{base.code}.lengths[{base.axes[k]}]", (), node, "move")

    def expr_Subscript(self, node: ast.Subscript) -> Value:
        base = self.expr(node.value)
        if isinstance(base, Tuple):
            return self.tuple_item(base, node)
        if isinstance(base, Scalar) and base.type.names:
            key = self.expr(node.slice)
            if isinstance(key, Static) and key.value in base.type.names:
                return self.emit(base.type[key.value], f"{base.code}[{key.value!r}]", (base,), node)
        if not isinstance(base, ArrayRef):
            raise self.fail(node, f"'[...]' on {describe(base)}")
        view = self.index(base, node)
        return view if view.axes else self.load(view, node)

    def tuple_item(self, base: Tuple, node: ast.Subscript) -> Value:
        key = self.expr(node.slice)
        if not (isinstance(key, Scalar) and key.known):
            raise self.fail(node, "a tuple indexed by a variable; use an array")
        try:
            return base.items[int(key.const)]
        except IndexError:
            raise self.fail(node, f"item {key.const} of a tuple of {len(base.items)}") from None

    def index(self, base: ArrayRef, node: ast.Subscript) -> ArrayRef:
        """The view that an index leaves of an array; without free axes it is one element."""
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        entries: list[Scalar | Whole] = []
        for key in keys:
            entries.extend(self.index_entries(key))
        if len(entries) > base.type.ndim:
            raise self.fail(
                node, f"{len(entries)} indices on '{base.name}', which has {base.type.ndim} dimension(s)"
            )
        pattern = list(base.pattern)
        for axis, entry in zip(base.axes, entries, strict=False):
            pattern[axis] = self.within_view(pattern[axis], entry, node)
        free = sum(isinstance(entry, Whole) for entry in pattern)
        kind = ty.ArrayType(base.type.dtype, free, base.type.space, base.type.readonly)
        return ArrayRef(kind, base.number, base.name, tuple(pattern), base.field)

    def member(self, element: ArrayRef, name: str, node: ast.AST) -> ArrayRef:
        """One field of a structured element."""
        fields = element.type.dtype.names or ()
        if name not in fields or element.field is not None:
            raise self.fail(
                node, f"field '{name}' of '{element.name}'; it has {', '.join(fields) or 'no fields'}"
            )
        kind = ty.ArrayType(element.type.dtype[name], 0, element.type.space, element.type.readonly)
        return ArrayRef(kind, element.number, element.name, element.pattern, name)

    def within_view(self, axis: Scalar | Whole, entry: Scalar | Whole, node: ast.AST) -> Scalar | Whole:
        """An index or slice of an axis that may itself be a slice: its start is added."""
        if not isinstance(axis, Whole) or axis.start is None:
            return entry
        if isinstance(entry, Scalar):
            return self.binary(ast.Add, axis.start, entry, node)
        if entry.start is None:
            return axis
        return Whole(self.binary(ast.Add, axis.start, entry.start, node), entry.length)

    def slice_entry(self, key: ast.Slice) -> Whole:
        if key.step is not None:
            raise self.fail(key, "a slice with a step; loop over the elements you need")
        if key.lower is None and key.upper is None:
            return Whole()
        if key.upper is None:
            raise self.fail(key, "a slice without an end; write it out, like a[start:a.size]")
        start = self.cast(self.scalar(key.lower), ty.INT64, key) if key.lower else self.const(0)
        stop = self.cast(self.scalar(key.upper), ty.INT64, key)
        length = self.binary(ast.Sub, stop, start, key)
        return Whole(
            start, self.emit(ty.INT64, f"maximum({length.code}, {self.const(0).code})", (length,), key)
        )

    def index_entries(self, key: ast.expr) -> list[Scalar | Whole]:
        if isinstance(key, ast.Slice):
            return [self.slice_entry(key)]
        value = self.expr(key)
        members = value.items if isinstance(value, Tuple) else (value,)
        return [self.index_number(member, key) for member in members]

    def index_number(self, value: Value, key: ast.expr) -> Scalar:
        number = self.need_scalar(value, key)
        if number.type == ty.BOOL:
            raise self.fail(key, "a bool as an index; make a number of it with int(...)")
        if number.type.kind not in "iu":
            raise self.fail(
                key,
                f"a {number.type} as an index; use '//' instead of '/', or int(...), so that it is a whole number",
            )
        return number

    def load(self, element: ArrayRef, node: ast.AST) -> Scalar:
        keys = self.element_keys(element)
        code = f"M.load({element.code}, ({self.listed(keys)}), g, {self.site(node, element.name)})"
        return self.emit(element.type.dtype, code, keys, node, "load")

    def store(self, element: ArrayRef, value: Scalar, node: ast.AST) -> None:
        if element.type.readonly:
            raise self.fail(node, f"'{element.name}' as a place to write: it is read-only")
        if value.type.kind == "f" and element.type.dtype.kind in "iu":
            value = self.cast(value, element.type.dtype, node)  # the device's conversion is not NumPy's
        keys = self.element_keys(element)
        code = f"M.store({element.code}, ({self.listed(keys)}), {value.code}, g, {self.site(node, element.name)})"
        self.b.do(code, [r for o in (*keys, value) for r in o.registers], getattr(node, "lineno", 0), "store")

    @staticmethod
    def listed(numbers: Iterable[Scalar]) -> str:
        """Operands as the inside of a tuple in generated code."""
        return "".join(f"{n.code}, " for n in numbers)

    @staticmethod
    def element_keys(element: ArrayRef) -> tuple[Scalar, ...]:
        return tuple(entry for entry in element.pattern if isinstance(entry, Scalar))
