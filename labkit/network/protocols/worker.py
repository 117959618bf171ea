"""Run as a module: one half of a measurement between processes; a question on stdin, the answer on stdout."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import time
from typing import Any

_TASKS = {
    "eager_rendezvous": "labkit.network.protocols.crossover",
    "headers": "labkit.network.protocols.headers",
}
_PATIENCE_S = 10.0


def meet(told: dict[str, Any]) -> socket.socket:
    """The connection to the other process: given, or made by listening on one side and calling on the other."""
    if "file" in told:
        return socket.socket(fileno=told["file"])
    if told["listen"]:
        with socket.create_server((told["address"], told["port"])) as server:
            server.settimeout(_PATIENCE_S)
            line = server.accept()[0]
            line.settimeout(None)
            return line
    return call(told["address"], told["port"])


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
    with meet(question.pop("meet")) as line:
        print(json.dumps(work(line, **question)))


if __name__ == "__main__":
    main()
