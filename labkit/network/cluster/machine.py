"""A cluster of virtual machines on this one: real processes, real TCP, over links of a chosen speed.

>>> import labkit
>>> with labkit.cluster(nodes=2, bandwidth="1Gbit/s") as c:  # doctest: +SKIP
...     c.run(step, ranks_per_node=1)
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence
from html import escape
from types import TracebackType
from typing import Any

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.cluster import counters, live, members, shaping, waiting
from labkit.network.cluster.handle import Handle
from labkit.network.cluster.links import Link
from labkit.network.cluster.plan import Shape, listed
from labkit.network.cluster.ranks import NodeRanks, node_server
from labkit.network.cluster.results import ClusterResults, extended
from labkit.network.cluster.run import NodesRun
from labkit.network.launch import client
from labkit.network.ranks import MAX_RANKS, TIMEOUT_S


class Cluster:
    """Nodes and links that are up. Made by `labkit.cluster`; a context manager that takes them down.

    Attributes
    ----------
    nodes : tuple of str
    handle : Handle
    note : str
        What could not be had on this machine; empty when all could.
    """

    label = "measured"

    def __init__(self, handle: Handle, note: str = ""):
        self.handle, self.note = handle, note
        self.nodes = handle.plan.nodes
        self.down_nodes: set[str] = set()
        self._server: client.ForkServer | None = None
        self._run: NodesRun | None = None
        self._clock = counters.NodeClock(handle)
        self._timers: list[waiting.Waiting] = []
        self._up = True
        self._owner = os.getpid()
        live.show(self)

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        ranks_per_node: int = 1,
        restarts: int = 0,
        min_nodes: int | None = None,
        trace: bool = False,
        timeout: float | str = TIMEOUT_S,
    ) -> ClusterResults:
        """Call ``function(*args)`` on every rank of every node; all else as `labkit.ranks(n).run`.

        Each node has a torchrun of its own. They find each other through a c10d rendezvous, which is at a switch, so
        that it outlives any node; in a ring or a torus it is on the first node, which a restart cannot do without.

        Parameters
        ----------
        function : callable
        ranks_per_node : int
        restarts : int
            When a rank or a node fails, start all ranks again so many times, as torchrun does. Ranks begin from
            the beginning; what they need to go on, they must have saved.
        min_nodes : int, optional
            A restart goes on with as few nodes as this; all of them without it.
        trace, timeout
            As `labkit.ranks(n).run`.

        Raises
        ------
        RankError
            When a rank or a node fails for good, or not all return in time.
        LabkitError
            When there is nothing to run on, or the function cannot travel.
        """
        self._check_up()
        nodes = tuple(node for node in self.nodes if node not in self.down_nodes)
        ranks = self._ranks(nodes, ranks_per_node, restarts, min_nodes)
        before = self.bytes()
        try:
            results = ranks.run(function, *args, trace=trace, timeout=timeout)
            restarted = self._run.generation if self._run else 0
        finally:
            self._run = None
        after = self.bytes()
        return extended(results, {name: after[name] - before[name] for name in after}, restarted)

    def _ranks(self, nodes: tuple[str, ...], per_node: int, restarts: int, least: int | None) -> NodeRanks:
        if not nodes:
            raise LabkitError("All nodes of this cluster are down: c.start('n0') brings one back.")
        count = len(nodes) * _whole(per_node, "ranks_per_node", 1)
        if count > MAX_RANKS:
            raise LabkitError(
                f"{len(nodes)} nodes of {per_node} ranks are {count} ranks: at most {MAX_RANKS} run here."
            )
        least = len(nodes) if least is None else _whole(least, "min_nodes", 1)
        if least > len(nodes):
            raise LabkitError(f"min_nodes={least} is more than the {len(nodes)} nodes that are up.")
        reason = f"Virtual nodes compute on the CPU and talk over their links ({self.handle.plan.topology})."
        return NodeRanks(
            *(count, None, None, "gloo", reason),
            handle=self.handle,
            nodes=nodes,
            per_node=per_node,
            restarts=_whole(restarts, "restarts", 0),
            least=least,
            server=self._ready_server,
            began=self._note_run,
        )

    def _ready_server(self) -> client.ForkServer:
        if self._server is not None and not self._server.alive:
            self._server.stop()
            self._server = None
        if self._server is None:
            self._server = node_server(self.handle)
        return self._server

    def _note_run(self, run: NodesRun) -> None:
        self._run = run

    def warm_up(self) -> None:
        """Import torch now, so that the first run need not wait for it."""
        self._ready_server()

    def link(self, first: str, second: str | None = None) -> Link:
        """The way from one node or switch to another; without a second name, all cables of the first.

        In a ring or a torus neighbours share one cable. On a switch the way from node to node is both nodes'
        cables, so what is done to it, all their traffic feels.
        """
        self._check_up()
        return Link(self, self.handle.plan.between(first, second))

    def bytes(self) -> dict[str, counters.LinkBytes]:
        """What each cable has carried so far, each way, as its devices count (measured)."""
        return counters.link_bytes(self.handle)

    def kill(self, node: str) -> None:
        """A node dies: all its processes, at once. What they were connected to sees the connections break."""
        self._check_node(node)
        if (run := self._run) is not None:
            run.note_killed(node)
        self.down_nodes.add(node)
        for _ in range(2):  # one that was just about to start another
            members.end(self.handle.processes([node]))

    def start(self, node: str) -> None:
        """A node comes back; a run that goes on with restarts and min_nodes takes it in."""
        self._check_node(node)
        self.down_nodes.discard(node)
        if (run := self._run) is not None:
            run.join(node)

    def after(self, seconds: float | str, action: Callable[..., Any], *args: Any) -> None:
        """Do something while a run goes on: ``c.after(2, c.kill, "n1")``, then ``c.run(...)``."""
        self._timers.append(waiting.after(parse(seconds, "time"), action, args))

    def when(self, ready: Callable[[], bool], action: Callable[..., Any], *args: Any) -> None:
        """Do something once ``ready()`` is true: ``c.when(Path("saved").exists, c.kill, "n1")``, then ``c.run``."""
        self._timers.append(waiting.when(ready, action, args))

    def call(self, node: str, program: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program in a node: ``c.call("n0", ["ping", "-c", "3", "n1"])``; its output is in what returns."""
        self._check_up()
        self._check_node(node)
        command, files = self.handle.command(node, program)
        settings = {"capture_output": True, "text": True, "env": self.handle.environment(), **options}
        return subprocess.run(command, pass_fds=files, check=False, **settings)

    def link_states(self) -> list[live.LinkState]:
        """Every link now, for those who watch."""
        counted = self.bytes()
        return [
            live.LinkState(
                self.handle.place.name,
                wire.name,
                (wire.ends[0].where, wire.ends[1].where),
                str(wire.shape),
                wire.shape.bandwidth,
                counted[wire.name].forth,
                counted[wire.name].back,
            )
            for wire in self.handle.plan.wires
        ]

    def node_states(self) -> list[live.NodeState]:
        """Every node now, for those who watch."""
        name = self.handle.place.name
        return [
            live.NodeState(name, node, node not in self.down_nodes, seconds)
            for node, seconds in self._clock.read().items()
        ]

    def close(self) -> None:
        """Take everything down; a cluster of ``labkit cluster up`` stays, and is only let go of."""
        live.hide(self)
        for timer in self._timers:
            timer.cancel()
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._up:
            self._up = False
            self.handle.close()

    def reshape(self, shapes: dict[str, Shape]) -> None:
        """Give cables, by their names, other shapes.

        Raises
        ------
        LabkitError
            For a shape that no cable, or none on this kernel, can have.
        """
        for shape in shapes.values():
            shaping.check(shape)
        if any(shape.latency or shape.loss for shape in shapes.values()) and not self.handle.netem:
            raise LabkitError(
                "This kernel has no netem (sch_netem), so links cannot be given a latency or a loss."
            )
        self.handle.shape(shapes)

    def _check_up(self) -> None:
        if not self._up:
            raise LabkitError("This cluster has been taken down: make another with labkit.cluster(...).")

    def _check_node(self, node: str) -> None:
        if node not in self.nodes:
            raise LabkitError(f"There is no node {node!r} in this cluster: they are {listed(self.nodes)}.")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_owner", None) == os.getpid():  # not in a forked child, nor half made
            with contextlib.suppress(Exception):
                self.close()

    def __repr__(self) -> str:
        plan = self.handle.plan
        shapes = {str(wire.shape) for wire in plan.wires}
        state = f"links: {' / '.join(sorted(shapes))}" if self._up else "down"
        return f"Cluster({len(plan.nodes)} nodes, {plan.topology}, {state}, {self.label})"

    def _repr_html_(self) -> str:
        from labkit.network.cluster.show import tables

        return tables(self) if self._up else escape(repr(self))


def _after_fork() -> None:
    """A forked child must not keep its parent's nodes and ranks alive."""
    for cluster in live.forget_all():
        if cluster._server is not None:
            cluster._server.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _whole(value: int, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise LabkitError(f"{name}={value!r} is not a whole number from {least} on.")
    return value
