"""Write down a program for one GPU: ``with labkit.device_timeline("A100") as d: ...``.

Nothing is executed. Calls have the names and the rules of numba.cuda and CUDA: work on one stream runs in order, work
on two streams does not, unless an event, the host, or the default stream puts it in order.

>>> import labkit
>>> with labkit.device_timeline("A100") as d:
...     x, a = d.host("x", "64MiB"), d.buffer("a", "64MiB")
...     s = d.stream()
...     d.copy_in(x, a, s)
...     d.kernel("blur", reads=a, writes=a, takes="2ms", stream=s)
>>> d.timeline()
Timeline(2 operations, 1 stream: 4.806 ms, no hazard, modelled on A100_80_SXM4)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from labkit.compute.device_model.moves import MEMORY_COPY_BYTES_PER_S, host_copy
from labkit.compute.device_model.operations import (
    COPY_IN,
    COPY_OUT,
    HOST_WAIT,
    HOST_WORK,
    KERNEL,
    Operation,
    Region,
    Wait,
)
from labkit.compute.device_model.timeline import Timeline, timeline_of
from labkit.compute.model import ModelledTime, modelled_time
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu
from labkit.hardware.records import GPU
from labkit.hardware.units import parse, show_bytes

DEFAULT_STREAM = "default stream"
MOST_OPERATIONS = 2000
Regions = Region | Iterable[Region]


class Stream:
    """A queue of the device: what is put on it runs in order. Made by :meth:`Device.stream`."""

    def __init__(self, device: Device, name: str):
        self._device = device
        self.name = name
        self.last: int | None = None
        self.awaited: list[Wait] = []

    def synchronize(self) -> None:
        """Let the host wait until all that was put on this stream so far is done."""
        self._device._host_waits(f"for {self.name}", [] if self.last is None else [self.last])

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"


class Event:
    """A point in a stream. ``record`` sets it after what the stream has been given so far; ``wait`` holds another
    stream back until then. Made by :meth:`Device.event`."""

    def __init__(self, device: Device):
        self._device = device
        self._recorded = False
        self._after: list[int] = []

    def record(self, stream: Stream | None = None) -> None:
        """Set the point after the last operation on ``stream`` so far."""
        chosen = self._device._known(stream)
        self._recorded = True
        self._after = [wait.on for wait in chosen.awaited] + ([] if chosen.last is None else [chosen.last])

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is put on ``stream`` from now on start after the point; the host goes on."""
        chosen = self._device._known(stream)
        chosen.awaited += [Wait(on, "event") for on in self._points("wait")]

    def synchronize(self) -> None:
        """Let the host wait for the point."""
        self._device._host_waits("for an event", self._points("synchronize"))

    def _points(self, what: str) -> list[int]:
        if not self._recorded:
            raise LabkitError(
                f"event.{what}() comes before event.record(): CUDA lets everybody pass such an event, so it orders "
                "nothing. Record it on a stream first."
            )
        return self._after


