"""Driver, CUDA and PyTorch against each other, as ``collect_env`` tells of them."""

from __future__ import annotations

from collections.abc import Iterator

from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.drivers import (
    capability,
    cuda_range,
    minimum_driver,
    newest_cuda_major,
    version,
)
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.reports.collect_env import Environment


def stack(case: Case) -> Iterator[Finding]:
    for env in case.all(Environment):
        if env.cuda_built:
            yield from _driver(case, env)
            yield from _architectures(case, env)
            yield from _unavailable(case, env)
        elif not env.rocm_built and env.pytorch_version:
            yield from _cpu_only(case, env)


def _known(case: Case, env: Environment) -> tuple[str, str] | None:
    """The driver and the line that names it: this report's own, or another report's of the same machine."""
    return (env.driver_version, env.quote("driver_version")) if env.driver_version else case.driver


def _driver(case: Case, env: Environment) -> Iterator[Finding]:
    known = _known(case, env)
    needed = minimum_driver(env.cuda_built or "", "windows" in (env.os or "").lower())
    if known is None or needed is None:
        return
    driver, line = known
    if (version(driver) or ()) >= (version(needed) or ()):
        return
    newest = newest_cuda_major(driver)
    other = f", or a PyTorch built for CUDA {newest}" if newest else ""
    yield Finding(
        "error",
        f"The driver {driver} is older than {needed}, the oldest that runs programs built for CUDA "
        f"{env.cuda_built}: CUDA cannot start. Install a newer driver{other}.",
        line,
    )


def _cpu_only(case: Case, env: Environment) -> Iterator[Finding]:
    line = env.quote("cuda_built", "pytorch_version")
    names = env.gpus or case.names
    if names or _known(case, env):
        what = names[0] if names else "an NVIDIA driver"
        yield Finding(
            "error",
            f"This PyTorch ({env.pytorch_version}) is built for the CPU only, although the machine has {what}. "
            "Uninstall torch and install a build for CUDA: the selector on pytorch.org gives the command.",
            line,
        )
    else:
        yield Finding(
            "note",
            f"This PyTorch ({env.pytorch_version}) is built for the CPU only, and the report shows no GPU. "
            "If the machine should have one, run 'nvidia-smi' next.",
            line,
        )


def _architectures(case: Case, env: Environment) -> Iterator[Finding]:
    built = version(env.cuda_built)
    for name in dict.fromkeys(env.gpus or case.names):
        found = capability(name)
        if found is None or built is None:
            continue
        since, until = cuda_range(found)
        if since and built < (version(since) or ()):
            yield Finding(
                "error",
                f"{name} (compute capability {found}) is too new for this build: CUDA {env.cuda_built} cannot make "
                f"code for it. Install a PyTorch built for CUDA {since} or newer.",
                env.quote("cuda_built"),
            )
        elif until and built >= (version(until) or ()):
            yield _too_old(name, found, f"CUDA {until} dropped it", "built for an older CUDA", env)
        elif _dropped_by_wheels(found, env):
            yield _too_old(
                name,
                found,
                "the wheels of PyTorch 2.8 and newer for CUDA 12.8 leave it out",
                "for CUDA 12.6",
                env,
            )


def _too_old(name: str, found: str, why: str, instead: str, env: Environment) -> Finding:
    return Finding(
        "error",
        f"{name} (compute capability {found}) is too old for this build: {why}. Install a PyTorch {instead}; "
        "'python -c \"import torch; print(torch.cuda.get_arch_list())\"' lists what a build has code for.",
        env.quote("gpu", "cuda_built"),
    )


def _dropped_by_wheels(found: str, env: Environment) -> bool:
    torch, built = version(env.pytorch_version), version(env.cuda_built)
    old = (version(found) or ()) < (7, 0)
    return bool(old and torch and built and torch >= (2, 8) and built >= (12, 8))


def _unavailable(case: Case, env: Environment) -> Iterator[Finding]:
    if env.cuda_available is not False:
        return
    known = _known(case, env)
    needed = minimum_driver(env.cuda_built or "")
    if known and needed and (version(known[0]) or ()) < (version(needed) or ()):
        return  # said already
    if known is None and not env.gpus:
        advice = "no driver is visible: run 'nvidia-smi' next; in a container, start it with '--gpus all'"
    else:
        advice = (
            "the driver is there, so look at CUDA_VISIBLE_DEVICES, at the device nodes (ls -l /dev/nvidia*), and run "
            "'python -c \"import torch; torch.cuda.init()\"' next, which prints the reason"
        )
    yield Finding(
        "error",
        f"PyTorch is built for CUDA {env.cuda_built} but cannot use a GPU: {advice}.",
        env.quote("cuda_available"),
    )
