"""NCCL, and the environment variables with which people slow it down and forget."""

from __future__ import annotations

import os
from collections.abc import Iterator

from labkit.hardware.doctor.packages import installed
from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import names

_OFF = {
    "NCCL_P2P_DISABLE": "GPUs of one machine exchange data through the host's memory",
    "NCCL_SHM_DISABLE": "processes of one machine talk over the network",
    "NCCL_IB_DISABLE": "machines talk over TCP sockets although there may be InfiniBand",
}
_LOUD = ("INFO", "TRACE")


def library(gpu_here: bool) -> Finding | None:
    """The NCCL that PyTorch brought; not looked for without a GPU."""
    if not gpu_here or installed("torch") is None:
        return None
    for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"):
        found = installed(name)
        if found:
            return Finding("NCCL", "ok", f"{found} ({name})")
    return Finding(
        "NCCL",
        "missing",
        "no package of it is installed",
        "PyTorch may bring its own; if not, GPUs cannot be joined, and lessons use gloo.",
        'python -c "import torch; print(torch.cuda.nccl.version())" tells',
    )


def environment(root: str = "/") -> Iterator[Finding]:
    """NCCL's variables that are set, each with what it does."""
    chosen = {name: value for name, value in sorted(os.environ.items()) if name.startswith("NCCL_")}
    for name, value in chosen.items():
        trouble = _trouble(name, value.strip(), root)
        if trouble:
            yield Finding(name, "warning", repr(value), f"{trouble}.", f"unset {name}")
        else:
            yield Finding(name, "ok", repr(value))
    if not chosen:
        yield Finding("NCCL_* variables", "ok", "none is set")


def _trouble(name: str, value: str, root: str) -> str:
    if name == "NCCL_SOCKET_IFNAME":
        return _interfaces(value, root)
    if name == "NCCL_DEBUG" and value.upper() in _LOUD:
        return "Every rank prints hundreds of lines at its start"
    if _OFF.get(name) and value not in ("", "0"):
        return f"With it {_OFF[name]}"
    return ""


def _interfaces(value: str, root: str) -> str:
    """Names are beginnings of names, ``=`` asks for the whole name, ``^`` leaves out."""
    there = names(root, "sys/class/net")
    if value.startswith("^") or not there:
        return ""
    exact = value.startswith("=")
    wanted = [word for word in value.lstrip("=").split(",") if word]
    found = [one for one in there for word in wanted if (one == word if exact else one.startswith(word))]
    return "" if found else f"No interface has that name (there are {', '.join(there)}), so NCCL cannot start"