class Device:
    """One modelled card, and the program written for it so far. Made by :func:`device_timeline`."""

    def __init__(self, card: str | GPU = "A100", memory_copy: float | str = MEMORY_COPY_BYTES_PER_S):
        self.card = gpu(card)
        self._memory_copy = memory_copy
        self._operations: list[Operation] = []
        self._streams: dict[str, Stream] = {}
        self._buffers: dict[str, Region] = {}
        self._host: list[Wait] = []  # what had to end before the host could go on to here
        self._barrier: int | None = None  # the last operation on the default stream
        self._default = Stream(self, DEFAULT_STREAM)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open; the block shows where the program begins and ends."""

    def __repr__(self) -> str:
        return f"Device({self.card.id}, {len(self._operations)} operations recorded)"

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What was recorded so far, in the order of submission."""
        return tuple(self._operations)

    def host(self, name: str, size: float | str, pinned: bool = True, filled: bool = True) -> Region:
        """An array in the host's memory. Copies of ``pinned`` memory run beside the host; of pageable memory (what
        NumPy gives) the host waits until they are done. ``filled=False``: it holds nothing yet."""
        return self._array(name, size, "host", pinned, not filled)

    def buffer(self, name: str, size: float | str) -> Region:
        """An array in the device's memory; it holds nothing yet."""
        return self._array(name, size, "device", True, True)

    def _array(self, name: str, size: float | str, place: str, pinned: bool, blank: bool) -> Region:
        count = int(parse(size, "size"))
        if not count or name in self._buffers:
            fault = (
                "needs at least one byte"
                if not count
                else "exists already: give each array a name of its own"
            )
            raise LabkitError(f"The array {name!r} {fault}.")
        used = sum(one.size for one in self._buffers.values() if one.place == "device")
        if place == "device" and used + count > self.card.memory_GB * 1e9:
            raise LabkitError(
                f"{name!r} of {show_bytes(count)} does not fit: {self.card.id} has {self.card.memory_GB:g} GB, and "
                f"{show_bytes(used)} are taken."
            )
        self._buffers[name] = Region(str(name), 0, count, place, pinned, blank, count)
        return self._buffers[name]

    def stream(self, name: str | None = None) -> Stream:
        """A new stream."""
        label = name or f"stream {len(self._streams) + 1}"
        if label in (*self._streams, DEFAULT_STREAM):
            raise LabkitError(f"There is a stream {label!r} already: give each a name of its own.")
        self._streams[label] = Stream(self, label)
        return self._streams[label]

    def event(self) -> Event:
        """A new event, not yet recorded."""
        return Event(self)

    def copy_in(self, source: Region, target: Region, stream: Stream | None = None, name: str = "") -> None:
        """Copy from the host to the device; without a ``stream`` on the default stream."""
        self._copy(COPY_IN, source, target, stream, name)

    def copy_out(self, source: Region, target: Region, stream: Stream | None = None, name: str = "") -> None:
        """Copy from the device to the host."""
        self._copy(COPY_OUT, source, target, stream, name)

    def _copy(self, kind: str, source: Region, target: Region, stream: Stream | None, name: str) -> None:
        places = ("host", "device") if kind == COPY_IN else ("device", "host")
        _check_regions(source, target)
        if (source.place, target.place) != places:
            raise LabkitError(
                f"{kind} goes from the {places[0]} to the {places[1]}: {source} to {target} does not."
            )
        if source.size != target.size:
            sizes = f"{show_bytes(source.size)} do not go into {show_bytes(target.size)}"
            raise LabkitError(f"{kind} from {source} to {target}: {sizes}.")
        on_host = source if kind == COPY_IN else target
        seconds = host_copy(self.card, on_host.pinned, self._memory_copy).seconds(source.size)
        label = name or str(source if kind == COPY_IN else target)
        number = self._submit(kind, label, stream, seconds, "modelled", (source,), (target,))
        if not on_host.pinned:
            self._host_waits(f"for {kind} of pageable memory", [number])

    def kernel(
        self,
        name: str,
        reads: Regions = (),
        writes: Regions = (),
        takes: float | str | Any = None,
        stream: Stream | None = None,
    ) -> None:
        """Launch a kernel.

        Parameters
        ----------
        reads, writes : Region or several
            What it touches in device memory.
        takes : optional
            Seconds or ``"2ms"``; a ModelledTime, or an Inspection (its modelled ``.time``, or ``.measured_s`` where
            there is one). Without it: a launch, and all it touches moved once through the card's memory.
        """
        read, written = _regions(reads), _regions(writes)
        for one in (*read, *written):
            if one.place != "device":
                raise LabkitError(
                    f"Kernel {name!r} cannot reach {one} in the host's memory: copy it in first."
                )
        seconds, how = self._duration(takes, sum(one.size for one in (*read, *written)))
        self._submit(KERNEL, str(name), stream, seconds, how, read, written)

    def host_work(self, name: str, takes: float | str, reads: Regions = (), writes: Regions = ()) -> None:
        """The host works for so long, on arrays of its own memory; what is submitted later starts later."""
        read, written = _regions(reads), _regions(writes)
        for one in (*read, *written):
            if one.place != "host":
                raise LabkitError(f"The host cannot reach {one} in the device's memory: copy it out first.")
        number = self._append(
            HOST_WORK, str(name), "", parse(takes, "time"), "given", read, written, self._host
        )
        self._host = [Wait(number, "host")]

    def synchronize(self) -> None:
        """Let the host wait until all that was submitted so far is done."""
        streams = [self._default, *self._streams.values()]
        self._host_waits("for the device", [one.last for one in streams if one.last is not None])

    def timeline(self) -> Timeline:
        """When each operation would run, and the hazards: modelled."""
        return timeline_of(self.operations, self.card)

    def _duration(self, takes: Any, moved: int) -> tuple[float, str]:
        if takes is None:
            return modelled_time(bytes=moved, gpu=self.card).seconds, "modelled"
        if getattr(takes, "measured_s", None) is not None:
            return float(takes.measured_s), "measured"
        model = takes if isinstance(takes, ModelledTime) else getattr(takes, "time", None)
        if isinstance(model, ModelledTime):
            return model.seconds, "modelled"
        return parse(takes, "time"), "given"

    def _known(self, stream: Stream | None) -> Stream:
        if stream is None:
            return self._default
        if not isinstance(stream, Stream) or stream._device is not self:
            raise LabkitError(f"{stream!r} is no stream of this device: make one with d.stream().")
        return stream

    def _submit(
        self,
        kind: str,
        name: str,
        stream: Stream | None,
        seconds: float,
        how: str,
        reads: Sequence[Region],
        writes: Sequence[Region],
    ) -> int:
        """Put device work on a stream, after all that CUDA makes it wait for."""
        chosen = self._known(stream)
        waits = list(self._host) + chosen.awaited
        if chosen.last is not None:
            waits.append(Wait(chosen.last, "stream"))
        if chosen is self._default:
            waits += [
                Wait(one.last, DEFAULT_STREAM) for one in self._streams.values() if one.last is not None
            ]
        elif self._barrier is not None:
            waits.append(Wait(self._barrier, DEFAULT_STREAM))
        number = self._append(kind, name, chosen.name, seconds, how, tuple(reads), tuple(writes), waits)
        chosen.last, chosen.awaited = number, []
        if chosen is self._default:
            self._barrier = number
        return number

    def _host_waits(self, name: str, on: Sequence[int]) -> None:
        waits = [*self._host, *(Wait(number, "host") for number in on)]
        number = self._append(HOST_WAIT, name, "", 0.0, "modelled", (), (), waits)
        self._host = [Wait(number, "host")]

    def _append(
        self,
        kind: str,
        name: str,
        stream: str,
        seconds: float,
        how: str,
        reads: tuple[Region, ...],
        writes: tuple[Region, ...],
        waits: Sequence[Wait],
    ) -> int:
        number = len(self._operations)
        if number >= MOST_OPERATIONS:
            raise LabkitError(
                f"A device model holds {MOST_OPERATIONS} operations at most: record a shorter program."
            )
        first = {wait.on: wait for wait in reversed(list(waits))}
        ordered = tuple(sorted(first.values(), key=lambda wait: wait.on))
        self._operations.append(Operation(number, kind, name, stream, seconds, how, reads, writes, ordered))
        return number


def device_timeline(card: str | GPU = "A100", memory_copy: float | str = MEMORY_COPY_BYTES_PER_S) -> Device:
    """A modelled card to write a program for; see :mod:`labkit.compute.device_model.recorder`.

    Parameters
    ----------
    card : str or GPU
        A card of the catalogue.
    memory_copy : float or str
        What the host's CPU copies within its memory, for pageable copies: bytes/s or ``"12GB/s"``.

    Raises
    ------
    LabkitError
        For a card that is not in the catalogue.
    """
    return Device(card, memory_copy)


def _regions(given: Regions) -> tuple[Region, ...]:
    several = (given,) if isinstance(given, Region) else tuple(given)
    _check_regions(*several)
    return several


def _check_regions(*given: Any) -> None:
    for one in given:
        if not isinstance(one, Region):
            raise LabkitError(
                f"{one!r} is no array of this device: make one with d.host(...) or d.buffer(...)."
            )
