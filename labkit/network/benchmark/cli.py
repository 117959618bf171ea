"""The options of the benchmark, and its output, whoever starts the ranks."""

from __future__ import annotations

import argparse
import json
from typing import Any

from labkit.network.benchmark.fit import fit
from labkit.network.benchmark.report import OPERATIONS, BandwidthReport
from labkit.network.benchmark.sizes import sizes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that any launcher's ranks understand; sizes by nccl-tests' names.

    None is the beginning of an option of torchrun's, which would take it for its own.
    """
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="repeat it for several")
    parser.add_argument("--by", choices=("both", "torch", "labkit"), default="both")
    parser.add_argument("-b", "--minbytes", default="8B", metavar="SIZE", help="smallest size (default 8B)")
    parser.add_argument(
        "-e", "--maxbytes", default="16MiB", metavar="SIZE", help="largest size (default 16MiB)"
    )
    parser.add_argument("-f", "--stepfactor", type=float, default=4.0, help="from size to size (default 4)")
    parser.add_argument("--type", default="float32", help="torch's name of the element type")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What `measure` takes."""
    return {
        "counts": sizes(options.minbytes, options.maxbytes, options.stepfactor),
        "operations": options.operation,
        "by": options.by,
        "dtype": options.type,
        "repeats": options.repeats,
        "warmup": options.warmup,
    }


def show(report: BandwidthReport, as_json: bool) -> int:
    """Print it; 1 when a value was wrong."""
    fits = fit(report) if report.ranks > 1 else ()
    if as_json:
        print(json.dumps({**report.to_dict(), "fits": [one.to_dict() for one in fits]}))
    else:
        print(report.text())
        for one in fits:
            print(f"# {one!r}")
    return 1 if report.wrong else 0
