"""The matrices of ``p2pBandwidthLatencyTest`` against what the cards can do."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from labkit.hardware.catalog import link as catalogued_link
from labkit.hardware.diagnosis.case import Case, card_of
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.diagnosis.links import has_nvlink
from labkit.hardware.records import GPU
from labkit.hardware.reports.p2p_test import Matrix, P2PTest


def peers(case: Case) -> Iterator[Finding]:
    for test in case.all(P2PTest):
        card = card_of(tuple(gpu.name for gpu in test.gpus)) or case.card
        yield from _access(test, card)
        yield from _bandwidth(test, card)
        yield from _slow_device(test)
        yield from _worse_with_peers(test)


def _access(test: P2PTest, card: GPU | None) -> Iterator[Finding]:
    denied = [
        (i, j)
        for i, row in enumerate(test.peer_access or ())
        for j, can in enumerate(row)
        if i != j and can is False
    ]
    if not denied:
        return
    line = test.quote("cannot", "connectivity.0")
    if card and not card.pcie.peer_access:
        text = (
            f"The driver lets no {card.name} copy to another directly: that is how these cards are sold. "
            "Copies go through "
            "the host's memory."
        )
        yield Finding("note", text, line)
        return
    i, j = denied[0]
    yield Finding(
        "error" if has_nvlink(card) else "warning",
        f"GPU {i} cannot access GPU {j} ({len(denied)} directed pairs in all): copies go through the host's "
        "memory. Run "
        "'nvidia-smi topo -p2p r' next; IOMMU, ACS, a container or a virtual machine may forbid it.",
        line,
    )


def _others(matrix: Matrix) -> dict[tuple[int, int], float]:
    return {
        (i, j): value
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
        if i != j and value is not None
    }


def _row(test: P2PTest, row: int, enabled: bool = True) -> str:
    start = f"unidirectional_{'enabled' if enabled else 'disabled'}"
    name = next((name for name in test.matrices if name.startswith(start)), "")
    return test.quote(f"{name}.{row}")


def _bandwidth(test: P2PTest, card: GPU | None) -> Iterator[Finding]:
    """A card with NVLink whose peers are no faster than its PCIe slot."""
    cells = _others(test.bandwidth() or ())
    if not cells or card is None or not has_nvlink(card):
        return
    slot = catalogued_link(f"pcie{card.pcie.generation}").raw_GBps
    slow = [pair for pair, rate in cells.items() if rate < slot]
    if slow:
        i, j = slow[0]
        yield Finding(
            "error",
            f"GPU {i} sends {cells[i, j]:g} GB/s to GPU {j}, no more than PCIe {card.pcie.generation} "
            f"carries ({slot:g}), "
            f"although the {card.name} has NVLink ({len(slow)} of {len(cells)} pairs). Run 'nvidia-smi "
            "nvlink -s' next.",
            _row(test, i),
        )


def _slow_device(test: P2PTest) -> Iterator[Finding]:
    cells = _others(test.bandwidth() or test.bandwidth(enabled=False) or ())
    devices = sorted({i for pair in cells for i in pair})
    if len(devices) < 4:
        return
    typical = {i: median(rate for pair, rate in cells.items() if i in pair) for i in devices}
    usual = median(typical.values())
    slow = [i for i in devices if typical[i] < 0.6 * usual]
    if 0 < len(slow) <= len(devices) // 4:
        i = slow[0]
        yield Finding(
            "warning",
            f"GPU {i} is slower than the rest towards all others: {typical[i]:g} GB/s where {usual:g} is "
            "usual. A collective "
            f"waits for it. Run 'nvidia-smi -q -i {i}' next and look at Link Width and Clocks Event Reasons.",
            _row(test, i, bool(test.bandwidth())),
        )


def _worse_with_peers(test: P2PTest) -> Iterator[Finding]:
    on, off = _others(test.bandwidth() or ()), _others(test.bandwidth(enabled=False) or ())
    both = [pair for pair in on if pair in off and off[pair] > 0]
    worse = [pair for pair in both if on[pair] < 0.7 * off[pair]]
    if len(worse) > len(both) / 2:
        i, j = worse[0]
        yield Finding(
            "warning",
            f"Peer access makes copies slower: {on[i, j]:g} GB/s from GPU {i} to GPU {j}, {off[i, j]:g} "
            "without it. Usually "
            "ACS or the IOMMU sends peers' packets up to the CPU: turn ACS off on the PCIe switches, or set "
            "NCCL_P2P_LEVEL so that NCCL leaves peer access alone.",
            _row(test, i),
        )
