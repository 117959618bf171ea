"""The line from a notebook or a command to the process that holds a cluster's network."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labkit.compute import child
from labkit.errors import LabkitError
from labkit.network.cluster import members, state
from labkit.network.cluster.build import FABRIC
from labkit.network.cluster.plan import Plan, Shape
from labkit.network.launch import wire

_START_S = 30.0
_ANSWER_S = 20.0
_MODULE = "labkit.network.cluster.keeper"


class Handle:
    """One cluster, as seen from a process that uses it. Requests may come from any thread.

    Attributes
    ----------
    place : state.Place
    plan : Plan
        As it was when the cluster was made; `shape` keeps it up to date.
    mode : str
        ``"root"`` or ``"user namespace"``.
    netem : bool
        Whether links can have latency and loss.
    """

    def __init__(self, line: socket.socket, place: state.Place, plan: Plan):
        self.line, self.place, self.plan = line, place, plan
        self._turn = threading.Lock()
        self._files: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        answer, (user, mounts) = self.ask(do="home")
        self.mode, self.netem = answer["mode"], answer["netem"]
        self._files += [user, mounts]
        self.home = {"mnt": mounts} if self.mode == "root" else {"user": user, "mnt": mounts}
        self.networks: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.counters: dict[str, int] = {}
        for node in (*plan.nodes, FABRIC):
            _, files = self.ask(do="node", node=node)
            self.networks[node], self.names[node], self.counters[node] = files
            self._files += files
        _open.add(self)

    def ask(self, **message: Any) -> tuple[dict[str, Any], list[int]]:
        """A question to the keeper and its answer.

        Raises
        ------
        LabkitError
            What the keeper says, or that it has gone.
        """
        with self._turn:
            try:
                wire.send(self.line, message)
                ready = select.select([self.line], [], [], _ANSWER_S)[0]
            except (OSError, ValueError):
                ready = []
            answer, files = wire.receive(self.line) if ready else (None, [])
        if answer is None:
            raise LabkitError(
                "The process that holds this cluster's network has gone, and the network with it."
            )
        if "error" in answer:
            raise LabkitError(answer["error"])
        return answer, files

    def shape(self, shapes: dict[str, Shape]) -> None:
        """Change wires, by their names."""
        self.ask(do="shape", shapes={name: asdict(shape) for name, shape in shapes.items()})
        self.plan = self.plan.reshaped(shapes)

    def command(self, node: str | None, program: Sequence[str]) -> tuple[list[str], list[int]]:
        """How a program is started in a node (or, without one, at the cluster's door), and the descriptors it needs."""
        spaces = dict(self.home)
        if node is not None:
            spaces |= {"net": self.networks[node], "uts": self.names[node]}
        helper = str(Path(__file__).with_name("enter.py"))
        return [sys.executable, "-I", "-S", helper, json.dumps(spaces), *program], list(spaces.values())

    def environment(self) -> dict[str, str]:
        """The environment of what is started in nodes: it finds this labkit, and carries the cluster's mark."""
        return child.environment() | self.mark()

    def mark(self) -> dict[str, str]:
        """What the environment of every process of the cluster holds."""
        return {members.MARK: self.place.id}

    def processes(self, nodes: Sequence[str]) -> dict[int, str]:
        """The processes in these nodes, and the node each is in."""
        by_identity = {members.identity(self.networks[node]): node for node in nodes}
        return {process: by_identity[where] for process, where in members.in_networks(by_identity).items()}

    def close(self) -> None:
        """Let go; an owned cluster ends with that."""
        _open.discard(self)
        self.forget()
        if self.process is not None:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            if self.place.path.exists() and not self.place.alive():  # the keeper was killed
                state.sweep(self.place)

    def forget(self) -> None:
        """Close this process's copies of what is open."""
        self.line.close()
        files, self._files = self._files, []
        for file in files:
            with contextlib.suppress(OSError):
                os.close(file)


_open: weakref.WeakSet[Handle] = weakref.WeakSet()


def _after_fork() -> None:
    """A forked child must not keep its parent's cluster alive."""
    for handle in list(_open):
        handle.forget()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def start(plan: Plan, *, name: str, mode: str, netem: bool, owned: bool, unique: bool = True) -> Handle:
    """Build a network.

    Parameters
    ----------
    owned : bool
        Whether it ends with this process; otherwise it stays until somebody ends it.
    unique : bool
        Whether no other cluster of this user may have the name.

    Raises
    ------
    LabkitError
        With the system's words, when it cannot be built. Nothing is left then.
    """
    line, theirs = wire.pair()
    with theirs:
        process = subprocess.Popen(
            [*child.command(_MODULE), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child.environment(),
            start_new_session=True,  # Ctrl-C reaches the owner, which decides
        )
    told = {"plan": plan.to_dict(), "name": name, "mode": mode, "netem": netem, "unique": unique}
    told["owner"] = os.getpid() if owned else process.pid
    try:
        handle = _greet(line, told, plan)
        if not owned:
            handle.ask(do="stay")
    except BaseException:
        line.close()  # whereupon the keeper takes down what it has
        process.wait(10)
        raise
    handle.process = process if owned else None
    return handle


def _greet(line: socket.socket, told: dict[str, Any], plan: Plan) -> Handle:
    wire.send(line, told)
    if not select.select([line], [], [], _START_S)[0]:
        raise LabkitError(f"The network was not ready within {_START_S:g} s and has been taken down again.")
    answer, _ = wire.receive(line)
    if answer is None:
        raise LabkitError("The process that holds the network ended before it was ready.")
    if "error" in answer:
        raise LabkitError(answer["error"])
    return Handle(line, state.Place(state.folder() / answer["ready"]), plan)


def attach(name: str) -> Handle:
    """A cluster that is up, by its name.

    Raises
    ------
    LabkitError
        When none of this user has the name.
    """
    living = [place for place in state.places() if place.alive()]
    fitting = [place for place in living if name in (place.name, place.id)]
    if not fitting:
        there = ", ".join(place.name for place in living) or "none is up"
        raise LabkitError(
            f"There is no cluster named {name!r} ({there}): 'labkit cluster up --name {name}' makes one."
        )
    line = _connected(fitting[0])
    wire.send(line, {"do": "plan"})
    answer, _ = wire.receive(line)
    return Handle(line, fitting[0], Plan.from_dict((answer or {})["plan"]))


def _connected(place: state.Place) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    try:
        folder = os.open(place.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            line.connect(state.control(folder))
        finally:
            os.close(folder)
    except OSError as error:
        line.close()
        raise LabkitError(
            f"The cluster {place.name!r} does not answer ({error.strerror}): it has just begun or ended."
        ) from None
    return line
