"""Sizes, rates and times: what people write is read exactly, and what is ambiguous is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabkitError
from labkit.hardware.units import parse, show_bytes, show_rate, show_time

amounts = st.floats(min_value=1e-3, max_value=1e14, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64MiB", 64 * 2**20),
        ("1.5GB", 1.5e9),
        ("4 kB", 4000),
        ("512", None),
        ("25Gbit/s", 3.125e9),
        ("200 Gbps", 25e9),
        ("200Gb/s", 25e9),
        ("600GB/s", 600e9),
        ("1GiB/s", 2**30),
        ("5us", 5e-6),
        ("5 µs", 5e-6),
        ("5μs", 5e-6),
        ("1.2ms", 1.2e-3),
        ("90ns", 90e-9),
        ("3h", 10800),
        ("8bit", 1),
    ],
)
def test_parse(text, value):
    if value is None:
        with pytest.raises(LabkitError, match="has no unit"):
            parse(text)
    else:
        assert parse(text) == value


@pytest.mark.parametrize("number", [0, 12, 3.5, 1e12])
def test_numbers_are_si_already(number):
    assert parse(number) == number


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("64Mb", "Mbit or MB"),
        ("64gb", "GB or Gbit"),
        ("64mib", "MiB or Mibit"),
        ("", "does not start with a number"),
        ("many", "does not start with a number"),
        ("5 parsecs", "'parsecs', which is not known"),
        ("-3B", "zero or more"),
        ("1e999B", "finite"),
        (float("nan"), "finite"),
        (-1, "zero or more"),
        (True, "neither a number"),
        (None, "neither a number"),
        ([1], "neither a number"),
    ],
)
def test_what_cannot_be_read_is_explained(value, words):
    with pytest.raises(LabkitError) as caught:
        parse(value)
    assert words in str(caught.value)


@pytest.mark.parametrize(("text", "kind"), [("5us", "rate"), ("1GB", "time"), ("1GB/s", "size")])
def test_the_wrong_kind_is_refused(text, kind):
    with pytest.raises(LabkitError, match=f"a {kind} is wanted"):
        parse(text, kind)


@given(amounts)
def test_sizes_come_back(size):
    assert parse(show_bytes(size), "size") == pytest.approx(size, rel=1e-3)


@given(amounts, st.booleans())
def test_rates_come_back(rate, bits):
    assert parse(show_rate(rate, bits=bits), "rate") == pytest.approx(rate, rel=1e-3)


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_times_come_back(seconds):
    assert parse(show_time(seconds), "time") == pytest.approx(seconds, rel=1e-3)


@given(st.text(max_size=12))
def test_no_text_does_worse_than_a_sentence(text):
    with suppress(LabkitError):
        assert parse(text) >= 0


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_bytes(64 * 2**20), "64 MiB"),
        (show_bytes(0), "0 B"),
        (show_rate(3.125e9), "3.125 GB/s"),
        (show_rate(3.125e9, bits=True), "25 Gbit/s"),
        (show_time(5e-6), "5 us"),
        (show_time(0.25), "250 ms"),
    ],
)
def test_show(shown, text):
    assert shown == text
