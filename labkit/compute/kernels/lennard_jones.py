"""Molecular dynamics: atoms that attract at a distance and repel when they touch (Lennard-Jones).

The energy of a pair at distance r is 4 (r**-12 - r**-6), in units of the well's depth and of the atom's size, up to r
= 2.5 and zero beyond. places, velocities, forces are float32 (3, n): rows x, y, z. The box is a cube of side ``box``
that repeats in every direction: each pair counts once, by its nearest images. Mass 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labkit import cuda
from labkit.compute.kernels import launching

THREADS = 128
REACH = np.float32(2.5 * 2.5)  # the cut-off, squared
ZERO, HALF, ONE, FOUR, FORTY_EIGHT = (np.float32(n) for n in (0, 0.5, 1, 4, 48))


@cuda.jit(device=True)
def nearest(offset, box):
    """The offset to the nearest image."""
    return offset - box * math.floor(offset / box + HALF)


@cuda.jit(device=True)
def pair(squared):
    """Energy of a pair at a squared distance, and force over distance (positive repels). No root, no power needed."""
    inverse = ONE / squared
    sixth = inverse * inverse * inverse
    return FOUR * sixth * (sixth - ONE), FORTY_EIGHT * sixth * (sixth - HALF) * inverse


@cuda.jit
def forces_pairs(places, box, forces, energies):
    """Adds forces and the energy of each atom (float32 (n,)) to arrays that hold zeros; each pair is computed once.

    Newton's third law halves the arithmetic, as on a CPU. Here it costs: 8 atomics a pair in global memory, and thread
    0 has n - 1 partners where the last has none, so warps end at very different times.
    """
    i = cuda.grid(1)
    if i < places.shape[1]:
        x, y, z = places[0, i], places[1, i], places[2, i]
        for j in range(i + 1, places.shape[1]):
            dx, dy, dz = x - places[0, j], y - places[1, j], z - places[2, j]
            dx, dy, dz = nearest(dx, box), nearest(dy, box), nearest(dz, box)
            squared = dx * dx + dy * dy + dz * dz
            if squared < REACH:
                energy, push = pair(squared)
                cuda.atomic.add(forces, (0, i), push * dx)
                cuda.atomic.add(forces, (1, i), push * dy)
                cuda.atomic.add(forces, (2, i), push * dz)
                cuda.atomic.add(forces, (0, j), -push * dx)
                cuda.atomic.add(forces, (1, j), -push * dy)
                cuda.atomic.add(forces, (2, j), -push * dz)
                cuda.atomic.add(energies, i, HALF * energy)
                cuda.atomic.add(energies, j, HALF * energy)


@cuda.jit
def forces_gather(places, box, forces, energies):
    """The same, written instead of added; each thread collects all that acts on its own atom.

    Every pair is computed twice and nothing is shared: sums stay in registers, all threads have the same work, and the
    result does not depend on any order.
    """
    i = cuda.grid(1)
    if i < places.shape[1]:
        x, y, z = places[0, i], places[1, i], places[2, i]
        fx, fy, fz, total = ZERO, ZERO, ZERO, ZERO
        for j in range(places.shape[1]):
            dx, dy, dz = x - places[0, j], y - places[1, j], z - places[2, j]
            dx, dy, dz = nearest(dx, box), nearest(dy, box), nearest(dz, box)
            squared = dx * dx + dy * dy + dz * dz
            if j != i and squared < REACH:
                energy, push = pair(squared)
                fx += push * dx
                fy += push * dy
                fz += push * dz
                total += HALF * energy
        forces[0, i], forces[1, i], forces[2, i] = fx, fy, fz
        energies[i] = total


@cuda.jit
def kick_and_drift(places, velocities, forces, box, dt):
    """Half a time step of velocity, then a whole one of place, back into the box (velocity Verlet, first part)."""
    i = cuda.grid(1)
    if i < places.shape[1]:
        for axis in range(3):
            velocities[axis, i] += HALF * dt * forces[axis, i]
            place = places[axis, i] + dt * velocities[axis, i]
            places[axis, i] = place - box * math.floor(place / box)


@cuda.jit
def kick(velocities, forces, dt):
    """The other half step of velocity, with the forces of the new places."""
    i = cuda.grid(1)
    if i < velocities.shape[1]:
        for axis in range(3):
            velocities[axis, i] += HALF * dt * forces[axis, i]


def launch(kernel: Any, places: Any) -> Any:
    """The kernel with a thread for each of n atoms: ``launch(kick, places)(velocities, forces, dt)``."""
    return kernel[launching.line(places.shape[1], THREADS)]


def simulate(
    places: np.ndarray, velocities: np.ndarray, box: float, dt: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places and velocities (3, n) after some steps, and the total energy after each (steps,)."""
    side, tick = np.float32(box), np.float32(dt)
    where, speed = cuda.to_device(places), cuda.to_device(velocities)
    forces, energies = cuda.device_array_like(places), cuda.device_array(places.shape[1], np.float32)
    launch(forces_gather, where)(where, side, forces, energies)
    total = []
    for _ in range(steps):
        launch(kick_and_drift, where)(where, speed, forces, side, tick)
        launch(forces_gather, where)(where, side, forces, energies)
        launch(kick, speed)(speed, forces, tick)
        moving = 0.5 * (speed.copy_to_host().astype(np.float64) ** 2).sum()
        total.append(moving + energies.copy_to_host().sum(dtype=np.float64))
    return where.copy_to_host(), speed.copy_to_host(), np.array(total)


def lattice(side: int, spacing: float) -> tuple[np.ndarray, float]:
    """side**3 atoms on a grid, float32 (3, n), and the side of their box: a start in which none overlap."""
    steps = np.indices((side, side, side)).reshape(3, -1)
    return ((steps + 0.5) * spacing).astype(np.float32), side * spacing


def forces_reference(places: np.ndarray, box: float) -> tuple[np.ndarray, np.ndarray]:
    """Forces (3, n) and energies (n,), in float64."""
    place = places.astype(np.float64)
    offset = place[:, :, None] - place[:, None, :]
    offset -= box * np.floor(offset / box + 0.5)
    squared = (offset**2).sum(axis=0)
    near = (squared < float(REACH)) & ~np.eye(squared.shape[0], dtype=bool)
    inverse = np.divide(1, squared, where=near, out=np.zeros_like(squared))
    sixth = inverse**3
    push = 48 * sixth * (sixth - 0.5) * inverse
    return (push * offset).sum(axis=2), (2 * sixth * (sixth - 1)).sum(axis=1)
