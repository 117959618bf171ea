"""Answers that use torch: loaded before their time begins, with room for it, and tensors that travel both ways."""

from __future__ import annotations

import time

import numpy as np
import pytest

from labkit.course import header, run_check, sources
from labkit.course.checks import Call, FunctionCheck
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise
from labkit.course.sandbox import Limits, loads, tensors, values

SHORT = Limits(seconds=1.5)  # less than the import of torch takes


def exercise(calls, loads=(), around=None, seen=None):
    """An exercise ``answer(x)`` that passes whatever comes, and puts it into ``seen``."""

    def judge(call, returned):
        if seen is not None:
            seen.append(returned)

    given = [Call({"x": x}, None) for x in calls]
    kind = FunctionCheck if around is None else RecordedCheck
    more = {} if around is None else {"around": around}
    plan = kind(("x",), lambda table: given, judge, loads=loads, **more)
    return Exercise("99.torch", "Title", "answer", "core", 5, "Task.", (), plan)


def checked(source, calls=(1,), limits=SHORT, **more):
    seen = []
    answer = sources.answer(source, "answer")
    result = run_check.run_check(exercise(calls, seen=seen, **more), answer, limits)
    return result, seen


@pytest.fixture(autouse=True)
def with_torch(request, require):
    if "without_torch" not in request.fixturenames:
        require("torch")


@pytest.fixture
def without_torch(monkeypatch):
    """As on a machine where torch is not installed."""
    found = loads.importlib.util.find_spec
    monkeypatch.setattr(
        loads.importlib.util, "find_spec", lambda name, *a: None if name == "torch" else found(name, *a)
    )


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef answer(x):\n    return torch.ones(3) * x",
        "def answer(x):\n    import torch\n    return torch.ones(3) * x",
        "from torch import ones\ndef answer(x):\n    return ones(3) * x",
        "import torch.nn.functional as F\nimport torch\nw = torch.ones(3)\n"
        "def answer(x):\n    return F.relu(w * x)",
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.ones(3) * x\n"
        "def answer(x):\n    return Net()(x)",
        "import torch\ndef answer(x):\n    w = torch.ones(3, requires_grad=True)\n    w.grad = torch.zeros(3)\n"
        "    torch.optim.SGD([w], lr=1.0).step()\n    return w",
    ],
    ids=["global", "inside", "name", "data", "class", "optimizer"],
)
def test_torch_is_there_before_the_answers_time_begins(source):
    result, (returned,) = checked(source)
    assert result.passed, result
    assert result.seconds < 1
    assert returned.tolist() == [1, 1, 1]
    assert returned.torch_dtype == "float32"


def test_a_driver_asks_for_torch_itself_and_one_thread_computes():
    def around(answer):
        _labkit_answer = answer

        def _labkit_recorded(x):
            import sys

            return [_labkit_answer(x), "torch" in sys.modules, sys.modules["torch"].get_num_threads()]

        return _labkit_recorded

    result, seen = checked("def answer(x):\n    return x + 1", loads=("torch",), around=around)
    assert result.passed
    assert seen == [[2, True, 1]]


def test_an_answer_without_torch_does_not_wait_for_it():
    source = "def answer(x):\n    import sys\n    return 'tor' + 'ch' in sys.modules"
    assert checked(source)[1] == [False]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_tensors_travel_both_ways(dtype):
    import torch

    sent = torch.tensor([[0.0, 1.0], [3.0, 0.5]]).to(getattr(torch, dtype))
    source = "def answer(x):\n    return {'same': x, 'name': str(x.dtype), 'grad': x.requires_grad}"
    result, (returned,) = checked(source, [sent], loads=("torch",))
    assert result.passed, result
    assert (returned["name"], returned["grad"]) == (f"torch.{dtype}", False)
    back = returned["same"]
    assert isinstance(back, np.ndarray)
    assert back.torch_dtype == dtype
    assert back.astype(float).tolist() == sent.double().tolist()


def test_a_tensor_keeps_whether_it_wants_gradients_and_its_layout():
    import torch

    x = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    source = "def answer(x):\n    (x ** 2).sum().backward()\n    return x, x.grad, x.sum()"
    _, ((back, gradient, total),) = checked(source, [x], loads=("torch",))
    assert back.tolist() == x.tolist()
    assert gradient.tolist() == (2 * x).tolist()
    assert total.shape == ()
    assert total == 15


def test_what_has_no_plain_values_is_named():
    source = (
        "import torch\ndef answer(x):\n"
        "    return [torch.eye(2).to_sparse(), torch.empty(2, device='meta'), torch.nn.Linear(1, 1)]"
    )
    _, ((sparse, meta, layer),) = checked(source)
    assert (sparse.type, meta.type, layer.type) == ("Tensor", "Tensor", "Linear")
    assert "shape (2, 2)" in sparse.text


def test_there_is_room_for_torch_and_not_more(monkeypatch):
    assert loads.limits(["torch.optim"], Limits()) == Limits(memory=3 * 2**30, start_s=180)
    assert loads.limits(["labkit.network"], Limits()) == Limits()
    monkeypatch.setattr(loads, "_TORCH_MEMORY", 2**29)
    source = "import torch\ndef answer(x):\n    return len([torch.ones(2**22) for _ in range(x)])"
    small = Limits(memory=2**20)
    assert checked(source, [2], limits=small)[0].passed
    result, _ = checked(source, [200], limits=small)
    assert result.outcome == "error"
    assert "more than 512 MiB" in result.message


def test_arithmetic_forgets_the_name_of_the_type():
    one = tensors.to_tensor_array(np.ones(2), "bfloat16", False)
    assert one.torch_dtype == "bfloat16"
    assert (one + 1).torch_dtype == ""


def test_large_tensors_are_refused_before_they_are_copied():
    import torch

    encoder = values.Encoder(budget=1000)
    big = torch.zeros(1).expand(10**9)
    began = time.monotonic()
    assert "other" in encoder.encode(big)
    assert time.monotonic() - began < 0.5
    assert encoder.arrays == {}


def test_without_torch_a_check_that_needs_it_says_what_to_install(without_torch):
    one = exercise([1], loads=("torch",))
    result = run_check.run_check(one, sources.answer("def answer(x):\n    return x", "answer"), SHORT)
    assert result.outcome == "error"
    assert result.message == loads.TORCH_MISSING
    assert 'pip install -c binder/requirements.txt ".[lab,train]"' in result.message


def test_without_torch_the_first_cell_says_what_to_install(without_torch):
    assert header.lesson("01").missing == ""
    first = header.lesson("04")
    assert repr(first).endswith(loads.TORCH_MISSING)
    assert "make lab" in first._repr_html_()


def test_without_torch_an_answer_that_only_mentions_it_runs(without_torch):
    result, seen = checked("def answer(x):\n    return x  # no torch here")
    assert result.passed
    assert seen == [1]
