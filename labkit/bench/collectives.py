"""``labkit bench collectives``: labkit's collectives beside torch's, over sizes, on ranks of this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from labkit.bench import Figure
from labkit.network.benchmark import cli
from labkit.network.benchmark.report import BandwidthReport
from labkit.network.ranks import ranks

RANKS = 4


def main(words: list[str]) -> int:
    """Tables in nccl-tests' layout, or JSON; 0 when every value was right."""
    parser = argparse.ArgumentParser(
        prog="labkit bench collectives",
        description="Collectives, ours and torch's, as nccl-tests prints them.",
    )
    cli.add_options(parser)
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--link", metavar="RATE", help="emulated link of each rank, such as 1Gbit/s")
    parser.add_argument("--latency", metavar="TIME", help="emulated latency, such as 50us")
    parser.add_argument("--plot", metavar="FILE", help="also write the figure, as HTML")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    options = parser.parse_args(words)
    if options.quick:
        options.stepfactor, options.repeats = max(options.stepfactor, 16.0), min(options.repeats, 5)
    report = measured(options.ranks, options.link, options.latency, **cli.arguments(options))
    if options.plot:
        _plot(report, options)
    return cli.show(report, options.json)


def measured(
    count: int, link: str | None = None, latency: str | None = None, **asked: Any
) -> BandwidthReport:
    """The report of ``count`` ranks of this machine."""
    world = ranks(count, link=link, latency=latency)
    found = world.run(_measure, {**asked, "where": _where(world, link)}, timeout=600)
    report: BandwidthReport = found[0]
    return report


def _where(world: Any, link: str | None) -> str:
    carried = "NVLink or PCIe" if world.backend == "nccl" else "loopback of one machine"
    return f"{carried}, emulated link {link} for labkit's own" if link else carried


def _measure(asked: dict[str, Any]) -> BandwidthReport:
    from labkit.network.benchmark import measure

    return measure(**asked)


def _plot(report: BandwidthReport, options: argparse.Namespace) -> None:
    from labkit.widgets.collective_bandwidth import collective_bandwidth

    collective_bandwidth(report, link=options.link).write_html(options.plot)
    print(f"labkit bench collectives: the figure is in {options.plot}", file=sys.stderr)


def figures(quick: bool) -> Iterable[Figure]:
    """The bus bandwidth of the largest size, ours as a share of torch's, and that every value is right."""
    repeats = 5 if quick else 15
    report = measured(RANKS, None, None, counts=[1 << 14, 1 << 22], repeats=repeats)
    yield Figure("wrong values in all collectives", report.wrong, "values", "at most", 0, report.where)
    for operation in dict.fromkeys(row.operation for row in report.rows):
        same = [row for row in report.rows if row.operation == operation]
        largest = max(row.size_bytes for row in same)
        rates = {row.implementation: row.bus_bandwidth for row in same if row.size_bytes == largest}
        torchs = rates.pop("torch")
        best = max(rates, key=lambda name: rates[name])
        detail = f"{best} {rates[best] / 1e9:.3g} GB/s, torch {torchs / 1e9:.3g} GB/s on the bus, 4 MiB"
        yield Figure(f"own {operation}", rates[best] / torchs, "of torch", detail=detail)
