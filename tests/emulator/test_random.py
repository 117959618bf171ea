"""Random numbers inside kernels: the same bits as numba's."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import LabkitError, cuda
from labkit.compute.emulator import random as ours

NAMES = ["uniform_float32", "uniform_float64", "normal_float32", "normal_float64"]
THREADS, DRAWS = 512, 5
MASK = 2**64 - 1


def draw(name):
    function = getattr(ours, f"xoroshiro128p_{name}")

    @cuda.jit
    def kernel(states, out):
        thread = cuda.grid(1)
        if thread < out.shape[0]:
            for k in range(out.shape[1]):
                out[thread, k] = function(states, thread)

    out = np.zeros((THREADS, DRAWS), name.split("_")[1])
    states = ours.create_xoroshiro128p_states(THREADS, seed=7)
    kernel[THREADS // 128, 128](states, out)
    return out, states.copy_to_host()


def plain_next(s0, s1):
    """One step of the generator in Python's whole numbers."""

    def rotate(x, k):
        return (x << k | x >> (64 - k)) & MASK

    s1 ^= s0
    return rotate(s0, 55) ^ s1 ^ (s1 << 14 & MASK), rotate(s1, 36)


def test_numbers_are_those_of_the_generator_in_plain_python():
    out, after = draw("uniform_float64")
    for thread, (s0, s1) in enumerate(
        ours.create_xoroshiro128p_states(THREADS, seed=7).copy_to_host().tolist()
    ):
        for k in range(DRAWS):
            assert out[thread, k] == ((s0 + s1 & MASK) >> 11) / 2**53
            s0, s1 = plain_next(s0, s1)
        assert after[thread].tolist() == (s0, s1)


def test_normal_numbers_are_normal():
    for name in NAMES[2:]:
        out, _ = draw(name)
        assert abs(out.mean()) < 4 / math.sqrt(out.size)
        assert out.std() == pytest.approx(1, abs=0.05)


@given(st.integers(0, 2**63 - 1), st.integers(1, 20), st.integers(0, 50))
def test_subsequences_continue_each_other(seed, n, start):
    whole = ours.create_xoroshiro128p_states(start + n, seed).copy_to_host()
    np.testing.assert_array_equal(
        whole[start:], ours.create_xoroshiro128p_states(n, seed, subsequence_start=start).copy_to_host()
    )


def test_states_are_made_in_place_too():
    states = np.zeros(5, ours.xoroshiro128p_dtype)
    ours.init_xoroshiro128p_states(states, seed=3)
    on_device = cuda.device_array(5, ours.xoroshiro128p_dtype)
    ours.init_xoroshiro128p_states(on_device, seed=3)
    np.testing.assert_array_equal(states, on_device.copy_to_host())
    assert ours.create_xoroshiro128p_states(0, seed=1).size == 0
    with pytest.raises(LabkitError, match="number of states"):
        ours.create_xoroshiro128p_states(-1, seed=1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """numba.cuda.random's own functions: compiled for the CPU, and by its simulator."""
    folder = tmp_path_factory.mktemp("random")
    done = {}
    for simulated in (0, 1):
        path = folder / f"{simulated}.npz"
        subprocess.run([sys.executable, "-c", NUMBAS, str(path), str(simulated)], check=True, timeout=120)
        done[simulated] = np.load(path)
    return done


NUMBAS = f"""
import os, sys
simulated = int(sys.argv[2])
os.environ["NUMBA_ENABLE_CUDASIM"] = str(simulated)
import numba, numpy as np
import numba.cuda.random as theirs
T, D = (8 if simulated else {THREADS}), {DRAWS}
result = {{}}
for seed, start in ((7, 0), (2**40 + 1, 3)):
    made = np.empty(T, theirs.xoroshiro128p_dtype)
    theirs.init_xoroshiro128p_states_cpu(made, np.uint64(seed), start)
    result[f"states_{{seed}}_{{start}}"] = made
for name in {NAMES!r}:
    function = getattr(theirs, "xoroshiro128p_" + name)
    def loop(states, out):
        for thread in range(out.shape[0]):
            for k in range(out.shape[1]):
                out[thread, k] = function(states, thread)
    out, states = np.zeros((T, D), name.split("_")[1]), result["states_7_0"].copy()
    (loop if simulated else numba.njit(loop))(states, out)
    result[name] = out
np.savez(sys.argv[1], **result)
"""


@pytest.mark.parametrize("simulated", [0, 1])
def test_states_and_uniform_numbers_equal_numbas_bit_by_bit(require, request, simulated):
    require("compiler")
    expected = request.getfixturevalue("reference")[simulated]
    for seed, start in ((7, 0), (2**40 + 1, 3)):
        theirs = expected[f"states_{seed}_{start}"]
        np.testing.assert_array_equal(
            ours.create_xoroshiro128p_states(len(theirs), seed, start).copy_to_host(), theirs
        )
    for name in NAMES[:2]:
        out, _ = draw(name)
        np.testing.assert_array_equal(out[: len(expected[name])], expected[name])


def test_normal_numbers_equal_numbas_but_for_the_rounding_of_logarithms(require, request):
    require("compiler")
    expected = request.getfixturevalue("reference")[0]
    for name in NAMES[2:]:
        out, _ = draw(name)
        np.testing.assert_allclose(out, expected[name], rtol=3e-7, atol=3e-7)
        assert np.mean(out == expected[name]) > 0.95
