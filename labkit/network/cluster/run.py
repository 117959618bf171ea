"""One run on a cluster: a torchrun agent in each node, which starts, watches and restarts that node's ranks.

A run of ranks in all else: what they print, how failures are told, what is left (`labkit.network.launch.run`).
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.network.cluster.build import FABRIC
from labkit.network.cluster.handle import Handle
from labkit.network.launch import client, failure, run, wire

PORT = 29400  # torchrun's own choice
_MEETING = "rendezvous"
_END_S = 1.0
_STEP_S = 0.02
_PATIENCE_S = (
    3600  # while a link is cut an agent hears nothing from the rendezvous: the user's timeout ends that
)
_STAND_IN = str(Path(__file__).with_name("stand_in.py"))


@dataclass
class Agent:
    """torchrun in one node."""

    node: str
    door: socket.socket
    log: int
    status: int | None = None

    def last_words(self) -> str:
        """The last line that says something: torchrun's tracebacks end with the error."""
        text = os.pread(self.log, 1 << 20, 0).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip(" =-")]
        return lines[-1] if lines else "it said nothing"


@dataclass
class Asked:
    """A rank that torchrun wants: what it tells the rank, and the line to the process that stands in for it."""

    node: str
    told: dict[str, str]
    line: socket.socket


@dataclass
class NodesRun(run.Run):
    """Ranks in nodes.

    Parameters
    ----------
    handle : Handle
    nodes : list of str
        Those that take part. They meet at a switch; without one, on the first of them.
    restarts : int
        How often a failure is answered by a restart of all ranks.
    least : int
        With fewer nodes than this no restart is tried.
    """

    handle: Handle = None  # type: ignore[assignment]
    nodes: list[str] = field(default_factory=list)
    restarts: int = 0
    least: int = 1
    agents: dict[str, Agent] = field(default_factory=dict)
    placed: list[Asked] = field(default_factory=list)
    killed: dict[str, list[int]] = field(default_factory=dict)
    generation: int = -1

    def __post_init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self._cause = ""
        self._came_back = False
        self._meeting: Agent | None = None
        self._awake, self._wake = socket.socketpair()

    def _start(self, count: int, board: int) -> None:
        self._board = board
        if meeting := self.handle.plan.meeting:
            self._meeting = self._fork(_MEETING, FABRIC, {"store": [meeting, PORT]})
        self._selector.register(self._awake, selectors.EVENT_READ, self._new_node)
        for node in self.nodes:
            self._start_agent(node)

    def join(self, node: str) -> None:
        """Have a node that has come back take part; from any thread."""
        with contextlib.suppress(OSError):
            self._wake.send(node.encode())

    def _new_node(self) -> None:
        node = self._awake.recv(64).decode()
        self.killed.pop(node, None)
        self._came_back = True
        if node not in self.agents or self.agents[node].status is not None:
            self._start_agent(node)

    def _start_agent(self, node: str) -> None:
        agent = self.agents[node] = self._fork(node, node, {"torchrun": self._torchrun(node)})
        self._selector.register(agent.door, selectors.EVENT_READ, lambda: self._knock(agent))

    def _fork(self, name: str, node: str, work: dict[str, Any]) -> Agent:
        """A process with torch in it, inside a node: torchrun's agent, or the store that the agents meet in."""
        door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        agent = Agent(name, door, wire.memory_file())
        settings = {
            "environment": self.settings["environment"] | self.handle.mark() | _AGENT_ENVIRONMENT,
            "folder": self.settings["folder"],
            **work,
        }
        told = wire.memory_file(json.dumps(settings).encode())
        files = [theirs.fileno(), agent.log, told, self.handle.networks[node], self.handle.names[node]]
        try:
            self.server.tell({"do": "start", "run": self.number, "rank": name, "agent": True}, files)
        finally:
            theirs.close()
            os.close(told)
        return agent

    def _torchrun(self, node: str) -> list[str]:
        """torchrun's options, as a shell would give them."""
        per_node = self.settings["per_node"]
        host = None if self.handle.plan.meeting else self.nodes[0]
        least, most = self.least, len(self.nodes)
        return [
            f"--nnodes={most if least == most else f'{least}:{most}'}",
            f"--nproc-per-node={per_node}",
            "--rdzv-backend=c10d",
            f"--rdzv-endpoint={self.handle.plan.address(host) if host else self.handle.plan.meeting}:{PORT}",
            f"--rdzv-id={self.handle.place.id}-{self.number}",
            f"--rdzv-conf=is_host={int(node == host)},last_call_timeout=2,join_timeout=300,"
            f"read_timeout={_PATIENCE_S},keep_alive_interval=1,keep_alive_max_attempt=3",
            f"--local-addr={self.handle.plan.address(node)}",
            f"--max-restarts={self.restarts}",
            f"--monitor-interval={_STEP_S}",
            "--no-python",
            *(sys.executable, "-I", "-S", _STAND_IN),
        ]

    def _knock(self, agent: Agent) -> None:
        """A stand-in asks for its rank."""
        message, files, _, _ = socket.recv_fds(agent.door, 1 << 16, 1)
        if not files:
            self._selector.unregister(agent.door)
            return
        asked = Asked(agent.node, json.loads(message), socket.socket(fileno=files[0]))
        self._asked[int(asked.told["RANK"])] = asked
        if len(self._asked) == int(asked.told["WORLD_SIZE"]):
            self._begin()

    def _begin(self) -> None:
        """All ranks of a round have been asked for: start them, after what may be left of the round before."""
        self._end_round()
        asked, self._asked = self._asked, {}
        self.placed = [asked[number] for number in range(len(asked))]
        self.generation += 1
        if self.generation:
            self._tell_restart(len(asked))
            self._cause = ""
        for number, one in enumerate(self.placed):
            self._start_placed(number, one)

    def _tell_restart(self, ranks: int) -> None:
        attempt = self.placed[0].told["TORCHELASTIC_RESTART_COUNT"]
        why = self._cause or ("a node has come back" if self._came_back else "a node was late to join")
        self._came_back = False
        print(f"[labkit] restarted ({attempt} of {self.restarts} spent), now {ranks} ranks: {why}")

    def _start_placed(self, number: int, one: Asked) -> None:
        settings = self.settings | {"ranks": len(self.placed), "node": one.node, "launched": one.told}
        file = wire.memory_file(json.dumps(settings).encode())
        try:
            self._start_rank(number, [file, self.job, self._board])
        finally:
            os.close(file)
        self._selector.register(one.line, selectors.EVENT_READ, lambda: self._line_closed(number, one))

    def _ask_for(self, number: int, files: list[int]) -> None:
        node = self.placed[number].node
        message = {"do": "start", "run": self.number, "rank": number, "agent": False}
        self.server.tell(message, [*files, self.handle.networks[node], self.handle.names[node]])

    def _line_closed(self, number: int, one: Asked) -> None:
        """torchrun has ended the stand-in, and means the rank."""
        self._selector.unregister(one.line)
        if number < len(self.ranks) and self.placed[number] is one and self.ranks[number].status is None:
            client.send_signal(self.server, signal.SIGKILL, [number])

    def _heard(self, message: dict[str, Any]) -> None:
        who = message["exited" if "exited" in message else "started"]
        if isinstance(who, str):
            if who in self.agents:
                self.agents[who].status = message.get("status")
            return
        super()._heard(message)
        if "exited" in message:
            self._note_cause(self.ranks[who])
            self._pass_on(who, message["status"])

    def _rank_says(self, rank: run.Rank) -> None:
        super()._rank_says(rank)
        if rank.report is not None and self._spare():
            self._note_cause(rank)
            self._pass_on(rank.number, 1)
            client.send_signal(self.server, signal.SIGKILL, [rank.number])

    def _pass_on(self, number: int, status: int) -> None:
        with contextlib.suppress(OSError):
            self.placed[number].line.send(str(status).encode())

    def _note_cause(self, rank: run.Rank) -> None:
        """Why there will be a restart: the first failure that is no consequence of another."""
        if self._node_killed(rank.number):
            self._cause = f"node {self.placed[rank.number].node} was killed"
        elif not self._cause and rank.report is not None and not failure.is_consequence(rank.report):
            self._cause = f"rank {rank.number} {failure.headline(rank.report)}"
        elif not self._cause and rank.silent_end and rank.status != -signal.SIGKILL:
            self._cause = f"rank {rank.number} ended with status {rank.status}"

    def _node_killed(self, number: int) -> bool:
        return self.placed[number].node in self.killed

    def _spare(self) -> bool:
        """Whether torchrun will answer a failure by a restart."""
        if not self.placed or self.lost_rendezvous:
            return self.restarts > 0 and not self.killed
        alive = len(self.nodes) - len(self.killed)
        return int(self.placed[0].told["TORCHELASTIC_RESTART_COUNT"]) < self.restarts and alive >= self.least

    @property
    def lost_rendezvous(self) -> bool:
        """Whether the node that held it was killed; where there is a switch, no node holds it."""
        return not self.handle.plan.meeting and self.nodes[0] in self.killed

    def _all_returned(self) -> bool:
        return bool(self.ranks) and super()._all_returned()

    def _trouble(self) -> bool:
        return self._agents_failed() or (not self._spare() and super()._trouble())

    def _agents_failed(self) -> bool:
        """An agent has given up, in a node that lives."""
        ended = [a for a in self.agents.values() if a.status is not None and a.node not in self.killed]
        return bool(ended) and not self._all_returned()

    def gave_up(self) -> bool:
        """Whether the run ended because torchrun did."""
        return self._agents_failed()

    def note_killed(self, node: str) -> None:
        """A node is about to be killed."""
        self.killed[node] = [number for number, one in enumerate(self.placed) if one.node == node]

    def _release(self) -> None:
        super()._release()
        ended = lambda: all(agent.status is not None for agent in self.agents.values())  # noqa: E731
        self._until(ended, time.monotonic() + _END_S)

    def _end_round(self) -> None:
        """Let go of the ranks of the round before."""
        left = [rank.number for rank in self.ranks if rank.status is None]
        if left:
            client.send_signal(self.server, signal.SIGKILL, left)
            self._until(self._all_ended, time.monotonic() + _END_S)
        for rank in self.ranks:
            self._forget(rank)
        self.ranks = []

    def _forget(self, rank: run.Rank) -> None:
        sources: list[Any] = [rank.channel, *(stream.pipe for stream in rank.streams)]
        for source in sources:
            with contextlib.suppress(KeyError):
                self._selector.unregister(source)
        rank.channel.close()
        for stream in rank.streams:
            stream.close()
        for file in (rank.stacks, *(rank.returned or ())):
            os.close(file)

    def _clean_up(self, board: int) -> None:
        super()._clean_up(board)
        for one in (*self.placed, *self._asked.values()):
            one.line.close()
        for agent in self._forked():
            agent.door.close()
        self._awake.close()
        self._wake.close()

    def close(self) -> None:
        super().close()
        for agent in self._forked():
            os.close(agent.log)

    def _forked(self) -> list[Agent]:
        return [*self.agents.values(), *([self._meeting] if self._meeting else [])]


# Each round of ranks meets in a store of its own: keys of the round before would be taken for new ones.
_AGENT_ENVIRONMENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
