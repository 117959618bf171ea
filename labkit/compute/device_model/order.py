"""What surely runs before what: the dependency graph of a recorded program, closed under "and so".

Two operations that the graph does not order may run at the same time or in either order, whatever one schedule shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from labkit.compute.device_model.operations import Operation, Wait


class Order:
    """The order that streams, events and the host guarantee among operations."""

    def __init__(self, operations: Sequence[Operation]):
        self.operations = tuple(operations)
        self._before: list[int] = []  # for each operation, a bit for each that surely ended before it starts
        for one in self.operations:
            bits = 0
            for wait in one.waits:
                bits |= self._before[wait.on] | 1 << wait.on
            self._before.append(bits)

    def ordered(self, first: Operation, second: Operation) -> bool:
        """Whether ``first`` surely ends before ``second`` starts."""
        return bool(self._before[second.number] >> first.number & 1)

    def free(self, one: Operation, other: Operation) -> bool:
        """Whether the two may run at the same time."""
        return not self.ordered(one, other) and not self.ordered(other, one)

    def reason(self, first: Operation, second: Operation) -> tuple[Wait, ...]:
        """The shortest chain of waits that leads from ``second`` back to ``first``, last step first; else empty."""
        chains: dict[int, tuple[Wait, ...]] = {second.number: ()}
        reached = [second.number]
        for number in reached:
            for wait in self.operations[number].waits:
                if wait.on not in chains:
                    chains[wait.on] = (*chains[number], wait)
                    reached.append(wait.on)
        return chains.get(first.number, ())
