"""Counters are exact: on cases known by arithmetic, and by formula as by going through all lanes."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.support import define
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import cuda
from labkit.compute.emulator import counting, traffic
from labkit.compute.emulator.inspection import load


def counts(body: str, *arguments, grid=1, block=32, parameters: str = "a, out", **names):
    indented = "".join(f"    {line}\n" for line in body.strip().splitlines())
    kernel = define(f"@cuda.jit\ndef f({parameters}):\n{indented}", **names)
    return labkit.inspect(kernel[grid, block], *arguments).totals


@pytest.mark.parametrize(
    ("dtype", "stride", "sectors"),
    [
        (np.float32, 1, 4),
        (np.float32, 2, 8),
        (np.float32, 16, 32),
        (np.float64, 1, 8),
        (np.float32, 0, 1),
        (np.uint8, 1, 1),
        (np.float16, 1, 2),
        (np.complex128, 1, 16),
    ],
)
def test_sectors_of_a_request(dtype, stride, sectors):
    a, out = np.zeros(max(1, 256 * stride), dtype), np.zeros(256, dtype)
    found = counts(
        "i = cuda.grid(1)\nout[i] = a[i * stride]",
        a,
        out,
        stride,
        parameters="a, out, stride",
        block=128,
        grid=2,
    )
    assert found.global_load_requests == found.global_store_requests == 8
    assert found.global_load_sectors == 8 * sectors


def test_misaligned_and_structured_accesses():
    a, out = np.zeros(257, np.float32), np.zeros(256, np.float32)
    found = counts("i = cuda.grid(1)\nout[i] = a[i + 1]", a, out, block=256)
    assert found.global_load_sectors == 8 * 5  # each warp starts 4 bytes into a sector
    particle = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32)])
    found = counts("i = cuda.grid(1)\nout[i] = a[i].y", np.zeros(256, particle), out, block=256)
    assert found.global_load_sectors == 8 * 12  # 12 bytes apart: all sectors of 384 bytes
    found = counts(
        "i = cuda.grid(1)\nout[i] = a[i]", np.zeros(256, particle), np.zeros(256, particle), block=256
    )
    assert found.global_load_sectors == found.global_store_sectors == 8 * 12


def test_slices_of_device_arrays_may_start_within_a_sector():
    device, out = cuda.to_device(np.zeros(300, np.float32)), cuda.device_array(256, np.float32)
    body = "i = cuda.grid(1)\nout[i] = a[i]"
    assert counts(body, device[:256], out, block=256).global_load_sectors == 8 * 4
    assert counts(body, device[3:259], out, block=256).global_load_sectors == 8 * 5
    assert counts(body, device[8:264], out, block=256).global_load_sectors == 8 * 4


def test_a_tile_read_by_columns_and_padding():
    body = "s = cuda.shared.array((32, {w}), np.float32)\ny, x = cuda.threadIdx.y, cuda.threadIdx.x\n"
    body += "s[y, x] = a[y, x]\ncuda.syncthreads()\nout[y, x] = s[x, y]"
    square = np.zeros((32, 32), np.float32)
    plain = counts(body.format(w=32), square, square.copy(), block=(32, 32))
    assert plain.shared_load_requests == plain.shared_store_requests == 32
    assert plain.shared_bank_conflicts == 32 * 31
    assert plain.barriers == 32
    padded = counts(body.format(w=33), square, square.copy(), block=(32, 32))
    assert padded.shared_bank_conflicts == 0


@pytest.mark.parametrize(
    ("dtype", "index", "conflicts"),
    [
        (np.float32, "t", 0),
        (np.float32, "0", 0),  # a broadcast
        (np.float32, "t * 2", 1),
        (np.float32, "t // 2", 0),  # two lanes share a word
        (np.float64, "t", 0),  # half a warp at a time
        (np.float64, "t * 2", 2),  # in each half two lanes meet in a bank
        (np.complex128, "t", 0),
        (np.uint8, "t", 0),
        (np.float32, "t * 32", 31),
    ],
)
def test_bank_conflicts(dtype, index, conflicts):
    fill = "for k in range(t, 1024, 32):\n    s[k] = 0\ncuda.syncthreads()"
    body = f"s = cuda.shared.array(1024, dt)\nt = cuda.threadIdx.x\n{fill}\nout[t] = s[{index}]"
    before = counts(body.rsplit("\n", 1)[0], np.zeros(32), np.zeros(32, dtype), dt=np.dtype(dtype).type)
    found = counts(body, np.zeros(32), np.zeros(32, dtype), dt=np.dtype(dtype).type)
    assert found.shared_bank_conflicts - before.shared_bank_conflicts == conflicts


def test_saxpy_by_hand():
    n = 1024
    x, y, out = (np.ones(n, np.float32) for _ in range(3))
    body = "i = cuda.grid(1)\nif i < x.size:\n    out[i] = a * x[i] + y[i]"
    found = counts(body, np.float32(2), x, y, out, parameters="a, x, y, out", grid=4, block=256)
    assert (found.flops_fp32, found.flops_fp64) == (2 * n, 0)
    assert (found.dram_read_bytes, found.dram_write_bytes) == (8 * n, 4 * n)
    assert (found.branches, found.divergent_branches) == (32, 0)
    assert found.flops == 2 * n
    double = counts(body, 2.0, x, y, out, parameters="a, x, y, out", grid=4, block=256)
    assert (double.flops_fp32, double.flops_fp64) == (0, 2 * n)


def test_divergence_partial_warps_and_early_exits():
    found = counts(
        "i = cuda.grid(1)\nif i < 256:\n    out[i] = 1", np.zeros(1), np.zeros(256), grid=5, block=100
    )
    assert (found.branches, found.divergent_branches) == (20, 1)
    assert (found.global_store_requests, found.global_store_sectors) == (10, 64)
    odd = counts("if cuda.grid(1) % 2:\n    out[cuda.grid(1)] = 1", np.zeros(1), np.zeros(64), block=64)
    assert (odd.branches, odd.divergent_branches) == (2, 2)


def test_atomics():
    found = counts("cuda.atomic.add(out, cuda.threadIdx.x % 4, 1)", np.zeros(1), np.zeros(4), block=64)
    assert (found.atomic_requests, found.atomic_conflicts) == (2, 2 * 28)
    spread = counts("cuda.atomic.add(out, cuda.threadIdx.x, 1)", np.zeros(1), np.zeros(64), block=64)
    assert (spread.atomic_requests, spread.atomic_conflicts) == (2, 0)


def test_the_l2_model_reads_once_what_fits_and_again_what_does_not():
    again = "i = cuda.grid(1)\nt = 0.0\nfor k in range(3):\n    t += a[i]\nout[i] = t"
    a, out = np.zeros(4096), np.zeros(4096)
    found = counts(again, a, out, grid=16, block=256)
    assert (found.dram_read_bytes, found.dram_write_bytes) == (a.nbytes, out.nbytes)
    kernel = define("@cuda.jit\ndef f(a, out):\n" + "".join(f"    {row}\n" for row in again.splitlines()))
    from labkit.compute.emulator.observers import observed

    small = counting.Counter(1024)
    configured = kernel[16, 256]
    observed(kernel, configured.shape, (a, out), [small])
    assert sum(c.dram_read_bytes for c in small.lines("f").values()) > a.nbytes


def test_device_functions_and_fused_operations():
    helper = define("@cuda.jit(device=True)\ndef g(x):\n    return x * x + x\n", "g")
    kernel = define(
        "@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    a[i] = cuda.fma(g(a[i]), a[i], a[i]) ** 3\n",
        g=helper,
    )
    found = labkit.inspect(kernel[1, 32], np.ones(32, np.float32))
    assert found.totals.flops_fp32 == 32 * (2 + 2 + 2)
    assert found.lines["g:3"].flops_fp32 == 64


COORDINATES = """tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    block = cuda.blockIdx.x + cuda.blockIdx.y * 7
"""
shapes = st.sampled_from(
    [(32,), (64,), (256,), (16, 16), (8, 8), (32, 4), (4, 8, 2), (100,), (24, 3), (5, 7)]
)


@settings(max_examples=120)
@given(
    block=shapes,
    grid=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    steps=st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 9), st.integers(0, 300)),
    dtype=st.sampled_from([np.uint8, np.float16, np.float32, np.float64, np.complex128]),
    shared=st.booleans(),
)
def test_counting_by_formula_equals_counting_lane_by_lane(block, grid, steps, dtype, shared):
    sx, sy, sb, base = steps
    body = "out[0] = s[k]\n        s[k] = 1\n    else:\n        out[0] = a[k]\n        a[k] = 1"
    place = "base + tx * sx + ty * sy + tz + block * sb"
    shared_array = "s = cuda.shared.array(2600, dt)"
    indented = f"    {COORDINATES}    k = {place}\n    {shared_array}\n    if shared:\n        {body}\n"
    kernel = define(
        f"@cuda.jit\ndef f(a, out, sx, sy, sb, base, shared):\n{indented}", dt=np.dtype(dtype).type
    )
    a, out = np.zeros(20_000, dtype), np.zeros(1, dtype)
    if shared and base + (max(block)) * max(sx, sy) * 2 + 200 >= 2600:
        return

    def totals():
        return dict(labkit.inspect(kernel[grid, block], a, out, sx, sy, sb, base, shared).totals)

    by_formula = totals()
    original, counting.Counter.pattern = counting.Counter.pattern, lambda *args: None
    try:
        assert totals() == by_formula
    finally:
        counting.Counter.pattern = original


@given(st.lists(st.integers(0, 4000), min_size=32, max_size=32), st.sampled_from([1, 2, 4, 8, 12, 16, 20]))
def test_the_memorised_patterns_equal_the_general_count(places, size):
    address = np.array(places) * size
    warp, lane = np.zeros(32, np.int64), np.arange(32)
    pattern = tuple((address - address[0]).tolist())
    shift = int(address[0] % traffic.SECTOR_BYTES)
    assert traffic.pattern_sectors(pattern, size, shift) == traffic.sectors(
        traffic.Grouping(warp), address, size
    )
    if size % 4 == 0:
        assert traffic.pattern_conflicts(pattern, size, 0) == traffic.conflicts(warp, lane, address, size)


def test_an_inspection_shows_and_saves_itself():
    kernel = define("@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    a[i] = a[i] * 2\n")
    found = labkit.inspect(kernel[8, 128], np.ones(1024, np.float32), gpu="H100")
    assert "modelled on H100_SXM5" in repr(found)
    assert "4 sectors a load request" in repr(found)
    assert "emulated" in found._repr_html_()
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in found._repr_html_()
    assert repr(load(found.to_dict())) == repr(found)
    assert found.occupancy.limited_by == "threads"
    assert found.roofline.bound == "launch"
    assert found.lines[4].global_load_sectors == 128
    with pytest.raises(labkit.LabkitError, match="newer labkit"):
        load({**found.to_dict(), "version": 99})
    with pytest.raises(labkit.LabkitError, match="H100"):
        labkit.inspect(kernel[8, 128], np.ones(1024), gpu="H1000")
    with pytest.raises(AttributeError, match="there is no counter 'sectors'"):
        found.totals.sectors  # noqa: B018


def test_a_launch_too_large_to_run_whole_is_sampled_and_says_so():
    kernel = define("@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    a[i % a.size] = 1.0\n")
    found = labkit.inspect(kernel[100_000, 256], np.zeros(256, np.float32))
    assert 0 < found.sampled < 1
    assert "scaled up" in repr(found)
    assert found.totals.global_store_sectors == 100_000 * 8 * 4


class NumbaLaunch:
    """What ``kernel[grid, block]`` of numba.cuda looks like, with the emulator doing the work."""

    def __init__(self, configured):
        self.dispatcher = configured.kernel
        self.griddim, self.blockdim, self.sharedmem = configured.shape.grid, configured.shape.block, 0
        self.launch = configured

    def __call__(self, *arguments):
        self.launch(*arguments)


def test_where_there_is_a_gpu_the_measured_time_stands_beside_the_modelled():
    kernel = define("@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    if i < a.size:\n        a[i] += 1\n")
    a = np.zeros(256, np.float32)
    found = labkit.inspect(NumbaLaunch(kernel[2, 128]), a)
    assert found.measured_s > 0
    assert "measured on this machine's GPU" in repr(found)
    assert (a == 1).all()  # timing has run on copies: the array saw one launch
    assert labkit.inspect(kernel[2, 128], a).measured_s is None


@pytest.mark.gpu
def test_a_launch_on_a_real_gpu_is_measured_and_counted():
    kernel = define("@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    if i < a.size:\n        a[i] += 1\n")
    found = labkit.inspect(kernel[2, 128], cuda.to_device(np.zeros(256, np.float32)))
    assert found.measured_s > 0
    assert found.totals.global_load_sectors == 32
