"""Driver, CUDA and what was built for it: the versions have to fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from labkit.hardware.devices import answer
from labkit.hardware.doctor.packages import installed, torch_cuda
from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import read

# What numba-cuda needs of the CUDA toolkit, and the packages that bring it.
_PIECES = (
    ("NVVM", ("nvidia-nvvm", "nvidia-nvvm-cu12", "nvidia-cuda-nvcc-cu12")),
    ("NVRTC", ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")),
    ("nvJitLink", ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12")),
    ("CUDA runtime", ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")),
    ("cuda-bindings", ("cuda-bindings",)),
)


def driver_version(root: str = "/") -> str | None:
    """Version of the loaded kernel driver, e.g. ``"570.86.15"``; None without one, and under WSL."""
    line = read(root, "proc/driver/nvidia/version")
    found = re.search(r"\s(\d{3}\.\d{2,3}(?:\.\d{2})?)\s", line)
    return found[1] if found else None


def driver(root: str = "/") -> Finding | None:
    """The driver and the newest CUDA it runs; nothing on a machine without one."""
    version, cuda = driver_version(root), answer().driver_version
    if version is None and cuda is None:
        return None
    supports = f"CUDA up to {'.'.join(map(str, cuda))}" if cuda else "CUDA unknown"
    return Finding("NVIDIA driver", "ok", f"{version or 'version unknown'}, {supports}")


def builds(root: str = "/") -> Iterator[Finding]:
    """Everything built for a CUDA, against the driver; nothing where no driver is."""
    cuda = answer().driver_version
    if cuda is None:
        return
    version = driver_version(root)
    built = torch_cuda()
    if built:
        yield fits("PyTorch and driver", built, cuda, version, "a PyTorch")
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11"):
        found = installed(name)
        if found:
            yield fits("CUDA runtime and driver", found, cuda, version, "a numba-cuda")


def fits(name: str, built: str, cuda: tuple[int, ...], version: str | None, instead: str) -> Finding:
    """Whether a driver that supports ``cuda`` runs what was built for ``built``."""
    from labkit.hardware.diagnosis.drivers import minimum_driver
    from labkit.hardware.diagnosis.drivers import version as parsed

    short = ".".join(built.split(".")[:2])
    needed = minimum_driver(short)
    supports = ".".join(map(str, cuda))
    old = bool(version and needed and (parsed(version) or ()) < (parsed(needed) or ()))
    if not old and int(built.split(".")[0]) <= cuda[0]:
        return Finding(name, "ok", f"built for CUDA {short}; the driver runs up to {supports}")
    least = f" ({needed} or newer)" if needed else ""
    return Finding(
        name,
        "warning",
        f"built for CUDA {short}; the driver {version or ''} runs up to {supports}".replace("  ", " "),
        "Nothing built for that CUDA can use the GPU: the driver is older than it.",
        f"Install a newer driver{least}, or {instead} built for CUDA {cuda[0]}.",
    )


def toolkit(gpu_here: bool) -> Finding | None:
    """The pieces of the CUDA toolkit with which numba-cuda compiles; wanted where there is a GPU."""
    if not gpu_here or installed("numba-cuda") is None:
        return None
    missing = [name for name, packages in _PIECES if not any(map(installed, packages))]
    if not missing:
        return Finding("CUDA toolkit for numba", "ok", ", ".join(name for name, _ in _PIECES))
    major = (answer().driver_version or (12,))[0]
    return Finding(
        "CUDA toolkit for numba",
        "warning",
        f"not installed as packages: {', '.join(missing)}",
        "Kernels compile only if a CUDA toolkit is installed in the system.",
        f"pip install 'numba-cuda[cu{max(12, min(13, major))}]'",
    )
