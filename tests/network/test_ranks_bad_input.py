"""What ranks refuse before anything starts, each in a sentence that says what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import labkit
from labkit.errors import LabkitError
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]


@pytest.mark.parametrize("count", [0, 65, -1, True, 2.0, "4", None])
def test_a_number_of_ranks_that_is_none(world: World, count: object) -> None:
    with pytest.raises(LabkitError, match="a whole number, 1 to 64"):
        world(count)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"link": 0}, "never delivers"),
        ({"link": "5us"}, "a rate is wanted"),
        ({"latency": "1GB"}, "a time is wanted"),
        ({"latency": -1}, "zero or more"),
    ],
)
def test_links_that_are_none(world: World, options: dict[str, object], words: str) -> None:
    with pytest.raises(LabkitError, match=words):
        world(2, **options)


def test_not_a_function_and_no_time(world: World) -> None:
    with pytest.raises(LabkitError, match=r"run\(step, 3\), rather than its result"):
        world(2).run(3)  # type: ignore[arg-type]
    with pytest.raises(LabkitError, match="no time to run"):
        world(2).run(int, timeout=0)


def test_an_open_file_is_named(world: World, tmp_path) -> None:
    with (tmp_path / "log").open("w") as log:
        with pytest.raises(LabkitError, match=r"'log', which the lambda uses, cannot travel.*open file"):
            world(2).run(lambda: log.write("x"))
        with pytest.raises(LabkitError, match=r"Argument 2 of the lambda cannot travel.*open file"):
            world(2).run(lambda a, b: None, 1, log)


def test_an_open_file_deep_inside_is_found(world: World, tmp_path) -> None:
    with (tmp_path / "log").open("w") as log:
        box = {"deep": [log]}
        with pytest.raises(LabkitError, match=r"'box'.*open file"):
            world(2).run(lambda: box)


def test_a_lock_is_named(world: World) -> None:
    lock = threading.Lock()

    def use() -> bool:
        return lock.locked()

    with pytest.raises(LabkitError, match=r"'lock', which use\(\) uses, cannot travel"):
        world(2).run(use)


def test_the_monitor_is_named(world: World, require: Callable[..., None]) -> None:
    require("lab")
    mon = labkit.monitor()
    try:
        with pytest.raises(LabkitError, match=r"'mon', which the lambda uses, cannot travel.*the monitor"):
            world(2).run(lambda: mon.metric("loss", 1))
    finally:
        mon.stop()


@pytest.mark.gpu
def test_a_tensor_on_a_gpu_is_named(world: World) -> None:
    import torch

    x = torch.ones(3, device="cuda")
    with pytest.raises(LabkitError, match=r"'x'.*tensor on a GPU"):
        world(2).run(lambda: x)
