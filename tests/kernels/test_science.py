"""Kernels of real work: n-body, molecular dynamics, hash search, option pricing, each against what is known."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.support import few, inspected, numbers, unset

from labkit.compute.kernels import lennard_jones as lj
from labkit.compute.kernels import nbody, options, sha256

name = lambda k: k.__name__  # noqa: E731
NBODIES = [nbody.accelerate_naive, nbody.accelerate_tiled]


# -- n-body --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", NBODIES, ids=name)
@given(n=st.integers(1, 300) | st.sampled_from([1, 127, 128, 129, 257]))
@few
def test_accelerations(kernel, n):
    bodies, out = numbers(n, 4, n), unset(3, n)
    nbody.launch(kernel, bodies)(bodies, np.float32(0.1), out)
    expected = nbody.accelerate_reference(bodies, 0.1)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4 * max(1, np.abs(expected).max()))


def test_two_bodies_fall_towards_each_other():
    bodies, out = np.array([[0, 2], [0, 0], [0, 0], [1, 3]], np.float32), unset(3, 2)
    nbody.launch(nbody.accelerate_tiled, bodies)(bodies, np.float32(1e-4), out)
    np.testing.assert_allclose(out, [[3 / 4, -1 / 4], [0, 0], [0, 0]], atol=1e-6)


# -- molecular dynamics --------------------------------------------------------------------------------------------


def shaken(side: int, seed: int) -> tuple[np.ndarray, float]:
    places, box = lj.lattice(side, 1.2)
    return places + np.float32(0.1) * (numbers(seed, *places.shape) - np.float32(0.5)), box


@given(side=st.integers(1, 6), seed=st.integers(0, 1000))
@few
def test_forces(side, seed):
    places, box = shaken(side, seed)
    n = places.shape[1]
    added, total = np.zeros((3, n), np.float32), np.zeros(n, np.float32)
    forces, energies = unset(3, n), unset(n)
    lj.launch(lj.forces_pairs, places)(places, np.float32(box), added, total)
    lj.launch(lj.forces_gather, places)(places, np.float32(box), forces, energies)
    expected, levels = lj.forces_reference(places, box)
    size = 1e-4 * max(1, np.abs(expected).max())
    for found in (added, forces):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=size)
    for found in (total, energies):
        np.testing.assert_allclose(found, levels, rtol=1e-3, atol=1e-3)


def test_two_atoms_rest_at_the_bottom_of_the_well():
    apart = 2 ** (1 / 6)
    places = np.array([[1, 1 + apart], [1, 1], [1, 1]], np.float32)
    forces, energies = unset(3, 2), unset(2)
    lj.launch(lj.forces_gather, places)(places, np.float32(10), forces, energies)
    np.testing.assert_allclose(forces, 0, atol=1e-4)
    assert energies.sum() == pytest.approx(-1, rel=1e-5)


def test_energy_is_conserved_and_atoms_stay_in_the_box():
    places, box = lj.lattice(4, 1.5)
    velocities = numbers(3, *places.shape) - np.float32(0.5)
    where, speed, energy = lj.simulate(places, velocities, box, 0.002, 60)
    assert np.ptp(energy) < 2e-3 * np.abs(energy).mean()
    assert (where >= 0).all()
    assert (where <= np.float32(box)).all()
    assert np.abs(speed - velocities).max() > 0.01


# -- hash search ---------------------------------------------------------------------------------------------------

# The first block of Bitcoin's chain: everybody can check that its hash begins with 43 zero bits.
GENESIS = bytes.fromhex(
    "01000000"
    + "00" * 32
    + "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a"
    + "29ab5f49ffff001d"
)
FOUND_IN_2009 = 2_083_236_893


def search(kernel, header: bytes, first: int, nonces: int, target: np.ndarray, run=None) -> int:
    words, found = sha256.as_words(header), np.full(1, sha256.NONE, np.uint32)
    middle = (sha256.midstate(words),) if kernel is sha256.search else ()
    launch = sha256.launch(kernel, nonces)
    arguments = (*middle, words, np.uint32(first), target, found)
    (run(launch, *arguments) if run else launch(*arguments))
    return int(found[0])


@given(header=st.binary(min_size=76, max_size=76), first=st.integers(0, 2**32 - 200), n=st.integers(1, 140))
@few
def test_hashes_are_those_of_hashlib(header, first, n):
    words, out = sha256.as_words(header), unset(n, 8, dtype=np.uint32)
    sha256.launch(sha256.hashes, n)(sha256.midstate(words), words, np.uint32(first), out)
    for i in (0, n // 2, n - 1):
        message = header + (first + i).to_bytes(4, "little")
        twice = hashlib.sha256(hashlib.sha256(message).digest()).digest()
        assert out[i].astype(">u4").tobytes() == twice


@pytest.mark.parametrize("kernel", [sha256.search_whole, sha256.search], ids=name)
def test_search_finds_the_first_block_of_bitcoin(kernel):
    assert search(kernel, GENESIS, FOUND_IN_2009 - 100, 256, sha256.target_words(43)) == FOUND_IN_2009
    assert search(kernel, GENESIS, FOUND_IN_2009 - 100, 256, sha256.target_words(44)) == sha256.NONE


@given(header=st.binary(min_size=76, max_size=76), zero_bits=st.integers(4, 9))
@few
def test_both_searches_find_the_lowest_nonce(header, zero_bits):
    target = sha256.target_words(zero_bits)
    expected = sha256.search_reference(header, 1000, 256, target)
    assert search(sha256.search, header, 1000, 256, target) == expected
    assert search(sha256.search_whole, header, 1000, 256, target) == expected


def test_the_constants_are_those_of_the_standard():
    assert [hex(n) for n in sha256.ROUND[[0, 63]]] == ["0x428a2f98", "0xc67178f2"]
    assert [hex(n) for n in sha256.START[[0, 7]]] == ["0x6a09e667", "0x5be0cd19"]


# -- options -------------------------------------------------------------------------------------------------------


def test_philox_gives_the_published_numbers():
    zero = options.philox_reference(np.array([0]), 0)[0]
    assert [hex(n) for n in zero] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


@given(n=st.integers(0, 3000), seed=st.integers(0, 2**64 - 1))
@few
def test_normal_numbers(n, seed):
    out = unset(n)
    options.launch(options.normals, n)(np.uint64(seed), out)
    # float32 steps of 6e-8 below 1 are radii of 3.5e-4 and less
    np.testing.assert_allclose(out, options.normals_reference(n, seed), rtol=1e-4, atol=4e-4)


def test_normal_numbers_are_normal():
    out = unset(40_000)
    options.launch(options.normals, out.size)(np.uint64(3), out)
    assert abs(out.mean()) < 4 / math.sqrt(out.size)
    assert out.std() == pytest.approx(1, abs=0.02)
    assert (np.abs(out) < 1).mean() == pytest.approx(0.6827, abs=0.01)


CALL = {"spot": 100.0, "strike": 105.0, "rate": 0.03, "volatility": 0.25, "maturity": 1.5}


@given(paths=st.integers(2, 3000), seed=st.integers(0, 2**64 - 1))
@few
def test_both_forms_follow_the_same_paths(paths, seed):
    paid = unset(paths)
    numbers_ = [np.float32(v) for v in CALL.values()]
    options.launch(options.pay_each, paths)(*numbers_, np.uint64(seed), paid)
    discount = math.exp(-CALL["rate"] * CALL["maturity"])
    estimate, error = options.price(**CALL, paths=paths, seed=seed)
    assert estimate == pytest.approx(discount * paid.mean(dtype=np.float64), rel=1e-4, abs=1e-3)
    spread = paid.std(dtype=np.float64, ddof=1) / math.sqrt(paths)
    assert error == pytest.approx(discount * spread, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("strike", [60.0, 105.0, 150.0])
def test_the_estimate_agrees_with_black_and_scholes(strike):
    call = CALL | {"strike": strike}
    estimate, error = options.price(**call, paths=200_000, seed=11)
    assert abs(estimate - options.black_scholes(**call)) < 4 * error
    assert error < 0.01 * CALL["spot"]


def test_black_scholes_gives_the_textbook_price():
    # Hull, Options, Futures, and Other Derivatives, the worked example: 42, 40, 10 %, 20 %, half a year
    assert options.black_scholes(42, 40, 0.1, 0.2, 0.5) == pytest.approx(4.76, abs=0.005)


# -- all -----------------------------------------------------------------------------------------------------------


def test_the_sanitizer_finds_nothing():
    for kernel in NBODIES:
        inspected(
            nbody.launch(kernel, numbers(1, 4, 130)), numbers(1, 4, 130), np.float32(0.1), unset(3, 130)
        )
    places, box = shaken(5, 1)
    n, side = places.shape[1], np.float32(box)
    for kernel in (lj.forces_pairs, lj.forces_gather):
        inspected(
            lj.launch(kernel, places), places, side, np.zeros((3, n), np.float32), np.zeros(n, np.float32)
        )
    forces = numbers(2, 3, n)
    inspected(lj.launch(lj.kick_and_drift, places), places, unset(3, n), forces, side, np.float32(0.01))
    inspected(lj.launch(lj.kick, places), numbers(2, 3, n), forces, np.float32(0.01))
    for kernel in (sha256.search, sha256.search_whole):
        assert search(kernel, GENESIS, 0, 130, sha256.target_words(6), inspected) != sha256.NONE
    words, out = sha256.as_words(GENESIS), unset(130, 8, dtype=np.uint32)
    inspected(sha256.launch(sha256.hashes, 130), sha256.midstate(words), words, np.uint32(0), out)
    inspected(options.launch(options.normals, 1030), np.uint64(1), unset(1030))
    call = [np.float32(v) for v in CALL.values()]
    inspected(options.launch(options.pay_each, 1030), *call, np.uint64(1), unset(1030))
    inspected(options.launch(options.pay_sums, 1030), *call[:4], np.uint64(1), 1030, np.zeros(2))
