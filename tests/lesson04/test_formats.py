"""Rounding to a number format: bit for bit what torch's own casts give, on every kind of number."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.compute.formats import FORMATS, number_format, rounded
from labkit.errors import LabkitError

TORCH = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3": "float8_e4m3fn",
    "fp32": "float32",
}


def awkward() -> np.ndarray:
    """Every exponent of float32 with random fractions, both signs, ties, zeros, and what is not finite."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 200_000, np.uint32)
    ties = np.ldexp(1 + np.arange(2048) / 4096, random.integers(-30, 20, 2048)).astype(np.float32)
    special = np.array([0, -0.0, 1, 448, 464, 480, 57344, 61440, 65504, 65519, 65520, 1e-8, np.inf, -np.inf])
    return np.concatenate([bits.view(np.float32), ties, -ties, special.astype(np.float32)])


@pytest.mark.parametrize("name", TORCH)
def test_rounding_is_torchs(name, require):
    require("torch")
    import torch

    values = awkward()
    if name == "fp8_e4m3":
        values = values[np.abs(values) <= 464]  # beyond, torch has said NaN and 448, from version to version
    wanted = torch.from_numpy(values).to(getattr(torch, TORCH[name])).float().numpy()
    assert np.array_equal(rounded(values, name), wanted, equal_nan=True)


def test_without_infinity_too_large_is_not_a_number():
    assert rounded(464, "fp8_e4m3") == 448
    assert np.isnan(rounded([465, -1e9, np.inf], "fp8_e4m3")).all()


def test_tf32_keeps_ten_bits_of_the_fraction():
    values = np.float32([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, 1e-38, 3e38])
    assert rounded(values, "tf32").tolist()[:3] == [1 + 2**-10, 1, 1 + 2**-9]
    assert np.isfinite(rounded(values, "tf32")).all()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_says_where_it_ends(name):
    form = FORMATS[name]
    assert rounded(form.smallest, name) == form.smallest
    assert rounded(form.smallest / 2, name) == 0
    assert rounded(form.largest, name) == np.float32(form.largest)
    assert rounded(1 + form.spacing(1), name) == np.float32(1 + form.epsilon)
    assert rounded(1 + form.epsilon / 2, name) == 1
    assert form.spacing(0) == form.smallest
    assert form.to_dict()["smallest_normal"] == form.smallest_normal


def test_numpy_agrees_on_the_limits():
    half = np.finfo(np.float16)
    form = number_format("fp16")
    assert (form.largest, form.smallest_normal, form.smallest, form.epsilon) == (
        half.max,
        half.tiny,
        half.smallest_subnormal,
        half.eps,
    )


def test_an_unknown_format_is_named():
    with pytest.raises(LabkitError, match="no number format 'fp12': choose from fp32, tf32"):
        rounded(1.0, "fp12")
