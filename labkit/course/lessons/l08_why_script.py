"""Lesson 08: what is wrong with a script for torchrun, and why."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.lessons.l08_launch import EPOCHS, SAMPLES

Trouble = tuple[str, str] | None
_LOCAL = (
    "LOCAL_RANK counts within a node: on two nodes there are two of each. RANK counts through all of them."
)
# What a rank raises when another has gone or never comes.
_CONSEQUENCES = ("timed out", "timeout", "closed", "reset by peer", "broken pipe", "connection refused")


def launch(call: Call, returned: Any) -> Trouble:
    """Joined, ended well, samples shared out, weights alike, one voice, one file, and a device by LOCAL_RANK."""
    try:
        ranks, text = list(returned["ranks"]), returned["script"]
        rules = (_fixed, _ended, _alone, _shares, _epochs, _alike, _voices, _files, _left, _device)
        return next((trouble for rule in rules if (trouble := rule(ranks, text))), None)
    except (KeyError, TypeError, IndexError, AttributeError):
        return (
            "What the ranks left behind cannot be read.",
            "let train return the model, and print to the screen only.",
        )


def _fixed(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    """An address in the script."""
    for rank, one in enumerate(ranks):
        joined = one.get("joined") or {}
        if joined.get("method") not in (None, "env://"):
            message = f"Rank {rank} meets the others at {joined['method']!r}, which is written in the script."
            return message, "torchrun says where, in MASTER_ADDR and MASTER_PORT: leave init_method out."
        if joined.get("moved"):
            message = f"The script sets {joined['moved'][0]} itself."
            return (
                message,
                "torchrun sets it, and on another cluster it is another: only read what you are told.",
            )
    fixed = [one for one in text["strings"] if re.search(r"tcp://|localhost|\d+\.\d+\.\d+\.\d+", one)]
    if fixed:
        return (
            f"There is an address in the script, {fixed[0]!r}.",
            "on another cluster the master is another machine.",
        )
    return None


def _ended(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    raised = [(rank, one["raised"]) for rank, one in enumerate(ranks) if "raised" in one]
    own = [pair for pair in raised if not any(word in pair[1][1].lower() for word in _CONSEQUENCES)]
    world = len(ranks)
    if own:
        rank, (kind, said) = own[0]
        return (
            f"Rank {rank} of {world} raised {kind}: {said.splitlines()[0][:160] if said else ''}",
            _raised_why(said),
        )
    left = [rank for rank, one in enumerate(ranks) if one.get("ended") == 0]
    if left:
        return (
            f"Rank {left[0]} of {world} ended its process in the middle of train.",
            "let train return the model, on every rank.",
        )
    stuck = [rank for rank, one in enumerate(ranks) if "ended" in one]
    if stuck or raised:
        rank = (stuck or [raised[0][0]])[0]
        joined = [one.get("joined") or {} for one in ranks]
        local = any(one.get("rank") is not None for one in joined) or not _knows_rank(text)
        why = (
            _LOCAL if local else "one of them waits for the others in a collective that not all of them call."
        )
        if not any(joined):
            why = "none of them has come to init_process_group: does a loop before it never end?"
        return f"The {world} ranks did not come to an end: rank {rank} still waited after some seconds.", why
    return None


def _raised_why(said: str) -> str:
    if "not been initialized" in said:
        return "torch.distributed.init_process_group comes before anything that all ranks do together."
    return ""


def _knows_rank(text: dict[str, Any]) -> bool:
    return "RANK" in text["strings"] or "get_rank" in text["names"] or "DistributedSampler" in text["names"]


def _alone(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    if len(ranks) > 1 and any(one["joined"] is None for one in ranks):
        return (
            "Nobody has joined a process group.",
            "call torch.distributed.init_process_group('gloo') first.",
        )
    return None


def _shares(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    """Each sample once in an epoch, by one of the ranks."""
    asked = [one["asked"] for one in ranks]
    world = len(ranks)
    each = SAMPLES // world
    if world > 1 and all(set(one) == set(range(SAMPLES)) for one in asked):
        return f"Every one of the {world} ranks trains on all {SAMPLES} samples.", (
            "then more ranks bring nothing: a DistributedSampler, or data[rank::world_size], gives each its share."
        )
    if any(len(one) != EPOCHS * each for one in asked):
        rank = next(rank for rank, one in enumerate(asked) if len(one) != EPOCHS * each)
        message = (
            f"Rank {rank} asks for {len(asked[rank])} samples in {EPOCHS} epochs, target {EPOCHS * each}."
        )
        return message, f"{SAMPLES} samples are shared by {world} ranks, once in each epoch."
    for epoch in range(EPOCHS):
        seen = [sample for one in asked for sample in one[epoch * each : (epoch + 1) * each]]
        twice = sorted({one for one in seen if seen.count(one) > 1})
        if twice:
            owners = [r for r, one in enumerate(asked) if twice[0] in one[epoch * each : (epoch + 1) * each]]
            message = f"In epoch {epoch} sample {twice[0]} is used by ranks {', '.join(map(str, owners))}."
            return message, _twice_why(asked, owners, epoch, each)
    return None


def _twice_why(asked: list[list[int]], owners: list[int], epoch: int, each: int) -> str:
    first, second = (asked[rank][epoch * each : (epoch + 1) * each] for rank in (owners * 2)[:2])
    if sorted(first) == sorted(second):
        return _LOCAL
    return "each rank has shuffled in its own way: shares fit together only if all cut the same order."


def _epochs(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    each = SAMPLES // len(ranks)
    for rank, one in enumerate(ranks):
        parts = [one["asked"][epoch * each : (epoch + 1) * each] for epoch in range(EPOCHS)]
        if parts[0] == parts[1]:
            message = f"Rank {rank} sees its samples in the same order in epoch 0 and in epoch 1."
            return message, "a DistributedSampler shuffles by the epoch it is told: sampler.set_epoch(epoch)."
    return None


def _alike(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    weights = [one["weights"] for one in ranks]
    if any(one is None for one in weights):
        return "train returns no model on some rank.", "return the model on every rank, as the script did."
    for rank, one in enumerate(weights):
        if not np.allclose(one, weights[0], rtol=1e-4, atol=1e-5):
            return f"Rank {rank} ends with other weights than rank 0.", (
                "all start alike (the same seed), and gradients are averaged in every step: "
                "DistributedDataParallel, or an all_reduce of each gradient."
            )
    return None


def _voices(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    for rank, one in enumerate(ranks):
        if rank and one["said"].strip():
            line = one["said"].strip().splitlines()[0][:60]
            why = "let rank 0 speak for all." if _knows_rank(text) else _LOCAL
            return f"Rank {rank} prints too ({line!r}).", why
    return None


def _files(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    savers = [rank for rank, one in enumerate(ranks) if one["saves"]]
    if not savers:
        return "Nobody saves the model.", "rank 0 does: torch.save(model.state_dict(), path)."
    if savers != [0]:
        why = (
            _LOCAL
            if not _knows_rank(text) or len(savers) < len(ranks)
            else "all write the same file at the same time: only rank 0 should."
        )
        return f"Ranks {', '.join(map(str, savers))} all save the model.", why
    return None


def _left(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    if any(one["left"] for one in ranks):
        return (
            "The process group is still open at the end.",
            "end with torch.distributed.destroy_process_group().",
        )
    return None


def _device(ranks: list[dict[str, Any]], text: dict[str, Any]) -> Trouble:
    fixed = [one for one in text["strings"] if re.fullmatch(r"cuda:\d+", one)]
    if fixed:
        message = f"The device is {fixed[0]!r} on every rank."
        return message, "all ranks of a node would share one GPU: torch.device('cuda', local_rank)."
    if "LOCAL_RANK" not in text["strings"]:
        return "The script does not look at LOCAL_RANK.", "it says which GPU of its node a rank takes."
    return None
