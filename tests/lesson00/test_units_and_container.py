"""Eight figures against the catalogue, and commands that are right in other ways than the solution's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import hardware
from labkit.course.lessons import l00_container as container
from labkit.course.lessons import l00_why as why
from labkit.course.lessons.l00_cases import FIGURES, TOLERANCE

RIGHT = {key: figure.GBps for key, figure in FIGURES.items()}


def test_the_catalogue_agrees() -> None:
    a100, h100 = (hardware.gpu(name).fabric for name in ("A100", "H100"))
    assert a100 is not None
    assert h100 is not None
    known = {
        "a": hardware.link("hdr").raw_GBps,
        "b": a100.per_direction_GBps,
        "c": hardware.link("pcie4").raw_GBps,
        "d": h100.per_direction_GBps,
        "e": 4 * hardware.link("ndr").raw_GBps / 8,
        "f": a100.per_direction_GBps,
        "h": hardware.link("pcie5").raw_GBps,
    }
    for key, rate in known.items():
        assert math.isclose(RIGHT[key], rate, rel_tol=TOLERANCE), key


@pytest.mark.parametrize("key", FIGURES)
def test_twice_and_eight_times_too_much_or_too_little_is_wrong(key: str) -> None:
    assert why.units(RIGHT) is None
    for factor in (0.125, 0.5, 2, 8):
        trouble = why.units({**RIGHT, key: RIGHT[key] * factor})
        assert trouble is not None
        assert f"Figure {key}" in trouble[0]


@given(st.dictionaries(st.sampled_from([*FIGURES, "z"]), st.none() | st.booleans() | st.floats() | st.text()))
def test_whatever_is_handed_in_gets_a_sentence(answer: dict[str, object]) -> None:
    trouble = why.units({**answer, "a": "nonsense"})
    assert trouble is not None
    assert "figure a" in trouble[0].lower()


@pytest.mark.parametrize(
    "command",
    [
        """docker run --gpus '"device=2,3"' --ipc=host {image} {program}""",
        """docker run -it --rm --shm-size 16g --gpus='"device=3,2"' -v /data:/data --name job {image} {program}""",
        """docker run --rm \\\n  --gpus '"device=2,3"' \\\n  --shm-size=8192m \\\n  {image} {program}""",
        """podman run --gpus '"device=2,3"' --shm-size=8g {image} {program}""",
    ],
)
def test_other_right_commands_pass(command: str) -> None:
    text = command.format(image=container.IMAGE, program=" ".join(container.PROGRAM))
    assert container.judge({"command": text}) is None


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "begin with 'docker run'"),
        ("docker run", "names no image"),
        ("docker run --gpus", "names no image"),
        (f"docker run --gpus device=2 --ipc=host {container.IMAGE} x", "not GPUs 2 and 3"),
        (f"docker run --gpus '\"device=2,3\"' --shm-size=lots {container.IMAGE} x", "is no size"),
        (
            f"docker run --gpus '\"device=2,3\"' --ipc=host {container.IMAGE} python train.py",
            "the program follows",
        ),
    ],
)
def test_wrong_commands_are_explained(command: str, says: str) -> None:
    trouble = container.judge({"command": command})
    assert trouble is not None
    assert says in " ".join(trouble)


@given(st.text())
def test_no_text_makes_the_parser_raise(text: str) -> None:
    assert container.judge({"command": text}) is not None
    assert container.judge({"command": f"docker run {text}"}) is not None
