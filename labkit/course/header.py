"""The first cell of a lesson: what hardware was found, so what is measured, emulated or modelled here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from labkit import hardware
from labkit.course.sandbox.loads import torch_missing
from labkit.errors import LabkitError

# lesson -> rows of (what the lesson shows, how without a GPU, how with one)
LESSONS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "00": (
        ("photographs a second, and where the time goes", "measured, on {cpu}", "measured, on {cpu}"),
        ("kernels of one thread and of many", "emulated: the CPU plays the threads", "measured, on {gpu}"),
        (
            "recordings of GPUs that are replayed",
            "modelled: computed from a data sheet, as the plot says",
            "modelled: computed from a data sheet, as the plot says",
        ),
        ("the live plot", "measured: cores and memory; emulated: how busy the emulator is", "measured"),
    ),
    "01": (
        ("times of the CPU and of its worker processes", "measured, on {cpu}", "measured, on {cpu}"),
        (
            "results of the kernels you write",
            "emulated: the CPU plays every thread of the GPU",
            "real, on {gpu}",
        ),
        (
            "times of a GPU",
            "modelled, for a card of the catalogue that the figure names",
            "measured, on {gpu}",
        ),
        ("the live plot", "measured: cores and memory; emulated: how busy the emulator is", "measured"),
    ),
    "02": (
        (
            "counters: sectors, bank conflicts, branches",
            "emulated, exact",
            "emulated, exact, as on every machine",
        ),
        (
            "results of the kernels you write",
            "emulated: the CPU plays every thread of the GPU",
            "real, on {gpu}",
        ),
        (
            "occupancy, rates and times of a GPU",
            "modelled, for the card of the catalogue that is named",
            "modelled, for the card that is named; measured on {gpu} where it says so",
        ),
        (
            "the live plot",
            "measured: cores and memory; emulated: how busy the emulator is, sectors a request",
            "measured: how busy {gpu} is; emulated: sectors a request",
        ),
    ),
    "03": (
        ("copies in memory, reads of files, and feeding", "measured, on {cpu}", "measured, on {cpu}"),
        ("opens, reads and bytes; page faults", "counted, exact", "counted, exact"),
        (
            "order and hazards of copies and kernels",
            "worked out, exact",
            "worked out, exact",
        ),
        (
            "times of links, copies and kernels",
            "modelled, for the card or link of the catalogue that is named",
            "modelled, for the card or link that is named; measured on {gpu} where it says so",
        ),
        (
            "the live plot",
            "measured: cores, memory, bytes read from files; modelled: bytes over PCIe, slowed down",
            "measured: cores, memory, {gpu}, bytes read from files; modelled: bytes over PCIe, slowed down",
        ),
    ),
    "05": (
        (
            "ranks: a process a core, or a process a GPU",
            "measured, on {cpu}",
            "measured, on {cpu}, or a GPU a rank",
        ),
        ("bytes between ranks, order of messages", "counted, exact", "counted, exact"),
        (
            "ways between ranks: loopback, shared memory, links",
            "measured between processes; an emulated link says so",
            "measured between processes, or between GPUs where there are two",
        ),
        (
            "clocks that are virtual, and recordings of GPUs",
            "modelled: computed, as the figure says",
            "modelled: computed, as the figure says",
        ),
        (
            "the live plot",
            "measured: cores; what each rank does, sends, and has done of the work",
            "measured: cores and {gpu}; what each rank does, sends, and has done of the work",
        ),
    ),
    "08": (
        (
            "nodes joined by links of a chosen speed",
            "measured, on a virtual cluster of this machine; emulated where networks are forbidden",
            "measured, on a virtual cluster of this machine; ranks compute on the CPU",
        ),
        ("bytes on links and between ranks, copies, packets", "counted, exact", "counted, exact"),
        (
            "lost samples, restarts, order of steps",
            "real processes, really killed",
            "real processes, really killed",
        ),
        (
            "InfiniBand, RDMA, GPUs that talk without a CPU",
            "modelled, from the catalogue's sources",
            "modelled, from the catalogue's sources, where there is no such card",
        ),
        (
            "the live plot",
            "measured: bytes a second on every link each way, and every node's processor time",
            "measured: bytes a second on every link each way, and every node's processor time",
        ),
    ),
    "04": (
        (
            "products, convolutions and training by hand and by torch",
            "measured, on {cpu}",
            "measured, on {cpu}",
        ),
        (
            "results in 16 bits: losses, lost updates, zeros",
            "real 16-bit arithmetic of torch on the CPU; its speed says nothing about a GPU's",
            "real 16-bit arithmetic of torch on the CPU; its speed says nothing about a GPU's",
        ),
        ("rounding to each number format", "emulated, exact", "emulated, exact"),
        ("operations and bytes", "counted, exact", "counted, exact"),
        (
            "rates of Tensor Cores, memory of large models",
            "modelled, from the data sheet of the card that is named",
            "modelled, from the data sheet of the card that is named; products also measured on {gpu}",
        ),
        ("the live plot", "measured: cores, memory, GFLOP/s, loss", "measured: cores, memory, GFLOP/s, loss"),
    ),
    "06": (
        ("order, bytes and steps of messages", "counted, exact", "counted, exact"),
        (
            "ranks, and times of their collectives",
            "measured: processes on {cpu}, gloo over loopback; an emulated link says so",
            "measured: with a GPU for every rank NCCL on {gpu}, else processes on {cpu}",
        ),
        (
            "times of links and worlds that are not here",
            "modelled: T = alpha + n / beta, or published, with its source",
            "modelled: T = alpha + n / beta, or published, with its source",
        ),
        (
            "the live plot",
            "measured: bytes that each rank sends, and what it does",
            "measured: bytes that each rank sends, and what it does",
        ),
    ),
    "07": (
        ("events, bytes and results of a step", "counted, exact", "counted, exact"),
        (
            "ranks that train: times, timelines, overlap",
            "measured: processes on {cpu}, gloo over loopback; an emulated link says so",
            "measured: with a GPU for every rank NCCL on {gpu}, else processes on {cpu}",
        ),
        (
            "memory of large models, bubbles of pipelines",
            "modelled, from bytes a parameter and from counts of steps",
            "modelled, from bytes a parameter and from counts of steps",
        ),
        (
            "the live plot",
            "measured: what each rank does, and the bytes it sends",
            "measured: what each rank does, and the bytes it sends",
        ),
    ),
    "09": (
        (
            "networks of up to thousands of GPUs",
            "simulated: rates from the catalogue, times modelled, bytes of every link counted",
            "simulated: rates from the catalogue, times modelled, bytes of every link counted",
        ),
        (
            "four nodes in two racks",
            "measured: real traffic, held back by the kernel; emulated where no namespaces are allowed",
            "measured: real traffic, held back by the kernel; emulated where no namespaces are allowed",
        ),
        (
            "all-reduce on two servers",
            "published measurements, and a model fitted",
            "published, and a model fitted",
        ),
        (
            "the live plots",
            "replayed: simulated load on simulated time; measured: bytes over each link",
            "replayed: simulated load on simulated time; measured: bytes over each link",
        ),
    ),
    "10": (
        ("training on two nodes: time, steps, accuracy", "measured, on {cpu}", "measured, on {cpu}"),
        (
            "bytes of each way to train",
            "counted on the nodes' network interfaces",
            "counted on the nodes' network interfaces",
        ),
        (
            "the slow link",
            "real traffic, held back by the kernel; emulated where no namespaces are allowed",
            "real traffic, held back by the kernel; emulated where no namespaces are allowed",
        ),
        (
            "steps of BERT-Large on clusters",
            "published measurements, and figures computed from them",
            "published measurements, and figures computed from them",
        ),
        (
            "the live plot",
            "measured: bytes over each link, processor time of each node",
            "measured: bytes over each link, processor time of each node",
        ),
    ),
}

_WITH_TORCH = frozenset({"04", "05", "06", "07", "08", "09", "10"})


@dataclass(frozen=True)
class Header:
    """What one lesson can measure on one machine. ``rows`` holds pairs: what, and how it is known.

    ``missing`` says what to install where the lesson needs more than is there; it is empty where nothing is missing.
    """

    lesson: str
    backend: str
    headline: str
    reason: str
    rows: tuple[tuple[str, str], ...]
    missing: str = ""

    def __repr__(self) -> str:
        said = f"\n{self.missing}" if self.missing else ""
        return f"lesson {self.lesson}: what is measured, emulated and modelled on this machine{said}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        from labkit.hardware.html import table

        rows = [(escape(what), escape(how)) for what, how in self.rows]
        why = f"<p>{escape(self.reason)}</p>" if self.reason else ""
        lacking = f"<p><b>{escape(self.missing)}</b></p>" if self.missing else ""
        return lacking + table(("In this lesson", "on this machine"), rows, self.headline) + why


def lesson(number: str) -> Header:
    """Say what hardware was found and, for this lesson (``"01"``), how each kind of figure comes about.

    Raises
    ------
    LabkitError
        For a lesson that does not exist, and where LABKIT_BACKEND asks for a GPU that is not there.
    """
    if number not in LESSONS:
        raise LabkitError(f"There is no lesson {number!r}; there are {', '.join(LESSONS)}.")
    machine = hardware.here()
    names = {"cpu": machine.cpu.name, "gpu": machine.gpus[0].name if machine.gpus else "no GPU"}
    real = machine.backend == "gpu"
    rows = tuple(
        (what, (with_gpu if real else without).format(**names)) for what, without, with_gpu in LESSONS[number]
    )
    missing = torch_missing() if number in _WITH_TORCH else ""
    return Header(number, machine.backend, machine.headline, "" if real else machine.reason, rows, missing)
