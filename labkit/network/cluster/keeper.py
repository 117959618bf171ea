"""The process that holds a cluster's network. When it ends, however it ends, the kernel takes the network down.

Nothing of the network has a name outside: namespaces, devices and their shapes live as long as a process has
them open. The keeper watches a line to the notebook that owns the cluster; when that closes, it ends every
process in the nodes, removes the cluster's folder, and exits. ``labkit cluster up`` tells it to stay instead.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from typing import Any

from labkit.errors import LabkitError
from labkit.network.cluster import kernel, members, probe, state
from labkit.network.cluster.build import FABRIC, Network
from labkit.network.cluster.plan import Plan, Shape
from labkit.network.launch import wire


class Keeper:
    """Serves requests about one network."""

    def __init__(self, line: socket.socket, place: state.Place, lock: int, told: dict[str, Any]):
        self.line, self.place, self.lock = line, place, lock
        self.plan = Plan.from_dict(told["plan"])
        self.staying = False
        self.told = told
        self.spaces: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.counters: dict[str, int] = {}
        self.selector = selectors.DefaultSelector()

    def build(self) -> None:
        """Namespaces first, then what is in them."""
        told = self.told
        probe.enter(told["mode"])
        self.place.hosts.write_text(_hosts(self.plan))
        if os.path.exists("/etc/hosts"):
            kernel.mount_over(str(self.place.hosts), "/etc/hosts")
        self.home = [kernel.here("user"), kernel.here("mnt")]
        for name in (*self.plan.nodes, FABRIC):
            self.spaces[name], self.names[name] = kernel.fresh_node(name or "switches")
            self.counters[name] = os.open("/proc/self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
        self.network = Network(self.plan, self.spaces, told["netem"])
        self.network.build()
        self.place.write({**told, "keeper": os.getpid(), "id": self.place.id})

    def serve(self) -> None:
        """Until told to end, or until the owner is gone."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(state.control(self.lock))
        listener.listen()
        self.selector.register(listener, selectors.EVENT_READ, None)
        self.selector.register(self.line, selectors.EVENT_READ, self.line)
        wire.send(self.line, {"ready": self.place.id})
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    client, _ = listener.accept()
                    self.selector.register(client, selectors.EVENT_READ, client)
                elif not self._answer(key.data):
                    return

    def _answer(self, client: socket.socket) -> bool:
        """Handle one request; False when it was the last."""
        message, _ = wire.receive(client)
        if message is None:
            self.selector.unregister(client)
            client.close()
            return client is not self.line or self.staying
        if message["do"] == "down":
            self._end_members()
            self.place.remove()
            wire.send(client, {})
            return False
        try:
            answer, files = getattr(self, f"do_{message['do']}")(message)
        except LabkitError as error:
            answer, files = {"error": str(error)}, []
        with contextlib.suppress(OSError):
            wire.send(client, answer, files)
        return True

    def do_stay(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Live on without an owner."""
        self.staying = True
        return {}, []

    def do_home(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """What one must enter to be allowed into the nodes."""
        return {"mode": self.told["mode"], "netem": self.told["netem"]}, self.home

    def do_node(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """A node's network, host name and counters."""
        name = message["node"]
        return {}, [self.spaces[name], self.names[name], self.counters[name]]

    def do_plan(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        return {"plan": self.plan.to_dict()}, []

    def do_shape(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Give some wires other shapes."""
        shapes = {name: Shape(**shape) for name, shape in message["shapes"].items()}
        self.plan = self.plan.reshaped(shapes)
        self.network.shape(wire for wire in self.plan.wires if wire.name in shapes)
        return {}, []

    def do_queues(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """What the queues of some wires have counted."""
        return {
            "queues": self.network.queues(wire for wire in self.plan.wires if wire.name in message["wires"])
        }, []

    def _end_members(self) -> None:
        """Twice: one that was just about to start another."""
        for _ in range(2):
            inside = members.in_networks({members.identity(space) for space in self.spaces.values()})
            inside.pop(os.getpid(), None)
            members.end({*inside, *members.marked(self.place.id)})

    def close(self) -> None:
        self._end_members()
        self.place.remove()


def _hosts(plan: Plan) -> str:
    """Each address also in the form in which IPv6 writes it: torch looks its peers' names up like that."""
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for node in plan.nodes:
        lines += [f"{plan.address(node)} {node}", f"::ffff:{plan.address(node)} {node}"]
    if plan.meeting:
        lines += [f"{plan.meeting} switch", f"::ffff:{plan.meeting} switch"]
    return "\n".join([*lines, ""])


def main() -> None:
    """``python -m labkit.network.cluster.keeper FD``: the line to the owner, which says what to build."""
    line = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told, _ = wire.receive(line)
    if told is None:
        return
    try:
        place, lock = state.create(told["name"], told["owner"], told["unique"])
    except LabkitError as error:
        wire.send(line, {"error": str(error)})
        return
    keeper = Keeper(line, place, lock, told)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        keeper.build()
        keeper.serve()
    except (LabkitError, OSError) as error:
        with contextlib.suppress(OSError):
            wire.send(line, {"error": str(error)})
    finally:
        keeper.close()
        os.close(lock)


if __name__ == "__main__":
    main()
