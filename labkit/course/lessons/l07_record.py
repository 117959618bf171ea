"""Lesson 07, in the answer's own process: models, ranks on threads, and the record of what an answer made them do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.course.lessons import l07_serial as serial
from labkit.network.training.rehearsed import RehearsedWorld, rehearse_training, watch_gradients

Answer = Callable[..., Any]
CHAIN = (5, 8, 8, 6, 3)
BUCKET_STEPS = 2
MICRO_BATCH = 4  # samples


def train(answer: Answer) -> Answer:
    """For ``answer(world, model, loss, batches, lr)``."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, samples, steps, lr, seed):
        from labkit.course.lessons.l07_record import record_train

        return record_train(_labkit_answer, ranks, samples, steps, lr, seed)

    return _labkit_recorded


def record_train(
    answer: Answer, ranks: int, samples: int, steps: int, lr: float, seed: int
) -> dict[str, Any]:
    from labkit.course.lessons import l07_torch as nets

    def on_a_rank(world: RehearsedWorld) -> Any:
        model = nets.tied(seed + world.rank)
        data = nets.tensors(serial.batches(seed, steps, samples, serial.WIDTH, serial.WIDTH))
        watch_gradients(world, model)
        model.register_forward_hook(lambda _, given, made: world.note("forward", size=len(made)))
        answer(world, model, nets.mean_square, data, lr)
        return nets.values(model)

    return _record(on_a_rank, ranks)


def overlapped(answer: Answer) -> Answer:
    """For ``finish = answer(world, parameters, bucket_bytes)``."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, bucket_bytes, seed):
        from labkit.course.lessons.l07_record import record_overlapped

        return record_overlapped(_labkit_answer, ranks, bucket_bytes, seed)

    return _labkit_recorded


def record_overlapped(answer: Answer, ranks: int, bucket_bytes: int, seed: int) -> dict[str, Any]:
    from labkit.course.lessons import l07_torch as nets

    def on_a_rank(world: RehearsedWorld) -> Any:
        model = nets.chain(CHAIN, seed)
        watch_gradients(world, model)
        finish = answer(world, list(model.parameters()), bucket_bytes)
        if not callable(finish):
            return "no finish"
        found = []
        for x, y in nets.tensors(rank_batches(world.rank, seed, BUCKET_STEPS)):
            model.zero_grad()
            nets.mean_square(model(x), y).backward()
            world.note("backward ended")
            finish()
            world.note("finished")
            found.append(nets.gradients(model))
        return found

    return _record(on_a_rank, ranks)


def rank_batches(rank: int, seed: int, steps: int, samples: int = MICRO_BATCH) -> list[Any]:
    """What a rank has to learn from in the exercises that give every rank its own data."""
    return serial.batches(1000 * seed + rank, steps, samples, CHAIN[0], CHAIN[-1])


def accumulate(answer: Answer) -> Answer:
    """For ``answer(ddp, loss, micro_batches, optimizer)``, called for two batches."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, micro_batches, lr, seed):
        from labkit.course.lessons.l07_record import record_accumulate

        return record_accumulate(_labkit_answer, ranks, micro_batches, lr, seed)

    return _labkit_recorded


def record_accumulate(answer: Answer, ranks: int, micro_batches: int, lr: float, seed: int) -> dict[str, Any]:
    from labkit.course.lessons import l07_torch as nets
    from labkit.network.training.data_parallel import DataParallel

    def on_a_rank(world: RehearsedWorld) -> Any:
        model = nets.chain(CHAIN, seed)
        ddp = DataParallel(model, bucket="200B", world=world)
        optimizer = nets.Descent(model, lr, world)
        model.register_forward_hook(lambda _, given, made: world.note("forward", size=len(made)))
        parts = nets.tensors(rank_batches(world.rank, seed, 2 * micro_batches))
        for step in range(2):
            answer(ddp, nets.mean_square, parts[step * micro_batches : (step + 1) * micro_batches], optimizer)
            world.note("returned")
        return nets.values(model)

    return _record(on_a_rank, ranks)


