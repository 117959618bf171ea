"""Run as a module: one half of a measurement between processes; a question on stdin, the answer on stdout."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import time
from typing import Any

_TASKS = {
    "copies": "labkit.network.protocols.movers",
    "eager_rendezvous": "labkit.network.protocols.message_times",
    "headers": "labkit.network.protocols.headers",
    "incast": "labkit.network.protocols.incast_work",
}
_PATIENCE_S = 40.0  # the others may start late on a busy machine; less than the measurement's own limit


def meet(told: dict[str, Any]) -> list[socket.socket]:
    """The connections to the others: given, or made by one who listens and others who call."""
    if "file" in told:
        return [socket.socket(fileno=told["file"])]
    if not told["listen"]:
        return [call(told["address"], told["port"])]
    with socket.create_server((told["address"], told["port"]), backlog=told["listen"]) as server:
        server.settimeout(_PATIENCE_S)
        lines = [server.accept()[0] for _ in range(told["listen"])]
    for line in lines:
        line.settimeout(None)
    return lines


def call(address: str, port: int) -> socket.socket:
    """Connect to one who may not listen yet."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def main() -> None:
    question = json.loads(sys.stdin.readline())
    work = importlib.import_module(_TASKS[question.pop("task")]).work
    lines = meet(question.pop("meet"))
    print(json.dumps(work(*lines, **question)))


if __name__ == "__main__":
    main()
