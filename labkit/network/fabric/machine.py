"""``labkit.fabric("dgx-h100", nodes=4).all_reduce("64MiB")``: a fabric by name, and the collectives on it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.fabric import collectives, custom, pasted, protocols, shapes, systems
from labkit.network.fabric.execute import Outcome, execute
from labkit.network.fabric.metrics import Metrics, metrics
from labkit.network.fabric.result import CollectiveResult, LinkLoads, Timeline
from labkit.network.fabric.schedule import Schedule, from_list
from labkit.network.fabric.team import Team, team
from labkit.network.fabric.topology import Topology, whole

if TYPE_CHECKING:
    from labkit.network.fabric.calibration import Calibration
    from labkit.telemetry.recording import Recording

SHAPES: dict[str, Callable[..., Topology]] = {
    "star": shapes.star,
    "ring": shapes.ring,
    "full-mesh": shapes.full_mesh,
    "torus": shapes.torus,
    "torus-2d": lambda dims=(4, 4), **more: shapes.torus(dims, **more),
    "torus-3d": lambda dims=(4, 4, 4), **more: shapes.torus(dims, **more),
    "leaf-spine": shapes.leaf_spine,
    "fat-tree": shapes.fat_tree,
    "dragonfly": shapes.dragonfly,
    "pcie-tree": shapes.pcie_tree,
    "rail": systems.rail,
}
LARGE = 2.0**36  # bytes; large enough that what a message costs beside its bytes no longer shows
FILES = (".yaml", ".yml", ".txt", ".log", ".xml")
CHUNKS = {"double-tree": 32, "chain": 16, "nvls": 16, "in-switch": 16}


def fabric(name: str | os.PathLike[str] | Topology, **shape: Any) -> Fabric:
    """A fabric to simulate on.

    Parameters
    ----------
    name : str, path or Topology
        A server: ``dgx-v100``, ``dgx-a100``, ``dgx-h100``, ``hgx-b200``, ``nvl72``, ``bm-gpu4-8`` (with `nodes`,
        `network`, `oversubscription`); a shape: ``star``, ``ring``, ``full-mesh`` (`nodes`), ``torus`` (`dims`),
        ``leaf-spine`` (`racks`, `hosts`, `spines`, `oversubscription`), ``fat-tree`` (`k`, `oversubscription`),
        ``dragonfly`` (`groups`, `routers`, `hosts`), ``pcie-tree``, ``rail`` (`nodes`, `server`), most of them with
        `link`, `bandwidth`, `latency`; or a file, or its text: YAML
        (see `labkit.network.fabric.custom`), ``nvidia-smi topo -m`` (with `gpu`, the card) or NCCL's topology XML.

    Raises
    ------
    LabkitError
        For an unknown name (the nearest are suggested), and numbers that make no sense.

    Examples
    --------
    >>> labkit.fabric("star", nodes=4, bandwidth="1GB/s", latency="5us").all_reduce("1MB").seconds
    0.00156
    """
    if isinstance(name, Topology):
        return Fabric(name)
    if isinstance(name, str) and name.lower().replace("_", "-") in {*SHAPES, *systems.systems()}:
        name = name.lower().replace("_", "-")
    if not isinstance(name, str) or "\n" in name or os.path.splitext(name)[1] in FILES:
        return Fabric(_from_file(name, **shape))
    maker = SHAPES.get(name) or (_server(name) if name in systems.systems() else None)
    if maker is None:
        known = [*SHAPES, *systems.systems()]
        near = difflib.get_close_matches(name.lower(), known, 1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise LabkitError(
            f"There is no fabric {name!r}. {hint}Known are {', '.join(known)}, or a .yaml file."
        )
    try:
        return Fabric(maker(**shape))
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise LabkitError(f"The fabric {name!r} cannot be built: {str(error).split('() ')[-1]}.") from None


def _from_file(source: str | os.PathLike[str], gpu: str | None = None) -> Topology:
    """YAML, or a report of nvidia-smi or NCCL; the text itself, or a file."""
    text = custom.text_of(source)[0]
    return pasted.from_report(text, gpu) if pasted.is_report(text) else custom.from_yaml(source)


def _server(name: str) -> Callable[..., Topology]:
    return lambda **shape: systems.cluster(name, **shape)


@dataclass(frozen=True, eq=False)
class Fabric:
    """A topology, and the collectives one can try on it. All times are simulated.

    Every operation takes

    size : str or float
        ``"64MiB"``, or bytes: of the larger of a rank's two buffers, as in nccl-tests.
    algorithm : str
        See `labkit.network.fabric.collectives.ALGORITHMS`.
    ranks, placement, groups
        How many ranks, on which GPUs, working together how: see `labkit.network.fabric.team.team`.
    chunks : int, optional
        Pieces the data is pipelined in; 1 unless the algorithm lives on them.
    protocol, routing : str, optional
        See `labkit.network.fabric.protocols.named` and `labkit.network.fabric.routing.routes`.
    seed : int
        Of ECMP's hash and of a random placement.
    fold : bool
        Simulate messages that are exactly alike once. The result is the same.
    timeline : bool
        Keep when every message started and arrived (which excludes folding).
    """

    topology: Topology
    calibration: Calibration | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Fabric({self.topology.name}: {len(self.topology.gpus)} GPUs, {len(self.topology.links.names)} links)"

    @property
    def name(self) -> str:
        return self.topology.name

    @property
    def graph(self) -> Any:
        """The networkx graph: a copy, to look at and to change."""
        return self.topology.graph.copy()

    def metrics(self) -> Metrics:
        """Hops between GPUs, and the bandwidth between the first and the second half of them."""
        return metrics(self.topology)

    def calibrated(self, calibration: Calibration | None) -> Fabric:
        """The same fabric with fitted constants (see `calibrate`); None takes them off."""
        return replace(self, calibration=calibration)

    def all_reduce(self, size: str | float, algorithm: str = "ring", **options: Any) -> CollectiveResult:
        """Everyone ends with the sum of what all began with."""
        return self._collective("all_reduce", size, algorithm, **options)

    def reduce_scatter(self, size: str | float, algorithm: str = "ring", **options: Any) -> CollectiveResult:
        """Everyone ends with its share of the sum; `size` is what each begins with."""
        return self._collective("reduce_scatter", size, algorithm, **options)

    def all_gather(self, size: str | float, algorithm: str = "ring", **options: Any) -> CollectiveResult:
        """Everyone ends with the shares of all; `size` is what each ends with."""
        return self._collective("all_gather", size, algorithm, **options)

    def broadcast(self, size: str | float, algorithm: str = "tree", **options: Any) -> CollectiveResult:
        """Everyone ends with what the first rank began with."""
        return self._collective("broadcast", size, algorithm, **options)

    def all_to_all(self, size: str | float, algorithm: str = "pairwise", **options: Any) -> CollectiveResult:
        """Everyone sends an n-th of its `size` to everyone."""
        return self._collective("all_to_all", size, algorithm, **options)

    def limit(self, operation: str = "all_reduce", algorithm: str | None = None, **options: Any) -> float:
        """Algorithm bandwidth, bytes/s, that sizes grow into: how many more bytes a second more of time moves."""
        if operation not in collectives.ALGORITHMS:
            raise LabkitError(f"{operation!r} is no collective: use {', '.join(collectives.ALGORITHMS)}.")
        way = {} if algorithm is None else {"algorithm": algorithm}
        once, twice = (
            getattr(self, operation)(size, **way, **options).seconds for size in (LARGE, 2 * LARGE)
        )
        return float(LARGE / (twice - once))

    def recording(
        self,
        results: CollectiveResult | Mapping[str, CollectiveResult],
        lanes: str | list[str] = "classes",
        seconds: float = 20.0,
    ) -> Recording:
        """The load of links over simulated time, for ``labkit.replay``: see `labkit.network.fabric.link_use`."""
        from labkit.network.fabric import link_use

        return link_use.recording(self, results, lanes, seconds)

    def run(
        self,
        messages: Sequence[tuple[int, int, Any, Sequence[int]]],
        name: str = "own schedule",
        **options: Any,
    ) -> CollectiveResult:
        """A schedule of your own: (source rank, target rank, size, [numbers of the messages it waits for]).

        Raises
        ------
        LabkitError
            For messages that wait for each other in a circle, and ranks that do not exist.
        """
        mates, options = _team(self.topology, options)
        rows = [(*_ends(row, len(mates.nodes)), parse(row[2], "size"), list(row[3])) for row in messages]
        total = sum(size for _, _, size, _ in rows)
        return self._run("run", total, name, mates, from_list(mates.nodes, rows), **options)

    def _collective(
        self, operation: str, size: str | float, algorithm: str, **options: Any
    ) -> CollectiveResult:
        plan_for, count = collectives.algorithm(operation, algorithm), parse(size, "size")
        asked = {key: value for key, value in options.items() if key != "timeline"}
        mates, options = _team(self.topology, options)
        own = {key: options.pop(key) for key in ("in_order", "columns") if key in options}
        try:
            plan = plan_for(mates, count, **own)
        except TypeError:
            raise LabkitError(f"The {algorithm} {operation} takes no {' or '.join(own)}.") from None
        result = self._run(operation, count, algorithm, mates, plan, **options)
        if self.calibration is None:
            return result
        plain = self.calibrated(None)
        return self.calibration.applied(result, plain.limit(operation, algorithm=algorithm, **asked))

    def _run(
        self,
        operation: str,
        size: float,
        algorithm: str,
        mates: Team,
        plan: Any,
        *,
        chunks: int | None = None,
        protocol: str = "ideal",
        routing: str | None = None,
        seed: int = 0,
        fold: bool = True,
        timeline: bool = False,
    ) -> CollectiveResult:
        pieces = whole(CHUNKS.get(algorithm, 1) if chunks is None else chunks, "chunks")
        policy, shape = routing or self.topology.routing, "tree" if "tree" in algorithm else "ring"
        chosen = protocols.named(protocol, shape)
        outcome = execute(self.topology, plan, chosen, policy, seed, pieces, fold and not timeline)
        links = self.topology.links
        busy = (
            outcome.link_bytes / links.capacity / outcome.seconds if outcome.seconds else 0 * links.capacity
        )
        rate = size / outcome.seconds if outcome.seconds else float("inf")
        factor = 1.0 if operation == "run" else collectives.bus_factor(operation, mates.size)
        return CollectiveResult(
            operation=operation,
            algorithm=algorithm,
            fabric=self.name,
            ranks=mates.groups.size,
            size_bytes=size,
            seconds=outcome.seconds,
            algorithm_bandwidth=rate,
            bus_bandwidth=rate * factor,
            protocol=chosen.name,
            routing=policy,
            chunks=pieces,
            messages=outcome.messages,
            simulated=outcome.simulated,
            links=LinkLoads(links.names, links.kinds, outcome.link_bytes, busy),
            timeline=_timeline(self.topology, outcome) if timeline else None,
        )


def _team(topology: Topology, options: dict[str, Any]) -> tuple[Team, dict[str, Any]]:
    rest = dict(options)
    chosen = {key: rest.pop(key) for key in ("placement", "ranks", "groups") if key in rest}
    return team(topology, seed=rest.get("seed", 0), **chosen), rest


def _ends(row: Sequence[Any], ranks: int) -> tuple[int, int]:
    for rank in row[:2]:
        if not isinstance(rank, (int, np.integer)) or not 0 <= rank < ranks:
            raise LabkitError(f"{rank!r} is no rank: they are 0 to {ranks - 1}.")
    return int(row[0]), int(row[1])


def _timeline(topology: Topology, outcome: Outcome) -> Timeline:
    schedule: Schedule = outcome.schedule
    names, messages = list(topology.graph.nodes), schedule.messages
    return Timeline(
        source=tuple(names[schedule.places[place]] for place in messages.source[schedule.which]),
        target=tuple(names[schedule.places[place]] for place in messages.target[schedule.which]),
        bytes=messages.size[schedule.which],
        start_s=outcome.start,
        finish_s=outcome.finish,
        links=outcome.routes,
    )
