"""Small ways of asking the system: files below a root that tests can move, programs, and kernel modules."""

from __future__ import annotations

import os
import shutil
import subprocess


def read(root: str, path: str) -> str:
    """The text of a file; empty when it cannot be read."""
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def names(root: str, folder: str) -> list[str]:
    """What a folder holds, sorted; nothing when it is not there."""
    try:
        return sorted(os.listdir(os.path.join(root, folder)))
    except OSError:
        return []


def module_loaded(root: str, name: str) -> bool:
    """Whether a kernel module is loaded; one that is built in counts as well."""
    if os.path.isdir(os.path.join(root, "sys/module", name)):
        return True
    return any(line.split()[:1] == [name] for line in read(root, "proc/modules").splitlines())


def printed(*command: str, seconds: float = 15.0) -> str | None:
    """What a program prints; None when it is not installed, fails to start, or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr
