"""What the compiler gives each shipped kernel: registers, shared and local memory, by architecture.

The record, kernels/registers.json, is the compiler's own report, made without a GPU. ``python -m
labkit.compute.registers`` compiles all kernels and tells what differs from it, ``--write`` replaces it.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from labkit.compute import child
from labkit.errors import LabkitError
from labkit.hardware.catalog import gpu as catalogued
from labkit.hardware.records import GPU

RECORD = Path(__file__).parent / "kernels" / "registers.json"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
# Distributions that decide what comes out; CUDA 12 names NVIDIA's differently, so its figures are not compared.
COMPILER = ("numba", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")
LIMIT_S = 300.0  # for one architecture; some ten seconds are usual
AT_A_TIME = 2


# -- reading -------------------------------------------------------------------------------------------------------


@cache
def record() -> dict[str, Any]:
    """The record: ``compiler`` (distribution to version) and ``kernels`` (name to architecture to usage)."""
    return json.loads(RECORD.read_text("utf-8"))


def usage(kernel: Any, gpu: str | GPU = "A100") -> dict[str, Any] | None:
    """What a shipped kernel uses on a card, by the compiler; None for other kernels and for older cards.

    Parameters
    ----------
    kernel : kernel or str
        A kernel of labkit.compute.kernels, or its name, such as ``"matmul.matmul_tiled"``.
    gpu : str or GPU
        A card of the catalogue; the newest recorded architecture that is not newer than the card stands for it.

    Returns
    -------
    dict
        ``registers``, ``local_bytes``, ``spill_stores``, ``spill_loads`` (bytes) a thread, ``shared_bytes`` a block,
        and the ``architecture`` compiled for.

    Raises
    ------
    LabkitError
        For a card that is not in the catalogue.
    """
    found = record()["kernels"].get(kernel if isinstance(kernel, str) else name_of(kernel))
    architecture = architecture_for(catalogued(gpu).compute_capability)
    return {"architecture": architecture, **found[architecture]} if found and architecture else None


def name_of(kernel: Any) -> str:
    """``module.kernel`` for a kernel of labkit.compute.kernels; empty for any other."""
    function = getattr(kernel, "py_func", None)
    if function is None:
        return ""
    package, _, module = (function.__module__ or "").rpartition(".")
    return f"{module}.{function.__name__}" if package == "labkit.compute.kernels" else ""


def architecture_for(capability: str) -> str | None:
    """The newest recorded architecture that a compute capability such as ``"8.6"`` is not older than."""
    if not capability.replace(".", "").isdigit():
        return None  # not one of NVIDIA's
    known = {int(a.removeprefix("sm_")): a for a in ARCHITECTURES}
    older = [n for n in known if n <= round(float(capability) * 10)]
    return known[max(older)] if older else None


# -- making --------------------------------------------------------------------------------------------------------


def compiler() -> dict[str, str]:
    """The versions that compile here; "absent" for what is not installed."""
    return {name: _version(name) for name in COMPILER}


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"


def compile_all(architectures: tuple[str, ...] = ARCHITECTURES) -> dict[str, Any]:
    """A new record: every shipped kernel compiled for every architecture, in a process for each of those.

    A kernel that does not compile has ``error``, the compiler's words, in place of its usage.
    """
    ask = lambda a: child.ask("labkit.compute.kernel_compiler", {"architecture": a}, LIMIT_S)  # noqa: E731
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        answers = dict(zip(architectures, pool.map(ask, architectures), strict=True))
    names = answers[architectures[0]]
    kernels = {name: {a: answers[a][name] for a in architectures} for name in names}
    return {"compiler": compiler(), "kernels": kernels}


def failures(made: dict[str, Any]) -> list[str]:
    """A line for each kernel and architecture that does not compile."""
    return [
        f"{name} does not compile for {architecture}: {used['error']}"
        for name, by_architecture in made["kernels"].items()
        for architecture, used in by_architecture.items()
        if "error" in used
    ]


def drift(made: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """A line for each difference between two records by the same compiler; none when compilers differ."""
    if made["compiler"] != recorded["compiler"]:
        return []
    old, new = recorded["kernels"], made["kernels"]
    return [
        f"{name}, {architecture}: {old.get(name, {}).get(architecture)} is recorded, but it is now {used}"
        for name in sorted(old.keys() | new.keys())
        for architecture in ARCHITECTURES
        if (used := new.get(name, {}).get(architecture)) != old.get(name, {}).get(architecture)
    ]


def write(made: dict[str, Any]) -> None:
    """Replace the record, a line for each kernel and architecture so that a difference is easy to read."""
    rows = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"   {json.dumps(a)}: {json.dumps(used)}" for a, used in by_architecture.items())
        + "}"
        for name, by_architecture in made["kernels"].items()
    ]
    head = f'{{"compiler": {json.dumps(made["compiler"])},\n "kernels": {{\n'
    RECORD.write_text(head + ",\n".join(rows) + "}}\n", "utf-8")


def main(arguments: list[str]) -> int:
    """Compile, then compare with the record or replace it; 0 when all is well."""
    if arguments not in ([], ["--write"]):
        raise LabkitError("python -m labkit.compute.registers takes no argument, or --write.")
    made = compile_all()
    if wrong := failures(made):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if arguments:
        write(made)
        print(f"{len(made['kernels'])} kernels recorded in {RECORD}.")
        return 0
    recorded = record()
    different = drift(made, recorded)
    if made["compiler"] != recorded["compiler"]:
        different = []
        print(
            f"All compile. The record is of another compiler: {recorded['compiler']}; here {made['compiler']}."
        )
    print("\n".join(different) or f"{len(made['kernels'])} kernels compile.")
    return 1 if different else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LabkitError as error:
        sys.exit(str(error))
