"""Warps, barriers that count, bit functions, half precision, complex and structured numbers, slices, printing."""

from __future__ import annotations

import cmath
import math
from fractions import Fraction

import numpy as np
import pytest
from emulator.support import define
from hypothesis import given
from hypothesis import strategies as st

import labkit

rng = np.random.default_rng(2)
FULL = 0xFFFFFFFF


def each_thread(expression: str, dtype, threads: int = 96, block: int = 48, **arrays) -> np.ndarray:
    """The value of an expression over i (thread), lane and the arrays, for every thread."""
    names = ", ".join(arrays)
    head = f"@cuda.jit\ndef f(out, {names}):\n    i = cuda.grid(1)\n    lane = cuda.threadIdx.x % 32\n"
    source = f"{head}    out[i] = {expression}\n"
    out = np.zeros(threads, dtype)
    define(source)[threads // block, block](out, *arrays.values())
    return out


def warps(threads: int = 96, block: int = 48):
    """The threads of each warp: a block of 48 has a full one and one of 16."""
    for start in range(0, threads, block):
        yield list(range(start, start + 32))
        yield list(range(start + 32, start + block))


@pytest.mark.parametrize(
    ("call", "target"),
    [
        ("shfl_sync(0xffffffff, a[i], 3)", lambda lane: 3),
        ("shfl_sync(0xffffffff, a[i], lane ^ 5)", lambda lane: lane ^ 5),
        ("shfl_up_sync(0xffffffff, a[i], 2)", lambda lane: lane - 2),
        ("shfl_down_sync(0xffffffff, a[i], 7)", lambda lane: lane + 7),
        ("shfl_xor_sync(0xffffffff, a[i], 1)", lambda lane: lane ^ 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_shuffles(call, target, dtype):
    a = rng.integers(0, 1000, 96).astype(dtype)
    found = each_thread(f"cuda.{call}", dtype, a=a)
    for members in warps():
        for lane, thread in enumerate(members):
            other = target(lane)
            source = members[other] if 0 <= other < len(members) else thread
            assert found[thread] == a[source]


def test_a_warp_sum_by_shuffles():
    source = """
@cuda.jit
def f(a, out):
    i = cuda.grid(1)
    v = a[i]
    step = 16
    while step > 0:
        v += cuda.shfl_down_sync(0xffffffff, v, step)
        step //= 2
    if cuda.laneid == 0:
        out[i // cuda.warpsize] = v
"""
    a, out = rng.integers(0, 100, 256).astype(np.float32), np.zeros(8, np.float32)
    define(source)[2, 128](a, out)
    np.testing.assert_array_equal(out, a.reshape(8, 32).sum(axis=1))


@given(st.lists(st.booleans(), min_size=96, max_size=96), st.sampled_from([FULL, 0x0000FFFF, 0xF0F0F0F1]))
def test_votes_and_ballots(values, mask):
    a = np.array(values)
    found = {
        name: each_thread(f"cuda.{name}({mask}, a[i])", np.int64, a=a)
        for name in ("all_sync", "any_sync", "eq_sync", "ballot_sync")
    }
    for members in warps():
        asked = [lane for lane in range(len(members)) if mask >> lane & 1]
        held = [lane for lane in asked if a[members[lane]]]
        bits = np.uint32(sum(1 << lane for lane in held)).view(np.int32)
        for lane in asked:
            thread = members[lane]
            assert found["ballot_sync"][thread] == bits
            assert found["any_sync"][thread] == bool(held)
            assert found["all_sync"][thread] == (len(held) == len(asked))
            assert found["eq_sync"][thread] == (len(held) in (0, len(asked)))


def test_matches_and_masks():
    a = rng.integers(0, 3, 96).astype(np.int32)
    a[32:48] = 7
    any_mask = each_thread("cuda.match_any_sync(0xffffffff, a[i])", np.int64, a=a)
    all_mask = each_thread("cuda.match_all_sync(0xffffffff, a[i])[0]", np.int64, a=a)
    agreed = each_thread("cuda.match_all_sync(0xffffffff, a[i])[1]", bool, a=a)
    below = each_thread("cuda.lanemask_lt()", np.int64, a=a)
    active = each_thread("cuda.activemask()", np.int64, a=a)
    for members in warps():
        everyone = sum(1 << lane for lane in range(len(members)))
        same = len(set(a[members])) == 1
        for lane, thread in enumerate(members):
            bits = sum(1 << k for k, other in enumerate(members) if a[other] == a[thread])
            assert any_mask[thread] & FULL == bits
            assert (all_mask[thread] & FULL, agreed[thread]) == ((everyone, True) if same else (0, False))
            assert below[thread] == (1 << lane) - 1
            assert active[thread] == everyone


def test_a_diverged_warp_sees_only_the_lanes_that_run_with_it():
    source = """
@cuda.jit
def f(out):
    t = cuda.threadIdx.x
    if t % 3 == 0:
        out[t] = cuda.activemask()
    else:
        out[t] = cuda.ballot_sync(0xffffffff, t % 2 == 0)
"""
    out = np.zeros(32, np.int64)
    define(source)[1, 32](out)
    thirds = sum(1 << t for t in range(0, 32, 3))
    evens = sum(1 << t for t in range(32) if t % 3 and t % 2 == 0)
    assert all(out[t] & FULL == (thirds if t % 3 == 0 else evens) for t in range(32))


def test_barriers_that_count():
    a = rng.integers(0, 2, 96).astype(np.int32)
    for name, expected in (("count", np.sum), ("and", np.all), ("or", np.any)):
        found = each_thread(f"cuda.syncthreads_{name}(a[i])", np.int64, a=a)
        np.testing.assert_array_equal(found, np.repeat([int(expected(a[:48])), int(expected(a[48:]))], 48))
    body = "    if t > 9:\n        return\n    out[t] = cuda.syncthreads_count(t % 2)\n"
    source = f"@cuda.jit\ndef f(out):\n    t = cuda.threadIdx.x\n{body}"
    out = np.zeros(32, np.int64)
    define(source)[1, 32](out)
    np.testing.assert_array_equal(out, [5] * 10 + [0] * 22)


GRID_SYNC = """
@cuda.jit
def f(a, rounds):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(rounds):
        left = a[(i - 1) % a.size]
        g.sync()
        a[i] = left
        g.sync()
"""


@pytest.mark.parametrize("grid", [1, 7, 300])
def test_grid_wide_barriers(grid):
    a = np.arange(grid * 64)
    define(GRID_SYNC)[grid, 64](a, 3)
    np.testing.assert_array_equal(a, np.roll(np.arange(grid * 64), 3))


def test_a_grid_wide_barrier_needs_all_blocks_at_once():
    with pytest.raises(labkit.KernelError, match="all blocks must be on the device at once"):
        define(GRID_SYNC)[1000, 1024](np.zeros(1_024_000), 1)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_bit_functions(values):
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        a = np.array(values, np.int64).astype(dtype)
        width = a.dtype.itemsize * 8
        for k, number in enumerate(a.tolist()):
            bits = format(number % 2**width, f"0{width}b")
            expected = {
                "popc": bits.count("1"),
                "clz": width - len(bits.lstrip("0")),
                "ffs": len(bits) - bits.rindex("1") if "1" in bits else 0,
            }
            if width == 32 or dtype == np.uint64:
                expected["brev"] = int(bits[::-1], 2)
            for name, value in expected.items():
                found = BITS[name](a[k : k + 1], dtype)
                assert found == value, (name, dtype, number)


def _bit_function(name: str):
    kernel = define(f"@cuda.jit\ndef f(out, a):\n    out[0] = cuda.{name}(a[0])\n")

    def apply(a, dtype) -> int:
        out = np.zeros(1, np.uint64 if name == "brev" else np.int64)
        kernel[1, 1](out, a)
        return int(out[0])

    return apply


BITS = {name: _bit_function(name) for name in ("popc", "clz", "ffs", "brev")}


def test_fma_rounds_once():
    a, b, c = rng.standard_normal((3, 64))
    c -= a * b  # the product's rounding error is what is left
    found = each_thread("cuda.fma(a[i], b[i], c[i])", np.float64, 64, 32, a=a, b=b, c=c)
    exact = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(found, exact)


def test_libdevice_and_cbrt():
    a = rng.random(96).astype(np.float32) + 1
    np.testing.assert_allclose(
        each_thread("cuda.libdevice.rsqrtf(a[i])", np.float64, a=a), 1 / np.sqrt(a), rtol=1e-6
    )
    np.testing.assert_allclose(
        each_thread("cuda.libdevice.fast_powf(a[i], a[i])", np.float64, a=a), a**a, rtol=1e-5
    )
    np.testing.assert_allclose(each_thread("cuda.cbrt(a[i])", np.float64, a=a), np.cbrt(a), rtol=1e-6)
    with pytest.raises(labkit.KernelError, match=r"libdevice\.j0"):
        each_thread("cuda.libdevice.j0(a[i])", np.float64, a=a)


def test_half_precision_rounds_every_operation_to_half():
    a = rng.random(96).astype(np.float16)
    found = each_thread("a[i] * a[i] + a[i]", np.float16, a=a)
    np.testing.assert_array_equal(found, (a * a).astype(np.float16) + a)
    fused = each_thread("cuda.fp16.hfma(a[i], a[i], a[i])", np.float16, a=a)
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(fused, (wide * wide + wide).astype(np.float16))
    np.testing.assert_array_equal(each_thread("cuda.fp16.hgt(a[i], a[0])", bool, a=a), a > a[0])


def test_complex_numbers():
    z = rng.standard_normal(96) + 1j * rng.standard_normal(96)
    np.testing.assert_allclose(each_thread("a[i] * a[i] + 1j", complex, a=z), z * z + 1j)
    np.testing.assert_allclose(
        each_thread("abs(a[i]) + a[i].real - a[i].imag", float, a=z), abs(z) + z.real - z.imag
    )
    np.testing.assert_allclose(each_thread("complex(a[i].imag, 2.0).conjugate()", complex, a=z), z.imag - 2j)
    source = "@cuda.jit\ndef f(out, a):\n    i = cuda.grid(1)\n    out[i] = cmath.exp(a[i])\n"
    out = np.zeros(96, complex)
    define(source, cmath=cmath)[3, 32](out, z)
    np.testing.assert_allclose(out, np.exp(z))


PARTICLE = np.dtype([("x", np.float64), ("v", np.float32), ("id", np.int32)])


def test_structured_arrays():
    source = """
@cuda.jit
def f(p, order, dt):
    i = cuda.grid(1)
    if i < p.size:
        p[i].x += p[i].v * dt
        p[i]['v'] = p[i]['v'] * 0.5
        j = order[i]
        p[j].id = i
"""
    particles = np.zeros(70, PARTICLE)
    particles["x"], particles["v"] = rng.random(70), rng.random(70)
    before, order = particles.copy(), rng.permutation(70)
    define(source)[3, 32](particles, order, 0.1)
    np.testing.assert_allclose(particles["x"], before["x"] + before["v"] * 0.1)
    np.testing.assert_array_equal(particles["v"], before["v"] * np.float32(0.5))
    np.testing.assert_array_equal(particles["id"][order], np.arange(70))
    with pytest.raises(labkit.KernelError, match="field 'w' of 'p'; it has x, v, id"):
        define("@cuda.jit\ndef f(p):\n    p[0].w = 1\n")[1, 1](particles)


def test_slices_are_views():
    source = """
@cuda.jit
def f(a, out):
    i = cuda.grid(1)
    if i < 8:
        row = a[i, 2:a.shape[1]]
        window = row[i:i + 3]
        column = a[:, i]
        out[i, 0] = len(row) + 100 * window.size
        out[i, 1] = window[1]
        out[i, 2] = column[3]
        window[0] = -1
"""
    a = np.arange(8 * 16).reshape(8, 16)
    before, out = a.copy(), np.zeros((8, 3), np.int64)
    define(source)[1, 32](a, out)
    rows = np.arange(8)
    np.testing.assert_array_equal(
        out, np.stack([np.full(8, 314), before[rows, rows + 3], before[3, :8]], axis=1)
    )
    assert (a[rows, rows + 2] == -1).all()


@given(
    st.sampled_from(["sub", "max", "min", "exch", "and_", "or_", "xor", "inc", "dec", "nanmax", "nanmin"]),
    st.booleans(),
)
def test_every_atomic_gives_what_one_thread_after_the_other_gives(name, shared):
    values, index = rng.integers(0, 50, 96).astype(np.uint32), rng.integers(0, 4, 96)
    one_by_one = {
        "sub": lambda c, v: (c - v) % 2**32,
        "max": max,
        "min": min,
        "exch": lambda c, v: v,
        "and_": lambda c, v: c & v,
        "or_": lambda c, v: c | v,
        "xor": lambda c, v: c ^ v,
        "inc": lambda c, v: 0 if c >= v else c + 1,
        "dec": lambda c, v: v if c == 0 or c > v else c - 1,
        "nanmax": max,
        "nanmin": min,
    }[name]
    current, expected_old = [20] * 4, []
    for k, v in zip(index.tolist(), values.tolist(), strict=True):
        expected_old.append(current[k])
        current[k] = one_by_one(current[k], v)
    where = "box" if shared else "a"
    source = f"""
@cuda.jit
def f(a, index, values, old):
    box = cuda.shared.array(4, np.uint32)
    i = cuda.grid(1)
    if i < 4:
        box[i] = a[i]
    cuda.syncthreads()
    old[i] = cuda.atomic.{name}({where}, index[i], values[i])
    cuda.syncthreads()
    if i < 4 and {shared}:
        a[i] = box[i]
"""
    a, old = np.full(4, 20, np.uint32), np.zeros(96, np.uint32)
    define(source)[1, 96](a, index, values, old)
    np.testing.assert_array_equal(a, current)
    np.testing.assert_array_equal(old, expected_old)


def test_printing_shows_one_line_a_thread(capsys):
    define("@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    if i < 3:\n        print('thread', i, a[i])\n")[
        1, 32
    ](np.arange(3) / 2)
    assert capsys.readouterr().out == "thread 0 0.000000\nthread 1 0.500000\nthread 2 1.000000\n"
    define("@cuda.jit\ndef f():\n    print(cuda.grid(1))\n")[100, 100]()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4097
    assert "at most 4096" in lines[-1]


def test_functions_with_two_results():
    a = rng.random(96) * 100
    np.testing.assert_array_equal(
        each_thread("math.frexp(a[i])[1]", np.int64, a=a), [math.frexp(v)[1] for v in a]
    )
    np.testing.assert_allclose(each_thread("math.modf(a[i])[0]", float, a=a), np.modf(a)[0])
    np.testing.assert_allclose(each_thread("math.ldexp(a[i], 3)", float, a=a), a * 8)


def test_swizzled_shared_memory_several_arrays_on_one_line():
    source = """
@cuda.jit
def f(out):
    a, b = cuda.shared.array(32, np.int32), cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    a[t] = t
    b[t] = -t
    cuda.syncthreads()
    out[t] = a[31 - t] * 100 + b[t]
"""
    out = np.zeros(32, np.int64)
    define(source)[1, 32](out)
    t = np.arange(32)
    np.testing.assert_array_equal(out, (31 - t) * 100 - t)


SHAPE = (4, 8)
SIZE = 32


@pytest.mark.parametrize("shape", ["32", "SIZE", "SHAPE", "SHAPE[1]", "(4, 4 + 4)", "16 * 2", "(SIZE,)", "n"])
def test_shapes_that_numba_accepts(shape):
    index = "0, 0" if shape in ("SHAPE", "(4, 4 + 4)") else "0"
    source = f"@cuda.jit\ndef f(a):\n    n = SIZE\n    s = cuda.shared.array({shape}, np.float32)\n    s[{index}] = 7\n"
    out = np.zeros(1)
    define(f"{source}    a[0] = s[{index}]\n", SHAPE=SHAPE, SIZE=SIZE)[1, 1](out)
    assert out[0] == 7


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
@pytest.mark.parametrize(
    "expression", ["-a[i]", "~a[i]", "-a[i] + 1", "a[i] + (-a[i])", "+a[i]", "abs(a[i])"]
)
def test_signs_and_inversion_happen_in_the_operands_own_width(require, dtype, expression):
    require("numba")
    import numba

    limits = np.iinfo(dtype)
    a = np.array([0, 1, 2, limits.min, limits.max, limits.max // 2], dtype)
    reference = numba.njit(define(f"def f(a, i):\n    return {expression}\n"))
    expected = [int(reference(a, k)) for k in range(len(a))]
    wide = np.uint64 if np.dtype(dtype).kind == "u" else np.int64
    found = each_thread(expression, wide, 6, 6, a=a)
    assert [int(v) for v in found] == [v % 2**64 if wide is np.uint64 else v for v in expected]
