"""What went wrong in a rank: described there, told here from the learner's line down."""

from __future__ import annotations

import json
import linecache
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import labkit
from labkit.errors import LabkitError

_OURS = str(Path(__file__).parent)
_LABKIT = str(Path(labkit.__file__).parent)
_REPEATS = 3
_STACK_LINE = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)')
# How gloo and NCCL say that a peer has gone: not a cause, but a consequence.
_LOST_PEER = re.compile(
    r"Connection (closed|reset)|closed by peer|Broken pipe|remote process exited|Socket closed", re.I
)

Frame = tuple[str, int, str]


def describe(error: BaseException, stage: str, rank: int) -> bytes:
    """A report as JSON; called in the rank that failed, at the moment it did."""
    chain: list[dict[str, Any]] = []
    current: BaseException | None = error
    note = ""
    while current is not None and len(chain) < 5:
        frames = traceback.extract_tb(current.__traceback__)
        chain.append(
            {
                "type": type(current).__name__,
                "text": _text(current),
                "note": note,
                "ours": isinstance(current, LabkitError),
                "frames": [(f.filename, f.lineno or 0, f.name) for f in frames],
            }
        )
        if current.__cause__ is not None:
            current, note = current.__cause__, "It was raised because of this:"
        elif current.__context__ is not None and not current.__suppress_context__:
            current, note = current.__context__, "It happened while this was being handled:"
        else:
            current = None
    code = error.code if isinstance(error, SystemExit) else None
    report = {"rank": rank, "stage": stage, "at": time.monotonic(), "chain": chain, "exit": repr(code)}
    return json.dumps(report).encode()


def _text(error: BaseException) -> str:
    try:
        return str(error)[:4000]
    except Exception:
        return "(its text cannot be shown)"


def is_consequence(report: dict[str, Any]) -> bool:
    """Whether the error only says that another rank has gone."""
    return any(_LOST_PEER.search(one["text"]) for one in report["chain"])


def headline(report: dict[str, Any]) -> str:
    """What happened, without who and where."""
    first = report["chain"][0]
    said = f"{first['type']}: {first['text']}" if first["text"] else first["type"]
    if first["type"] == "SystemExit":
        code = "" if report["exit"] == "None" else report["exit"]
        return f"called sys.exit({code}): a rank ends by returning from its function"
    if report["stage"] == "result":
        why = first["text"] if first["type"] == "CannotTravel" else said
        return f"returned something that cannot travel to the notebook: {why}"
    if report["stage"] == "arguments":
        return f"could not unpack the function or its arguments: {said}"
    if report["stage"] == "start":
        return f"could not join the other ranks: {said}"
    return f"failed with {said}"


def story(report: dict[str, Any]) -> str:
    """The traceback, from the learner's line down, with the lines of cells; causes follow."""
    if report["stage"] == "result":
        return ""  # the function is over: no line of it is to blame
    parts = []
    for one in report["chain"]:
        frames: list[Frame] = [tuple(frame) for frame in one["frames"]]
        if one["note"]:
            parts.append(f"{one['note']} {one['type']}: {one['text']}")
        parts.extend(show(frame) for frame in trim(frames, _LABKIT if one["ours"] else _OURS))
    return "\n".join(parts)


def trim(frames: Sequence[Frame], hidden: str = _OURS) -> list[Frame]:
    """Without the launcher's frames (and labkit's own, where its error says all); recursion is folded."""
    kept: list[Frame] = []
    run = 0
    for frame in (*frames, ("", 0, "")):
        if frame[0].startswith(hidden) or "c10d_logger" in frame[0]:
            continue
        run = run + 1 if kept and frame == kept[-1] else 0
        if run < _REPEATS:
            kept.append(frame)
    return kept[:-1]


def show(frame: Frame) -> str:
    """``  Cell In[3], line 5, in step`` and the line itself."""
    file, line, name = frame
    source = linecache.getline(file, line).strip()
    return f"  {place(frame)}, in {name}" + (f"\n    {source}" if source else "")


def place(frame: Frame) -> str:
    """A cell as its notebook numbers it, a file by its path, and the line."""
    return f"{_label(frame[0])}, line {frame[1]}"


def _label(file: str) -> str:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    if named:
        return " ".join(named)
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"File {file if near.startswith('..') else near}"


def parse_stack(text: str) -> list[Frame]:
    """The frames that faulthandler wrote, innermost first."""
    found = [_STACK_LINE.fullmatch(line) for line in text.splitlines()]
    return [(one["file"], int(one["line"]), one["name"]) for one in found if one]


def whereabouts(frames: Sequence[Frame]) -> str:
    """``in all_reduce, called at Cell In[3], line 6 (dist.all_reduce(x))`` from frames, innermost first."""
    for number, frame in enumerate(frames):
        if _is_learners(frame[0]):
            source = linecache.getline(frame[0], frame[1]).strip()
            where = place(frame) + (f" ({source})" if source else "")
            call = _called(frames[:number])
            return f"in {call}, called at {where}" if call else f"at {where}"
    return "joining the others" if frames else ""


def _called(inner: Sequence[Frame]) -> str:
    """The call a learner made, as the frames inside it name it: the outermost with a public name."""
    names = [name for file, _, name in inner if name not in ("wrapper", "noted") and name[:1] != "<"]
    return names[-1] if names else ""


def _is_learners(file: str) -> bool:
    if file.startswith((_LABKIT, "<frozen")) or "site-packages" in file or "dist-packages" in file:
        return False
    return not file.startswith(os.path.dirname(os.__file__))
