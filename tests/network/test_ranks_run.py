"""Functions on ranks: what goes there, what comes back, in which order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import labkit
from labkit.errors import LabkitError
from labkit.network.launch import parcel
from labkit.network.ranks import Ranks
from labkit.network.results import RankResults

World = Callable[..., Ranks]


def rank_of_module() -> int:
    return labkit.rank_context().rank


def test_results_come_in_rank_order_whoever_is_first(world: World) -> None:
    def late_first() -> int:
        import time

        time.sleep(0.1 * (2 - labkit.rank_context().rank))
        return labkit.rank_context().rank * 10

    results = world(3).run(late_first)
    assert results == [0, 10, 20]
    assert results != [0, 20, 10]
    assert results[1] == 10
    assert results[-2:] == (10, 20)
    assert len(results) == 3
    assert repr(results) == "RankResults(3 on gloo: [0, 10, 20])"


def test_lambdas_closures_module_functions_and_arguments(world: World) -> None:
    factor = 3
    assert world(2).run(lambda x: x * factor + labkit.rank_context().rank, 5) == [15, 16]
    assert world(2).run(rank_of_module) == [0, 1]
    assert world(1).run(max, 3, 7) == [7]


def test_the_ranks_form_a_torch_distributed_world(world: World) -> None:
    def add_up() -> tuple[float, int, str]:
        import torch
        import torch.distributed as dist

        mine = torch.tensor([2.0 ** dist.get_rank()])
        dist.all_reduce(mine)
        return mine.item(), dist.get_world_size(), dist.get_backend()

    assert world(3).run(add_up) == [(7.0, 3, "gloo")] * 3


def test_rank_context_tells_device_backend_and_world(world: World) -> None:
    contexts = world(2).run(lambda: labkit.rank_context())
    assert [(c.rank, c.world_size, c.backend, c.device_name) for c in contexts] == [
        (0, 2, "gloo", "cpu"),
        (1, 2, "gloo", "cpu"),
    ]
    assert world(1).run(lambda: str(labkit.rank_context().device)) == ["cpu"]


def test_rank_context_outside_ranks_is_a_sentence() -> None:
    with pytest.raises(LabkitError, match=r"inside a function that labkit\.ranks\(n\)\.run"):
        labkit.rank_context()


def test_folder_path_and_environment_are_the_notebooks_of_now(
    world: World, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    four = world(1)
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.setenv("LABKIT_TEST_WORD", "later than the server")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = four.run(lambda: (os.getcwd(), os.environ["LABKIT_TEST_WORD"], list(sys.path)))[0]
    assert found == (os.path.realpath(str(tmp_path)), "later than the server", sys.path)


def test_arrays_arrive_writable_and_unshared(world: World) -> None:
    array = np.arange(1 << 16)

    def change(x: np.ndarray) -> np.ndarray:
        x += labkit.rank_context().rank + 1
        return x

    first, second = world(2).run(change, array)
    assert np.array_equal(first, np.arange(1 << 16) + 1)
    assert np.array_equal(second, np.arange(1 << 16) + 2)
    assert array[0] == 0
    first[0] = 7  # the result is the notebook's own
    assert first[0] == 7


def test_tensors_of_every_kind_keep_type_shape_and_value(world: World) -> None:
    def make() -> list[object]:
        import torch

        leaf = torch.ones(2, requires_grad=True)
        return [
            torch.arange(6, dtype=torch.bfloat16).reshape(2, 3),
            torch.empty(0, 4),
            torch.tensor(3.5),
            torch.arange(6).reshape(2, 3).t(),
            torch.tensor([1 + 2j]).conj(),
            leaf,
            torch.nn.Linear(2, 1).state_dict(),
            torch.tensor([True, False]),
        ]

    tensors = world(1).run(lambda given: given, world(1).run(make)[0])[0]  # there and back again
    state = tensors.pop(6)
    assert sorted(state) == ["bias", "weight"]
    assert [(str(t.dtype).removeprefix("torch."), tuple(t.shape), t.requires_grad) for t in tensors] == [
        ("bfloat16", (2, 3), False),
        ("float32", (0, 4), False),
        ("float32", (), False),
        ("int64", (3, 2), False),
        ("complex64", (1,), False),
        ("float32", (2,), True),
        ("bool", (2,), False),
    ]
    assert tensors[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors[2].item() == 3.5
    assert tensors[3].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors[4].tolist() == [1 - 2j]


@pytest.mark.slow
def test_a_gigabyte_goes_there_and_comes_back(world: World) -> None:
    array = np.ones(10**9, dtype=np.uint8)

    def check(x: np.ndarray) -> np.ndarray:
        assert x.size == 10**9
        x[-1] = 5
        return x

    result = world(1).run(check, array)[0]
    assert result.size == 10**9
    assert (int(result[0]), int(result[-1]), int(array[-1])) == (1, 5, 1)


def test_more_ranks_than_cores(world: World) -> None:
    assert world(12).run(rank_of_module) == list(range(12))


def test_the_kernel_never_loads_torch(world: World) -> None:
    script = """
import sys, labkit
assert labkit.ranks(2).run(lambda x: x + labkit.rank_context().rank, 1) == [1, 2]
assert "torch" not in sys.modules and "numpy" not in sys.modules, sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_script_without_a_main_guard_runs_once(world: World, tmp_path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "import labkit\n"
        "print('started')\n"
        "def f(): return labkit.rank_context().rank\n"
        "print(list(labkit.ranks(2).run(f)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.stdout == "started\n[0, 1]\n", done.stderr


def test_why_gloo_is_told_before_and_after(world: World) -> None:
    if labkit.hardware.usable_gpu() is not None:
        pytest.skip("this machine has a GPU, so another sentence is right")
    sentence = "There is no GPU here, so ranks are CPU processes and talk over loopback."
    assert repr(world(2)) == f"2 ranks on gloo: {sentence}"
    assert sentence in world(1).run(rank_of_module)._repr_html_()


def test_results_show_themselves_and_become_a_dict() -> None:
    results = RankResults(("a", "<b>"), "gloo", "Because.", "", 0.25)
    assert "&lt;b&gt;" in results._repr_html_()
    assert results.to_dict()["seconds"] == 0.25
    with pytest.raises(LabkitError, match="trace=True"):
        results.timeline()


def test_parcels_hold_anything_picklable_and_big_buffers() -> None:
    for thing in ({"a": [1, None]}, b"", [np.zeros(0), np.arange(10.0)], "x" * 100_000):
        file = parcel.pack(thing)
        back = parcel.unpack(file)
        parcel.close(file)
        if isinstance(thing, list):
            assert all(np.array_equal(one, two) for one, two in zip(thing, back, strict=True))
        else:
            assert back == thing
