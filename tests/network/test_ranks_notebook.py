"""Ranks from the cells of a real kernel: what is defined there, interrupted there, restarted there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

_CELL_S = 60


class Kernel:
    """A kernel and what its cells say."""

    def __init__(self, manager: Any):
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=_CELL_S)

    @property
    def pid(self) -> int:
        return int(self.manager.provisioner.pid)

    def run(self, code: str) -> tuple[str, str]:
        """``(stdout, error message)`` of a cell."""
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                said.append(message["content"]["text"])

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=_CELL_S)
        content = reply["content"]
        shown = "\n".join(content.get("traceback", ())) if content["status"] == "error" else ""
        return "".join(said), shown


@pytest.fixture(scope="module")
def kernel(require: Callable[..., None]) -> Iterator[Kernel]:
    require("lab")
    require("torch")
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    one = Kernel(manager)
    yield one
    one.client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_functions_and_classes_of_a_cell(kernel: Kernel) -> None:
    kernel.run(
        "import labkit\nclass Point:\n    def __init__(self, x): self.x = x\n"
        "def cell_function(k):\n    print('from a cell')\n    return Point(k + labkit.rank_context().rank)"
    )
    out, error = kernel.run(
        "found = labkit.ranks(2).run(cell_function, 5)\n"
        "print([one.x for one in found], isinstance(found[0], Point))"
    )
    assert error == ""
    assert sorted(out.splitlines()) == ["[5, 6] True", "[rank 0] from a cell", "[rank 1] from a cell"]
    assert kernel.run("import sys; print('torch' in sys.modules)") == ("False\n", "")


def test_a_failure_names_the_cell_and_shows_its_line_and_no_internals(kernel: Kernel) -> None:
    kernel.run("import labkit\ndef fails(x):\n    y = 2\n    return x / (y - 2)")
    _, error = kernel.run("labkit.ranks(2).run(fails, 1)")
    assert error.startswith("RankError: Rank ")
    assert "ZeroDivisionError" in error
    assert "  Cell In[" in error
    assert ", line 4, in fails" in error
    assert "return x / (y - 2)" in error
    assert "worker.py" not in error


def test_interrupting_the_cell_ends_the_ranks_within_two_seconds(kernel: Kernel) -> None:
    kernel.run("import labkit, time; labkit.ranks(2).run(int)")
    request = kernel.client.execute("labkit.ranks(2).run(lambda: [time.sleep(0.01) for _ in range(10**5)])")
    server = _wait_for(lambda: [p for p in psutil.Process(kernel.pid).children() if len(p.children()) == 2])
    ranks = server[0].children()
    kernel.manager.interrupt_kernel()
    assert psutil.wait_procs(ranks, timeout=2)[1] == []
    while (reply := kernel.client.get_shell_msg(timeout=5))["parent_header"]["msg_id"] != request:
        pass
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    out, error = kernel.run("print(list(labkit.ranks(2).run(lambda: 3)))")
    assert (out, error) == ("[3, 3]\n", "")


def test_restarting_the_kernel_leaves_no_process(kernel: Kernel) -> None:
    kernel.run("import labkit, time; labkit.ranks(2).run(int)")
    kernel.client.execute("labkit.ranks(2).run(time.sleep, 600)")
    family = _wait_for(lambda: _when(len, 3, psutil.Process(kernel.pid).children(recursive=True)))
    kernel.manager.restart_kernel(now=True)
    assert psutil.wait_procs(family, timeout=5)[1] == []
    kernel.client.wait_for_ready(timeout=_CELL_S)
    assert os.path.exists(f"/proc/{kernel.pid}")


def _when(measure: Callable[[Any], int], wanted: int, thing: Any) -> Any:
    return thing if measure(thing) >= wanted else None


def _wait_for(look: Callable[[], Any], seconds: float = 20) -> Any:
    limit = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return found
