"""`labkit.cluster`: from what a learner asks for to nodes that are up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.cluster import handle, probe, shaping, topologies
from labkit.network.cluster.emulated import EmulatedCluster
from labkit.network.cluster.machine import Cluster
from labkit.network.cluster.plan import Plan, Shape
from labkit.network.context import inside_rank

_number = itertools.count(1)


def cluster(
    nodes: int,
    topology: str = "switch",
    bandwidth: float | str | None = None,
    latency: float | str | None = None,
    loss: float | str = 0.0,
    *,
    leaf_size: int | None = None,
    oversubscription: float = 1.0,
    dimensions: Sequence[int] | None = None,
    name: str | None = None,
) -> Cluster | EmulatedCluster:
    """So many virtual machines on this one, joined by links of a chosen speed.

    Each node is a network namespace with a name (``n0``, ``n1``, ...) and an address; links are veth pairs, held
    to their bandwidth at both ends. Needs Linux, and root or user namespaces; without them, ranks on one machine
    with emulated links stand in, and the cluster says so.

    Parameters
    ----------
    nodes : int
        1 to 64.
    topology : {"switch", "tree", "ring", "torus"}
        One switch; two levels of switches; nodes wired to nodes in one or two dimensions.
    bandwidth : float or str, optional
        Of every node's cable, each way: ``"1Gbit/s"``, or bytes/s. Headers count, as on a real wire. After a pause
        a first burst, of 1 ms or 128 KiB, passes at once, so small messages are faster than the line.
    latency : float or str, optional
        Of every cable, one way: ``"50us"``. Needs a kernel with netem; without it, the cluster's ``note`` says so.
    loss : float or str
        Share of packets lost on every cable: 0.01 or ``"1%"``. Needs netem.
    leaf_size, oversubscription
        Of a tree: nodes a leaf switch, and how many times too small its uplink is.
    dimensions : two int, optional
        Of a torus.
    name : str, optional
        By which ``labkit cluster status`` shows it.

    Raises
    ------
    LabkitError
        For what makes no network, a name that is taken, or a system that refuses; nothing is left then.
    """
    if inside_rank():
        raise LabkitError("labkit.cluster(...) was called inside a rank: make the cluster in the notebook.")
    plan, shape = described(
        nodes, topology, bandwidth, latency, loss, leaf_size=leaf_size, oversubscription=oversubscription,
        dimensions=dimensions,
    )  # fmt: skip
    able = probe.ability()
    if able.mode is None:
        stand_in = EmulatedCluster(plan.nodes, shape.bandwidth, shape.latency, able.missing)
        print(f"[labkit] emulated: {stand_in.note}")
        return stand_in
    note = shaping.note([wire.shape for wire in plan.wires], able.netem)
    if note:
        print(f"[labkit] {note}")
    named = f"notebook{next(_number)}" if name is None else name
    made = handle.start(
        shaping.possible(plan, able.netem),
        name=named,
        mode=able.mode,
        netem=able.netem,
        owned=True,
        unique=name is not None,
    )
    return Cluster(made, note)


def attach(name: str) -> Cluster:
    """A cluster that ``labkit cluster up`` has made, from Python; closing it leaves it up.

    Raises
    ------
    LabkitError
        When none of this user has the name.
    """
    return Cluster(handle.attach(name))


def described(
    nodes: int,
    topology: str,
    bandwidth: float | str | None,
    latency: float | str | None,
    loss: float | str,
    *,
    leaf_size: int | None = None,
    oversubscription: float = 1.0,
    dimensions: Sequence[int] | None = None,
) -> tuple[Plan, Shape]:
    """The network that is asked for, and the shape of a node's cable; errors as `cluster`."""
    shape = shaping.check(
        Shape(
            None if bandwidth is None else parse(bandwidth, "rate"),
            parse(latency or 0.0, "time"),
            shaping.share(loss),
        )
    )
    plan = topologies.plan(
        nodes, topology, shape, leaf_size=leaf_size, oversubscription=oversubscription, dimensions=dimensions
    )
    return plan, shape
