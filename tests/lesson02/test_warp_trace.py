"""What one warp asks of memory: the trace agrees with the counters, and leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import cuda
from labkit.compute.emulator import jit
from labkit.compute.emulator.inspection import inspect
from labkit.compute.emulator.warp_trace import MOST, trace
from labkit.errors import LabkitError


def every(x, out, step, first):
    i = cuda.grid(1)
    out[i] = x[first + i * step]


def every_word(out, step):
    words = cuda.shared.array(1200, np.float32)
    t = cuda.threadIdx.x
    for k in range(t, 1200, 32):
        words[k] = k
    cuda.syncthreads()
    out[t] = words[t * step]


def every_double(out, step):
    words = cuda.shared.array(1200, np.float64)
    t = cuda.threadIdx.x
    for k in range(t, 1200, 32):
        words[k] = k
    cuda.syncthreads()
    out[t] = words[t * step]


def half(x):
    i = cuda.grid(1)
    if i % 2 == 1:
        x[i] = 1


def turn(image, out):
    column, row = cuda.grid(2)
    out[column, row] = image[row, column]


def local_only(x):
    mine = cuda.local.array(4, np.float32)
    for k in range(4):
        mine[k] = k


EVERY, WORDS, DOUBLES = jit(every), jit(every_word), jit(every_double)
FLOATS = st.sampled_from([np.uint8, np.float32, np.float64])


@settings(max_examples=40, deadline=None)
@given(FLOATS, st.integers(0, 40), st.integers(0, 9))
def test_sectors_of_the_trace_are_those_of_the_counters(kind, step, first):
    x, out = np.zeros(32 * 40 + 10, kind), np.zeros(32, kind)
    read, write = trace(EVERY[1, 32], x, out, step, first).accesses
    totals = inspect(EVERY[1, 32], x, out, step, first, gpu="A100").totals
    assert (read.kind, write.kind) == ("read", "write")
    assert len(read.sectors) == totals.global_load_sectors
    assert len(write.sectors) == totals.global_store_sectors


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(WORDS, np.float32), (DOUBLES, np.float64)]), st.integers(0, 37))
def test_passes_of_the_trace_are_those_of_the_counters(which, step):
    kernel, kind = which
    out = np.zeros(32, kind)
    accesses = trace(kernel[1, 32], out, step).accesses
    shared = [one for one in accesses if one.space == "shared"]
    requests = sum(len(one.banks) for one in shared)  # of 8-byte elements half a warp is served at a time
    totals = inspect(kernel[1, 32], out, step, gpu="A100").totals
    assert sum(one.passes for one in shared) - requests == totals.shared_bank_conflicts


def test_only_active_lanes_are_there():
    (write,) = trace(jit(half)[1, 32], np.zeros(32, np.float32)).accesses
    assert write.lanes == tuple(range(1, 32, 2))
    assert write.addresses == tuple(range(4, 128, 8))
    wanted = "write of global 'x', 16 lanes, 4 sectors: 64 of 128 bytes are wanted"
    assert write.headline == f"line {write.line}: {wanted}"


def test_arrays_are_as_before():
    x, out = np.ones(64, np.float32), np.full(64, 7, np.float32)
    device = cuda.to_device(out)
    trace(EVERY[2, 32], x, out, 1, 0)
    trace(EVERY[2, 32], x, device, 1, 0)
    assert (out == 7).all()
    assert (device.copy_to_host() == 7).all()


def test_another_block_and_another_warp_are_found():
    image = np.zeros((64, 64), np.float32)
    read, _ = trace(jit(turn)[(2, 2), (32, 4)], image, image.copy(), block=(1, 1), warp=3).accesses
    assert read.addresses[0] == 4 * (64 * 7 + 32)
    same = trace(jit(turn)[(2, 2), (32, 4)], image, image.copy(), block=3, warp=3)
    assert (same.block, same.accesses[0]) == ((1, 1, 0), read)


def test_a_line_is_chosen_by_its_words_or_its_number():
    by_words = trace(WORDS[1, 32], np.zeros(32, np.float32), 1, line="out[t]").accesses
    assert [one.array for one in by_words] == ["words", "out"]
    by_number = trace(WORDS[1, 32], np.zeros(32, np.float32), 1, line=by_words[0].line).accesses
    assert by_number == by_words


def test_a_long_loop_is_cut_and_says_so():
    def many(x):
        for k in range(100):
            x[cuda.grid(1)] = k

    seen = trace(jit(many)[1, 32], np.zeros(32, np.float32))
    assert (len(seen.accesses), seen.left_out) == (MOST, 100 - MOST)
    assert "and 36 more" in repr(seen)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"block": 9}, "there is no block 9"),
        ({"block": (0, 1)}, "there is no block"),
        ({"block": "first"}, "there is no block 'first'"),
        ({"warp": 1}, "has warps 0 to 0, not 1"),
        ({"line": "nowhere"}, "touches no memory in line 'nowhere'"),
        ({"line": 1}, "lines of 'half' that do"),
    ],
)
def test_what_is_not_there_is_a_sentence(options, says):
    with pytest.raises(LabkitError, match=says):
        trace(jit(half)[2, 32], np.zeros(64, np.float32), **options)


def test_local_arrays_and_things_that_are_no_launch_are_sentences():
    with pytest.raises(LabkitError, match="touches no memory"):
        trace(jit(local_only)[1, 32], np.zeros(32, np.float32))
    with pytest.raises(LabkitError, match="needs a kernel with its launch shape"):
        labkit.warp_view(half, np.zeros(32, np.float32))


def test_to_dict_is_plain():
    data = trace(jit(half)[1, 32], np.zeros(32, np.float32)).to_dict()
    assert data["provenance"] == "emulated"
    assert data["accesses"][0]["space"] == "global"
