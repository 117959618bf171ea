"""When the work on streams would run on a card: modelled, never measured.

A card is taken to have three engines, for kernels and for copies in each direction, that do one thing at a time, in
the order of submission. A kernel takes what labkit.compute.model says for moving every array argument once through
the card's memory; its arithmetic is not counted. A copy takes its bytes over the link to the host. The default
stream waits for all others, and they for it. The host itself takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

KERNELS, TO_DEVICE, TO_HOST, NONE = "kernels", "to device", "to host", ""


@dataclass
class Card:
    """The card whose times are modelled."""

    name: str = "A100"

    @cached_property
    def spec(self) -> Any:
        from labkit.hardware import gpu

        return gpu(self.name)

    @cached_property
    def host_bytes_per_s(self) -> float:
        """What copies between pinned host memory and the card achieve; the lower figure where sources differ."""
        from labkit.hardware import link

        slot = link(f"pcie{self.spec.pcie.generation}")
        return 1e9 * (min(slot.achieved_GBps) if slot.achieved_GBps else slot.raw_GBps)

    def seconds(self, engine: str, moved: int) -> float:
        """Modelled time of one kernel or copy that moves so many bytes."""
        from labkit.compute.model import LAUNCH_S, modelled_time

        if engine == KERNELS:
            return modelled_time(bytes=moved, gpu=self.spec).seconds
        return LAUNCH_S + moved / self.host_bytes_per_s if engine else 0.0


@dataclass(eq=False)
class Clock:
    """Modelled seconds: when each engine, the default stream and everything so far is done."""

    card: Card = field(default_factory=Card)
    running: bool = False
    host_s: float = 0.0
    default_s: float = 0.0
    latest_s: float = 0.0
    engines: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        """From the first event on, time is kept; before, nobody could ask for it."""
        self.running = True

    def submit(self, stream: Any, engine: str, moved: int = 0) -> float:
        """Put work on a stream (0 and None are the default one) and return when it ends."""
        if not self.running:
            return 0.0
        ours = getattr(stream, "ready_s", None)
        after = self.latest_s if ours is None else max(ours, self.default_s)
        start = max(after, self.host_s, self.engines.get(engine, 0.0) if engine else 0.0)
        end = start + self.card.seconds(engine, moved)
        if engine:
            self.engines[engine] = end
        if ours is None:
            self.default_s = end
        else:
            stream.ready_s = end
        self.latest_s = max(self.latest_s, end)
        return end

    def wait(self, until_s: float | None = None) -> None:
        """The host waits for a moment, or for everything."""
        self.host_s = max(self.host_s, self.latest_s if until_s is None else until_s)


CLOCK = Clock()
