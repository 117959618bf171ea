"""Gates: exact counters against a target, in the check of a kernel and by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.compute.kernels import matmul, reduction, transpose
from labkit.course import gates, messages
from labkit.course.lessons import l02_cases as cases
from labkit.course.lessons import l02_why as why

LOADS = gates.Gate("sectors a load request", gates.sectors_a_request("load"), 4, "because")


def lines(**counters):
    return {"7": counters, "8": {"global_load_requests": 2, "global_load_sectors": 8}}


def test_a_gate_that_is_met_says_nothing():
    assert gates.judge([LOADS], lines()) is None
    assert gates.judge([LOADS], {}) is None
    assert gates.reached([LOADS], lines()) == ("4 sectors a load request, target 4",)


def test_a_gate_that_is_not_met_names_the_figure_the_target_and_the_line():
    found = gates.judge([LOADS], lines(global_load_requests=2, global_load_sectors=64))
    assert found == (
        "The values are right, but: 18 sectors a load request, target 4 (most in line 7).",
        "because",
    )


def test_the_first_gate_that_is_not_met_speaks():
    conflicts = gates.Gate("bank conflicts", gates.counter("shared_bank_conflicts"), 0, "banks")
    found = gates.judge([LOADS, conflicts], lines(shared_bank_conflicts=1234))
    assert found is not None
    assert found[0].startswith("The values are right, but: 1,234 bank conflicts, target 0")


def test_races_that_are_warnings_fail_an_answer_and_notes_do_not():
    found = [
        ["race", 3, "a", "warning"],
        ["wraparound", 4, "b", "note"],
        ["uninitialized", 5, "c", "warning"],
    ]
    assert messages.findings(found) == (["a"], ("b", "c"))


@cuda.jit
def no_barrier(image, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    if top + ty < image.shape[0] and left + tx < image.shape[1]:
        tile[ty, tx] = image[top + ty, left + tx]
    if left + ty < out.shape[0] and top + tx < out.shape[1]:
        out[left + ty, top + tx] = tile[tx, ty]


@cuda.jit
def by_a_helper(image, out):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        put(image, out, row, column)


@cuda.jit(device=True)
def put(image, out, row, column):
    out[column, row] = image[row, column]


def test_a_missing_barrier_fails_although_the_values_are_right():
    image = np.arange(64.0 * 32, dtype=np.float32).reshape(64, 32)
    out = np.empty((32, 64), np.float32)
    from labkit.compute.emulator import jit

    jit(no_barrier.py_func)[(1, 2), (32, 32)](image, out)
    assert np.array_equal(out, image.T)
    result = labkit.exercise("02.transpose").check(no_barrier)
    assert result.outcome == "failed"
    assert "which thread (0, 1, 0) of block (0, 0, 0) writes in line" in result.message
    assert result.why == messages.RIGHT_BY_LUCK


def test_a_line_of_a_device_function_is_named_with_it():
    result = labkit.exercise("02.transpose").check(by_a_helper)
    assert "32 sectors a store request, target 4 (most in line put:" in result.message


def test_what_was_counted_is_in_every_rendering_of_a_pass():
    tile = cases.TILE

    @cuda.jit
    def transposed(image, out):
        desk = cuda.shared.array((tile, tile), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = cuda.blockIdx.x * tile, cuda.blockIdx.y * tile
        if top + ty < image.shape[0] and left + tx < image.shape[1]:
            desk[ty, tx] = image[top + ty, left + tx]
        cuda.syncthreads()
        if left + ty < out.shape[0] and top + tx < out.shape[1]:
            out[left + ty, top + tx] = desk[tx, ty]

    result = labkit.exercise("02.transpose").check(transposed)
    assert result.passed, result
    assert result.counted == ("4 sectors a load request, target 4", "4 sectors a store request, target 4")
    assert "counted: 4 sectors a store request, target 4" in repr(result)
    assert "4 sectors a store request" in result._repr_html_()
    assert result.to_dict()["counted"] == list(result.counted)


@pytest.mark.parametrize("shape", [(64, 64, 64), (48, 32, 80)])
def test_the_gate_of_matmul_is_what_tiles_of_sixteen_load(shape):
    m, k, n = shape
    a, b, c = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32), np.zeros((m, n), np.float32)
    seen = labkit.inspect(matmul.launch(matmul.matmul_tiled, c), a, b, c, gpu="A100").totals
    assert seen.global_load_sectors == cases.sectors_loaded(m, k, n).target


def test_the_gates_of_the_tree_are_what_a_tree_needs():
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    seen = labkit.inspect(reduction.launch(reduction.sum_tree, x), x, out, gpu="A100").totals
    needed = {gate.words: gate.target for gate in cases.tree(4)}
    assert seen.divergent_branches == needed["divergent branches"]
    assert seen.shared_load_requests == needed["shared load requests"]
    assert seen.shared_bank_conflicts == needed["bank conflicts"]


def test_a_transpose_cannot_do_better_than_a_copy():
    image = np.zeros((64, 96), np.float32)
    seen = labkit.inspect(transpose.launch(transpose.copy, image), image, image.copy(), gpu="A100").totals
    assert cases.LOADS.measure(seen) == cases.LOADS.target
    assert cases.STORES.measure(seen) == cases.STORES.target


def test_expected_values_are_those_of_plain_loops():
    for launch in cases.rotate():
        image, out = launch.arguments["image"], launch.expected["out"]
        rows, columns = image.shape
        assert all(out[c, rows - 1 - r] == image[r, c] for r in range(rows) for c in range(columns))
    for launch in cases.histogram():
        counts = launch.expected["counts"]
        assert counts.sum() == launch.arguments["values"].size
        assert all(counts[v] == list(launch.arguments["values"]).count(v) for v in (0, 119, 120, 255))


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    out[i] = a * x[i] + y[i]


@cuda.jit
def blur(image, out):
    column, row = cuda.grid(2)
    if 0 < row < image.shape[0] - 1 and 0 < column < image.shape[1] - 1:
        total = image[row - 1, column - 1]
        for k in range(1, 9):
            total += image[row - 1 + k // 3, column - 1 + k % 3]
        out[row, column] = total * np.float32(1 / 9)


def test_the_intensities_are_those_that_are_counted():
    x = np.zeros(2**16, np.float32)
    image = np.zeros((256, 256), np.float32)
    side = (cases.SIDE, cases.SIDE)
    a, b, c = (np.zeros(side, np.float32) for _ in range(3))
    counted = {
        "saxpy": labkit.inspect(saxpy[2**8, 256], np.float32(2), x, x.copy(), x.copy(), gpu="A100"),
        "blur": labkit.inspect(blur[(8, 32), (32, 8)], image, image.copy(), gpu="A100"),
        "matmul": labkit.inspect(matmul.launch(matmul.matmul_tiled, c), a, b, c, gpu="A100"),
    }
    for name, seen in counted.items():
        assert seen.roofline.intensity == pytest.approx(cases.INTENSITY[name], rel=0.03), name


@pytest.mark.parametrize("unit", ["TB/s", "GB/s", "gb/s", "TB per second"])
@pytest.mark.parametrize("left_out", ["which cards", ["stacks", "bus width"], "peak, not achieved"])
def test_a_right_claim_may_be_worded_in_many_ways(unit, left_out):
    number = 2.039 if unit.lower().startswith("tb") else 2039
    answer = {"verdict": " Mostly_true ", "number": number, "unit": unit, "left_out": left_out}
    assert why.claim(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        {"saxpy": None, "blur": 1, "matmul": 1},
        {"saxpy": "1/6", "blur": 1, "matmul": 1},
        {"saxpy": np.zeros(3)},
        {"saxpy": float("nan")},
        {"other": 3},
        {"saxpy": -1e308},
    ],
)
def test_odd_intensities_are_sentences(answer):
    result = labkit.exercise("02.roofline").check(answer)
    assert result.outcome == "failed"
    assert result.message.endswith((".", "a byte."))
