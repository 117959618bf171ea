"""The ``labkit`` command: a door that imports only the room it opens.

Each sub-command is a function ``main(arguments) -> exit status`` in the module that owns it.
"""

from __future__ import annotations

import difflib
import importlib
import sys

from labkit.errors import LabkitError

# command -> (module:function, one line of help)
COMMANDS = {
    "lab": ("labkit.course.lab:main", "open JupyterLab at the first lesson"),
    "doctor": ("labkit.hardware.doctor:main", "is this stack healthy, and what will the lessons use"),
    "read": (
        "labkit.widgets.read:main",
        "read a pasted report: nvidia-smi, topo, collect_env, NCCL, ... (--json)",
    ),
    "run": (
        "labkit.compute.run:main",
        "run a numba.cuda script or notebook, on the emulator if there is no GPU",
    ),
    "cluster": (
        "labkit.network.cluster.cli:main",
        "virtual machines and links: up, run, status, down, clean",
    ),
    "submit": (
        "labkit.network.submit.cli:main",
        "run a script on several nodes: torchrun, or a real Slurm (--dry-run)",
    ),
    "exercises": ("labkit.course.cli:exercises", "list the exercises (--json for tools)"),
    "progress": ("labkit.course.cli:progress", "what you have passed so far"),
    "author": ("labkit.course.cli:author", "for authors: sync exercises/ from solutions/, verify the checks"),
    "bench": ("labkit.bench:main", "benchmarks, each against its peer in the same run"),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "usage: labkit COMMAND [options]\n\n" + "\n".join(lines) + "\n\nlabkit COMMAND --help tells more."


def main(arguments: list[str] | None = None) -> int:
    """Run one sub-command; 0 when all is well, 2 for a command line that cannot be understood."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        from labkit import __version__

        print(f"labkit {__version__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f" Did you mean 'labkit {near[0]}'?" if near else ""
        print(f"labkit: there is no command '{name}'.{hint} 'labkit --help' lists them.", file=sys.stderr)
        return 2
    module, function = COMMANDS[name][0].split(":")
    try:
        return int(getattr(importlib.import_module(module), function)(rest) or 0)
    except LabkitError as error:
        print(f"labkit {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
