"""Kernels as courses write them, checked against NumPy on many sizes and launch shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import cuda
from labkit.compute.emulator import geometry

TILE = 8
PADDED = TILE + 1
rng = np.random.default_rng(1)
sizes = st.integers(0, 700)
blocks = st.sampled_from([1, 2, 7, 33])
threads = st.sampled_from([1, 31, 32, 64, 100])


@cuda.jit
def saxpy(a, x, y, out):
    start = cuda.grid(1)
    for i in range(start, x.size, cuda.gridsize(1)):
        out[i] = a * x[i] + y[i]


@given(sizes, blocks, threads)
def test_grid_stride_saxpy(n, grid, block):
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    out = np.full(n, np.nan, np.float32)
    saxpy[grid, block](np.float32(2), x, y, out)
    np.testing.assert_array_equal(out, np.float32(2) * x + y)


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((TILE, PADDED), np.float64)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + tx
    y = cuda.blockIdx.x * TILE + ty
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = tile[tx, ty]


@given(st.integers(1, 40), st.integers(1, 40))
def test_tiled_transpose(rows, columns):
    a, out = rng.random((rows, columns)), np.zeros((columns, rows))
    transpose[(-(-columns // TILE), -(-rows // TILE)), (TILE, TILE)](a, out)
    np.testing.assert_array_equal(out, a.T)


@cuda.jit
def tile_matmul(a, b, c):
    sa = cuda.shared.array((TILE, TILE), np.float32)
    sb = cuda.shared.array((TILE, TILE), np.float32)
    i, j = cuda.grid(2)
    ti, tj = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for k in range(math_ceil_div(a.shape[1], TILE)):
        sa[ti, tj] = 0
        sb[ti, tj] = 0
        if i < a.shape[0] and tj + k * TILE < a.shape[1]:
            sa[ti, tj] = a[i, tj + k * TILE]
        if j < b.shape[1] and ti + k * TILE < b.shape[0]:
            sb[ti, tj] = b[ti + k * TILE, j]
        cuda.syncthreads()
        for m in range(TILE):
            total += sa[ti, m] * sb[m, tj]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


@cuda.jit(device=True)
def math_ceil_div(a, b):
    return (a + b - 1) // b


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_tiled_matmul(m, k, n):
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    tile_matmul[(-(-m // TILE), -(-n // TILE)), (TILE, TILE)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@cuda.jit
def histogram(values, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)


@given(sizes, blocks)
def test_atomic_histogram(n, bins):
    values = rng.integers(0, bins, n)
    found = np.zeros(bins, np.int32)
    histogram[max(1, -(-n // 64)), 64](values, found)
    np.testing.assert_array_equal(found, np.bincount(values, minlength=bins))


@cuda.jit
def tickets(counter, out):
    i = cuda.grid(1)
    out[i] = cuda.atomic.add(counter, 0, 1)


def test_the_old_values_of_atomics_are_those_of_some_order():
    counter, out = np.zeros(1, np.int32), np.full(300, -1)
    tickets[3, 100](counter, out)
    assert counter[0] == 300
    assert sorted(out) == list(range(300))


@cuda.jit
def block_sums(x, sums):
    partial = cuda.shared.array(64, np.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = partial[0]


@given(sizes)
def test_tree_reduction(n):
    x = rng.integers(0, 100, n).astype(float)
    sums = np.zeros(max(1, -(-n // 64)))
    block_sums[len(sums), 64](x, sums)
    assert sums.sum() == x.sum()


@cuda.jit
def coordinates(out):
    x, y, z = cuda.grid(3)
    nx, ny, nz = cuda.gridsize(3)
    out[x, y, z] = (
        x
        + 10 * y
        + 100 * z
        + 1000 * (nx + ny + nz)
        + cuda.threadIdx.x
        + cuda.blockIdx.y
        + cuda.blockDim.z
        + cuda.gridDim.x
    )


@pytest.mark.parametrize("lanes", [8, 24, 100, 10**6])
def test_three_dimensional_launches_however_they_are_cut(lanes, monkeypatch):
    monkeypatch.setattr(geometry.chunks, "__defaults__", (lanes,))
    out = np.zeros((6, 6, 8), np.int64)
    coordinates[(3, 2, 4), (2, 3, 2)](out)
    x, y, z = np.indices(out.shape)
    np.testing.assert_array_equal(out, x + 10 * y + 100 * z + 1000 * (6 + 6 + 8) + x % 2 + y // 3 + 2 + 3)


@cuda.jit
def early_return_then_barrier(x, out):
    box = cuda.shared.array(32, np.float32)
    i = cuda.grid(1)
    if i >= x.size:
        return
    box[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    out[i] = box[0]


def test_threads_that_returned_count_as_arrived_at_barriers():
    x, out = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    early_return_then_barrier[2, 32](x, out)
    np.testing.assert_array_equal(out, [0] * 32 + [32] * 8)


@cuda.jit
def swap_neighbours(x):
    i = cuda.grid(1)
    x[i] = x[i ^ 1]


def test_a_warp_reads_before_it_writes():
    x = np.arange(32)
    swap_neighbours[1, 32](x)
    np.testing.assert_array_equal(x, np.arange(32) ^ 1)


@cuda.jit
def mutex(lock, total):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] += cuda.blockIdx.x
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


@cuda.jit
def lane_lock(lock, total):
    done = False
    while not done:
        if cuda.atomic.compare_and_swap(lock, 0, 1) == 0:
            total[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "expected"), [(mutex, 600, 64, 179700), (lane_lock, 2, 48, 96)]
)
def test_spin_locks_make_progress(kernel, grid, block, expected):
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int64)
    kernel[grid, block](lock, total)
    assert total[0] == expected
    assert lock[0] == 0


@cuda.jit
def look_back(values, sums, flags):
    """Each block adds its value to the sum of the block before it, whichever of them runs first."""
    b = cuda.gridDim.x - 1 - cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        before = 0
        if b > 0:
            while cuda.atomic.add(flags, b - 1, 0) == 0:
                pass
            before = sums[b - 1]
        sums[b] = before + values[b]
        cuda.threadfence()
        cuda.atomic.exch(flags, b, 1)


def test_blocks_may_wait_for_blocks_that_start_later():
    values = np.arange(400)
    sums, flags = np.zeros(400, np.int64), np.zeros(400, np.int32)
    look_back[400, 128](values, sums, flags)
    np.testing.assert_array_equal(sums, np.cumsum(values))


@cuda.jit
def local_sort(x, out):
    """A bubble sort of four numbers in each thread's own memory."""
    mine = cuda.local.array(4, np.float64)
    i = cuda.grid(1)
    if i < x.shape[0]:
        for k in range(4):
            mine[k] = x[i, k]
        for k in range(4):
            for m in range(3 - k):
                if mine[m] > mine[m + 1]:
                    mine[m], mine[m + 1] = mine[m + 1], mine[m]
        for k in range(4):
            out[i, k] = mine[k]


