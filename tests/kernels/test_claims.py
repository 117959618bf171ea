"""What the docstrings of the shipped kernels say about the hardware, counted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from kernels.support import inspected, numbers, unset

from labkit.compute.kernels import (
    fractal,
    heat,
    histogram,
    image_filters,
    maps,
    matmul,
    nbody,
    options,
    raymarch,
    reduction,
    scan,
    sha256,
    stencil,
    transpose,
)
from labkit.compute.kernels import lennard_jones as lj

N = 16 * 256 * 8  # with 16 blocks of 256 threads, runs of 8


def sectors(totals) -> tuple[float, float]:
    """Of a load and of a store request."""
    return (
        totals.global_load_sectors / max(totals.global_load_requests, 1),
        totals.global_store_sectors / max(totals.global_store_requests, 1),
    )


def flat(module, kernel, *arguments):
    return inspected(module.launch(kernel, arguments[-1]), *arguments)


def test_map():
    x, out = numbers(1, N), unset(N)
    assert sectors(flat(maps, maps.saxpy, np.float32(2), x, x, out)) == (4, 4)
    assert sectors(flat(maps, maps.saxpy_stride, np.float32(2), x, x, out)) == (4, 4)
    assert sectors(flat(maps, maps.saxpy_runs, np.float32(2), x, x, out)) == (32, 32)
    assert sectors(flat(maps, maps.lengths_of_structures, numbers(1, N, 3), out)) == (12, 4)
    assert sectors(flat(maps, maps.lengths_of_arrays, numbers(1, 3, N), out)) == (4, 4)


def test_branches_that_part_a_warp_and_branches_that_do_not():
    x, out = numbers(1, N), unset(N)
    parted, agreed = (
        flat(maps, kernel, x, out) for kernel in (maps.alternate_divergent, maps.alternate_uniform)
    )
    assert (parted.divergent_branches, agreed.divergent_branches) == (N // 32, 0)
    assert (sectors(parted), sectors(agreed)) == ((4, 4), (8, 8))
    assert parted.warp_instructions > 1.7 * agreed.warp_instructions


def test_stencil():
    x, out = numbers(1, N), unset(N)
    naive, shared = flat(stencil, stencil.mean_naive, x, out), flat(stencil, stencil.mean_shared, x, out)
    assert naive.global_load_requests == 9 * N // 32
    assert shared.global_load_requests == 5 * N // 128  # four whole warps and one for the halo, a block


def test_transpose():
    a, out = numbers(1, 64, 96), unset(96, 64)
    naive, tile, padded = (
        inspected(transpose.launch(k, a), a, out)
        for k in (transpose.transpose_naive, transpose.transpose_tile, transpose.transpose_padded)
    )
    assert [sectors(t) for t in (naive, tile, padded)] == [(4, 32), (4, 4), (4, 4)]
    assert tile.shared_bank_conflicts == 31 * tile.shared_load_requests
    assert padded.shared_bank_conflicts == 0


def test_matmul():
    a, c = numbers(1, 64, 64), unset(64, 64)
    rows, columns, tiled, registers = (
        inspected(matmul.launch(k, c), a, a, c)
        for k in (
            matmul.matmul_rows,
            matmul.matmul_columns,
            matmul.matmul_tiled,
            matmul.matmul_registers,
        )
    )
    assert sectors(rows)[1] == 16
    assert sectors(columns)[1] == 4
    assert columns.global_load_requests == 16 * tiled.global_load_requests
    assert registers.shared_load_requests < tiled.shared_load_requests
    assert len({t.flops_fp32 for t in (rows, columns, tiled, registers)}) == 1
    assert tiled.shared_bank_conflicts == registers.shared_bank_conflicts == 0


def test_reduction():
    x = numbers(1, 32 * 256)
    atomic, interleaved, tree, warps = (
        inspected(reduction.launch(k, x), x, np.zeros(1, np.float32))
        for k in (reduction.sum_atomic, reduction.sum_interleaved, reduction.sum_tree, reduction.sum_warps)
    )
    assert atomic.atomic_conflicts == 31 * x.size // 32
    assert atomic.atomic_requests == x.size // 32
    assert tree.divergent_branches < interleaved.divergent_branches / 4
    assert tree.warp_instructions < interleaved.warp_instructions
    assert warps.shared_load_requests < tree.shared_load_requests / 10
    assert (warps.atomic_requests, warps.barriers) == (32, 32 * 8)


def test_scan():
    x = np.arange(2048, dtype=np.int32)
    steps, tree, warps = (
        inspected(scan.launch(k, x), x, x.copy(), np.zeros(8, np.int32))
        for k in (scan.scan_steps, scan.scan_tree, scan.scan_warps)
    )
    assert tree.shared_bank_conflicts > 0
    assert steps.shared_bank_conflicts == warps.shared_bank_conflicts == 0
    assert warps.barriers == 2 * 8 * 8
    assert tree.barriers > 1.5 * steps.barriers


def test_histogram():
    alike, mixed = np.zeros(N, np.uint8), np.random.default_rng(0).permutation(N).astype(np.uint8)
    for values in (alike, mixed):
        counts = np.zeros(256, np.int32)
        totals = {
            k: inspected(histogram.launch(k, values), values, counts)
            for k in (histogram.histogram_global, histogram.histogram_private)
        }
        blocks = histogram.BLOCKS
        assert totals[histogram.histogram_global].atomic_requests == N // 32
        assert totals[histogram.histogram_private].atomic_requests == N // 32 + blocks * 8


def test_image_filters():
    image, out = numbers(1, 32, 64), unset(32, 64)
    direct, rows, columns, sort, network = (
        inspected(image_filters.launch(k, out), image, out)
        for k in (
            image_filters.smooth_direct,
            image_filters.smooth_rows,
            image_filters.smooth_columns,
            image_filters.median_sort,
            image_filters.median_network,
        )
    )
    pixels = image.size
    assert direct.flops_fp32 == 49 * 3 * pixels
    assert rows.flops_fp32 + columns.flops_fp32 == 2 * 7 * 2 * pixels
    assert (network.divergent_branches, network.local_requests) == (0, 0)
    assert sort.divergent_branches > 0
    assert sort.local_requests > 9 * pixels // 32


def test_fractal():
    out, view = unset(64, 64, dtype=np.int32), (-2.0, -1.25, 2.5 / 64)
    narrow = [np.float32(v) for v in view]
    double = inspected(fractal.launch(fractal.mandelbrot_double, out), *view, 50, out)
    single, skip = (
        inspected(fractal.launch(k, out), *narrow, 50, out)
        for k in (fractal.mandelbrot, fractal.mandelbrot_skip)
    )
    rows = inspected(fractal.launch(fractal.mandelbrot, out, fractal.ROW_BLOCK), *narrow, 50, out)
    assert double.flops_fp32 == single.flops_fp64 == skip.flops_fp64 == 0
    assert skip.flops_fp32 < single.flops_fp32 / 2
    assert single.warp_instructions < rows.warp_instructions


def test_raymarch():
    out = unset(64, 64)
    fixed, early = (inspected(raymarch.launch(k, out), out) for k in (raymarch.render_fixed, raymarch.render))
    assert early.divergent_branches > fixed.divergent_branches
    assert early.warp_instructions < fixed.warp_instructions / 2
    assert early.flops_fp64 == fixed.flops_fp64 == 0


def test_heat():
    plate, after = numbers(1, 64, 64), unset(64, 64)
    down, along, tile = (
        inspected(heat.launch(k, plate), np.float32(0.2), plate, after)
        for k in (heat.heat_down, heat.heat_along, heat.heat_tile)
    )
    assert sectors(down)[1] == 16
    assert sectors(down)[0] > 16
    assert sectors(along)[1] == 4
    assert sectors(along)[0] < 5
    assert tile.global_load_requests < along.global_load_requests
    assert tile.shared_bank_conflicts > 0


def test_nbody():
    bodies = numbers(1, 4, 256)
    naive, tiled = (
        inspected(nbody.launch(k, bodies), bodies, np.float32(0.1), unset(3, 256))
        for k in (nbody.accelerate_naive, nbody.accelerate_tiled)
    )
    assert tiled.global_load_requests < naive.global_load_requests / 20
    assert tiled.flops_fp64 == naive.flops_fp64 == 0


def test_molecular_dynamics():
    places, box = lj.lattice(6, 1.2)
    n = places.shape[1]
    pairs, gather = (
        inspected(
            lj.launch(k, places), places, np.float32(box), np.zeros_like(places), np.zeros(n, np.float32)
        )
        for k in (lj.forces_pairs, lj.forces_gather)
    )
    assert pairs.flops_fp32 < 0.6 * gather.flops_fp32
    assert (pairs.atomic_requests > 0, gather.atomic_requests) == (True, 0)
    assert gather.flops_fp64 == 0


def test_hash_search():
    words = sha256.as_words(bytes(76))
    target, found = sha256.target_words(255), np.zeros(1, np.uint32)
    whole = inspected(sha256.launch(sha256.search_whole, 128), words, np.uint32(0), target, found)
    quick = inspected(
        sha256.launch(sha256.search, 128), sha256.midstate(words), words, np.uint32(0), target, found
    )
    assert quick.int_ops < 0.75 * whole.int_ops


def test_options():
    call, seed = [np.float32(v) for v in (100, 105, 0.03, 0.25, 1.5)], np.uint64(1)
    out = unset(4096)
    each = inspected(options.launch(options.pay_each, out.size), *call, seed, out)
    sums = inspected(options.launch(options.pay_sums, out.size), *call[:4], seed, out.size, np.zeros(2))
    assert (each.global_store_requests, sums.global_store_requests) == (out.size // 32, 0)
    assert sums.atomic_requests == 2 * out.size // options.DRAWN // 32
    assert sums.flops_fp32 < each.flops_fp32 / 2


@pytest.mark.parametrize("n", [0, 1, 256, 257, 10**6])
def test_launch_shapes_cover_what_they_are_for(n):
    out = SimpleNamespace(shape=(n,))
    grid, block = maps.launching.line(n)
    assert grid * block >= max(n, 1)
    assert (grid - 1) * block < max(n, 1)
    assert "saxpy" in repr(maps.launch(maps.saxpy, out)) or maps.cuda.BACKEND == "gpu"
