"""The way from this process to the GPUs: device nodes, the variable that hides them, and slices."""

from __future__ import annotations

import os
import re

from labkit.hardware.devices import answer
from labkit.hardware.doctor.report import Finding
from labkit.hardware.doctor.system import names

VISIBLE = "CUDA_VISIBLE_DEVICES"


def device_nodes(root: str = "/") -> Finding | None:
    """``/dev/nvidia*`` (or WSL's ``/dev/dxg``): there, complete, and open to this user."""
    there = names(root, "dev")
    gpus = [name for name in there if re.fullmatch(r"nvidia\d+", name)]
    if "dxg" in there and not gpus:
        return Finding("device nodes", "ok", "/dev/dxg (WSL)")
    if not gpus and "nvidiactl" not in there:
        return None
    missing = [name for name in ("nvidiactl", "nvidia-uvm") if name not in there]
    if missing or not gpus:
        return Finding(
            "device nodes",
            "warning",
            f"/dev has {', '.join(gpus) or 'no nvidia0'}, but not {', '.join(missing) or 'a GPU'}",
            "CUDA cannot start without them.",
            "sudo nvidia-modprobe -u -c 0 (in a container: start it with --gpus all)",
        )
    shut = [name for name in [*gpus, "nvidiactl", "nvidia-uvm"] if not _open(os.path.join(root, "dev", name))]
    if shut:
        return Finding(
            "device nodes",
            "warning",
            f"no permission for {', '.join(shut)}",
            "This user may not use these GPUs.",
            "sudo usermod -aG video,render $USER, then log in again (in a batch job: ask for a GPU)",
        )
    return Finding("device nodes", "ok", ", ".join([*gpus, "nvidiactl", "nvidia-uvm"]))


def visible() -> Finding:
    """CUDA_VISIBLE_DEVICES: what it leaves, and what is wrong in it."""
    value = os.environ.get(VISIBLE)
    if value is None:
        return Finding(VISIBLE, "ok", "not set: every GPU is visible")
    cards = len(answer().cards)
    entries = [entry.strip() for entry in value.split(",") if entry.strip()]
    if not entries or entries[0] in ("-1", "none", "NoDevFiles", "void"):
        means = "It hides every GPU, on purpose or left over from something else."
        return Finding(VISIBLE, "warning", repr(value), means, f"unset {VISIBLE}")
    if answer().driver_version and cards < len(entries):
        means = f"CUDA stopped at an entry that names no GPU, or one named before: {cards} of {len(entries)} count."
        return Finding(VISIBLE, "warning", repr(value), means, "nvidia-smi -L lists the GPUs: mend the list")
    return Finding(VISIBLE, "ok", f"{value!r}, so: {_count(cards)}")


def _count(cards: int) -> str:
    return "no GPU" if not cards else "1 GPU" if cards == 1 else f"{cards} GPUs"


def _open(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)
