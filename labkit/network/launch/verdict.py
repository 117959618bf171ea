"""From what is left of a run that failed: the one sentence, the traceback, and what the others were doing."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from labkit.hardware.units import show_bytes, show_time
from labkit.network.errors import RankError
from labkit.network.launch import failure
from labkit.network.launch.run import Rank, Run, last_stack


def verdict(run: Run, limit_s: float) -> RankError | None:
    """The error to raise; None when every rank returned."""
    if run.late:
        return _late(run.ranks, limit_s)
    guilty = _first(run.ranks)
    if guilty is None:
        return None
    others = {rank.number: _doing(rank) for rank in run.ranks if rank is not guilty}
    who = f"Rank {guilty.number} of {len(run.ranks)}"
    if guilty.report is not None:
        kind = "exit" if guilty.report["chain"][0]["type"] == "SystemExit" else "exception"
        parts = [f"{who} {failure.headline(guilty.report)}", failure.story(guilty.report)]
    else:
        kind, ending = _ending(guilty)
        parts = [f"{who} {ending}"]
    parts += ["Meanwhile:" if others else "", *_list_others(others)]
    return RankError("\n".join(filter(None, parts)), rank=guilty.number, kind=kind, others=others)


def _first(ranks: Sequence[Rank]) -> Rank | None:
    """The rank whose failure explains the rest: a cause rather than "a peer has gone", then the earliest."""
    reported = [rank for rank in ranks if rank.report is not None]
    causes = [rank for rank in reported if rank.report and not failure.is_consequence(rank.report)]
    if causes:
        return min(causes, key=_moment)
    # A rank that was ended by us has been asked where it is, and so is no suspect.
    silent = [rank for rank in ranks if rank.silent_end and not rank.doing]
    if silent:
        return min(silent, key=lambda rank: (rank.status == 0, rank.number))
    return min(reported, key=_moment, default=None)


def _moment(rank: Rank) -> float:
    return float(rank.report["at"]) if rank.report else 0.0


def _ending(rank: Rank) -> tuple[str, str]:
    status = rank.status or 0
    if status >= 0:
        return "exit", (
            f"ended its process with exit status {status} before its function returned "
            "(os._exit, or a library that exits): let the function return, or raise an exception."
        )
    name = signal.Signals(-status).name
    if -status == signal.SIGKILL:
        return "killed", (
            "was killed from outside (SIGKILL), most often by the system because memory ran out; it had "
            f"grown to {show_bytes(rank.peak)}: give it less data, or use fewer ranks."
        )
    stack = last_stack(rank)
    where = f" {failure.whereabouts(stack)}" if stack else ""
    means = {signal.SIGSEGV: "a segmentation fault", signal.SIGABRT: "an abort in compiled code"}
    what = means.get(signal.Signals(-status), "a signal")
    return "crash", f"crashed{where}: {what} ({name})."


def _doing(rank: Rank) -> str:
    """What a rank was doing when the first failure came, beginning with a verb."""
    if rank.returned is not None:
        return "had returned"
    if rank.report is not None:
        if failure.is_consequence(rank.report):
            return "lost the connection to it"
        return f"failed as well ({rank.report['chain'][0]['type']})"
    return f"was {rank.doing}" if rank.doing else "had ended" if rank.status is not None else "was starting"


def _list_others(others: dict[int, str]) -> list[str]:
    """One line for all ranks that were doing the same."""
    same: dict[str, list[int]] = {}
    for rank, doing in others.items():
        same.setdefault(doing, []).append(rank)
    return [f"{_ranks(ranks)} {_plural(doing, len(ranks))}." for doing, ranks in same.items()]


def _plural(doing: str, count: int) -> str:
    return doing.replace("was ", "were ", 1) if count > 1 and doing.startswith("was ") else doing


def _ranks(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Rank {numbers[0]}"
    return f"Ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _late(ranks: Sequence[Rank], limit_s: float) -> RankError:
    others = {rank.number: _doing(rank) for rank in ranks}
    head = (
        f"The {len(ranks)} ranks did not all return within {show_time(limit_s)} and were ended. If they wait "
        "for each other, some call is missing on one side; if they need longer, pass timeout= in seconds."
    )
    return RankError("\n".join([head, *_list_others(others)]), rank=None, kind="timeout", others=others)
