"""alpha + n / beta of links and of this machine, and the pages of unified memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.compute import alpha_beta
from labkit.compute.curves import Curve
from labkit.compute.device_model import moves, unified
from labkit.errors import LabkitError
from labkit.hardware import gpus

MIB = 2**20


@given(st.floats(1e-7, 1e-2), st.floats(1e6, 1e12), st.floats(0, 1e12))
def test_half_of_the_rate_is_reached_at_alpha_times_beta(alpha, beta, size):
    move = moves.Move("x", alpha, beta, "modelled", "a test")
    assert move.rate(move.half_size) == pytest.approx(beta / 2)
    assert move.seconds(size) == pytest.approx(alpha + size / beta)


@given(st.floats(1e-7, 1e-3), st.floats(1e7, 1e11))
def test_a_fit_finds_the_numbers_that_made_the_table(alpha, beta):
    sizes = tuple(4**k for k in range(2, 14))
    made = Curve("x", "measured", "a test", sizes, tuple(alpha + n / beta for n in sizes))
    found = alpha_beta.fit(made)
    assert found.alpha_s == pytest.approx(alpha, rel=1e-6, abs=1e-15)
    assert found.bytes_per_s == pytest.approx(beta, rel=1e-6)


def test_a_fit_gives_no_negative_start():
    found = alpha_beta.fit(Curve("x", "measured", "a test", (1000, 2000), (1e-6, 3e-6)))
    assert found.alpha_s == 0
    with pytest.raises(LabkitError, match="two sizes or more"):
        alpha_beta.fit(Curve("x", "measured", "a test", (1000,), (1e-6,)))


def test_host_copies_of_every_card():
    for card in gpus():
        pinned, pageable = moves.host_copy(card), moves.host_copy(card, pinned=False)
        assert pageable.bytes_per_s < pinned.bytes_per_s
        assert 1 / pageable.bytes_per_s == pytest.approx(1 / pinned.bytes_per_s + 1e-10)
        assert "assumed" in pinned.basis
    assert moves.host_copy("A100").bytes_per_s == 24e9


def test_links_and_disks_say_what_they_rest_on():
    assert moves.over("nvlink4").bytes_per_s == 380e9
    assert moves.over("100gbe").bytes_per_s == 11.77e9
    assert moves.over("ndr").alpha_s == pytest.approx(1.9e-6)
    assert moves.over("pcie6").alpha_s == moves.host_copy().alpha_s
    for disk in moves.DISKS:
        assert moves.disk(disk).basis.startswith("assumed")
    with pytest.raises(LabkitError, match="hard disk"):
        moves.disk("floppy")


def test_this_machine_is_measured(tmp_path):
    for curve in (
        alpha_beta.memory_copies((1024, 1 << 20)),
        alpha_beta.file_reads(tmp_path, (256, 65536)),
        alpha_beta.file_reads(tmp_path, (256, 65536), cached=False),
    ):
        assert curve.how == "measured"
        assert min(curve.seconds) > 0
    assert not list(tmp_path.iterdir())


def test_page_faults_are_counted_exactly():
    film = unified.managed("64MiB")
    assert film.pages == 1024
    first = film.touch("device")
    assert (first.faults, first.pages, first.bytes) == (128, 1024, 64 * MIB)
    assert film.touch("device").seconds == 0
    back = film.touch("host", start="1MiB", size="1MiB")
    assert (back.faults, back.pages) == (2, 16)
    assert film.touch("device").faults == 2
    assert unified.managed("64MiB").touch("device", step=8).faults == 128
    assert unified.managed("64MiB", group=1).touch("device").faults == 1024
    prefetched = unified.managed("64MiB").prefetch("device")
    assert (prefetched.faults, prefetched.pages) == (0, 1024)
    assert prefetched.seconds == pytest.approx(moves.host_copy().seconds("64MiB"))


def test_memory_that_is_too_small_thrashes():
    tight = unified.managed("64MiB", device_memory="60MiB")
    assert tight.touch("device").evicted == 64
    again = tight.touch("device")
    assert (again.faults, again.pages, again.evicted) == (128, 1024, 1024)
    roomy = unified.managed("64MiB", device_memory="64MiB")
    roomy.touch("device")
    assert roomy.touch("device").faults == 0


@given(
    st.lists(st.tuples(st.sampled_from(unified.SIDES), st.integers(0, 15), st.integers(1, 16)), max_size=12)
)
def test_pages_are_where_they_were_touched_last(touches):
    film = unified.managed(16 * unified.PAGE, group=4)
    where = ["host"] * 16
    for side, start, count in touches:
        pages = range(start, min(16, start + count))
        moved = sum(where[page] != side for page in pages)
        for page in pages:
            where[page] = side
        found = film.touch(side, start * unified.PAGE, len(pages) * unified.PAGE)
        assert found.pages == moved
        assert -(-moved // 4) <= found.faults <= moved


def test_unified_memory_refuses_nonsense():
    with pytest.raises(LabkitError, match="'host' or 'device'"):
        unified.managed("1MiB").touch("cpu")
    with pytest.raises(LabkitError, match="within it"):
        unified.managed("1MiB").touch("host", size="2MiB")
    with pytest.raises(LabkitError, match="at least one byte"):
        unified.managed(0)
