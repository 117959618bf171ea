"""The catalogue: what cards and links can do, what messages wait for, and what people claim, with sources.

Figures live in ``data/*.yaml`` and are read on first use. Names are found whatever their case, with or
without the vendor's name: as nvidia-smi and torch print them, as people say them, and by catalogue id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware import files
from labkit.hardware.names import fold, index, refuse_partial, split_size, unknown
from labkit.hardware.records import GPU, Claim, Fabric, HostLink, Latency, Link, PCIe, SMResources

__all__ = [
    "GPU",
    "Claim",
    "Latency",
    "Link",
    "SMResources",
    "claim",
    "claims",
    "glossary",
    "gpu",
    "gpus",
    "latencies",
    "latency",
    "link",
    "links",
    "protocol",
    "published",
    "sm_resources",
]


def gpu(name: str | GPU, memory_bytes: float | None = None) -> GPU:
    """The card of that name.

    Parameters
    ----------
    name : str or GPU
        ``"A100_80_SXM4"``, ``"NVIDIA A100-SXM4-80GB"``, ``"a100"``, ...; a GPU is returned as it is.
    memory_bytes : float, optional
        Memory the driver reports. It picks the size of cards sold with several, and unmasks another card that
        prints the same name.

    Raises
    ------
    LabkitError
        For an unknown name (the nearest are suggested), a laptop GPU or MIG slice (which are not the card of
        that name), and a memory size that the card of that name does not have.
    """
    if isinstance(name, GPU):
        return name
    known = _gpu_names()
    refuse_partial(name, known)
    base, size_GB = split_size(name)
    identity = known.get(fold(name)) or known.get(base)
    if identity is None:
        raise unknown("GPU", name, known, "labkit.hardware.gpus()")
    card = _cards()[identity]
    if memory_bytes is not None:
        return _of_size(card, name, memory_bytes / 1e9)
    # A name as printed may carry another memory's size: the 480 GB of a GH200 are its CPU's.
    printed = fold(name) in known and size_GB not in card.memory_sizes_GB
    return card if size_GB is None or printed else _of_size(card, name, size_GB)


def gpus() -> tuple[GPU, ...]:
    """Every card of the catalogue."""
    return tuple(_cards().values())


def sm_resources(card: str | GPU) -> SMResources:
    """Limits of one multiprocessor, for a compute capability such as ``"8.0"`` or for a card.

    Raises
    ------
    LabkitError
        For a compute capability that is not in the table (AMD's among them).
    """
    table = files.load("gpus")["sm_resources"]
    capability = card if isinstance(card, str) and card in table else gpu(card).compute_capability
    if capability not in table:
        raise LabkitError(
            f"No limits are known for compute capability {capability}; the catalogue has {', '.join(table)}."
        )
    return SMResources(compute_capability=capability, **table[capability])


def link(name: str | Link) -> Link:
    """The link of that name: ``"pcie4"``, ``"PCIe Gen4"``, ``"nvlink4"``, ``"ndr"``, ``"100GbE"``, ...

    Raises
    ------
    LabkitError
        For an unknown name; the nearest are suggested.
    """
    if isinstance(name, Link):
        return name
    found: Link = _find(name, _links(), _link_names(), "link", "labkit.hardware.links()")
    return found


def links() -> tuple[Link, ...]:
    """Every link of the catalogue."""
    return tuple(_links().values())


def latency(name: str) -> Latency:
    """The wait of that name, such as ``"tcp"`` or ``"hdr-switch"``; LabkitError when unknown."""
    known = {each.id: each for each in latencies()}
    found: Latency = _find(name, known, _own_names(known), "latency", "labkit.hardware.latencies()")
    return found


@cache
def latencies() -> tuple[Latency, ...]:
    """Every latency of the catalogue."""
    return tuple(
        Latency(id=key, **_frozen(entry)) for key, entry in files.load("latencies")["latencies"].items()
    )


def claim(name: str) -> Claim:
    """The claim of that id; LabkitError when unknown."""
    known = {each.id: each for each in claims()}
    found: Claim = _find(name, known, _own_names(known), "claim", "labkit.hardware.claims()")
    return found


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, with its verdict and the figure that holds up."""
    return tuple(Claim(id=key, **entry) for key, entry in files.load("claims")["claims"].items())


def protocol(name: str) -> dict[str, Any]:
    """Constants a library chooses its protocol by, such as ``"ucx"``; LabkitError when unknown."""
    known = files.load("protocols")["protocols"]
    found = _find(name, known, _own_names(known), "protocol", "data/protocols.yaml")
    return dict(found)


def published(name: str) -> tuple[dict[str, str | float], ...]:
    """A published table of measurements, one dictionary a row.

    ``"nccl_allreduce"`` (config, size_bytes, time_us) or ``"onebit_adam_profile"`` (network, nodes, gpus,
    batch_per_gpu, and the milliseconds of each part of a step). Whose they are stands in
    ``data/measured/sources.yaml``.
    """
    known = files.load("measured/sources")
    if name not in known:
        raise unknown("table", name, _own_names(known), "data/measured/sources.yaml")
    return files.rows(name)


def glossary() -> dict[str, str]:
    """Terms of the course, English to Chinese."""
    return dict(files.load("glossary"))


@cache
def _cards() -> dict[str, GPU]:
    return {identity: _card(identity, entry) for identity, entry in files.load("gpus")["cards"].items()}


def _card(identity: str, entry: Mapping[str, Any]) -> GPU:
    values = _frozen(entry)
    values["fabric"] = Fabric(**entry["fabric"]) if entry["fabric"] else None
    values["pcie"] = PCIe(**entry["pcie"])
    values["host_link"] = HostLink(**entry["host_link"]) if "host_link" in entry else None
    return GPU(id=identity, memory_GB=values["memory_sizes_GB"][0], **values)


def _of_size(card: GPU, name: str, size_GB: float) -> GPU:
    """`card` with the memory named or reported; what drivers report is up to 7 % off what the label says."""
    fitting = [size for size in card.memory_sizes_GB if abs(size - size_GB) <= 0.1 * size]
    if fitting:
        return replace(card, memory_GB=fitting[0])
    sizes = " or ".join(f"{size:g}" for size in card.memory_sizes_GB)
    twin = f" ({card.same_name})" if card.same_name else ""
    raise LabkitError(
        f"{name!r} has {size_GB:.3g} GB, but the catalogue's {card.id} has {sizes} GB{twin}. "
        f"Ask for gpu({card.id!r}) if its figures will do."
    )


@cache
def _gpu_names() -> dict[str, str]:
    return index({card.id: card.names for card in gpus()})


@cache
def _links() -> dict[str, Link]:
    return {identity: _link(identity, entry) for identity, entry in files.load("links")["links"].items()}


def _link(identity: str, entry: Mapping[str, Any]) -> Link:
    values = _frozen(entry)
    goodput = values.pop("tcp_goodput_GBps", {})
    return Link(id=identity, **values, **{f"tcp_goodput_{mtu}_GBps": rate for mtu, rate in goodput.items()})


@cache
def _link_names() -> dict[str, str]:
    return index({each.id: each.names for each in links()})


def _own_names(known: Mapping[str, Any]) -> dict[str, str]:
    return index(dict.fromkeys(known, ()))


def _find(name: str, entries: Mapping[str, Any], known: Mapping[str, str], what: str, listing: str) -> Any:
    if fold(name) not in known:
        raise unknown(what, name, known, listing)
    return entries[known[fold(name)]]


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with lists turned into tuples, so that records can be hashed and shared."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
