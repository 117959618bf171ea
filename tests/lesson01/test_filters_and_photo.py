"""The photograph, the two filters and the pictures of lesson 01."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from labkit.compute.filters import BYTES, FILTERS, FLOP, NEARNESS, RADIUS, brighten, denoise
from labkit.course import photo
from labkit.errors import LabkitError
from labkit.widgets.picture import picture


def test_photograph_is_a_real_one():
    image = photo.photograph()
    assert image.shape == (512, 512)
    assert image.dtype == np.uint8
    assert len(np.unique(image)) > 200  # a photograph has nearly every shade
    neighbours = np.corrcoef(image[:, :-1].ravel(), image[:, 1:].ravel())[0, 1]
    assert neighbours > 0.9  # and is smooth, which noise is not


def test_photograph_imports_no_package_but_numpy():
    code = (
        "import sys; from labkit.course.photo import photograph; photograph(); print('pywt' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_photograph_says_what_to_install(monkeypatch):
    monkeypatch.setattr(photo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LabkitError, match="pip install"):
        photo.photograph()


def test_brighten_clips_at_white():
    out = brighten(np.array([[0.0, 0.5, 0.9]], np.float32))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, [[0, 0.65, 1]], rtol=1e-6)


def reference(image: np.ndarray) -> np.ndarray:
    """One pixel at a time, in double precision, as the definition reads."""
    out = np.empty(image.shape)
    for row, column in np.ndindex(image.shape):
        total = weights = 0.0
        for down in range(-RADIUS, RADIUS + 1):
            for right in range(-RADIUS, RADIUS + 1):
                near_row = min(max(row + down, 0), image.shape[0] - 1)
                near_column = min(max(column + right, 0), image.shape[1] - 1)
                value = float(image[near_row, near_column])
                weight = 1 / (1 + (down**2 + right**2) / RADIUS**2)
                weight /= 1 + ((value - float(image[row, column])) / 0.1) ** 2
                total += weight * value
                weights += weight
        out[row, column] = total / weights
    return out


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (16, 9)])
def test_denoise_is_its_definition(shape):
    image = np.random.default_rng(7).random(shape, np.float32)
    np.testing.assert_allclose(denoise(image), reference(image), rtol=2e-5)


def test_denoise_bands_do_not_show(monkeypatch):
    image = np.random.default_rng(8).random((40, 30), np.float32)
    whole = denoise(image)
    monkeypatch.setattr("labkit.compute.filters.BAND_PIXELS", 90)
    np.testing.assert_array_equal(denoise(image), whole)


def test_denoise_takes_grain_away_and_keeps_an_edge():
    rng = np.random.default_rng(9)
    clean = np.repeat(np.float32([[0.2, 0.8]]), 24, axis=1).repeat(40, axis=0)
    grainy = clean + rng.normal(0, 0.04, clean.shape).astype(np.float32)
    smooth = denoise(grainy)
    assert np.abs(smooth - clean).mean() < 0.5 * np.abs(grainy - clean).mean()
    assert (smooth[:, 24] - smooth[:, 23]).mean() > 0.55


def test_operation_counts_follow_from_the_window():
    assert NEARNESS.shape == (7, 7)
    assert FLOP == {"brighten": 2, "denoise": 49 * 8 + 1}
    assert set(FLOP) == set(BYTES) == set(FILTERS)


def decoded(png: bytes) -> np.ndarray:
    """The pixels of an 8-bit grey PNG whose lines all use filter 1, with every checksum tested."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    position, chunks = 8, {}
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        name, data = png[position + 4 : position + 8], png[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", png[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(name + data)
        chunks[name] = data
        position += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 1).all()
    return np.cumsum(lines[:, 1:], axis=1, dtype=np.uint8)


def test_picture_holds_the_pixels_it_was_given():
    image = np.random.default_rng(1).integers(0, 256, (50, 70), dtype=np.uint8)
    np.testing.assert_array_equal(decoded(picture(image, caption="x", height=50).png), image)


def test_pictures_stand_side_by_side_and_shrink():
    white, black = np.ones((512, 512), np.float32), np.zeros((512, 512), np.float32)
    both = picture(white, black, caption="white, black")
    pixels = decoded(both.png)
    assert pixels.shape == (256, 520)
    assert (pixels[:, :256] == 255).all()
    assert (pixels[:, 264:] == 0).all()
    assert repr(both) == "picture, 520 x 256 pixels: white, black"
    assert set(both._repr_mimebundle_()) == {"image/png", "text/plain"}


def test_picture_clips_and_shows_what_was_never_written():
    pixels = decoded(picture(np.float32([[-1, 2, np.nan]]), caption="x", height=1).png)
    assert pixels.tolist() == [[0, 255, 128]]


def test_small_pictures_are_enlarged_by_whole_factors():
    pixels = decoded(picture(np.uint8([[10, 20]]), caption="x", height=3).png)
    assert pixels.tolist() == [[10, 10, 10, 20, 20, 20]] * 3


@pytest.mark.parametrize("images", [[], [np.zeros(3)], [np.zeros((0, 4))]])
def test_picture_refuses_what_is_no_image(images):
    with pytest.raises(LabkitError):
        picture(*images, caption="x")
