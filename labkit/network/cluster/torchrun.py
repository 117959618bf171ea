"""A script under torchrun on every node of a cluster that is up, unchanged, as it would run on machines."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from labkit.network.cluster.handle import Handle
from labkit.network.cluster.run import PORT

_GRACE_S = 2.0  # after the first agent has failed: the others notice by themselves
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def launch(
    handle: Handle,
    program: Sequence[str],
    *,
    ranks_per_node: int = 1,
    restarts: int = 0,
    environment: dict[str, str] | None = None,
) -> int:
    """Run ``program`` (a script and its arguments) and show what it prints, each line with its node.

    Returns
    -------
    int
        0 when all agents succeeded, else the status of the first that did not.
    """
    agents = {
        node: _start(
            handle, node, options(handle, node, ranks_per_node, restarts), program, environment or {}
        )
        for node in handle.plan.nodes
    }
    try:
        return _listen(agents)
    except KeyboardInterrupt:
        return 130
    finally:
        _end(agents)


def options(handle: Handle, node: str, ranks_per_node: int, restarts: int) -> list[str]:
    """torchrun's options on a node."""
    first = handle.plan.nodes[0]
    return [
        f"--nnodes={len(handle.plan.nodes)}",
        f"--nproc-per-node={ranks_per_node}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first}:{PORT}",
        f"--rdzv-id={os.getpid()}",
        f"--rdzv-conf=is_host={int(node == first)}",
        f"--local-addr={handle.plan.address(node)}",
        f"--max-restarts={restarts}",
    ]


def _start(
    handle: Handle, node: str, words: list[str], program: Sequence[str], environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    command, files = handle.command(node, [sys.executable, "-m", "torch.distributed.run", *words, *program])
    inside = dict.fromkeys(_INTERFACES, "eth0") | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        command,
        pass_fds=files,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=handle.environment() | inside | environment,
        start_new_session=True,
    )


def _listen(agents: dict[str, subprocess.Popen[bytes]]) -> int:
    """Show what comes, until all have ended, or one has failed and the rest had time to notice."""
    failed_at = 0.0
    status = 0
    rest: dict[str, bytes] = dict.fromkeys(agents, b"")
    with selectors.DefaultSelector() as selector:
        for node, agent in agents.items():
            selector.register(_pipe(agent), selectors.EVENT_READ, node)
        while selector.get_map() and not (failed_at and time.monotonic() > failed_at + _GRACE_S):
            for key, _ in selector.select(0.1):
                piece = os.read(key.fd, 1 << 16)
                rest[key.data] = _show(key.data, rest[key.data] + piece, last=not piece)
                if not piece:
                    selector.unregister(key.fileobj)
            bad = [code for agent in agents.values() if (code := agent.poll())]
            if bad and not failed_at:
                failed_at, status = time.monotonic(), bad[0] if bad[0] > 0 else 128 - bad[0]
    return status or max(abs(agent.wait()) for agent in agents.values())


def _pipe(agent: subprocess.Popen[bytes]) -> Any:
    return agent.stdout


def _show(node: str, text: bytes, last: bool) -> bytes:
    """Print whole lines; what is left of the last one."""
    *lines, left = text.split(b"\n")
    for line in [*lines, left] if last and left else lines:
        print(f"[{node}] {line.decode('utf-8', 'replace')}", flush=True)
    return b"" if last else left


def _end(agents: dict[str, subprocess.Popen[bytes]]) -> None:
    """SIGTERM, which torchrun passes on to its ranks, then SIGKILL to the whole session."""
    left = [agent for agent in agents.values() if agent.poll() is None]
    for agent in left:
        agent.terminate()
    limit = time.monotonic() + 2.0
    while any(agent.poll() is None for agent in left) and time.monotonic() < limit:
        time.sleep(0.02)
    for agent in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