def unused(answer: Answer) -> Answer:
    """For ``answer(output, parameters)``."""
    _labkit_answer = answer

    def _labkit_recorded(net):
        from labkit.course.lessons.l07_torch import record_unused

        return record_unused(_labkit_answer, net)

    return _labkit_recorded


def two_layers(answer: Answer) -> Answer:
    """For ``answer(world, x, up, up_bias, down, down_bias, dy)``."""
    _labkit_answer = answer

    def _labkit_recorded(ranks, samples, features, hidden, seed):
        from labkit.course.lessons.l07_record import record_two_layers

        return record_two_layers(_labkit_answer, ranks, samples, features, hidden, seed)

    return _labkit_recorded


def record_two_layers(
    answer: Answer, ranks: int, samples: int, features: int, hidden: int, seed: int
) -> dict[str, Any]:
    def on_a_rank(world: RehearsedWorld) -> Any:
        whole = layers(samples, features, hidden, seed)
        mine = slice(world.rank * hidden // ranks, (world.rank + 1) * hidden // ranks)
        parts = {"up": whole["up"][mine], "up_bias": whole["up_bias"][mine], "down": whole["down"][:, mine]}
        given = {name: parts.get(name, whole[name]).copy() for name in whole}
        return _list(answer(world, *given.values()))

    return _record(on_a_rank, ranks)


def layers(samples: int, features: int, hidden: int, seed: int) -> dict[str, np.ndarray]:
    """Input, the two layers' weights, and the gradient that comes back; features in and out."""
    random = np.random.default_rng((710, seed))
    shapes = {
        "x": (samples, features),
        "up": (hidden, features),
        "up_bias": (hidden,),
        "down": (features, hidden),
        "down_bias": (features,),
        "dy": (samples, features),
    }
    return {name: random.normal(0, 1, shape) for name, shape in shapes.items()}


def pipeline(answer: Answer) -> Answer:
    """For ``answer(stages, micro_batches, stage)``, called for every stage."""
    _labkit_answer = answer

    def _labkit_recorded(stages, micro_batches):
        return [_labkit_answer(stages, micro_batches, stage) for stage in range(stages)]

    return _labkit_recorded


def lookup(answer: Answer) -> Answer:
    """For ``answer(world, block, ids, gradient)``."""
    _labkit_answer = answer

    def _labkit_recorded(rows, features, counts, seed):
        from labkit.course.lessons.l07_record import record_lookup

        return record_lookup(_labkit_answer, rows, features, counts, seed)

    return _labkit_recorded


def record_lookup(answer: Answer, rows: int, features: int, counts: list[int], seed: int) -> dict[str, Any]:
    ranks = len(counts)

    def on_a_rank(world: RehearsedWorld) -> Any:
        table, ids, gradients = embedding(rows, features, counts, seed)
        mine = slice(world.rank * rows // ranks, (world.rank + 1) * rows // ranks)
        return _list(answer(world, table[mine].copy(), ids[world.rank].copy(), gradients[world.rank].copy()))

    return _record(on_a_rank, ranks)


def embedding(rows: int, features: int, counts: list[int], seed: int) -> tuple[np.ndarray, list, list]:
    """The whole table; for every rank the ids it looks up and the gradient of what it got."""
    random = np.random.default_rng((711, seed))
    table = random.normal(0, 1, (rows, features))
    ids = [random.integers(0, rows, count) for count in counts]
    return table, ids, [random.normal(0, 1, (count, features)) for count in counts]


def _list(returned: Any) -> Any:
    """Two arrays, or whatever else there is, for the judge to name."""
    if isinstance(returned, (tuple, list)) and len(returned) == 2:
        return list(returned)
    return returned


def _record(on_a_rank: Answer, ranks: int) -> dict[str, Any]:
    found = rehearse_training(on_a_rank, ranks)
    return {"results": list(found.results), **found.to_dict()}
