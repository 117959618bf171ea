"""Lesson 00, stretch: a ``docker run`` command taken apart, and each part judged."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from labkit.course.messages import shown

# The task: a machine, what is wanted, and the images that there are, with why each fits or not.
WANTED = {"2", "3"}
SHM_GIB = 8
PROGRAM = ["torchrun", "--nproc_per_node=2", "train.py"]
IMAGE = "nvidia/cuda:12.2.2-devel-ubuntu22.04"
IMAGES = {
    IMAGE: "",
    "nvidia/cuda:11.4.3-devel-ubuntu20.04": "CUDA 11.4 is older than the H100 (sm_90 needs 11.8).",
    "nvidia/cuda:11.7.1-devel-ubuntu22.04": "CUDA 11.7 is older than the H100 (sm_90 needs 11.8).",
    "nvidia/cuda:13.0.1-devel-ubuntu24.04": "CUDA 13 needs a driver 580 or newer, and the machine has 535.",
}
GIVEN = f"docker run --rm --gpus all nvidia/cuda:11.4.3-devel-ubuntu20.04 {' '.join(PROGRAM)}"
_FLAGS = {
    "--rm",
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "--interactive",
    "--tty",
    "--detach",
    "--privileged",
    "--init",
}
_BYTES = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


@dataclass
class Command:
    """A parsed command: options by name (without a value: ``""``), the image, and what runs in it."""

    options: dict[str, str] = field(default_factory=dict)
    image: str = ""
    program: list[str] = field(default_factory=list)


def parse(text: str) -> Command | str:
    """The command, or what is wrong with it."""
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        return f"the shell would not understand it ({error})."
    if words[:2] not in (["docker", "run"], ["podman", "run"]):
        return "it should begin with 'docker run'."
    command, rest = Command(), words[2:]
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if not equals and name not in _FLAGS:
            value = rest.pop(0) if rest else ""
        command.options[name] = value
    if not rest:
        return "it names no image."
    command.image, command.program = rest[0], rest[1:]
    return command


def judge(answer: dict[str, Any]) -> tuple[str, str] | None:
    text = answer.get("command")
    if not isinstance(text, str):
        return f"The command is {shown(text)}; a text is asked for.", ""
    found = parse(text)
    if isinstance(found, str):
        return "The command cannot be run as it is.", found
    return _image(found) or _devices(found) or _memory(found) or _program(found)


def _image(command: Command) -> tuple[str, str] | None:
    if command.image not in IMAGES:
        return f"The image {shown(command.image)} is not one of the four.", ""
    why = IMAGES[command.image]
    return (f"The image {command.image} does not fit.", why) if why else None


def _devices(command: Command) -> tuple[str, str] | None:
    value = command.options.get("--gpus")
    if value is None:
        return "The command gives the container no GPU.", "--gpus says which."
    named = re.fullmatch(r'"?device=([\d,]+)"?', value)
    if not named:
        return f"--gpus {value} is not GPUs 2 and 3.", "device=2,3 names them; 'all' takes everybody's."
    if set(named[1].split(",")) != WANTED:
        return f"--gpus {value} is not GPUs 2 and 3.", ""
    if "," in named[1] and not value.startswith('"'):
        why = "docker splits the value at the comma: it has to arrive with double quotes, --gpus '\"device=2,3\"'."
        return "The list of GPUs would not arrive whole.", why
    return None


def _memory(command: Command) -> tuple[str, str] | None:
    if command.options.get("--ipc") == "host":
        return None
    size = command.options.get("--shm-size")
    why = "docker gives 64 MiB of shared memory, and data loaders exchange batches through it."
    if size is None:
        return "The command leaves shared memory as it is.", why
    parsed = re.fullmatch(r"(\d+)([bkmg]?)b?", size.lower())
    if not parsed:
        return f"--shm-size {size} is no size.", "a number with k, m or g behind it, such as 8g."
    if int(parsed[1]) * _BYTES[parsed[2]] < SHM_GIB * 2**30:
        return f"--shm-size {size} is less than {SHM_GIB} GiB.", ""
    return None


def _program(command: Command) -> tuple[str, str] | None:
    if command.program == PROGRAM:
        return None
    wanted = " ".join(PROGRAM)
    return f"After the image the program follows: {wanted}.", "what stands behind the image is run in it."
