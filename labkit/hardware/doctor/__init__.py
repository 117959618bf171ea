"""Is this stack healthy, and what will the lessons use?

Everything is found out from metadata and files, and from the driver itself; neither torch nor numba is
imported, so a broken one is reported and not met.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from labkit.errors import LabkitError
from labkit.hardware.devices import here
from labkit.hardware.doctor import (
    accelerator,
    frontend,
    interconnect,
    limits,
    namespaces,
    nccl,
    nodes,
    packages,
    runtime,
    smi,
)
from labkit.hardware.doctor.report import Finding, Report

Check = Callable[[], Finding | Iterable[Finding] | None]  # None: nothing to say on this machine
__all__ = ["Finding", "Report", "doctor", "main"]

# distribution, what people call it, what stops without it
_NEEDED = (
    ("numpy", "NumPy", "Nothing runs without it."),
    ("ipykernel", "IPython kernel", "Notebooks cannot run Python from this environment."),
    ("ipywidgets", "ipywidgets", "No live plot and no check buttons."),
    ("anywidget", "anywidget", "No live plot and no check buttons."),
    ("plotly", "Plotly", "The lessons' figures cannot be drawn."),
    ("numba", "Numba", "The lessons' CPU timings need its compiler."),
    ("psutil", "psutil", "The live plot cannot show what the CPU does."),
    ("PyWavelets", "PyWavelets", "The photograph of lesson 01 comes with it."),
)


def doctor() -> Report:
    """Look at this machine and its software.

    Returns
    -------
    Report
        Its first line says what the lessons will use. Shows itself as a table in a notebook; `status` is 0
        with a usable GPU, 1 on the emulator, 2 when lessons cannot run.
    """
    findings = tuple(finding for check in _checks() for finding in _guarded(check))
    broken = [finding.name for finding in findings if finding.state == "error"]
    if broken:
        return Report(f"The lessons cannot run yet. To mend first: {', '.join(broken)}.", "", findings)
    machine = here()
    return Report(machine.headline, machine.backend, findings)


def main(arguments: list[str]) -> int:
    """``labkit doctor [--json]``: print the report, and exit with its status."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="labkit doctor",
        description="Is this stack healthy, and what will the lessons use?",
        epilog="Exit status: 0 with a usable GPU, 1 on the emulator, 2 when lessons cannot run.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="diagnose another machine from its reports"
    )
    options = parser.parse_args(arguments)
    as_json = options.json
    if options.source:
        from labkit.hardware.diagnosis import doctor_from

        return doctor_from(options.source, as_json)
    report = doctor()
    print(json.dumps(report.to_dict(), indent=2) if as_json else report)
    return report.status


def _checks() -> list[Check]:
    gpu_here = accelerator.gpu_here()
    needed: list[Check] = [lambda entry=entry: packages.required(*entry) for entry in _NEEDED]  # type: ignore[misc]
    return [
        accelerator.gpu,
        accelerator.compiler,
        accelerator.choice,
        runtime.driver,
        runtime.builds,
        lambda: runtime.toolkit(gpu_here),
        nodes.device_nodes,
        nodes.visible,
        lambda: smi.gpus(gpu_here),
        accelerator.processor,
        limits.container,
        limits.hub,
        limits.shared_memory,
        limits.disk,
        packages.python,
        frontend.jupyterlab,
        *needed,
        frontend.widget_manager,
        lambda: packages.nvml(gpu_here),
        lambda: packages.torch(gpu_here),
        lambda: nccl.library(gpu_here),
        nccl.environment,
        lambda: interconnect.infiniband(gpu_here),
        namespaces.clusters,
    ]


def _guarded(check: Check) -> list[Finding]:
    """The findings, or that there are none: a half-installed package must not hide the rest."""
    found: list[Finding] = []
    try:
        made = check()
        found += [made] if isinstance(made, Finding) else made or ()
    except (LabkitError, OSError, ValueError, ImportError, KeyError, TypeError, AttributeError) as error:
        name = getattr(check, "__name__", "check")
        said = f"{type(error).__name__}: {error}"
        do = "pip install --force-reinstall gpu-labkit, and report it if that does not help"
        found.append(Finding(name, "warning", "could not be looked at", said, do))
    return found
