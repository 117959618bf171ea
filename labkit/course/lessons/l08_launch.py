"""Lesson 08, in the answer's own process: a script under what torchrun tells its ranks, and a record of what they do.

torchrun itself would take seconds to start and would listen on every interface. What it gives a script are processes
and environment variables; here the processes are forked where torch is imported already, and the store in which they
meet listens on loopback alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

Answer = Callable[..., Any]
SAMPLES, EPOCHS = 96, 2
_LIMIT_S = 8.0
_GRACE_S = 0.5  # after the first has failed: the others may still tell what they waited for
_STILL_S = 1.2  # that nobody computes: they wait for each other, and nobody will come
_IDLE_S = 0.02  # of processor time that also goes by while one waits


def record_launch(answer: Answer, nodes: int, per_node: int) -> dict[str, Any]:
    """Run ``answer(data, epochs, path)`` on every rank of so many nodes."""
    with tempfile.TemporaryDirectory(prefix="labkit-launch-") as folder, socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(64)
        world = nodes * per_node
        places = [_told(rank, per_node, world, door.getsockname()[1]) for rank in range(world)]
        ranks = [_fork(answer, place, Path(folder)) for place in places]
        store = _store(door)
        ended = _wait(ranks, Path(folder))
        del store
        saved = sorted(one.name for one in Path(folder, "out").iterdir())
        return {"ranks": [_report(Path(folder), rank, ended) for rank in range(world)], "saved": saved}


def _told(rank: int, per_node: int, world: int, port: int) -> dict[str, str]:
    """What torchrun puts into the environment of a rank."""
    figures = {
        "RANK": rank,
        "LOCAL_RANK": rank % per_node,
        "GROUP_RANK": rank // per_node,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": per_node,
        "MASTER_PORT": port,
    }
    return {name: str(value) for name, value in figures.items()} | {
        "MASTER_ADDR": "127.0.0.1",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "GLOO_SOCKET_IFNAME": "lo",
    }


def _store(door: socket.socket) -> Any:
    """The store that torchrun's agent holds, on a socket that is bound to loopback."""
    from torch.distributed import TCPStore

    host, port = door.getsockname()
    return TCPStore(
        *(host, port, None, True),
        wait_for_workers=False,
        master_listen_fd=door.detach(),
        timeout=timedelta(seconds=_LIMIT_S),
    )


def _fork(answer: Answer, place: dict[str, str], folder: Path) -> int:
    (folder / "out").mkdir(exist_ok=True)
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    try:
        _rank(answer, place, folder)
    finally:
        os._exit(0)


def _rank(answer: Answer, place: dict[str, str], folder: Path) -> None:
    """In a forked rank: run the answer, and leave a report."""
    rank = place["RANK"]
    os.environ.update(place)
    said = os.open(folder / f"said-{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    seen = _Seen(place, folder / f"joined-{rank}")
    data = Counted()
    try:
        with seen.watching():
            model = answer(data, EPOCHS, str(folder / "out" / "model.pt"))
        end: dict[str, Any] = {"weights": _weights(model), "left": seen.group_left()}
    except BaseException as error:
        end = {"raised": [type(error).__name__, str(error)[:300]]}
    sys.stdout.flush()
    report = {**end, "asked": data.asked, "saves": seen.saves}
    temporary = folder / f"report-{rank}.new"
    temporary.write_text(json.dumps(report))
    temporary.rename(folder / f"report-{rank}")


def _weights(model: Any) -> list[float] | None:
    """A few sums that two models share only if their weights are the same; None for what is no model.

    Each weight counts differently: of a softmax's gradients the plain sum is 0.
    """
    import torch

    try:
        found = [one.detach().double().flatten() for one in model.parameters()]
        return [float((one * torch.arange(1, len(one) + 1).sin()).sum()) for one in found]
    except AttributeError:
        return None


class Counted:
    """96 handwritten digits, which note in what order they are asked for."""

    def __init__(self) -> None:
        import torch

        from labkit.course import datasets

        digits = datasets.digits()
        self._images = torch.from_numpy(digits.images[:SAMPLES].reshape(SAMPLES, 64).copy())
        self._labels = digits.labels[:SAMPLES].tolist()
        self.asked: list[int] = []

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[Any, int]:
        index = int(index)
        image, label = self._images[index], self._labels[index]
        self.asked.append(index)
        return image, label


class _Seen:
    """What a rank does to the outside: files it saves, and how it joins the others."""

    def __init__(self, place: dict[str, str], note: Path):
        self.place, self.note = place, note
        self.saves = 0

    @contextlib.contextmanager
    def watching(self) -> Any:
        import torch
        import torch.distributed as dist

        save, join = torch.save, dist.init_process_group

        def noted_save(*args: Any, **options: Any) -> Any:
            self.saves += 1
            return save(*args, **options)

        def noted_join(*args: Any, **options: Any) -> Any:
            self.note.write_text(json.dumps(self._how(args, options)))  # now: joining may take for ever
            return join(*args, **{"timeout": timedelta(seconds=_LIMIT_S), **options})

        torch.save, dist.init_process_group = noted_save, noted_join
        try:
            yield
        finally:
            torch.save, dist.init_process_group = save, join

    def _how(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        method = options.get("init_method", args[1] if len(args) > 1 else None)
        meeting = ("MASTER_ADDR", "MASTER_PORT")
        return {
            "method": method and str(method),
            "moved": [name for name in meeting if os.environ.get(name) != self.place[name]],
            "rank": options.get("rank"),
            "world": options.get("world_size"),
        }

    def group_left(self) -> bool:
        import torch.distributed as dist

        return bool(dist.is_initialized())


def _wait(ranks: list[int], folder: Path) -> dict[int, int]:
    """Wait until all have ended, or one has failed, or all the others stand still; the status of each, -9 where it
    was ended."""
    status: dict[int, int] = {}
    begun = still_since = time.monotonic()
    limit, worked = begun + _LIMIT_S, 0.0
    while len(status) < len(ranks) and time.monotonic() < min(limit, still_since + _STILL_S):
        for rank, process in enumerate(ranks):
            if rank not in status and os.waitpid(process, os.WNOHANG)[0]:
                status[rank], still_since = 0, time.monotonic()
                if _failed(folder / f"report-{rank}"):
                    limit = min(limit, time.monotonic() + _GRACE_S)
        if (
            now := _processor_s(process for rank, process in enumerate(ranks) if rank not in status)
        ) > worked:
            worked, still_since = now + _IDLE_S, time.monotonic()
        time.sleep(0.01)
    for rank, process in enumerate(ranks):
        if rank not in status:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            status[rank] = -signal.SIGKILL
    return status


def _failed(report: Path) -> bool:
    return not report.exists() or "raised" in json.loads(report.read_text())


def _processor_s(processes: Iterable[int]) -> float:
    """Seconds of processor time that these have used so far, the most of any."""
    import psutil

    used = [0.0]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(process).cpu_times()
            used.append(times.user + times.system)
    return max(used)


def _report(folder: Path, rank: int, ended: dict[int, int]) -> dict[str, Any]:
    path, joined = folder / f"report-{rank}", folder / f"joined-{rank}"
    report = json.loads(path.read_text()) if path.exists() else {"ended": ended[rank]}
    report["joined"] = json.loads(joined.read_text()) if joined.exists() else None
    return {**report, "said": (folder / f"said-{rank}").read_text(errors="replace")[:200]}
