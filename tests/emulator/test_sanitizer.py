"""The sanitizer: right kernels are clean, and each wrong one is told by kind, line and severity."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import test_features, test_kernels
from emulator.support import define

import labkit
from labkit import cuda
from labkit.compute.emulator import launch

rng = np.random.default_rng(3)


def findings(body: str, *arguments, grid=1, block=64, parameters: str = "a, out", **names) -> list[tuple]:
    """(kind, line of the body counted from 1, severity) of what inspecting a kernel finds."""
    indented = "".join(f"    {line}\n" for line in body.strip().splitlines())
    kernel = define(f"@cuda.jit\ndef f({parameters}):\n{indented}", **names)
    found = labkit.inspect(kernel[grid, block], *arguments).findings
    return [(f.kind, f.line - 2, f.severity) for f in found]


def arrays(n: int = 256) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float64), np.zeros(n)


CLEAN = [
    (test_kernels.saxpy[7, 64], lambda: (2.0, np.ones(999), np.ones(999), np.zeros(999))),
    (test_kernels.transpose[(3, 4), (8, 8)], lambda: (np.ones((30, 20)), np.zeros((20, 30)))),
    (
        test_kernels.tile_matmul[(3, 3), (8, 8)],
        lambda: (np.ones((20, 20)), np.ones((20, 20)), np.zeros((20, 20))),
    ),
    (test_kernels.histogram[4, 64], lambda: (rng.integers(0, 9, 200), np.zeros(9, np.int32))),
    (test_kernels.tickets[3, 100], lambda: (np.zeros(1, np.int32), np.zeros(300))),
    (test_kernels.block_sums[4, 64], lambda: (np.ones(200), np.zeros(4))),
    (test_kernels.coordinates[(3, 2, 4), (2, 3, 2)], lambda: (np.zeros((6, 6, 8)),)),
    (test_kernels.early_return_then_barrier[2, 32], lambda: (np.ones(40), np.zeros(40))),
    (test_kernels.mutex[40, 64], lambda: (np.zeros(1, np.int32), np.zeros(1, np.int64))),
    (test_kernels.lane_lock[2, 48], lambda: (np.zeros(1, np.int32), np.zeros(1, np.int64))),
    (test_kernels.look_back[40, 32], lambda: (np.arange(40), np.zeros(40), np.zeros(40, np.int32))),
    (test_kernels.local_sort[2, 32], lambda: (rng.random((50, 4)), np.zeros((50, 4)))),
    (test_kernels.smooth[4, 32], lambda: (np.ones(100), np.zeros(100))),
    (test_kernels.dynamic_shared[1, 16, 0, 64], lambda: (np.arange(16, dtype=np.int32),)),
    (test_kernels.swap_neighbours[1, 32], lambda: (np.arange(32),)),
]


@pytest.mark.parametrize(("configured", "arguments"), CLEAN, ids=lambda v: getattr(v, "kernel", v).__name__)
def test_right_kernels_have_no_findings(configured, arguments):
    found = labkit.inspect(configured, *arguments())
    assert found.findings == ()
    assert found.ok


def test_grid_wide_barriers_order_blocks():
    kernel = define(test_features.GRID_SYNC)
    a = np.arange(300)
    found = labkit.inspect(kernel[5, 60], a, 2)
    assert [f.kind for f in found.findings] == []


LAST_BLOCK = """
@cuda.jit
def f(x, partial, count, out):
    box = cuda.shared.array(64, np.float64)
    last = cuda.shared.array(1, np.int32)
    t = cuda.threadIdx.x
    box[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            box[t] += box[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = box[0]
        cuda.threadfence()
        last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0] and t == 0:
        total = 0.0
        for b in range(cuda.gridDim.x):
            total += partial[b]
        out[0] = total
"""


def test_the_last_block_may_read_what_the_others_wrote_before_they_counted():
    x, partial, count, out = rng.random(640), np.zeros(10), np.zeros(1, np.int32), np.zeros(1)
    found = labkit.inspect(define(LAST_BLOCK)[10, 64], x, partial, count, out)
    assert found.findings == ()
    np.testing.assert_allclose(out[0], x.sum())
    publish = "        partial[cuda.blockIdx.x] = box[0]\n"
    late = "    cuda.syncthreads()\n    if last"
    hasty = LAST_BLOCK.replace(publish, "").replace(late, publish + late)
    found = labkit.inspect(define(hasty)[10, 64], x, partial, np.zeros(1, np.int32), out)
    assert ("race", "error") in [(f.kind, f.severity) for f in found.findings]


SHARED = "s = cuda.shared.array(64, np.float64)\nt = cuda.threadIdx.x\n"


def test_a_missing_barrier_after_the_writes_is_a_race_even_when_the_output_is_right():
    body = SHARED + "s[t] = a[t]\nout[t] = s[63 - t]"
    a, out = arrays(64)
    assert findings(body, a, out) == [("race", 4, "error")]
    np.testing.assert_array_equal(out, a[::-1])
    kernel = define("@cuda.jit\ndef f(a, out):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    message = labkit.inspect(kernel[1, 64], a, out).findings[0].message
    for part in ("reads s[63]", "thread 63 of block 0 writes in line 5", "cuda.syncthreads()"):
        assert part in message


def test_a_missing_barrier_before_the_next_writes_is_a_race():
    body = SHARED + "for k in range(3):\n    s[t] = a[t]\n    cuda.syncthreads()\n    out[t] += s[63 - t]"
    assert ("race", 4, "error") in findings(body, *arrays(64))
    assert findings(body + "\n    cuda.syncthreads()", *arrays(64)) == []


def test_writes_of_one_instruction_collide():
    assert findings("out[0] = cuda.grid(1)", *arrays()) == [("race", 1, "error")]
    assert findings("out[0] = 5", *arrays()) == [("race", 1, "note")]


def test_blocks_race_with_each_other():
    assert findings("out[cuda.threadIdx.x] = cuda.blockIdx.x", *arrays(), grid=4) == [("race", 1, "error")]
    body = "i = cuda.grid(1)\na[i] = i\nout[i] = a[(i + 64) % a.size]"
    assert ("race", 3, "error") in findings(body, *arrays(), grid=4)
    assert findings("i = cuda.grid(1)\nout[i] = a[(i + 64) % a.size]", *arrays(), grid=4) == []
    assert ("race", 1, "error") in findings("out[0] += a[cuda.grid(1)]", *arrays(), grid=4)


def test_a_plain_access_races_with_an_atomic_one():
    init = "if t == 0:\n    s[0] = 0.0\n"
    add = "cuda.atomic.add(s, 0, 1.0)\n"
    end = "cuda.syncthreads()\nout[t] = s[0]"
    assert findings(SHARED + init + "cuda.syncthreads()\n" + add + end, *arrays()) == []
    assert ("race", 5, "error") in findings(SHARED + init + add + end, *arrays())


def test_syncwarp_orders_a_warp():
    body = SHARED + "s[t] = a[t]\nSYNC\nout[t] = s[t ^ 1]"
    assert findings(body.replace("SYNC", "cuda.syncwarp()"), *arrays(64)) == []
    assert ("race", 5, "error") in findings(body.replace("SYNC", "pass"), *arrays(64))
    across = body.replace("SYNC", "cuda.syncwarp()").replace("t ^ 1", "63 - t")
    assert ("race", 5, "error") in findings(across, *arrays(64))


def test_one_reader_among_many_that_writes_without_a_barrier():
    body = (
        SHARED
        + "if t == 0:\n    s[0] = 1.0\ncuda.syncthreads()\nv = s[0]\nif t == 63:\n    s[0] = v + 1\nout[t] = v"
    )
    assert ("race", 8, "error") in findings(body, *arrays(64))


def test_reads_of_what_nobody_wrote():
    assert ("uninitialized", 3, "error") in findings(SHARED + "out[t] = s[t]", *arrays())
    partly = SHARED + "if t < 32:\n    s[t] = 1.0\ncuda.syncthreads()\nout[t] = s[t]"
    assert findings(partly, *arrays()) == [("uninitialized", 6, "error")]
    local = "m = cuda.local.array(4, np.float32)\nm[0] = 1.0\nout[cuda.grid(1)] = m[0] + m[1]"
    assert findings(local, *arrays()) == [("uninitialized", 3, "error")]


def test_out_of_bounds_is_reported_and_the_rest_goes_on():
    a, out = np.arange(50.0), np.zeros(60)
    assert findings("i = cuda.grid(1)\nout[i] = a[i] + 1", a, out) == [
        ("out-of-bounds", 2, "error"),
        ("out-of-bounds", 2, "error"),
    ]
    np.testing.assert_array_equal(out[:50], a + 1)


def test_barriers_that_not_all_reach_and_lanes_that_are_not_there():
    assert findings(
        "if cuda.threadIdx.x < 16:\n    cuda.syncthreads()\nout[cuda.grid(1)] = 1", *arrays()
    ) == [("divergent-barrier", 2, "error")]
    body = "t = cuda.threadIdx.x\nif t < 8:\n    out[t] = cuda.shfl_down_sync(0xffffffff, a[t], 4)"
    assert findings(body, *arrays()) == [("inactive-lane", 3, "error")]


def test_mistakes_that_end_a_launch_are_findings():
    assert findings("while a[1] == 1:\n    pass", *arrays()) == [("needs-forward-progress", 1, "error")]
    kernel = define("@cuda.jit\ndef f(a):\n    while True:\n        a[0] = 1\n")
    found = labkit.inspect(kernel[1, 32], np.zeros(1), step_budget=20_000).findings
    assert [(f.kind, f.severity) for f in found] == [("race", "note"), ("step-budget", "error")][::-1]


def test_negative_indices_are_a_note():
    assert findings("i = cuda.grid(1)\nout[i] = a[i - 1]", *arrays()) == [("wraparound", 2, "note")]


def test_a_strict_launch_raises_what_a_plain_one_raises_and_returns_the_rest():
    racy = define("@cuda.jit\ndef f(out):\n    out[0] = cuda.grid(1)\n")
    assert [f.kind for f in launch(racy, 2, 32, (np.zeros(1),))] == ["race"]
    with pytest.raises(labkit.KernelError, match="it is empty"):
        launch(racy, 2, 32, (np.zeros(0),))


def test_inspect_shows_itself_and_refuses_what_is_no_launch():
    found = labkit.inspect(define("@cuda.jit\ndef f(out):\n    out[0] = cuda.grid(1)\n")[2, 32], np.zeros(1))
    assert "race (error)" in repr(found)
    assert "<b>race</b>" in found._repr_html_()
    assert "out[0] = cuda.grid(1)" in found._repr_html_()
    assert found.to_dict()["findings"][0]["kind"] == "race"
    assert not found.ok
    with pytest.raises(labkit.LabkitError, match=r"kernel\[blocks, threads\]"):
        labkit.inspect(test_kernels.saxpy, 1)
    with pytest.raises(labkit.LabkitError, match="its launch shape"):
        labkit.inspect(lambda: None)


def test_the_sanitizer_does_not_change_what_a_kernel_computes():
    x, y = rng.random(5000, np.float32), rng.random(5000, np.float32)
    plain, watched = np.zeros_like(x), np.zeros_like(x)
    test_kernels.saxpy[13, 128](2.5, x, y, plain)
    labkit.inspect(test_kernels.saxpy[13, 128], 2.5, x, y, watched)
    np.testing.assert_array_equal(plain, watched)


def test_arrays_that_are_the_same_memory_are_one_array():
    a = np.zeros(65)
    body = "i = cuda.grid(1)\nout[i] = a[i + 1]"
    assert findings(body, a, a) == [("race", 2, "error")]
    device = cuda.to_device(a)
    assert findings(body, device, device) == [("race", 2, "error")]


def test_a_fresh_device_array_is_uninitialised_until_someone_writes_it():
    fresh, out = cuda.device_array(64), np.zeros(64)
    body = "i = cuda.grid(1)\nout[i] = a[i]"
    assert findings(body, fresh, out) == [("uninitialized", 2, "error")]
    assert findings(body, fresh[8:40], out, block=32) == [("uninitialized", 2, "error")]
    half = "i = cuda.grid(1)\nif i < 32:\n    a[i] = i"
    assert findings(half, fresh, out) == []
    assert findings(body, fresh[:32], out, block=32) == []
    assert findings(body, fresh, out) == [("uninitialized", 2, "error")]
    test_kernels.saxpy[1, 64](0.0, np.ones(64), np.ones(64), fresh)
    assert findings(body, fresh, out) == []
    copied = cuda.device_array_like(out)
    copied.copy_to_device(out)
    assert findings(body, copied, out) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if t < 16:\n    s[t] = 1\n    cuda.syncwarp(0xFFFF)\n    out[t] = s[15 - t]", []),
        (
            "if t < 16:\n    s[t] = 1\n    cuda.syncwarp(0xFFFF)\nif t >= 16:\n    out[t] = s[t - 16]",
            ["race"],
        ),
        ("s[t] = 1\nif t < 16:\n    cuda.syncwarp(0xFFFF)\n    out[t] = s[t + 16]", ["race"]),
        ("s[t] = 1\nif t < 16:\n    cuda.syncwarp(0xFFFF)\ncuda.syncwarp()\nout[t] = s[31 - t]", []),
    ],
)
def test_syncwarp_orders_the_lanes_that_take_part_in_it(body, expected):
    body = "s = cuda.shared.array(32, np.float64)\nt = cuda.threadIdx.x\n" + body
    assert [kind for kind, _, _ in findings(body, *arrays(), block=32)] == expected


@pytest.mark.parametrize(("second", "expected"), [("a[t]", ["race"]), ("np.float32(a[t])", [])])
def test_calls_of_a_device_function_share_its_shared_memory_unless_their_types_differ(second, expected):
    reverse = define(
        "@cuda.jit(device=True)\ndef f(value):\n    s = cuda.shared.array(64, np.float64)\n"
        "    t = cuda.threadIdx.x\n    s[t] = value\n    cuda.syncthreads()\n    return s[63 - t]\n"
    )
    body = "t = cuda.threadIdx.x\nx = reverse(a[t])\n{}out[t] = x - reverse(" + second + ")"
    a, out = arrays(64)
    assert [kind for kind, _, _ in findings(body.format(""), a, out, reverse=reverse)] == expected
    assert findings(body.format("cuda.syncthreads()\n"), a, out, reverse=reverse) == []
    assert not out.any()
