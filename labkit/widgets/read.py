"""``labkit read FILE`` and ``labkit.read(...)``: what a pasted report says, drawn, and what is wrong with it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.hardware.diagnosis import Reading, diagnose, diagnose_file
from labkit.hardware.reports import KINDS
from labkit.widgets.report_text import as_text


@dataclass(frozen=True, repr=False)
class ReadingView:
    """A reading that shows itself: as text, and in a notebook as tables and Plotly figures."""

    reading: Reading

    def __repr__(self) -> str:
        return repr(self.reading)

    def figures(self) -> tuple[Any, ...]:
        """The Plotly figures of its reports."""
        from labkit.widgets.report_views import figures

        return figures(self.reading)

    def to_dict(self) -> dict[str, Any]:
        return self.reading.to_dict()

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.reading._repr_html_()))
        for figure in self.figures():
            display(figure)


def read(source: str | Path) -> ReadingView:
    """Read a report, or several.

    Parameters
    ----------
    source : str or Path
        A file, or the text itself: a string with a line end in it is text.

    Raises
    ------
    ReportError
        When the file cannot be opened.
    """
    if isinstance(source, str) and "\n" in source:
        return ReadingView(diagnose(source))
    return ReadingView(diagnose_file(str(source)))


def main(arguments: list[str]) -> int:
    """``labkit read [FILE] [--json] [--html PAGE]``; 0 when something was recognised, 1 when nothing was."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="labkit read",
        description="What a pasted report says, and what is wrong with the machine it tells of.",
        epilog=f"Kinds of report: {', '.join(KINDS)}. Exit status: 0, or 1 when nothing was recognised.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", help="a file with one or more reports (default: standard input)"
    )
    parser.add_argument("--json", action="store_true", help="print reports and findings as JSON")
    parser.add_argument("--html", metavar="PAGE", help="write a page with tables and plots")
    options = parser.parse_args(arguments)
    if options.file == "-" and sys.stdin.isatty():
        print("Paste the report and end it with Ctrl-D.", file=sys.stderr)
    reading = diagnose_file(options.file)
    print(json.dumps(reading.to_dict(), indent=2) if options.json else as_text(reading))
    if options.html:
        Path(options.html).write_text(page(reading), encoding="utf-8")
    return 0 if reading.recognised else 1


def page(reading: Reading) -> str:
    """A page of its own, with Plotly inside: it needs no network."""
    from labkit.widgets.report_views import figures

    drawn = [
        figure.to_html(full_html=False, include_plotlyjs=i == 0) for i, figure in enumerate(figures(reading))
    ]
    style = "body{font-family:system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222;background:#fff}"
    head = f'<meta charset="utf-8"><title>Report read by labkit</title><style>{style}</style>'
    return (
        "<!DOCTYPE html><html "
        f"lang='en'><head>{head}</head><body>{reading._repr_html_()}{''.join(drawn)}</body></html>"
    )
