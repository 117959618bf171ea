"""``labkit submit script.py --nodes 2 --via torchrun|slurm|kubernetes [--dry-run]``."""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.cluster import cli as cluster_cli
from labkit.network.cluster import handle, torchrun
from labkit.network.submit import kubernetes, slurm
from labkit.network.submit.job import PORT, Job

_IMAGE = "IMAGE"  # what stands in a manifest that is only shown


def main(arguments: list[str]) -> int:
    """Show or run a job; its exit status, 2 for what cannot be."""
    options = _read(arguments)
    job = _job(options)
    if options.dry_run:
        print(_shown(job, options), end="")
        return 0
    if not Path(job.script).is_file():
        raise LabkitError(f"There is no script {job.script!r} here.")
    if options.via == "slurm":
        return slurm.submit(job, options.wait)
    if options.via == "kubernetes" and options.image == _IMAGE:
        raise LabkitError("Pods need a container image with the script in it: name it with --image.")
    return kubernetes.submit(job, options.image) if options.via == "kubernetes" else _torchrun(job, options)


def _read(arguments: list[str]) -> argparse.Namespace:
    """The options, with ``script`` and its ``arguments``.

    Behind a script that comes first stand our options, then the script's own: those we do not know, and all after
    ``--``. Behind one that comes after an option everything is the script's, as with torchrun.
    """
    parser = _parser()
    if not arguments or arguments[0].startswith("-"):
        parser.add_argument("script")
        parser.add_argument("arguments", nargs=argparse.REMAINDER)
        return parser.parse_args(arguments)
    script, *rest = arguments
    end = rest.index("--") if "--" in rest else len(rest)
    options, theirs = parser.parse_known_args(rest[:end])
    options.script, options.arguments = script, [*theirs, *rest[end + 1 :]]
    return options


def _shown(job: Job, options: argparse.Namespace) -> str:
    if options.via == "slurm":
        return slurm.script(job)
    return kubernetes.manifest(job, options.image) if options.via == "kubernetes" else _commands(job, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="labkit submit",
        description="Run a script under torchrun on several nodes: virtual ones, this and other machines, Slurm's or "
        "Kubernetes'.",
        epilog="The script may also come first; its own arguments then stand after --. torchrun: without --endpoint, "
        "on the cluster of --cluster, or on one made for this job.",
        allow_abbrev=False,  # an abbreviation of ours may be an option of the script's
    )
    cluster_cli.network_options(parser)
    parser.set_defaults(nodes=1)
    parser.add_argument("--via", choices=("torchrun", "slurm", "kubernetes"), default="torchrun")
    parser.add_argument("--ranks-per-node", type=int, default=1)
    parser.add_argument("--gpus-per-node", type=int, default=0)
    parser.add_argument("--cpus-per-rank", type=int, default=1)
    parser.add_argument("--memory", help="of a node, such as 16GiB")
    parser.add_argument("--time", help="limit, such as 30min")
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--name", help="of the job (default: the script's)")
    parser.add_argument("--output", default="%x-%j.out", help="slurm: file for what the job prints")
    parser.add_argument("--wait", action="store_true", help="slurm: until the job has ended")
    parser.add_argument(
        "--endpoint", help="torchrun: HOST or HOST:PORT of the first machine; this is one of them"
    )
    parser.add_argument(
        "--image", default=_IMAGE, help="kubernetes: the container image with the script in it"
    )
    parser.add_argument("--cluster", help="torchrun: a cluster of 'labkit cluster up'")
    parser.add_argument("--dry-run", action="store_true", help="show the commands or the script, run nothing")
    return parser


def _job(options: argparse.Namespace) -> Job:
    return Job(
        script=options.script,
        arguments=tuple(options.arguments),
        nodes=options.nodes,
        ranks_per_node=options.ranks_per_node,
        gpus_per_node=options.gpus_per_node,
        cpus_per_rank=options.cpus_per_rank,
        memory=None if options.memory is None else parse(options.memory, "size"),
        time=None if options.time is None else parse(options.time, "time"),
        restarts=options.restarts,
        name=options.name or Path(options.script).stem,
        output=options.output,
    )


def _commands(job: Job, options: argparse.Namespace) -> str:
    if job.nodes == 1:
        return shlex.join(job.torchrun(None)) + "\n"
    endpoint = _endpoint(options.endpoint or "HOST")
    where = "" if options.endpoint else f"; HOST is the first one's name, whose port {PORT} the others reach"
    return f"# on each of the {job.nodes} nodes{where}\n{shlex.join(job.torchrun(endpoint))}\n"


def _endpoint(told: str) -> str:
    host, _, port = told.partition(":")
    if not host or not (port or "1").isdecimal():
        raise LabkitError(f"{told!r} is not HOST or HOST:PORT, such as node01:{PORT}.")
    return f"{host}:{port or PORT}"


def _torchrun(job: Job, options: argparse.Namespace) -> int:
    if options.endpoint or (job.nodes == 1 and options.cluster is None):
        endpoint = None if job.nodes == 1 else _endpoint(options.endpoint)
        return subprocess.run(job.torchrun(endpoint), check=False).returncode
    found = (
        handle.attach(options.cluster)
        if options.cluster
        else cluster_cli.raise_up(options, job.name, owned=True)
    )
    try:
        if len(found.plan.nodes) != job.nodes:
            raise LabkitError(
                f"The cluster {found.place.name!r} has {len(found.plan.nodes)} nodes, and the job wants {job.nodes}."
            )
        program = [job.script, *job.arguments]
        return torchrun.launch(found, program, ranks_per_node=job.ranks_per_node, restarts=job.restarts)
    finally:
        found.close()
