"""The live plot in a real kernel: bytes a sample on the wire, and the processor time it takes.

Source of the targets: a message small enough for thirty learners on one server, and a plot that does not
disturb what it measures.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

from labkit.bench import Figure, monitor_gpus
from labkit.errors import LabkitError

SERIES = 8
RATE = 2.0  # samples a second


def figures(quick: bool) -> Iterable[Figure]:
    """Payload of a sample of 8 series, and the share of one core at 2 Hz above the idle kernel."""
    try:
        import jupyter_client.manager  # noqa: F401
    except ImportError as error:
        raise LabkitError("This benchmark needs a Jupyter kernel: pip install 'gpu-labkit[lab]'.") from error
    seconds, repeats = (4.0, 1) if quick else (10.0, 3)
    with _kernel() as client:
        idle = statistics.median(_share(client, seconds) for _ in range(repeats))
        _run(client, _start())
        sizes = _payloads(_listen(client, 3.0))
        shown = statistics.median(_share(client, seconds) for _ in range(repeats))
    yield Figure(
        "payload of one sample",
        statistics.median(sizes),
        "B",
        "at most",
        200,
        f"{SERIES} series, whole message content and buffers",
    )
    detail = f"of one core at {RATE:g} Hz, above the idle kernel's {100 * idle:.2f} %"
    yield Figure(
        "processor share of a shown monitor", 100 * max(0.0, shown - idle), "%", "at most", 1, detail
    )
    yield from monitor_gpus.figures(quick)


def _start() -> str:
    """A monitor shown in a notebook, with metrics of one's own until it has 8 series."""
    return (
        "import labkit, time\n"
        f"mon = labkit.monitor({1 / RATE})\n"
        "time.sleep(1.2)\n"
        f"for number in range({SERIES} - len(mon.recording.series)): mon.metric(f'metric {{number}}', 1.0)\n"
        "mon"
    )


@contextmanager
def _kernel() -> Iterator[Any]:
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3", transport="ipc")
    manager.start_kernel()
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        _run(client, "import time")
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: Any, code: str) -> str:
    """Run a cell; what it printed."""
    printed: list[str] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    reply = client.execute_interactive(code, timeout=60, output_hook=keep)
    if reply["content"]["status"] != "ok":
        raise LabkitError(f"The kernel of the benchmark failed: {reply['content'].get('evalue', '')}.")
    return "".join(printed)


def _share(client: Any, seconds: float) -> float:
    """Processor seconds the whole kernel took in a second of doing nothing itself; views acknowledge."""
    code = "print(time.process_time(), time.perf_counter())"
    cpu_before, before = map(float, _run(client, code).split())
    for message in _listen(client, seconds)[-1:]:
        _acknowledge(client, message)
    cpu_after, after = map(float, _run(client, code).split())
    return (cpu_after - cpu_before) / (after - before)


def _listen(client: Any, seconds: float) -> list[dict[str, Any]]:
    """The samples that arrive in a time."""
    seen = []
    limit = time.monotonic() + seconds
    while (left := limit - time.monotonic()) > 0:
        try:
            message = client.get_iopub_msg(timeout=left)
        except Empty:
            break
        content = message["content"]
        if message["msg_type"] == "comm_msg" and isinstance(content["data"].get("content"), list):
            seen.append(message)
    return seen


def _acknowledge(client: Any, message: dict[str, Any]) -> None:
    content = message["content"]
    data = {"method": "custom", "content": {"ack": content["data"]["content"][0]}}
    client.shell_channel.send(client.session.msg("comm_msg", {"comm_id": content["comm_id"], "data": data}))


def _payloads(messages: list[dict[str, Any]]) -> list[int]:
    """Bytes of the samples that hold at least 8 series: the content as JSON, and the buffers."""
    sizes = [
        len(json.dumps(message["content"])) + sum(len(bytes(buffer)) for buffer in message["buffers"])
        for message in messages
        if message["content"]["data"]["content"][1] >= SERIES
    ]
    if not sizes:
        raise LabkitError("The monitor sent no sample of 8 series; is psutil installed?")
    return sizes
