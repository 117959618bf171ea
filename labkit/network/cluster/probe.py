"""May this process make networks, and how? Found out by trying, in a process that ends right after."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labkit.compute import child
from labkit.network.cluster.build import search_path

MODES = ("root", "user namespace")


@dataclass(frozen=True)
class Ability:
    """Whether clusters can be made here.

    Attributes
    ----------
    mode : str or None
        ``"root"`` or ``"user namespace"``; None when neither works.
    netem : bool
        Whether links can have latency and loss.
    missing : str
        What stands in the way, in a sentence; empty when nothing does.
    """

    mode: str | None
    netem: bool = False
    missing: str = ""


@cache
def ability() -> Ability:
    """What this machine lets this user do; tried once a process."""
    if sys.platform != "linux":
        return Ability(None, missing="Virtual clusters need Linux's network namespaces.")
    absent = [name for name in ("ip", "tc") if shutil.which(name, path=search_path()) is None]
    if absent:
        return Ability(
            None, missing=f"The command {absent[0]!r} is not installed (Debian: apt-get install iproute2)."
        )
    modes = MODES if os.geteuid() == 0 else MODES[1:]
    tried = [_try(mode) for mode in modes]
    return next((one for one in tried if one.mode), tried[-1])


def _try(mode: str) -> Ability:
    done = subprocess.run(
        [*child.command(__name__), mode], capture_output=True, text=True, env=child.environment(), timeout=30
    )
    if done.returncode == 0:
        return Ability(mode, json.loads(done.stdout))
    lines = done.stderr.strip().splitlines()
    return Ability(None, missing=lines[-1] if lines else f"exit status {done.returncode}")


def enter(mode: str) -> None:
    """Leave for fresh user and mount namespaces, or (as root) a mount namespace alone.

    Raises
    ------
    OSError
    """
    from labkit.network.cluster import kernel

    if mode != "root":
        kernel.become_root()
    kernel.own_mounts()


def has_netem() -> bool:
    """Whether this network's kernel knows netem, tried on its loopback device."""
    done = subprocess.run(
        ["tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms"],
        capture_output=True,
        env={**os.environ, "PATH": search_path()},
    )
    return done.returncode == 0


def main() -> int:
    """In a process of its own: build a wire in a network of its own, say whether there is netem, end."""
    from labkit.errors import LabkitError
    from labkit.network.cluster import build, kernel

    mode = sys.argv[1]
    try:
        enter(mode)
        kernel.fresh_node("probe")
        build.trial()
        print(json.dumps(has_netem()))
    except (OSError, LabkitError) as error:
        print(_why(mode, error), file=sys.stderr)
        return 1
    return 0


def _why(mode: str, error: Exception) -> str:
    if mode == "root":
        return (
            f"This process is root without CAP_SYS_ADMIN or CAP_NET_ADMIN ({error}); a container has them when "
            "started with --cap-add SYS_ADMIN --cap-add NET_ADMIN."
        )
    return f"{_user_namespaces(error)} ({error})."


def _user_namespaces(error: Exception) -> str:
    """The setting that forbids user namespaces, where one does."""
    for file, forbidden, words in (
        ("kernel/unprivileged_userns_clone", "0", "set sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "set sysctl user.max_user_namespaces above 0"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "set sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ):
        path = Path("/proc/sys", file)
        if path.exists() and path.read_text().strip() == forbidden:
            return f"Users may not make user namespaces here: an administrator must {words}"
    if getattr(error, "errno", None) == errno.EPERM:
        return "The permission to make user namespaces is missing; in a container its seccomp profile forbids unshare"
    return "A network of one's own could not be made in a user namespace"


if __name__ == "__main__":
    sys.exit(main())
