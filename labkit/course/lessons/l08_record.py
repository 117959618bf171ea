"""Lesson 08, in the answer's own process: what surrounds an answer there, and the record of what it did."""

from __future__ import annotations

import ast
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from labkit.compute.emulator.source import capture
from labkit.course.lessons.l08_jobs import Job, Killed, Life
from labkit.errors import LabkitError

Answer = Callable[..., Any]


def hierarchical(answer: Answer) -> Answer:
    """For ``hierarchical(data, rank, nodes, per_node)``."""
    _labkit_answer = answer

    def _labkit_recorded(nodes, per_node, elements):
        from labkit.course.lessons.l08_record import record_hierarchical

        return record_hierarchical(_labkit_answer, nodes, per_node, elements)

    return _labkit_recorded


def record_hierarchical(answer: Answer, nodes: int, per_node: int, elements: int) -> dict[str, Any]:
    from labkit.network import play

    world = nodes * per_node
    data = [contribution(rank, elements) for rank in range(world)]
    played = play(answer, world, [(data[rank], rank, nodes, per_node) for rank in range(world)])
    return {
        "data": data,
        "messages": [[one.source, one.to, one.bytes] for one in played.messages],
        "kinds": sorted({one.kind for one in played.messages}),
    }


def contribution(rank: int, elements: int) -> np.ndarray:
    """What a rank brings: whole numbers as float64, which add up without rounding in any order."""
    return np.random.default_rng((88, rank, elements)).integers(0, 1000, elements).astype(np.float64)


def resume(answer: Answer) -> Answer:
    """For ``train(job, path)``."""
    _labkit_answer = answer

    def _labkit_recorded(samples, batch, epochs, every, plan):
        from labkit.course.lessons.l08_record import record_resume

        settings = {"samples": samples, "batch": batch, "epochs": epochs, "every": every}
        return record_resume(_labkit_answer, settings, plan)

    return _labkit_recorded


def record_resume(answer: Answer, settings: dict[str, int], plan: list[list[Any]]) -> dict[str, Any]:
    """All lives of a job, until one of them ends otherwise than it was meant to."""
    lives: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="labkit-job-") as folder:
        for world, kind, number in plan:
            life = Life(world, (kind, number), settings)
            ends = _live(answer, life, str(Path(folder, "checkpoint")))
            lives.append(_told(life, ends, kind))
            if lives[-1]["trouble"]:
                return {"lives": lives}
        left = sorted(one.name for one in Path(folder).iterdir())
    models = [end[1] for end in ends]
    return {
        "lives": lives,
        "left": left,
        "seen": models[0].seen,
        "weights": [model.weights for model in models],
        "loss": life.loss(models[0].weights),
    }


def _live(answer: Answer, life: Life, path: str) -> list[tuple[str, Any]]:
    """How each rank of one life ended: ("killed" | "returned" | "raised", what)."""
    ends: list[tuple[str, Any]] = [("killed", None)] * life.world

    def rank(number: int) -> None:
        try:
            ends[number] = "returned", answer(Job(life, number), path)
            life.leave()
        except Killed:
            return
        except BaseException as error:
            ends[number] = "raised", f"{type(error).__name__}: {error}"
            life.end()

    threads = [threading.Thread(target=rank, args=(number,), daemon=True) for number in range(life.world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def _told(life: Life, ends: list[tuple[str, Any]], kind: str) -> dict[str, Any]:
    return {
        "world": life.world,
        "updates": life.updates,
        "saves": life.saves,
        "savers": sorted(set(life.savers)),
        "trouble": _trouble(life, ends, kind),
    }


def _trouble(life: Life, ends: list[tuple[str, Any]], kind: str) -> list[str]:
    """What went otherwise than planned: its kind and its words; empty for a life that ended as it was meant to."""
    raised = [(rank, text) for rank, (how, text) in enumerate(ends) if how == "raised"]
    if raised:
        rank, text = raised[0]
        return ["raised", f"rank {rank} of {life.world} raised {text}"]
    if life.out_of_step:
        return ["out of step", f"after {life.updates} updates some ranks wait for others, which do not come"]
    returned = [what for how, what in ends if how == "returned"]
    if kind and returned and not life.dead:
        return ["no kill", f"it ended after {life.updates} updates and {life.saves} checkpoints"]
    if not kind and any(not hasattr(what, "seen") for what in returned):
        return ["no model", "it returned no model"]
    return []


def launch(answer: Answer) -> Answer:
    """For ``train(data, epochs, path)``, as a script that torchrun starts."""
    _labkit_answer = answer
    _labkit_text = script(answer)

    def _labkit_recorded(nodes, per_node):
        from labkit.course.lessons.l08_launch import record_launch

        return {**record_launch(_labkit_answer, nodes, per_node), "script": _labkit_text}

    return _labkit_recorded


def script(answer: Answer) -> dict[str, Any]:
    """What the text of an answer says: the strings in it, and the names of attributes it asks for."""
    try:
        tree = ast.parse(textwrap.dedent(capture(answer).text))
    except (LabkitError, SyntaxError):
        return {"strings": [], "names": []}
    nodes = list(ast.walk(tree))
    strings = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    names = [one.attr for one in nodes if isinstance(one, ast.Attribute)]
    names += [one.id for one in nodes if isinstance(one, ast.Name)]
    return {"strings": strings, "names": sorted(set(names))}
