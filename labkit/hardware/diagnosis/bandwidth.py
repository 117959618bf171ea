"""Runs of nccl-tests: are the results right, and do the rates fit the link?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.hardware.catalog import link as catalogued_link
from labkit.hardware.diagnosis.case import Case, card_of
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.reports.nccl_tests import NcclTests, SizeRow
from labkit.hardware.reports.nccl_topo_xml import NcclTopology

LARGE = 16 * 2**20  # bytes; below it a collective is bound by latency, not by the link
FAIR = {"nvlink": 0.6, "pcie": 0.25, "network": 0.5}  # share of the limit below which something is wrong
RATED = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", None)


@dataclass(frozen=True)
class Limit:
    """What one GPU can send at most, GB/s one way, by the catalogue or by what the file says of the network."""

    GBps: float
    what: str
    kind: str


def limit(run: NcclTests, case: Case) -> Limit | None:
    """The link that bounds the run; None when the file does not tell it."""
    card = card_of(tuple(rank.name or "" for rank in run.ranks)) if run.ranks else case.card
    if len(run.hosts) > 1:
        return _network(run, case)
    if card is None:
        return None
    if card.fabric and card.fabric.kind == "NVLink" and not card.fabric.bridged_pair:
        return Limit(card.fabric.per_direction_GBps, f"NVLink of the {card.name}", "nvlink")
    slot = catalogued_link(f"pcie{card.pcie.generation}")
    return Limit(
        slot.raw_GBps * card.pcie.lanes / 16, f"PCIe {card.pcie.generation} x{card.pcie.lanes}", "pcie"
    )


def _network(run: NcclTests, case: Case) -> Limit | None:
    """All ports of a node over its GPUs, as the topology file of the same run tells."""
    for topology in case.all(NcclTopology):
        speeds = [nic.speed_Gbps for nic in topology.nics if nic.speed_Gbps]
        if speeds and topology.gpus:
            per_node = sum(speeds) / 8
            return Limit(per_node, f"{len(speeds)} network ports of a node", "network")
    return None


def bandwidth(case: Case) -> Iterator[Finding]:
    for run in case.all(NcclTests):
        yield from _wrong(run)
        if _one_rank(run):
            yield from _alone(run)
            continue
        yield from _collapse(run)
        yield from _under(run, case)


def _wrong(run: NcclTests) -> Iterator[Finding]:
    bad = [row for row in run.rows if row.out_of_place.wrong or (row.in_place and row.in_place.wrong)]
    if bad or run.failed:
        where = f", first at {bad[0].size_bytes} bytes" if bad else ""
        yield Finding(
            "error",
            f"The collective gave wrong results{where}: data is corrupted on the way. Run it again with "
            "NCCL_P2P_DISABLE=1, "
            "then with NCCL_IB_DISABLE=1: the one that helps names the path. IOMMU in translating mode and a broken "
            "NVLink or cable are the usual causes.",
            run.quote("wrong", "bounds"),
        )


def _one_rank(run: NcclTests) -> bool:
    rates = [rate for row in run.rows if (rate := row.best_GBps) is not None]
    zero = run.avg_busbw_GBps == 0 or (bool(rates) and max(rates) == 0)
    return zero and bool(rates or run.avg_busbw_GBps == 0)


def _alone(run: NcclTests) -> Iterator[Finding]:
    line = run.quote("average", "columns")
    many = len(run.ranks) > 1
    how = (
        "Several processes ran, each for itself: nccl-tests was built without MPI. Build it with 'make MPI=1'."
        if many
        else "Give it more GPUs: '-g 8' for those of one machine, or 'mpirun -np N' with a build made by 'make MPI=1'."
    )
    yield Finding(
        "warning",
        f"The bus bandwidth is zero because each run had one rank only: nothing was sent. {how}",
        line,
    )


def _collapse(run: NcclTests) -> Iterator[Finding]:
    best: SizeRow | None = None
    for row in run.rows:
        rate, top = row.out_of_place.busbw_GBps, best.out_of_place.busbw_GBps if best else None
        if rate is None:
            continue
        if best and top and top >= 1 and row.size_bytes > best.size_bytes and rate < 0.6 * top:
            yield Finding(
                "warning",
                f"Bus bandwidth collapses at {row.size_bytes} bytes: {rate:g} GB/s where {best.size_bytes} "
                "bytes reached "
                f"{top:g}. NCCL may change its algorithm or protocol there: repeat with NCCL_DEBUG=INFO and "
                "NCCL_DEBUG_SUBSYS=TUNING, then with NCCL_ALGO=Ring, and look for a card that gets hot under load.",
                run.quote(f"size{row.size_bytes}"),
            )
            return
        if top is None or rate > top:
            best = row


def _under(run: NcclTests, case: Case) -> Iterator[Finding]:
    peak = run.peak_GBps
    bound = limit(run, case)
    largest = max((row.size_bytes for row in run.rows), default=0)
    if not peak or run.collective not in RATED:
        return
    line = run.quote(f"size{_peak_row(run).size_bytes}", "average")
    if bound is None:
        if not run.ranks:
            return
        ask = (
            "set NCCL_TOPO_DUMP_FILE and give that file too, or run 'ib_write_bw' between two nodes"
            if len(run.hosts) > 1
            else "run 'nvidia-smi topo -m' on the same machine"
        )
        text = f"The best bus bandwidth is {peak:g} GB/s. To judge it the link must be known: {ask} next."
        yield Finding("note", text, line)
    elif largest < LARGE:
        text = (
            f"The largest message has {largest} bytes: too small to judge the link by. Run it with '-b 8 -e 1G "
            "-f 2' next."
        )
        yield Finding("note", text, line)
    elif peak < FAIR[bound.kind] * bound.GBps:
        yield _slow(run, peak, bound, line)


def _slow(run: NcclTests, peak: float, bound: Limit, line: str) -> Finding:
    nxt = {
        "nvlink": "Run 'nvidia-smi topo -m' and the test again with NCCL_DEBUG=INFO next: 'via P2P' must stand there.",
        "pcie": "Run 'nvidia-smi topo -m' next, and 'nvidia-smi -q' for the Link Width of each card.",
        "network": "Repeat with NCCL_DEBUG=INFO next: 'via NET/IB/../GDRDMA' must stand there, on every port.",
    }[bound.kind]
    share = peak / bound.GBps
    text = (
        f"The best bus bandwidth is {peak:g} GB/s, {share:.0%} of the {bound.GBps:g} GB/s that {bound.what} "
        "can carry one way "
        f"({'file' if bound.kind == 'network' else 'catalogue'}). {nxt}"
    )
    return Finding("warning", text, line)


def _peak_row(run: NcclTests) -> SizeRow:
    return max(run.rows, key=lambda row: row.best_GBps or 0)
