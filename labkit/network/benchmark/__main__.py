"""``torchrun ... -m labkit.network.benchmark``: rank 0 prints."""

from __future__ import annotations

import argparse
import sys

from labkit.errors import LabkitError
from labkit.network.benchmark import cli


def main(words: list[str] | None = None) -> int:
    """Measure on the ranks that a launcher has started; 0 when every value was right."""
    parser = argparse.ArgumentParser(
        prog="python -m labkit.network.benchmark", description="Collectives, measured as nccl-tests does."
    )
    cli.add_options(parser)
    parser.add_argument("--rendezvous", metavar="FILE", help="meet through a shared file, without a port")
    options = parser.parse_args(words)
    asked = cli.arguments(options)
    from labkit.network.benchmark.join import joined
    from labkit.network.benchmark.measuring import measure

    with joined(options.rendezvous) as here:
        report = measure(**asked)
        return cli.show(report, options.json) if here.rank == 0 else int(report.wrong > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabkitError as error:
        print(f"labkit.network.benchmark: {error}", file=sys.stderr)
        sys.exit(2)
