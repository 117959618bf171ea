"""What virtual clusters need: network namespaces and the tools that shape their links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from labkit.hardware.doctor.report import Finding

NAME = "virtual clusters"
_MEANS = "Lessons on many machines then run on ranks of this one, with emulated links."


def clusters(search: str | None = None) -> Finding:
    """Whether namespaces can be made here, tried with a program that ends at once."""
    if sys.platform != "linux":
        return Finding(NAME, "missing", "they need Linux", _MEANS, "Use Linux, or WSL2 on Windows.")
    path = search or os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    absent = [name for name in ("ip", "tc", "unshare") if shutil.which(name, path=path) is None]
    if absent:
        do = "sudo apt-get install iproute2 util-linux"
        return Finding(NAME, "missing", f"not installed: {', '.join(absent)}", _MEANS, do)
    root = os.geteuid() == 0
    ways = ([["--net", "--mount"]] if root else []) + [["--user", "--map-root-user", "--net", "--mount"]]
    if any(_works(["unshare", *way, "true"], path) for way in ways):
        return Finding(NAME, "ok", f"namespaces, ip and tc ({'as root' if root else 'without root'})")
    do = (
        "sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 "
        "(in a container: --cap-add=SYS_ADMIN --cap-add=NET_ADMIN)"
    )
    return Finding(NAME, "missing", "this user may not make namespaces", _MEANS, do)


def _works(command: list[str], path: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=5, env={**os.environ, "PATH": path})
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
