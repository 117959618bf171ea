"""Lesson 08: what is wrong with a training that resumes, and why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.lessons.l08_jobs import Life, Model, Optimizer, learn, order

Trouble = tuple[str, str] | None


def resume(call: Call, returned: Any) -> Trouble:
    """Lives that ended as planned, checkpoints by one rank, every sample once, the loss of the uninterrupted run."""
    settings, plan = {k: v for k, v in call.arguments.items() if k != "plan"}, call.arguments["plan"]
    try:
        lives = returned["lives"]
        for trouble in (_savers(lives), _lives(lives, plan)):
            if trouble:
                return trouble
        seen = [list(map(int, batch)) for batch in returned["seen"]]
        weights = [np.asarray(one, float) for one in returned["weights"]]
        wanted = uninterrupted(settings)
        return (
            _history(seen, wanted.seen, settings, plan)
            or _work(lives, settings)
            or _loss(weights, float(returned["loss"]), wanted, settings)
            or _names(returned["left"])
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return (
            "What the training left behind cannot be read.",
            "return the model that job.new() or job.load(path) gave.",
        )


def uninterrupted(settings: dict[str, int]) -> Model:
    """The model of a run that nobody kills, on one rank."""
    life, model, optimizer = Life(1, ("", 0), settings), Model(), Optimizer()
    batch, steps = settings["batch"], settings["samples"] // settings["batch"]
    for step in range(settings["epochs"] * steps):
        epoch, place = divmod(step, steps)
        now = order(settings["samples"], epoch)[place * batch : (place + 1) * batch]
        learn(model, optimizer, life.gradient(model.weights, now), sorted(now))
    return model


def _lives(lives: list[dict[str, Any]], plan: list[list[Any]]) -> Trouble:
    number, last = len(lives), lives[-1]
    if not last["trouble"]:
        return None
    kind, said = last["trouble"]
    where = f"In life {number} of {len(plan)}" if len(plan) > 1 else "In a run without a kill"
    if kind == "no kill":
        return f"{where} the job was to be killed, but {said}.", (
            f"write a checkpoint every job.every steps, and go on from the last one: {number - 1} kills came before."
        )
    why = ""
    if "cut off" in said:
        why = "write to another name, then os.replace(new, path): until the new file is whole, the old one is there."
    elif kind == "out of step":
        why = "every rank has to go on from the same step, and save without waiting for others."
    elif "FileNotFoundError" in said:
        why = "in the first life there is no checkpoint yet: os.path.exists(path) tells."
    elif kind == "no model":
        why = "return the model on every rank."
    return f"{where}, {said}.", why


def _savers(lives: list[dict[str, Any]]) -> Trouble:
    for life in lives:
        if len(life["savers"]) > 1:
            message = f"Ranks {', '.join(map(str, life['savers']))} all write the checkpoint."
            return message, "all hold the same model: job.rank == 0 writes it, the others go on."
    return None


def _history(
    seen: list[list[int]], wanted: list[list[int]], settings: dict[str, int], plan: list[list[Any]]
) -> Trouble:
    if seen == wanted:
        return None
    step = next(
        (n for n, (a, b) in enumerate(zip(seen, wanted, strict=False)) if a != b), min(len(seen), len(wanted))
    )
    each = settings["samples"] // settings["batch"]
    if step == len(seen):
        return (
            f"The model has seen {len(seen)} batches, target {len(wanted)}.",
            "every epoch goes to its end.",
        )
    message = f"Step {step} (epoch {step // each}) of the final model has learnt from other samples than without kills."
    if len(plan) == 1 and step >= each and seen[step] == wanted[step % each]:
        return message, _SAME_ORDER
    return message, _history_why(seen, wanted, step, each, settings["batch"])


_SAME_ORDER = "it uses the order of epoch 0 in every epoch: job.order(epoch), as set_epoch does."


def _history_why(seen: list[list[int]], wanted: list[list[int]], step: int, each: int, batch: int) -> str:
    now = seen[step]
    if len(now) != batch:
        return (
            f"its batch has {len(now)} samples instead of {batch}: shares follow job.rank and job.world, which differ "
            "from life to life."
        )
    if len(set(now)) != len(now):
        return "some samples are in it twice: batch[job.rank :: job.world] gives each rank its own."
    places: list[tuple[int, str]] = [
        (step - 1, "it repeats the batch before: the checkpoint says one step too few."),
        (step + 1, "it leaves a batch out: the checkpoint says one step too many."),
        (0, "it begins with the first batch again: go on from the step in the checkpoint."),
        (
            step - step % each,
            "it resumes at the start of the epoch: samples come twice. Save the step, not the epoch.",
        ),
        (step + each - step % each, "it goes on with the next epoch: the rest of this one is skipped."),
        (step % each, _SAME_ORDER),
    ]
    found = [
        why for place, why in places if 0 <= place < len(wanted) and place != step and now == wanted[place]
    ]
    return (
        found[0]
        if found
        else "which samples a step takes has to follow from its number alone, not from the life."
    )


def _work(lives: list[dict[str, Any]], settings: dict[str, int]) -> Trouble:
    done = sum(life["updates"] for life in lives)
    steps = settings["epochs"] * (settings["samples"] // settings["batch"])
    most = steps + (len(lives) - 1) * settings["every"]
    if done <= most:
        return None
    message = f"{done} updates were made for {steps} steps and {len(lives) - 1} kills, target {most} at most."
    return (
        message,
        f"a kill may cost the work since the last checkpoint, and one is due every {settings['every']} steps.",
    )


def _loss(weights: list[np.ndarray], loss: float, wanted: Model, settings: dict[str, int]) -> Trouble:
    for rank, one in enumerate(weights):
        if not np.allclose(one, weights[0], rtol=1e-9, atol=1e-12):
            return (
                f"Rank {rank} ends with another model than rank 0.",
                "every rank has to load the checkpoint.",
            )
    target = Life(1, ("", 0), settings).loss(wanted.weights)
    if math.isclose(loss, target, rel_tol=1e-9):
        return None
    return f"The loss at the end is {loss:.6f}, and {target:.6f} without kills.", (
        "the samples are right, so something else was lost: the optimizer has a state too, its momentum."
    )


def _names(left: list[str]) -> Trouble:
    others = [name for name in left if name != "checkpoint"]
    if len(others) > 1:
        return (
            f"{len(left)} files are left: {', '.join(left[:4])}.",
            "one checkpoint under one name is enough here.",
        )
    return None
