"""Streams and events. Work has ended when it was submitted; times between events are modelled (see clock.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from labkit.compute.emulator.host.clock import CLOCK, NONE
from labkit.errors import LabkitError


class Stream:
    """A stream of the emulator: work on it has ended when the call that submits it returns."""

    def __init__(self, kind: str = "stream"):
        self.kind = kind
        self.ready_s: float | None = None if kind == "default stream" else 0.0
        self.handle = 0 if self.ready_s is None else id(self)

    def __repr__(self) -> str:
        return f"<emulated CUDA {self.kind}>"

    def __int__(self) -> int:
        return self.handle

    def synchronize(self) -> None:
        """Wait for the stream, which has nothing left to do."""
        CLOCK.wait(self.ready_s)

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """A ``with`` block at whose end the stream is waited for."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Call ``callback(stream, status, arg)`` once the work so far is done: now."""
        callback(self, 0, arg)

    async def async_done(self) -> Stream:
        """Await the work submitted so far."""
        import asyncio

        await asyncio.sleep(0)
        return self


class ModelledMilliseconds(float):
    """Milliseconds that a model gave; printed, they say so. Arithmetic makes plain floats of them."""

    card: str

    def __new__(cls, value: float, card: str) -> ModelledMilliseconds:
        self = super().__new__(cls, value)
        self.card = card
        return self

    def __reduce__(self) -> tuple:
        return ModelledMilliseconds, (float(self), self.card)

    def __repr__(self) -> str:
        return f"{float(self):.6g} (modelled on {self.card})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else repr(self)


class Event:
    """A point in a stream's work. The times between events are modelled on a catalogued card, not measured."""

    def __init__(self, timing: bool = True):
        CLOCK.start()
        self.timing = timing
        self.at_s: float | None = None

    def __repr__(self) -> str:
        when = "not recorded" if self.at_s is None else f"at {self.at_s * 1e3:.6g} ms"
        return f"<emulated CUDA event, {when} (modelled on {CLOCK.card.spec.name})>"

    def record(self, stream: Any = 0) -> None:
        """Mark the end of what the stream has been given so far."""
        self.at_s = CLOCK.submit(stream, NONE)

    def query(self) -> bool:
        """Whether the work before the event is done: always, on the emulator."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self.at_s is not None:
            CLOCK.wait(self.at_s)

    def wait(self, stream: Any = 0) -> None:
        """Let work given to ``stream`` from now on start after the event."""
        if self.at_s is None:
            return
        if getattr(stream, "ready_s", None) is None:
            CLOCK.default_s = max(CLOCK.default_s, self.at_s)
            CLOCK.latest_s = max(CLOCK.latest_s, self.at_s)
        else:
            stream.ready_s = max(stream.ready_s, self.at_s)

    def elapsed_time(self, evtend: Event) -> ModelledMilliseconds:
        """Milliseconds from this event to ``evtend``, modelled.

        Raises
        ------
        LabkitError
            When one of the two was not recorded, or was made with ``timing=False``.
        """
        return event_elapsed_time(self, evtend)


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The stream that work without a stream goes to; it waits for all others, and they for it."""
    return Stream("default stream")


legacy_default_stream = default_stream


def per_thread_default_stream() -> Stream:
    """A stream of this thread's own, which does not wait for others."""
    return Stream("per-thread default stream")


def external_stream(ptr: Any) -> Stream:
    """Streams of other libraries are on real GPUs only."""
    raise LabkitError(
        "cuda.external_stream takes a stream that another library made on a real GPU, and there is none here: use "
        "cuda.stream() instead."
    )


def event(timing: bool = True) -> Event:
    """A new event; ``start.elapsed_time(end)`` is modelled, not measured."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> ModelledMilliseconds:
    """Modelled milliseconds between two recorded events; see :meth:`Event.elapsed_time`."""
    for each, name in ((evtstart, "first"), (evtend, "second")):
        if not each.timing:
            raise LabkitError(f"The {name} event was made with timing=False: make it with cuda.event().")
        if each.at_s is None:
            raise LabkitError(
                f"The {name} event was never recorded: call event.record() before asking for a time."
            )
    assert evtstart.at_s is not None
    assert evtend.at_s is not None
    return ModelledMilliseconds((evtend.at_s - evtstart.at_s) * 1e3, CLOCK.card.spec.name)


def synchronize() -> None:
    """Wait for the device; emulated work has already ended."""
    CLOCK.wait()
