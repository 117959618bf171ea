"""Pasted text, line by line, without what pasting added: colour, prompts' quoting, prefixes of logs and of MPI.

Nothing is held but the line at hand, so that a log of 100 MB costs its own size and no more.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from labkit.errors import LabkitError

LONGEST = 8192  # characters of a line that are looked at
QUOTED = 300  # characters of a line that are quoted

# Colour as a terminal writes it, and as it reads when the escape character was lost on the way.
_COLOUR = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])|\[(?:\d{1,2}(?:;\d{1,2})*)?m"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\u200b\u2060]")
_PREFIX = re.compile(
    r"""(?:
      >(?:\ |$)                                                       # a quotation
    | \[\d+,\d+\]<std(?:out|err|diag)>:?[ ]?                            # mpirun --tag-output
    | \[(?:default|rank)\d+\]:[ ]?                                      # torchrun, torch
    | \d{1,5}:[ ]                                                       # srun --label
    | \(\w+(?:[ ]\w+)?[ ]pid=\d+(?:,[ ]ip=[\d.]+)?\)[ ]?                # Ray
    | [\w.-]{1,64}[-_]\d{1,4}[ ]+\|[ ]                                   # docker compose
    | \[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ ]      # a time, and
      (?:std(?:out|err)[ ][FP][ ])?                                    # a container's stream, or
      (?:\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?[ ](?:-[ ])?)?  # a level
    | \[pod/[\w./-]{1,120}\][ ]                                         # kubectl logs --prefix
    | [A-Z][a-z]{2}[ ]+\d{1,2}[ ]\d\d:\d\d:\d\d[ ][\w.-]+[ ][\w./-]+(?:\[\d+\])?:[ ]   # syslog
    | \[[ ]*\d+\.\d{6}\][ ]                                             # dmesg
    )""",
    re.VERBOSE,
)

_INDENTED = re.compile(r"\s+(?:\[\d+,\d+\]<std|\[(?:default|rank)\d+\]:|\[ *\d+\.\d{6}\] |> )")


class ReportError(LabkitError):
    """What was given is no text that could hold a report: says why, and what to give instead."""


def decode(data: bytes) -> str:
    """Text of a file's bytes: UTF-8, or UTF-16 as PowerShell redirects it.

    Raises
    ------
    ReportError
        When the bytes are no text.
    """
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    head = data[:65536]
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    if odd > len(head) / 50:
        raise ReportError(
            "This is a binary file: give the text that the tool printed, for example 'nvidia-smi -q > report.txt'."
        )
    return data.decode("utf-8", "replace")


def lines(text: str) -> Iterator[str]:
    """The lines of `text`, cleaned; blank lines stay, as empty strings."""
    for raw in _raw_lines(text):
        if len(raw) <= LONGEST:
            yield clean(raw)
        else:
            yield from map(clean, _pieces(raw))


def _raw_lines(text: str) -> Iterator[str]:
    """Lines between any line ends; a carriage return alone ends one too, as progress bars write them."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].removesuffix("\r")
        if "\r" in line:
            yield from line.split("\r")
        else:
            yield line
        start = end + 1


def clean(raw: str) -> str:
    """One line without colour, control characters and prefixes; its indentation stays."""
    line = raw.rstrip()
    if "\x1b" in line or "[" in line:
        line = _COLOUR.sub("", line)
    if "&lt;" in line:
        line = html.unescape(line)
    if not line.isprintable():
        line = _CONTROL.sub("", line).replace("\xa0", " ").rstrip()
    if _INDENTED.match(line):
        line = line.lstrip()
    for _ in range(4):
        match = _PREFIX.match(line)
        if match is None or match.end() == 0:
            break
        line = line[match.end() :]
    return line


def quote(line: str) -> str:
    """A line as evidence shows it: no indentation, not endless."""
    return line.strip()[:QUOTED].rstrip()


def _pieces(raw: str) -> Iterator[str]:
    """An endless line: XML without line ends falls apart at its tags, all else is looked at up to LONGEST."""
    if raw.count("><", 0, LONGEST) < 3:
        yield raw[:LONGEST]
        return
    start = 0
    while start < len(raw):
        end = raw.find("><", start)
        end = len(raw) if end < 0 else end + 1
        yield raw[start : min(end, start + LONGEST)]
        start = end