def test_local_arrays_belong_to_one_thread():
    x = rng.random((50, 4))
    out = np.zeros_like(x)
    local_sort[2, 32](x, out)
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


WEIGHTS = np.array([0.25, 0.5, 0.25])
OFFSET = (1, -1)


@cuda.jit
def smooth(x, out):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    if OFFSET[0] <= i < x.size + OFFSET[1]:
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * x[i + k - 1]
        out[i] = total


def test_constant_arrays_and_tuples_are_captured():
    x = rng.random(100)
    out = np.zeros(100)
    smooth[4, 32](x, out)
    np.testing.assert_allclose(out[1:-1], np.convolve(x, WEIGHTS, "valid"))


@cuda.jit
def dynamic_shared(x):
    first = cuda.shared.array(0, np.int32)
    t = cuda.threadIdx.x
    first[t] = x[t]
    cuda.syncthreads()
    x[t] = first[cuda.blockDim.x - 1 - t]


def test_dynamic_shared_memory_has_the_size_of_the_launch():
    x = np.arange(16, dtype=np.int32)
    dynamic_shared[1, 16, 0, 64](x)
    np.testing.assert_array_equal(x, np.arange(16)[::-1])


@cuda.jit
def rows(image, out):
    y = cuda.grid(1)
    if y < image.shape[0]:
        row = image[y]
        total = 0
        for value in row:
            total += value
        out[y] = total


def test_a_row_of_an_array_is_an_array():
    image = rng.integers(0, 9, (20, 7))
    out = np.zeros(20, np.int64)
    rows[1, 32](image, out)
    np.testing.assert_array_equal(out, image.sum(axis=1))


@cuda.jit
def special_functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sqrt(x[i]) + math.exp(-x[i]) + math.erf(x[i]) + math.atan2(x[i], 2.0) + math.floor(x[i])


def test_functions_of_the_math_module():
    x = rng.random(100) * 5
    out = np.zeros(100)
    special_functions[4, 32](x, out)
    expected = [math.sqrt(v) + math.exp(-v) + math.erf(v) + math.atan2(v, 2.0) + math.floor(v) for v in x]
    np.testing.assert_allclose(out, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_either_order_and_device_arrays(order):
    a = np.asarray(rng.random((12, 20)), order=order)
    device = cuda.to_device(a)
    out = cuda.device_array((20, 12))
    transpose[(3, 2), (TILE, TILE)](device, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), a.T)
    transpose[(3, 2), (TILE, TILE)](a, out)
    np.testing.assert_array_equal(out.copy_to_host(), a.T)


def test_a_device_array_is_a_copy():
    x = np.zeros(4)
    device = cuda.to_device(x)
    saxpy[1, 4](1.0, np.ones(4), np.ones(4), device)
    assert x.sum() == 0
    assert device.copy_to_host().sum() == 8
    strided = device[::2]
    saxpy[1, 4](0.0, np.ones(2), np.full(2, 7.0), strided)
    np.testing.assert_array_equal(device.copy_to_host(), [7, 2, 7, 2])
