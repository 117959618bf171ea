"""Streams, events and the host: what surely runs before what, when it runs, and what is too early."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lesson03.stages import device, hand_over, three_stages

import labkit
from labkit.compute.device_model import hazards
from labkit.compute.device_model.moves import host_copy
from labkit.compute.device_model.operations import COPY_IN, HOST_WAIT, KERNEL, Region, from_dict
from labkit.compute.device_model.order import Order
from labkit.compute.device_model.schedule import schedule
from labkit.errors import LabkitError

MIB = 2**20


def test_one_stream_adds_up_and_many_overlap():
    move = host_copy("A100")
    one, many = device(), device()
    for d, fresh in ((one, False), (many, True)):
        x, a = d.host("x", 8 * MIB), d.buffer("a", 8 * MIB)
        s = d.stream()
        for p, q in zip(x.split(4), a.split(4), strict=True):
            s = d.stream() if fresh else s
            d.copy_in(p, q, s)
            d.kernel("f", reads=q, writes=q, takes="1ms", stream=s)
    part = move.seconds(2 * MIB)
    assert one.timeline().seconds == pytest.approx(4 * part + 4e-3)
    assert many.timeline().seconds == pytest.approx(part + 4e-3)  # the kernels are the slower stage
    assert one.timeline().overlapped == 0
    assert many.timeline().overlapped == pytest.approx(3 * part)
    assert not one.timeline().hazards + many.timeline().hazards


def test_streams_do_not_wait_for_each_other_and_events_do():
    broken, repaired = three_stages(4, events=False), three_stages(4, events=True)
    assert {one.kind for one in broken.hazards} == {hazards.TOO_EARLY}
    assert len(broken.hazards) == 8  # two handovers in each of four chunks
    assert "may not have delivered yet: nothing makes f wait for in" in broken.hazards[0].message
    assert not repaired.hazards
    assert broken.seconds < repaired.seconds


def test_an_event_marks_what_the_stream_was_given_so_far():
    with device() as d:
        x, a = d.host("x", MIB), d.buffer("a", MIB)
        s, k, early = d.stream(), d.stream(), d.event()
        early.record(s)
        d.copy_in(x, a, s)
        early.wait(k)
        d.kernel("f", reads=a, writes=a, takes="1ms", stream=k)
    assert [one.kind for one in d.timeline().hazards] == [hazards.TOO_EARLY]
    with pytest.raises(LabkitError, match=r"before event\.record"):
        d.event().wait(k)


def test_an_event_carries_what_its_stream_was_waiting_for():
    """A stream that has been given nothing but a wait passes that wait on."""
    with device() as d:
        x, a = d.host("x", MIB), d.buffer("a", MIB)
        first, middle, last = d.stream(), d.stream(), d.stream()
        d.copy_in(x, a, first)
        for before, after in ((first, middle), (middle, last)):
            hand_over(d, True, before, after)
        d.kernel("f", reads=a, writes=a, takes="1ms", stream=last)
    assert not d.timeline().hazards


def test_the_default_stream_waits_for_all_and_all_for_it():
    with device() as d:
        x, a = d.host("x", 2 * MIB), d.buffer("a", 2 * MIB)
        (p, p2), (q, q2) = x.split(2), a.split(2)
        d.copy_in(p, q, d.stream())
        d.kernel("f", reads=q, writes=q, takes="1ms")
        d.copy_in(p2, q2, d.stream())
    timeline = d.timeline()
    first, kernel, second = timeline.operations
    assert timeline.order.ordered(first, kernel)
    assert timeline.order.ordered(kernel, second)
    assert [wait.why for wait in timeline.order.reason(kernel, second)] == ["default stream"]


@pytest.mark.parametrize(("pinned", "waits"), [(True, 0), (False, 2)])
def test_pageable_copies_hold_the_host(pinned: bool, waits: int):
    with device() as d:
        x, a = d.host("x", 2 * MIB, pinned=pinned), d.buffer("a", 2 * MIB)
        for p, q in zip(x.split(2), a.split(2), strict=True):
            d.copy_in(p, q, d.stream())
    assert sum(one.kind == HOST_WAIT for one in d.operations) == waits
    copies = [one for one in d.operations if one.kind == COPY_IN]
    assert d.timeline().order.ordered(*copies) is not pinned


def test_the_host_has_to_wait_before_it_looks():
    for waits in (False, True):
        with device() as d:
            a, y = d.buffer("a", MIB), d.host("y", MIB, filled=False)
            s = d.stream()
            d.kernel("f", writes=a, takes="1ms", stream=s)
            d.copy_out(a, y, s)
            if waits:
                s.synchronize()
            d.host_work("look", "1ms", reads=y)
        found = d.timeline().hazards
        assert bool(found) is not waits
    assert d.timeline().spans[-1][0] == d.timeline().spans[1][1]  # it looks when the copy has ended


def test_a_place_used_again_and_two_writers():
    with device() as d:
        x, a, r = d.host("x", 2 * MIB), d.buffer("a", MIB), d.buffer("r", 2 * MIB)
        for p, q in zip(x.split(2), r.split(2), strict=True):
            s = d.stream()
            d.copy_in(p, a, s)
            d.kernel("f", reads=a, writes=q, takes="1ms", stream=s)
    kinds = {one.kind for one in d.timeline().hazards}
    assert hazards.OVERWRITES in kinds
    with device() as d:
        a = d.buffer("a", MIB)
        d.kernel("f", writes=a, stream=d.stream())
        d.kernel("g", writes=a, stream=d.stream())
    assert [one.kind for one in d.timeline().hazards] == [hazards.BOTH_WRITE]


def test_reading_what_nobody_wrote_names_the_gap():
    with device() as d:
        x, a = d.host("x", 4 * MIB), d.buffer("a", 4 * MIB)
        s = d.stream()
        d.copy_in(x.split(4)[0], a.split(4)[0], s)
        d.copy_in(x.split(4)[3], a.split(4)[3], s)
        d.kernel("f", reads=a, writes=a, takes="1ms", stream=s)
    (found,) = d.timeline().hazards
    assert found.kind == hazards.NEVER_WRITTEN
    assert found.message == "kernel 'f' reads 2 MiB of a, which no copy or kernel submitted before it writes."


def test_durations_come_from_where_they_are_said_to():
    from labkit.compute.model import modelled_time

    with device("H100") as d:
        a = d.buffer("a", "1GiB")
        d.kernel("by bytes", reads=a, writes=a)
        d.kernel("given", reads=a, writes=a, takes="3ms")
        d.kernel("modelled", reads=a, writes=a, takes=modelled_time(flops=1e12, gpu="H100"))
    by_bytes, given_, modelled = d.operations
    assert by_bytes.seconds == modelled_time(bytes=2 * 2**30, gpu="H100").seconds
    assert (given_.seconds, given_.how, modelled.how) == (3e-3, "given", "modelled")


def test_an_inspection_is_a_duration():
    import numpy as np

    from labkit import cuda

    @cuda.jit
    def twice(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    seen = labkit.inspect(twice[4, 64], np.ones(256, np.float32), gpu="A100")
    with device() as d:
        a = d.buffer("a", 1024)
        d.kernel("twice", reads=a, writes=a, takes=seen)
    expected = seen.measured_s if seen.measured_s is not None else seen.time.seconds
    assert d.operations[0].seconds == expected


def test_results_are_plain_deterministic_and_show_themselves():
    first, again = three_stages(3, events=True), three_stages(3, events=True)
    assert repr(first) == repr(again)
    assert first.to_dict() == json.loads(json.dumps(first.to_dict()))
    assert [from_dict(one.to_dict()) for one in first.operations] == list(first.operations)
    assert "No hazard" in first._repr_html_()
    assert "8 hazards" in three_stages(4, events=False)._repr_html_()
    assert "modelled on A100_80_SXM4" in repr(first)


@pytest.mark.parametrize("change", [{"kind": "dance"}, {"seconds": -1.0}, {"waits": [{"on": 9, "why": "x"}]}])
def test_descriptions_that_cannot_be_are_refused(change: dict):
    plain = three_stages(2, events=True).operations[1].to_dict()
    with pytest.raises(ValueError, match="operation"):
        from_dict({**plain, **change})


def test_bad_input_is_a_sentence():
    with pytest.raises(LabkitError, match="A100"):
        device("A1000")
    d = device()
    x, a = d.host("x", MIB), d.buffer("a", 2 * MIB)
    for mistake, said in (
        (lambda: d.copy_in(x, a), "do not go into 2 MiB"),
        (lambda: d.copy_out(x, a), "copy out goes from the device to the host"),
        (lambda: d.kernel("f", reads=x), "copy it in first"),
        (lambda: d.host_work("look", "1ms", reads=a), "copy it out first"),
        (lambda: d.kernel("f", reads="a"), "is no array of this device"),
        (lambda: d.kernel("f", reads=a, stream=device().stream()), "is no stream of this device"),
        (lambda: d.host("x", MIB), "exists already"),
        (lambda: d.buffer("huge", "100GB"), "does not fit"),
        (lambda: d.buffer("nothing", 0), "at least one byte"),
        (lambda: d.stream("s") and d.stream("s"), "a name of its own"),
        (lambda: x.split(0), "split into 1 to"),
    ):
        with pytest.raises(LabkitError, match=said):
            mistake()


# Programs of random shape: a stream and a chunk for each operation, events now and then.
_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=12
)


def _random_program(steps):
    with device() as d:
        x, a = d.host("x", 3 * MIB), d.buffer("a", 3 * MIB)
        streams = [d.stream() for _ in range(3)]
        for number, (stream, part, copies, handed) in enumerate(steps):
            s = streams[stream]
            if handed:
                hand_over(d, True, streams[(stream + 1) % 3], s)
            if copies:
                d.copy_in(x.split(3)[part], a.split(3)[part], s)
            else:
                d.kernel(
                    f"k{number}", reads=a.split(3)[part], writes=a.split(3)[part], takes="0.1ms", stream=s
                )
    return d.operations


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_every_schedule_keeps_the_order_and_one_thing_an_engine(steps):
    operations = _random_program(steps)
    spans = schedule(operations)
    order = Order(operations)
    assert len(spans) == len(operations)
    for one, other in itertools.combinations(operations, 2):
        (start, end), (begins, ends) = spans[one.number], spans[other.number]
        if order.ordered(one, other):
            assert end <= begins + 1e-12
        if one.engine == other.engine:
            assert end <= begins + 1e-12 or ends <= start + 1e-12


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_without_a_hazard_all_accesses_are_in_order_and_with_one_some_are_not(steps):
    operations = _random_program(steps)
    order = Order(operations)
    loose = [
        (one.number, other.number)
        for one, other in itertools.combinations(operations, 2)
        if order.free(one, other) and _clash(one, other)
    ]
    found = [one for one in hazards.find(operations, order) if one.first is not None]
    assert bool(found) == bool(loose)
    assert {(one.first, one.second) for one in found} <= set(loose)


def _clash(one, other) -> bool:
    pairs = [(a, b) for a in one.writes for b in (*other.reads, *other.writes)]
    pairs += [(a, b) for a in one.reads for b in other.writes]
    return any(a.overlaps(b) for a, b in pairs)


def test_a_region_splits_without_gaps():
    whole = Region("a", 0, 100, "device", True, True, 100)
    for parts in (1, 3, 7, 100):
        pieces = whole.split(parts)
        assert [piece.start for piece in pieces[1:]] == [piece.stop for piece in pieces[:-1]]
        assert sum(piece.size for piece in pieces) == 100
        assert max(p.size for p in pieces) - min(p.size for p in pieces) <= 1
    assert whole.split(2)[1].split(2)[0].start == 50


def test_rates_of_the_link_add_up_to_the_bytes():
    timeline = three_stages(4, events=True)
    step = timeline.seconds / 997
    for kind in (COPY_IN, "copy out"):
        moved = sum(timeline.rate(kind, n * step, (n + 1) * step) * step for n in range(997))
        assert moved == pytest.approx(timeline.bytes(kind), rel=1e-9) == 64 * MIB
    assert timeline.rate(KERNEL, 0, timeline.seconds) == 0
