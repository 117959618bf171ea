"""The processor and memory of this machine, and how much of them this process may use.

In a container or on a classroom hub the machine has more than a process is given: affinity, and the CPU and
memory limits of its control groups (versions 1 and 2), are what counts. `root` is where the files start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator


def name(root: str = "/") -> str:
    """Model name as the operating system has it."""
    for line in _read(root, "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model", "cpu"):
            return value.strip()
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or "Apple CPU"
    if hasattr(os, "uname"):
        return f"{os.uname().machine} CPU"
    return os.environ.get("PROCESSOR_IDENTIFIER", "CPU")


def logical() -> int:
    """Hardware threads that this process may be scheduled on."""
    return len(_affinity()) or 1


def usable(root: str = "/") -> float:
    """CPUs' worth of time this process may use: its hardware threads, or the container's quota if less."""
    return min([float(logical()), *_quotas(root)])


def physical_cores(root: str = "/") -> int | None:
    """Cores behind the hardware threads of this process; None where the system does not tell."""
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    siblings = {_read(root, topology.format(number)).strip() for number in _affinity()}
    return None if not siblings or "" in siblings else len(siblings)


def memory(root: str = "/") -> int | None:
    """Bytes of memory: the machine's, or the container's limit if that is less; None where unknown."""
    total = _total_memory(root)
    return total if total is None else min([total, *_memory_limits(root)])


def _affinity() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _total_memory(root: str) -> int | None:
    for line in _read(root, "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _quotas(root: str) -> Iterator[float]:
    for folder in _groups(root, ""):
        quota, _, period = _read(folder, "cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit():
            yield int(quota) / int(period)
    for folder in _groups(root, "cpu"):
        quota, period = _read(folder, "cpu.cfs_quota_us").strip(), _read(folder, "cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit():
            yield int(quota) / int(period)


def _memory_limits(root: str) -> Iterator[int]:
    files = [(folder, "memory.max") for folder in _groups(root, "")]
    files += [(folder, "memory.limit_in_bytes") for folder in _groups(root, "memory")]
    for folder, file in files:
        limit = _read(folder, file).strip()
        if limit.isdigit():
            yield int(limit)


def _groups(root: str, controller: str) -> Iterator[str]:
    """Folders of this process's control group and its ancestors; `controller` "" means version 2.

    Inside a container the path may be the host's: whatever part of it is not there is skipped, and the mount
    itself is always tried.
    """
    mount = os.path.join(root, "sys/fs/cgroup", controller)
    path = _group_path(root, controller)
    while True:
        yield os.path.join(mount, path.lstrip("/"))
        if path in ("", "/"):
            return
        path = os.path.dirname(path)


def _group_path(root: str, controller: str) -> str:
    for line in _read(root, "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _sysctl(key: str) -> str:
    import ctypes

    text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    status = ctypes.CDLL(None).sysctlbyname(key.encode(), text, ctypes.byref(size), None, 0)
    return text.value.decode() if status == 0 else ""
