"""What kind of loop a ``while`` is: may it wait for other threads, and is it sure to get somewhere?"""

from __future__ import annotations

import ast

from labkit.compute.emulator.source import stored_names


def _reads_memory(node: ast.AST) -> bool:
    return any(isinstance(n, (ast.Subscript, ast.Call)) for n in ast.walk(node))


def while_kind(loop: ast.While) -> str:
    """``spin`` when leaving the loop depends on memory that other threads may write; ``step`` when a variable is
    moved towards a bound; ``while`` for the rest."""
    nodes = [n for statement in loop.body for n in ast.walk(statement)]
    tests = [loop.test, *(n.test for n in nodes if isinstance(n, (ast.If, ast.IfExp, ast.While)))]
    from_memory = {
        name
        for n in nodes
        if isinstance(n, (ast.Assign, ast.AugAssign)) and _reads_memory(n.value)
        for name in stored_names([n])
    }
    for test in tests:
        named = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        if _reads_memory(test) or named & from_memory:
            return "spin"
    return "step" if _moves_to_bound(loop, nodes) else "while"


def _moves_to_bound(loop: ast.While, nodes: list[ast.AST]) -> bool:
    """Whether the test, or a part of it that must hold too, compares a variable that moves with a bound that stays."""
    tests = (
        loop.test.values
        if isinstance(loop.test, ast.BoolOp) and isinstance(loop.test.op, ast.And)
        else [loop.test]
    )
    moved = {
        n.target.id
        for n in nodes
        if isinstance(n, ast.AugAssign)
        and isinstance(n.op, (ast.Add, ast.Sub))
        and isinstance(n.target, ast.Name)
    }
    return any(_bounds(test, moved, stored_names(loop.body)) for test in tests)


def _bounds(test: ast.expr, moved: set[str], stored: frozenset[str]) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
        return False
    bound = {n.id for n in ast.walk(test.comparators[0]) if isinstance(n, ast.Name)}
    ordered = isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    return ordered and test.left.id in moved and not bound & stored
