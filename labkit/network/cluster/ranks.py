"""Ranks on the nodes of a cluster: everything that `labkit.ranks` promises, over wires that are really there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labkit.network.cluster.handle import Handle
from labkit.network.cluster.plan import Plan, listed
from labkit.network.cluster.run import NodesRun
from labkit.network.errors import RankError
from labkit.network.launch import client
from labkit.network.launch.run import Run
from labkit.network.launch.verdict import verdict
from labkit.network.ranks import Ranks

_SERVER = "labkit.network.cluster.server"


def node_server(handle: Handle) -> client.ForkServer:
    """A process with torch in it that may enter the nodes of this cluster."""
    command, files = handle.command(None, [sys.executable, "-P", "-m", _SERVER])
    return client.ForkServer(command, files, handle.environment())


@dataclass(frozen=True, repr=False)
class NodeRanks(Ranks):
    """``per_node`` ranks on each of the nodes; made anew for each run.

    Attributes
    ----------
    handle : Handle
    nodes : tuple of str
    per_node, restarts, least : int
        See `Cluster.run`.
    began : callable
        Called with the run when it has been made.
    """

    handle: Handle = field(repr=False, kw_only=True)
    nodes: tuple[str, ...] = field(kw_only=True)
    per_node: int = field(kw_only=True)
    restarts: int = field(kw_only=True)
    least: int = field(kw_only=True)
    server: Callable[[], client.ForkServer] = field(repr=False, kw_only=True)
    began: Callable[[NodesRun], None] = field(repr=False, kw_only=True)

    def _server(self) -> client.ForkServer:
        return self.server()

    def _new_run(self, server: client.ForkServer, settings: dict[str, Any], job: int) -> Run:
        settings |= {"loopback": "eth0", "per_node": self.per_node}
        run = NodesRun(server, settings, job, restarts=self.restarts, least=self.least)
        run.handle, run.nodes = self.handle, list(self.nodes)
        self.began(run)
        return run

    def _verdict(self, run: Run, limit_s: float) -> RankError | None:
        assert isinstance(run, NodesRun)
        error = verdict(run, limit_s) if run.ranks else None
        if error is None and (run.late or run.gave_up()):
            error = _no_ranks(run)
        if error is None:
            return None
        words = [_killed(run, error), cut_words(self.handle.plan)]
        return RankError(
            "\n".join(filter(None, words)), rank=error.rank, kind=error.kind, others=error.others
        )

    def _link(self) -> str:
        return ""


def _no_ranks(run: NodesRun) -> RankError:
    """torchrun itself failed, or its agents never met."""
    ended = [agent for agent in run.agents.values() if agent.status is not None]
    if run.late and not ended:
        head = f"torchrun's agents on {listed(list(run.agents))} did not meet in time and were ended."
    else:
        head = f"torchrun on node {ended[0].node} gave up: {ended[0].last_words()}"
    return RankError(head, rank=None, kind="launcher", others={})


def _killed(run: NodesRun, error: RankError) -> str:
    """The error's words; where a node was killed, that is the first of them."""
    guilty = run.lost_rendezvous or error.rank is None or run.placed[error.rank].node in run.killed
    if not run.killed or not guilty:
        return str(error)
    nodes = list(run.killed)
    head = f"Node {listed(nodes)} was killed with " + "; ".join(map(_ranks_of, run.killed.values())) + "."
    if run.lost_rendezvous and run.restarts:
        head += (
            f" Its torchrun held the rendezvous ({run.nodes[0]} is the first node), so no restart was possible: with "
            "topology='switch' or 'tree' the switch holds it, and any node may be killed."
        )
    return "\n".join([head, *str(error).split("\n")[1:]])


def _ranks_of(numbers: list[int]) -> str:
    if not numbers:
        return "no rank at work"
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} at work"


def cut_words(plan: Plan) -> str:
    """Which links are cut, in a sentence; empty when none is."""
    cut = [wire.name for wire in plan.wires if wire.shape.cut]
    if not cut:
        return ""
    return f"The link {cut[0]} is cut." if len(cut) == 1 else f"The links {listed(cut)} are cut."
