"""``labkit cluster``: up, run, call, link, status, down, clean."""

from __future__ import annotations

import argparse
import json
import os
import time

from labkit.errors import LabkitError
from labkit.network.cluster import factory, handle, probe, report, shaping, state, topologies, torchrun

_DOWN_S = 5.0


def main(arguments: list[str]) -> int:
    """One action; 0 when it is done, 2 for what cannot be."""
    options = _parser().parse_args(arguments)
    return int(options.action(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="labkit cluster", description="Virtual machines on this one, joined by links of a chosen speed."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="make a cluster that stays until it is taken down")
    network_options(up)
    up.add_argument("--name", default="lab")
    up.set_defaults(action=_up)
    _add_run(actions.add_parser("run", help="run a script under torchrun on every node"))
    call = actions.add_parser("call", help="run a program in one node: labkit cluster call n0 ping n1")
    call.add_argument("--name", default="lab")
    call.add_argument("node")
    call.add_argument("program", nargs=argparse.REMAINDER)
    call.set_defaults(action=_call)
    _add_link(actions.add_parser("link", help="change the links between two nodes"))
    status = actions.add_parser("status", help="clusters, nodes, links and what they carry")
    status.add_argument("--json", action="store_true")
    status.set_defaults(action=_status)
    down = actions.add_parser("down", help="take a cluster down, with everything in it")
    down.add_argument("name", nargs="?", default="lab")
    down.set_defaults(action=_down)
    clean = actions.add_parser("clean", help="sweep what clusters of yours left whose processes were killed")
    clean.set_defaults(action=_clean)
    return parser


def network_options(parser: argparse.ArgumentParser) -> None:
    """The options that describe a network, as `labkit.cluster` takes them."""
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--topology", choices=topologies.TOPOLOGIES, default="switch")
    parser.add_argument("--bandwidth", help="of every node's cable, such as 1Gbit/s (default: not limited)")
    parser.add_argument("--latency", help="of every cable, one way, such as 50us; needs netem")
    parser.add_argument("--loss", default=0.0, help="share of packets lost, such as 1%%; needs netem")
    parser.add_argument("--leaf-size", type=int, help="nodes a leaf switch of a tree")
    parser.add_argument("--oversubscription", type=float, default=1.0, help="of a tree's uplinks")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="lab")
    parser.add_argument("--ranks-per-node", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script and its arguments")
    parser.set_defaults(action=_run)


def _add_link(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="lab")
    parser.add_argument("first")
    parser.add_argument("second", nargs="?")
    parser.add_argument("--bandwidth")
    parser.add_argument("--latency")
    parser.add_argument("--loss")
    parser.add_argument("--queue", help="bytes that wait at most, such as 64KiB")
    parser.add_argument("--cut", action="store_true")
    parser.add_argument("--heal", action="store_true")
    parser.set_defaults(action=_link)


def raise_up(options: argparse.Namespace, name: str, owned: bool) -> handle.Handle:
    """Make the network that the options describe.

    Raises
    ------
    LabkitError
        With what is missing, where networks cannot be made.
    """
    plan, _ = factory.described(
        options.nodes,
        options.topology,
        options.bandwidth,
        options.latency,
        options.loss,
        leaf_size=options.leaf_size,
        oversubscription=options.oversubscription,
    )
    able = probe.ability()
    if able.mode is None:
        raise LabkitError(
            f"{able.missing} In notebooks, labkit.ranks(n, link=...) emulates a link without it."
        )
    if note := shaping.note([wire.shape for wire in plan.wires], able.netem):
        print(note)
    return handle.start(
        shaping.possible(plan, able.netem), name=name, mode=able.mode, netem=able.netem, owned=owned
    )


def _up(options: argparse.Namespace) -> int:
    began = time.monotonic()
    made = raise_up(options, options.name, owned=False)
    print(
        f"{made.place.name}: {len(made.plan.nodes)} nodes, {made.plan.topology}, up in {time.monotonic() - began:.2f} s"
    )
    made.close()
    return 0


def _run(options: argparse.Namespace) -> int:
    if not options.program:
        raise LabkitError("Say what to run: labkit cluster run script.py argument ...")
    found = handle.attach(options.name)
    try:
        return torchrun.launch(
            found, options.program, ranks_per_node=options.ranks_per_node, restarts=options.restarts
        )
    finally:
        found.close()


def _call(options: argparse.Namespace) -> int:
    found = handle.attach(options.name)
    if options.node not in found.plan.nodes or not options.program:
        raise LabkitError("Name a node and a program: labkit cluster call n0 ping -c 1 n1")
    command, files = found.command(options.node, options.program)
    for file in files:
        os.set_inheritable(file, True)
    os.execve(command[0], command, found.environment())


def _link(options: argparse.Namespace) -> int:
    from labkit.network.cluster.machine import Cluster

    cluster = Cluster(handle.attach(options.name))
    link = cluster.link(options.first, options.second)
    names = ("bandwidth", "latency", "loss", "queue")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if given:
        link.set(**given)
    if options.cut or options.heal:
        (link.cut if options.cut else link.heal)()
    print(link)
    cluster.close()
    return 0


def _status(options: argparse.Namespace) -> int:
    found = report.snapshot()
    print(json.dumps(found, indent=1) if options.json else report.text(found))
    return 0


def _down(options: argparse.Namespace) -> int:
    found = handle.attach(options.name)
    found.ask(do="down")
    limit = time.monotonic() + _DOWN_S
    while found.place.path.exists() and time.monotonic() < limit:
        time.sleep(0.01)
    found.close()
    print(f"{found.place.name} is down.")
    return 0


def _clean(options: argparse.Namespace) -> int:
    swept = state.clean()
    print("\n".join(f"swept {one}" for one in swept) if swept else "There was nothing to sweep.")
    return 0
