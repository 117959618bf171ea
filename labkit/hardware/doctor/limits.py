"""What this process may take: shared memory, memory and processors of a container or a hub, disk, locked memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from labkit.hardware import cpu
from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import read
from labkit.hardware.units import show_bytes

MIB, GIB = 2**20, 2**30
SHM_LEAST = 256 * MIB  # data loaders and ranks on one machine exchange through it; Docker gives 64 MiB
MEMORY_LEAST = 2 * GIB
DISK_LEAST = GIB


def shared_memory(folder: str = "/dev/shm") -> Finding | None:
    """Size of /dev/shm; nothing on systems without it."""
    size = _size(folder)
    if size is None:
        return None
    total, free = size
    if total < SHM_LEAST:
        return Finding(
            "shared memory",
            "warning",
            f"{folder} has {show_bytes(total)}",
            "Data loaders and ranks on one machine exchange data through it, and die with 'bus error' when it is full.",
            "Start the container with --shm-size=8g, or with --ipc=host",
        )
    if free < SHM_LEAST / 4:
        means = "What earlier programs left behind fills it."
        return Finding(
            "shared memory", "warning", f"{folder}: {show_bytes(free)} free of {show_bytes(total)}", means,
            f"ls -l {folder} shows what is there: end those programs, or remove their files",
        )  # fmt: skip
    return Finding("shared memory", "ok", f"{show_bytes(total)}, {show_bytes(free)} free")


def _size(folder: str) -> tuple[int, int] | None:
    try:
        found = os.statvfs(folder)
    except (OSError, AttributeError):
        return None
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def container(root: str = "/") -> Finding:
    """What the control groups leave of the machine's processors and memory."""
    logical, usable, memory = cpu.logical(), cpu.usable(root), cpu.memory(root)
    inside = "in a container" if in_container(root) else "no container"
    room = show_bytes(memory) if memory else "memory unknown"
    shown = f"{inside}; {usable:g} of {os.cpu_count() or logical} CPUs, {room}"
    if memory is not None and memory < MEMORY_LEAST:
        means = "Kernels that need more are killed without a word; lessons from 04 on need 2 GiB."
        return Finding(
            "limits", "warning", shown, means, "Start the container with --memory=4g, or ask for more"
        )
    if usable < 1:
        means = "Less than one CPU: cells take several times as long, and timings mean little."
        return Finding(
            "limits", "warning", shown, means, "Start the container with --cpus=2, or ask for more"
        )
    return Finding("limits", "ok", shown)


def in_container(root: str = "/") -> bool:
    """Whether this looks like a container: the marks that Docker, Podman and Kubernetes leave."""
    marks = (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")
    groups = read(root, "proc/1/cgroup")
    return any(os.path.exists(os.path.join(root, mark)) for mark in marks) or any(
        word in groups for word in ("docker", "kubepods", "containerd", "libpod")
    )


def hub() -> Iterator[Finding]:
    """Limits that a JupyterHub tells its servers; nothing elsewhere."""
    if "JUPYTERHUB_API_URL" not in os.environ and "JUPYTERHUB_USER" not in os.environ:
        return
    memory, cores = os.environ.get("MEM_LIMIT", ""), os.environ.get("CPU_LIMIT", "")
    told = f"memory {show_bytes(int(memory))}" if memory.isdigit() else "memory without a limit"
    told += f", {cores} CPUs" if cores else ""
    if memory.isdigit() and int(memory) < MEMORY_LEAST:
        means = "The hub ends a kernel that takes more; lessons with PyTorch need 2 GiB."
        yield Finding(
            "JupyterHub", "warning", told, means, "Ask the hub's administrator for c.Spawner.mem_limit = '4G'"
        )
    else:
        yield Finding("JupyterHub", "ok", told)


def disk(folder: str = "~") -> Finding | None:
    """Room where the lessons, progress and caches are kept."""
    size = _size(os.path.expanduser(folder))
    if size is None:
        return None
    _, free = size
    if free < DISK_LEAST:
        means = "Notebooks may not be saved, and packages cannot be installed."
        return Finding(
            "disk", "warning", f"{show_bytes(free)} free in {folder}", means, "pip cache purge, or make room"
        )
    return Finding("disk", "ok", f"{show_bytes(free)} free in the home folder")
