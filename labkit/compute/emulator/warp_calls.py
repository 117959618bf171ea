"""Lowering of what lanes tell each other: shuffles, votes, matches, barriers that count, and grid-wide barriers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from labkit.compute.emulator import types as ty
from labkit.compute.emulator.library import positional
from labkit.compute.emulator.program import Block
from labkit.compute.emulator.values import Intrinsic, Scalar, Static, Tuple, Value

if TYPE_CHECKING:
    from labkit.compute.emulator.lower import Lowering

UINT32 = np.dtype(np.uint32)
Handler = Callable[["Lowering", ast.Call], Value]


def barrier(lo: Lowering, node: ast.AST, scope: str) -> None:
    """End the block at a barrier of the thread block or of the whole grid."""
    after = Block(getattr(node, "lineno", 0))
    assert lo.b.current is not None
    lo.b.current.scope = scope
    lo.b.end("barrier", after, line=after.line)
    lo.b.place(after)


def syncthreads(lo: Lowering, node: ast.Call) -> Value:
    positional(lo, node, 0)
    barrier(lo, node, "block")
    return Static(None)


def counting_barrier(mode: str) -> Handler:
    """``syncthreads_count``, ``_and``, ``_or``: all threads of the block are there when it opens."""

    def lower(lo: Lowering, node: ast.Call) -> Value:
        (value,) = positional(lo, node, 1)
        holds = lo.truth(value, node)
        barrier(lo, node, "block")
        return lo.emit(ty.INT32, f"warp.block_reduce(g, {mode!r}, {holds.code})", (holds,), node, "barrier")

    return lower


def syncwarp(lo: Lowering, node: ast.Call) -> Value:
    mask = [*positional(lo, node, len(node.args)), lo.const(np.uint32(0xFFFFFFFF))][0]
    lo.b.do(f"M.syncwarp(g, {mask.code})", mask.registers, node.lineno, "barrier")
    return Static(None)


def this_grid(lo: Lowering, node: ast.Call) -> Value:
    return Static(Intrinsic("grid_group"))


def grid_sync(lo: Lowering, node: ast.Call) -> Value:
    """Every thread of the grid waits for every other; the device must hold all blocks at once."""
    barrier(lo, node, "grid")
    return lo.const(np.int32(0))


def shuffle(mode: str) -> Handler:
    def lower(lo: Lowering, node: ast.Call) -> Value:
        mask, value, operand = positional(lo, node, 3)
        if value.type.itemsize not in (4, 8) or value.type.kind not in "iuf":
            raise lo.fail(node, f"a shuffle of {value.type}; 32- and 64-bit numbers can be shuffled")
        operand = lo.cast(operand, ty.INT64, node)
        code = f"warp.shuffle(g, {mode!r}, {mask.code}, {value.code}, {operand.code}, {lo.site(node)})"
        return lo.emit(value.type, code, (mask, value, operand), node, "shuffle")

    return lower


def vote(mode: str) -> Handler:
    def lower(lo: Lowering, node: ast.Call) -> Value:
        mask, value = positional(lo, node, 2)
        holds = lo.truth(value, node)
        return lo.emit(
            ty.BOOL, f"warp.vote(g, {mode!r}, {mask.code}, {holds.code})", (mask, holds), node, "vote"
        )

    return lower


def ballot(lo: Lowering, node: ast.Call) -> Value:
    mask, value = positional(lo, node, 2)
    holds = lo.truth(value, node)
    return lo.emit(ty.INT32, f"warp.ballot(g, {mask.code}, {holds.code})", (mask, holds), node, "vote")


def match_any(lo: Lowering, node: ast.Call) -> Value:
    mask, value = positional(lo, node, 2)
    return lo.emit(ty.INT32, f"warp.match_any(g, {mask.code}, {value.code})", (mask, value), node, "vote")


def match_all(lo: Lowering, node: ast.Call) -> Value:
    mask, value = positional(lo, node, 2)
    pair = lo.b.emit(f"warp.match_all(g, {mask.code}, {value.code})", (*mask.registers, *value.registers))
    found = lo.b.emit(f"{pair}[0]", (pair,), node.lineno, "vote")
    agreed = lo.b.emit(f"{pair}[1]", (pair,), node.lineno, "vote")
    return Tuple((Scalar(ty.INT32, found), Scalar(ty.BOOL, agreed)))


def of_the_warp(function: str) -> Handler:
    def lower(lo: Lowering, node: ast.Call) -> Value:
        positional(lo, node, 0)
        return lo.emit(UINT32, f"warp.{function}(g)", (), node, "vote")

    return lower


WARP: dict[str, Handler] = {
    "syncthreads": syncthreads,
    **{f"syncthreads_{mode}": counting_barrier(mode) for mode in ("count", "and", "or")},
    "syncwarp": syncwarp,
    "cg.this_grid": this_grid,
    "grid_group.sync": grid_sync,
    "shfl_sync": shuffle("index"),
    **{f"shfl_{mode}_sync": shuffle(mode) for mode in ("up", "down", "xor")},
    **{f"{mode}_sync": vote(mode) for mode in ("all", "any", "eq")},
    "ballot_sync": ballot,
    "match_any_sync": match_any,
    "match_all_sync": match_all,
    "activemask": of_the_warp("active_mask"),
    "lanemask_lt": of_the_warp("lanes_below"),
}
