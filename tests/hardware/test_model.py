"""The roofline model of one launch: exact arithmetic, labelled as a model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.compute.model import LAUNCH_S, modelled_time, roofline
from labkit.errors import LabkitError
from labkit.hardware import gpu, gpus

work = st.just(0.0) | st.floats(min_value=1, max_value=1e18)


def test_saxpy_is_bound_by_memory():
    n = 1 << 26
    time = modelled_time(flops=2 * n, bytes=12 * n, gpu="A100")
    assert time.bound == "memory"
    assert time.seconds == LAUNCH_S + 12 * n / 2.039e12
    assert time.intensity == pytest.approx(1 / 6)
    assert time.ridge == pytest.approx(19.5e12 / 2.039e12)


def test_a_large_matrix_product_is_bound_by_compute():
    n = 8192
    time = modelled_time(flops=2 * n**3, bytes=3 * n * n * 2, gpu="H100", precision="fp16_tensor", launch_s=0)
    assert time.bound == "compute"
    assert time.seconds == pytest.approx(2 * n**3 / 989.5e12)


def test_a_small_launch_is_bound_by_the_launch():
    assert modelled_time(flops=1000, bytes="4kB").bound == "launch"
    assert modelled_time().seconds == LAUNCH_S


@given(work, work)
def test_no_time_beats_the_roof(flops, moved):
    time = modelled_time(flops, moved, launch_s=0)
    roof = roofline()
    assert time.seconds == max(time.compute_s, time.memory_s)
    if flops and moved and time.seconds:
        assert flops / time.seconds == pytest.approx(roof.attainable(time.intensity), rel=1e-6)


@pytest.mark.parametrize("card", gpus(), ids=lambda card: card.id)
def test_every_card_has_a_roof(card):
    roof = roofline(card)
    assert roof.attainable(roof.ridge) == pytest.approx(roof.peak_flops)
    assert roof.attainable(roof.ridge / 2) == pytest.approx(roof.peak_flops / 2)


def test_it_says_that_it_is_a_model_and_what_it_assumes():
    time = modelled_time(1e9, "1GiB", gpu="B200")
    assert repr(time) == "ModelledTime(144.4 us, bound by memory, modelled on B200, fp32)"
    said = " ".join(time.assumptions)
    assert "peak of 7.7 TB/s" in said
    assert "A launch costs 5 us, an assumption" in said
    assert "Documents disagree on the memory bandwidth" in said
    assert "modelled on B200" in time._repr_html_()
    assert json.loads(json.dumps(time.to_dict()))["label"] == "modelled on B200"
    assert "as given" in " ".join(modelled_time(launch_s="9us").assumptions)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"flops": -1}, "flops=-1 is not a number of operations"),
        ({"flops": "many"}, "flops='many'"),
        ({"flops": float("nan")}, "flops=nan"),
        ({"bytes": "5us"}, "a size is wanted"),
        ({"launch_s": "1GB"}, "a time is wanted"),
        ({"gpu": "A1000"}, "Did you mean"),
        ({"precision": "fp8"}, "no fp8 peak for A100_80_SXM4"),
    ],
)
def test_bad_input_is_a_sentence(arguments, words):
    with pytest.raises(LabkitError) as caught:
        modelled_time(**arguments)
    assert words in str(caught.value)


def test_a_card_may_be_given_itself():
    assert modelled_time(gpu=gpu("T4")).gpu == "T4"
