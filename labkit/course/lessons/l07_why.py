"""Lesson 07, core: what is wrong with a way to train on several ranks, and why where the mistake is typical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit.course.checks import Call
from labkit.course.compare import difference
from labkit.course.lessons import l07_cases as cases
from labkit.course.lessons import l07_record as record
from labkit.course.lessons import l07_serial as serial
from labkit.course.messages import shown
from labkit.hardware.units import show_bytes

Trouble = tuple[str, str] | None
Events = list[list[tuple[str, str, int]]]  # what, name, bytes; a list a rank


def recorded(returned: Any) -> tuple[list[Any], Events]:
    """Results and events of a rehearsal, as plain data."""
    events = [[(str(w), str(n), int(b)) for w, n, b in rank] for rank in returned["events"]]
    return list(returned["results"]), events


def total(events: list[tuple[str, str, int]], *kinds: str) -> int:
    """Bytes of all events of some kinds."""
    return sum(size for what, _, size in events if what in kinds)


def flights(events: Events) -> Trouble:
    """A buffer that was touched too early, or never waited for."""
    for rank, own in enumerate(events):
        for what, name, _ in own:
            if what == "changed":
                message = (
                    f"Rank {rank} wrote into the buffer of all-reduce {name} before its wait() had returned."
                )
                why = "an all-reduce that is under way still reads and writes its buffer: give each bucket its own."
                return message, why
            if what == "never waited":
                message = f"Rank {rank} never waited for all-reduce {name}."
                return message, "until handle.wait() has returned, nobody knows what is in the buffer."
    return None


def same(weights: Sequence[Any]) -> str:
    """The first parameter in which ranks differ, or nothing."""
    for name in weights[0]:
        if any(not np.allclose(one[name], weights[0][name], rtol=1e-9, atol=1e-12) for one in weights[1:]):
            return str(name)
    return ""


def close(got: Any, wanted: serial.Weights) -> bool:
    return all(np.allclose(got[name], one, rtol=1e-9, atol=1e-12) for name, one in wanted.items())


def first_difference(got: Any, wanted: serial.Weights, what: str = "") -> Trouble:
    """The first element that is not as in training on one rank."""
    for name, one in wanted.items():
        found = difference(np.asarray(got[name]), one)
        if found is not None:
            return found.sentence(what + name), ""
    return None


def train(call: Call, returned: Any) -> Trouble:
    weights, events = recorded(returned)
    return (
        flights(events)
        or _ranks_agree(weights, events)
        or _trained(call, weights[0])
        or _shares(call, events)
        or _reduced(call, events)
    )


def _ranks_agree(weights: list[Any], events: Events) -> Trouble:
    name = same(weights)
    if not name:
        return None
    message = f"After training, {name} differs between the ranks."
    if not total(events[0], "broadcast"):
        return (
            message,
            "ranks start with different weights: rank 0's have to be broadcast before the first step.",
        )
    if name in serial.FROZEN:
        return message, "a frozen layer is not trained, and yet all ranks have to start with the same one."
    if not total(events[0], "all_reduce", "launch"):
        return (
            message,
            "each rank stepped with its own gradient: gradients have to be averaged over the ranks.",
        )
    return message, "all ranks have to start from the same weights, and to step with the same gradient."


def _trained(call: Call, weights: Any) -> Trouble:
    found = first_difference(weights, call.expected)
    if found is None:
        return None
    a = call.arguments
    data = serial.batches(a["seed"], a["steps"], a["samples"], serial.WIDTH, serial.WIDTH)
    start, share = serial.tied_weights(a["seed"]), a["samples"] // a["ranks"]
    guesses = (
        (data, a["lr"] * a["ranks"], "the gradients were added up and not divided by world_size."),
        (data, a["lr"] / a["ranks"], "the gradient was divided by world_size once too often."),
        ([(x[:share], y[:share]) for x, y in data], a["lr"], _SAME_PART),
        ([(x[:share], y[:share]) for x, y in data], a["lr"] * a["ranks"], _SAME_PART),
        (data, 0.0, "nothing was trained: the weights are those of the start."),
    )
    for parts, lr, why in guesses:
        if close(weights, serial.descend(start, serial.tied_gradient, parts, lr)):
            return found[0], why
    return found[0], _other_reasons(weights, start, data, a)


_SAME_PART = "every rank took the same part of the batch: which part is this rank's follows from world.rank."


def _other_reasons(weights: Any, start: serial.Weights, data: list[Any], a: dict[str, Any]) -> str:
    """Gradients that were never cleared are recognised by the weights they lead to."""
    held = {name: np.zeros_like(one) for name, one in start.items()}
    now = dict(start)
    for x, y in data:
        for name, slope in serial.tied_gradient(now, x, y).items():
            held[name] = held[name] + slope
            now[name] = now[name] - a["lr"] * held[name]
    return (
        "gradients of earlier steps are still there: clear them after each step."
        if close(weights, now)
        else ""
    )


def _shares(call: Call, events: Events) -> Trouble:
    a = call.arguments
    wanted = a["steps"] * a["samples"] // a["ranks"]
    for rank, own in enumerate(events):
        seen = total(own, "forward")
        if seen != wanted:
            message = f"Rank {rank} worked on {seen} samples; {wanted} are its share."
            return (
                message,
                "the result is right and nothing is gained: each rank should do 1/world_size of the work.",
            )
    return None


def _reduced(call: Call, events: Events) -> Trouble:
    weights = serial.tied_weights(0)
    frozen = sum(weights[name].nbytes for name in serial.FROZEN)
    trained = sum(one.nbytes for one in weights.values()) - frozen
    wanted = call.arguments["steps"] * trained
    seen = total(events[0], "all_reduce", "launch")
    if seen == wanted:
        return None
    message = f"{show_bytes(seen)} of gradients were all-reduced; {show_bytes(wanted)} are needed."
    per_step = seen / call.arguments["steps"]
    if per_step == trained + weights["first.weight"].nbytes:
        return (
            message,
            "the shared matrix was reduced twice, once under each of its names: it has one gradient.",
        )
    if per_step == trained + frozen:
        return message, "the frozen layer's gradients were sent along: they are zero and need no message."
    return message, "each trained parameter's gradient is reduced once a step."


def overlapped(call: Call, returned: Any) -> Trouble:
    results, events = recorded(returned)
    if any(one == "no finish" for one in results):
        return "overlapped returned no function.", "return finish: the check calls it after each backward."
    return _buffers(events) or _launches(call, events) or _averages(call, results) or flights(events)


def _buffers(events: Events) -> Trouble:
    changed = [[one for one in own if one[0] == "changed"] for own in events]
    return flights(changed)


def _launches(call: Call, events: Events) -> Trouble:
    limit, sizes = call.arguments["bucket_bytes"], cases.chain_sizes()
    wanted = cases.packed(sizes[::-1], limit)
    for rank, own in enumerate(events):
        for step, part in enumerate(_steps(own)):
            launched = [size for what, _, size in part if what in ("launch", "all_reduce")]
            if launched != wanted:
                where = f"Rank {rank}, step {step}: buckets of {launched} bytes were sent, expected {wanted}."
                return where, _packing_why(launched, wanted, sizes, limit, step)
            if trouble := _order(part, rank, step, wanted):
                return trouble
    return None


def _steps(own: list[tuple[str, str, int]]) -> list[list[tuple[str, str, int]]]:
    """Events of each step: from one "finished" to the next."""
    ends = [n + 1 for n, (what, *_) in enumerate(own) if what == "finished"]
    return [own[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _packing_why(launched: list[int], wanted: list[int], sizes: list[int], limit: int, step: int) -> str:
    if not launched:
        later = "the count of what is still missing has to start anew after each backward." if step else ""
        return later or "nothing was sent: start each bucket from the hooks, and again in the next step."
    if launched == sizes[::-1] != wanted:
        return "every gradient travels alone: many small messages, each with its alpha; fill buckets."
    forward = cases.packed(sizes, limit)
    if sorted(launched) == sorted(forward) != sorted(wanted):
        return (
            "buckets were filled from the first parameter on; backward brings the last one's gradient first."
        )
    if len(launched) > len(wanted) and step == 0:
        return "a bucket takes the next gradient as long as it then has at most bucket_bytes."
    if any(size > limit for size in launched):
        return "a bucket has more than bucket_bytes, though not because of one large parameter."
    return ""


def _order(part: list[tuple[str, str, int]], rank: int, step: int, wanted: list[int]) -> Trouble:
    """Each bucket leaves when its last gradient is there, the first one before backward ends, and none is waited for
    inside backward."""
    kinds = [what for what, *_ in part]
    where = f"Rank {rank}, step {step}:"
    last_gradient = max(n for n, what in enumerate(kinds) if what == "gradient")
    ended = kinds.index("backward ended")
    arrived, launched, sent = 0, 0, 0
    for place, (what, _, size) in enumerate(part):
        if what == "gradient":
            arrived += size
        if what == "all_reduce" and place < ended:
            return (
                f"{where} backward waits for an all-reduce.",
                "all_reduce_async returns at once; wait in finish.",
            )
        if what in ("launch", "all_reduce"):
            sent += size
            if sent > arrived:
                message = f"{where} bucket {launched} was sent before all of its gradients were there."
                return message, "count what is still missing in each bucket; send it when that is nothing."
            if launched == 0 and len(wanted) > 1 and place > last_gradient:
                message = f"{where} the first bucket was sent after the last gradient."
                return message, "nothing overlaps so: send each bucket from the hook that completes it."
            launched += 1
        if what == "wait" and place < ended:
            return f"{where} backward waits for an all-reduce.", "wait in finish, when backward has ended."
    return None


def _averages(call: Call, results: list[Any]) -> Trouble:
    for rank, steps in enumerate(results):
        for step, (got, wanted) in enumerate(zip(steps, call.expected, strict=True)):
            missing = [name for name in wanted if got[name] is None]
            if missing:
                return f"Rank {rank}, step {step}: {missing[0]} has no gradient.", ""
            found = first_difference(got, wanted, f"Rank {rank}, step {step}: the gradient of ")
            if found is not None:
                return found[0], _average_why(call, rank, step, got, wanted)
    return None


def _average_why(call: Call, rank: int, step: int, got: Any, wanted: serial.Weights) -> str:
    ranks, seed = call.arguments["ranks"], call.arguments["seed"]
    if any(np.isnan(one).any() for one in got.values()):
        return "a bucket was read before its wait() had returned; until then anything may be in it."
    if close(got, {name: ranks * one for name, one in wanted.items()}):
        return "the sum was not divided by world_size."
    data = cases.rank_batches(rank, seed, step + 1)
    own = serial.chain_gradient(serial.chain_weights(cases.CHAIN, seed), *data[step])
    if close(got, own):
        return "this is the rank's own gradient: copy the average from the bucket back into .grad."
    return "does each gradient come back from the place in the bucket that it went to?"


def accumulate(call: Call, returned: Any) -> Trouble:
    weights, events = recorded(returned)
    return (
        _steps_taken(events)
        or _one_by_one(events)
        or _synchronised(call, events)
        or _accumulated(call, weights)
        or flights(events)
    )


def _steps_taken(events: Events) -> Trouble:
    taken = sum(what == "step" for what, *_ in events[0])
    if taken == 2:
        return None
    message = f"In two batches the optimizer stepped {taken} times."
    return message, "one step a batch: after all of its micro-batches."


def _one_by_one(events: Events) -> Trouble:
    largest = max((size for own in events for what, _, size in own if what == "forward"), default=0)
    if largest <= record.MICRO_BATCH:
        return None
    message = (
        f"A forward pass took {largest} samples at once; a micro-batch has {record.MICRO_BATCH} of them."
    )
    return message, "the whole batch does not fit: each micro-batch goes forward and backward by itself."


def _synchronised(call: Call, events: Events) -> Trouble:
    size, parts = sum(cases.chain_sizes()), call.arguments["micro_batches"]
    for rank, own in enumerate(events):
        seen = total(own, "launch") / 2
        if seen == size:
            continue
        message = (
            f"Rank {rank} all-reduced {show_bytes(seen)} a batch; the gradients have {show_bytes(size)}."
        )
        if seen == parts * size:
            return (
                message,
                "every micro-batch was synchronised: all but the last belong inside ddp.no_sync().",
            )
        if not seen:
            return (
                message,
                "nothing was ever synchronised: the last micro-batch belongs outside ddp.no_sync().",
            )
        return message, "one micro-batch is synchronised, the last one."
    return None


def _accumulated(call: Call, weights: list[Any]) -> Trouble:
    a = call.arguments
    name = same(weights)
    if name:
        why = (
            "the micro-batch that is synchronised has to be the last one: what comes later stays on its rank."
        )
        return f"After training, {name} differs between the ranks.", why
    found = first_difference(weights[0], call.expected)
    if found is None:
        return None
    guesses = (
        (
            {"scale": a["micro_batches"]},
            "gradients of micro-batches add up: divide each loss by their number.",
        ),
        ({"scale": 1 / a["ranks"]}, "ddp has divided by world_size already."),
        ({"scale": a["micro_batches"] / a["ranks"]}, "divide by the number of micro-batches, not of ranks."),
        (
            {"keep": True},
            "the gradients of the batch before are still there: optimizer.zero_grad() is missing.",
        ),
    )
    for variant, why in guesses:
        if close(weights[0], cases.accumulated(**a, **variant)):
            return found[0], why
    return found[0], ""


def unused(call: Call, returned: Any) -> Trouble:
    names, wanted = returned["names"], call.expected
    if not isinstance(names, list):
        return f"unused returned {shown(names)}.", "a list of names is asked for."
    if returned["gradients"]:
        message = f"After unused, {returned['gradients'][0]} has a gradient."
        return message, "find out without running backward: walk the graph that it would follow."
    if returned["passes"]:
        return "unused ran backward, or torch.autograd.grad.", "walk the graph that it would follow."
    if sorted(names) == sorted(wanted):
        return None
    more, less = [n for n in names if n not in wanted], [n for n in wanted if n not in names]
    if more:
        return f"{more[0]} is said to be unused, and backward reaches it.", _unused_why(names, call, True)
    return f"{less[0]} is unused, and is not in the list.", _unused_why(names, call, False)


def _unused_why(names: list[str], call: Call, too_many: bool) -> str:
    every = sorted(cases.UNUSED["nothing asks for a gradient"])
    if sorted(names) == every:
        return "before backward no parameter has a gradient, so .grad says nothing: walk the graph."
    if too_many:
        return "follow next_functions from node to node, all of them, down to the nodes that have a variable."
    if not names:
        return (
            "nothing was found unused: a parameter is used only if the walk from output.grad_fn comes to it."
        )
    return ""
