"""From a plan to devices: what ``ip`` and ``tc`` are told, one batch a namespace."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping

from labkit.errors import LabkitError
from labkit.network.cluster import kernel, shaping
from labkit.network.cluster.plan import End, Plan, Wire

# Switches have all their ports in one namespace, which goes by this name.
FABRIC = ""
# Written in each node's own part of /proc/sys. TCP tries again every second at least, so that a healed link is
# noticed within one, and 255 times instead of 15 before it gives up: as patient as it is elsewhere.
_SETTINGS = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/tcp_rto_max_ms": "1000",
    "ipv4/tcp_retries2": "255",
    "ipv6/conf/all/disable_ipv6": "1",
}


class Network:
    """The namespaces of a plan, and the way to change what is in them.

    Parameters
    ----------
    plan : Plan
    spaces : mapping of str to int
        Open network namespaces: of each node by its name, of the switches under `FABRIC`.
    netem : bool
        Whether the kernel has it.
    """

    def __init__(self, plan: Plan, spaces: Mapping[str, int], netem: bool):
        self.plan, self.spaces, self.netem = plan, spaces, netem

    def build(self) -> None:
        """Everything: devices, bridges, addresses, routes, shapes."""
        self._ip(FABRIC, [*self._bridges(), *map(self._cable, self.plan.wires), *self._ports()])
        for node in self.plan.nodes:
            self._ip(node, self._node(node))
            if self.plan.hops:
                self._check_forwarding(node)
        self.shape(self.plan.wires)

    def _check_forwarding(self, node: str) -> None:
        with kernel.inside(self.spaces[node]), open("/proc/sys/net/ipv4/ip_forward") as file:
            if file.read().strip() != "1":
                raise LabkitError(
                    "Nodes cannot pass packets on here, as /proc/sys is read-only (a container's, most often): take "
                    "topology='switch' or 'tree', where switches do that."
                )

    def shape(self, wires: Iterable[Wire]) -> None:
        """Give these wires their shapes, at both ends."""
        lines: dict[str, list[str]] = {}
        for wire in wires:
            for end in wire.ends:
                line = shaping.command(end.device, wire.shape, self.netem)
                lines.setdefault(self._space(end), []).append(line)
        for space, batch in lines.items():
            with kernel.inside(self.spaces[space]):
                _batch("tc", batch, ())

    def queues(self, wires: Iterable[Wire]) -> dict[str, dict[str, int]]:
        """What the qdisc of each end has counted, by ``"where/device"``."""
        ends: dict[str, list[End]] = {}
        for end in (end for wire in wires for end in wire.ends):
            ends.setdefault(self._space(end), []).append(end)
        found: dict[str, dict[str, int]] = {}
        for space, here in ends.items():
            with kernel.inside(self.spaces[space]):
                counted = _qdiscs()
            found |= {f"{end.where}/{end.device}": counted[end.device] for end in here}
        return found

    def _space(self, end: End) -> str:
        return end.where if end.where in self.plan.nodes else FABRIC

    def _ip(self, space: str, lines: list[str]) -> None:
        with kernel.inside(self.spaces[space]):
            if space != FABRIC:
                _configure()
            _batch("ip", lines, self.spaces.values())

    def _bridges(self) -> list[str]:
        return [f"link add name {switch} type bridge forward_delay 0" for switch in self.plan.switches]

    def _cable(self, wire: Wire) -> str:
        first, second = (
            f"name {end.device} netns /proc/self/fd/{self.spaces[self._space(end)]}" for end in wire.ends
        )
        return f"link add {first} type veth peer {second}"

    def _ports(self) -> list[str]:
        ups = [f"link set dev {switch} up" for switch in self.plan.switches]
        ports = [
            f"link set dev {device} master {switch} up"
            for switch in self.plan.switches
            for device in self.plan.devices(switch)
        ]
        meeting = self.plan.meeting
        return [
            *ups,
            *ports,
            *([f"address add {meeting}/16 dev {self.plan.switches[-1]}"] if meeting else []),
        ]

    def _node(self, node: str) -> list[str]:
        """One address a node, on its first device; where nodes pass packets on, a route to each other node."""
        address, devices = self.plan.address(node), self.plan.devices(node)
        hops = [hop for hop in self.plan.hops if hop.at == node]
        width = 32 if self.plan.hops else 16
        return [
            "link set dev lo up",
            *([f"address add {address}/{width} dev {devices[0]}"] if devices else []),
            *(f"link set dev {device} up" for device in devices),
            # neighbours first: the others are reached through them
            *(
                _route(self.plan, hop.to, hop.device, hop.via)
                for hop in sorted(hops, key=lambda hop: hop.via or "")
            ),
        ]


def _route(plan: Plan, to: str, device: str, via: str | None) -> str:
    gateway = f"via {plan.address(via)} onlink " if via else ""
    return f"route add {plan.address(to)}/32 {gateway}dev {device}"


def _configure() -> None:
    for name, value in _SETTINGS.items():
        # older kernels lack some of them, and containers with a read-only /proc/sys forbid all
        with contextlib.suppress(OSError), open(f"/proc/sys/net/{name}", "w") as file:
            file.write(value)


def _batch(program: str, lines: list[str], files: Iterable[int]) -> None:
    done = subprocess.run(
        [program, "-force", "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        pass_fds=list(files),
        env={**os.environ, "PATH": search_path()},
    )
    if done.returncode:
        said = next(filter(None, map(str.strip, done.stderr.splitlines())), f"exit status {done.returncode}")
        raise LabkitError(f"The network could not be made: {program} says {said!r}.")


def _qdiscs() -> dict[str, dict[str, int]]:
    """Counts of the qdiscs at the root of the present network's devices."""
    done = subprocess.run(
        ["tc", "-s", "-j", "qdisc", "show"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": search_path()},
    )
    if done.returncode:
        raise LabkitError(f"The queues could not be read: tc says {done.stderr.strip()!r}.")
    return {
        one["dev"]: {name: one[name] for name in ("bytes", "packets", "drops", "backlog")}
        for one in json.loads(done.stdout)
        if one.get("root")
    }


def search_path() -> str:
    """Where ``ip`` and ``tc`` are, also for users whose path lacks the administrators' folders."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def trial() -> None:
    """A wire, a bridge and a shape in the present network; fails where something that clusters need is lacking."""
    _batch("ip", ["link add name probe0 type veth peer name probe1", "link add name probe2 type bridge"], ())
    _batch("tc", ["qdisc replace dev probe0 root tbf rate 1000000bit burst 66000 limit 1048576"], ())
