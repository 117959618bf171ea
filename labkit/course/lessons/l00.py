"""Lesson 00, start here: its exercises, with tasks and hints; l00_why has what is said about mistakes."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l00_cases as cases
from labkit.course.lessons import l00_container as container
from labkit.course.lessons import l00_why as why
from labkit.course.lessons import l00_wrong as wrong
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="00.first_check",
        title="A first check",
        function="per_second",
        kind="core",
        minutes=5,
        task=(
            "Write a function per_second(done, seconds) that returns how many things were done in a second. "
            "It is a small thing; it is here so that you meet the check, the hints and the solution."
        ),
        hints=(
            "A rate is a fraction. What stands above the line, and what below it?",
            "120 images in 4 seconds are 30 images/s.",
            "return done / seconds",
        ),
        praise="That is the number that lessons compare: results a second, not per cent.",
        plan=FunctionCheck(("done", "seconds"), cases.per_second_calls, why.per_second),
        wrong=wrong.PER_SECOND,
    ),
    Exercise(
        name="00.units",
        title="Eight figures, one unit",
        function="one_way",
        kind="core",
        minutes=15,
        task=(
            "Turn eight figures, as articles print them, into GB/s one way for each GPU (10^9 bytes a second). "
            "Fill the dictionary one_way, with a key for each figure from a to h."
        ),
        hints=(
            "Three questions for each figure: bits or bytes? one direction or both together? for one GPU, or for "
            "several that share it?",
            "Networks (Gbps) and lanes (GT/s) are counted in bits, one way. NVLink and PCIe x16 figures in GB/s "
            "usually add both directions. TB/s of a switch adds up all GPUs as well.",
            "a: 200 / 8. b: 600 / 2. e: 4 * 400 / 8 / 8. f: 4800 / 8 / 2. h: 32 * 16 / 8, and the line code takes "
            "a little of that.",
        ),
        praise="All eight in one unit: now they can be compared.",
        plan=DataCheck(why.units, cases.begun),
        wrong=wrong.UNITS,
    ),
    Exercise(
        name="00.report",
        title="Somebody's machine does not work",
        function="find_fault",
        kind="core",
        minutes=15,
        task=(
            "exercise('00.report').data() is a report that somebody pasted: PyTorch finds no GPU. Write "
            "find_fault(report) that returns two texts: the fault (driver too old, build without CUDA, card too "
            "new, card too old) and the line of the report that shows it."
        ),
        hints=(
            "Three facts have to fit each other: what PyTorch was built for, what the driver runs, and what the "
            "card needs. 'Is CUDA available: False' is the complaint, not the cause.",
            "CUDA 11 needs a driver 450 or newer, CUDA 12 one of 525, CUDA 13 one of 580. Volta (V100) is gone "
            "from CUDA 13, Kepler (K80) from CUDA 12; Hopper (H100) came with CUDA 11.8, Blackwell (B200, RTX 50) with "
            "CUDA 12.8.",
            "Copy the line that names the driver, the build or the card, whichever is at fault, as a whole.",
        ),
        praise="Found, and with the line that proves it.",
        plan=FunctionCheck(("report",), cases.report_calls, why.report),
        wrong=wrong.REPORT,
        table=cases.report_table,
    ),
    Exercise(
        name="00.layers",
        title="Which layer limits it?",
        function="name_layers",
        kind="core",
        minutes=15,
        task=(
            "exercise('00.layers').data() names three recorded runs, A, B and C. Write name_layers(runs) that "
            "returns, for each of the three, a tuple: the layer that limits it (compute, communication or "
            "scheduling), the key of a series that shows it, and the interval in which it does (start and end in "
            "seconds)."
        ),
        hints=(
            "labkit.replay(runs['A'], 10) shows a run at ten times its speed; labkit.telemetry.traces.open(...) "
            "gives the recording, whose .series have the keys.",
            "Limited by compute: everything that can compute does. By communication: bytes a second lie flat at "
            "what a link carries. By scheduling: work waits, and somebody who could do it is idle.",
            "On GPUs power tells work from waiting; 100 % utilisation does not. Choose an interval of 3 s or more "
            "inside the span called work.",
        ),
        praise="Three runs, three layers, each with its evidence.",
        plan=FunctionCheck(("runs",), cases.layers_calls, why.layers),
        wrong=wrong.LAYERS,
        table=cases.layers_table,
    ),
    Exercise(
        name="00.claim",
        title="Does an RTX 30 need CUDA 11.1?",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'An RTX 30 card does not work below CUDA 11.1.' Fill the dictionary claim: verdict "
            "(true, mostly true, misleading, false or unsourced), number and unit (its capability is 8.6; code "
            "built for which other one runs on it too?), left_out (the rule that makes it so)."
        ),
        hints=(
            "CUDA 11.0 knows compute capability 8.0 (the A100), and CUDA 11.1 added 8.6 (RTX 30).",
            "A GPU runs code that was built for an older capability of the same major version.",
            "Code for 8.0 is an older minor version of the same major one, so it runs. As a rule of thumb the "
            "claim is fine all the same.",
        ),
        praise="Yes: a good rule of thumb, and an exception that people meet every day without noticing.",
        plan=DataCheck(why.claim, claim_begun),
        wrong=wrong.CLAIM,
    ),
    Exercise(
        name="00.container",
        title="Repair a container",
        function="container",
        kind="stretch",
        minutes=15,
        task=(
            "A machine has eight H100 and the driver 535 (CUDA 12.2). You may use GPUs 2 and 3, and the data "
            "loaders need 8 GiB of shared memory. Repair the pasted 'docker run' command: one of the four images, "
            "the GPUs, the shared memory, the same program. The answer is container = {'command': ...}."
        ),
        hints=(
            "The image has to know the card (an H100 needs CUDA 11.8) and must not be newer than the driver.",
            "--gpus takes device=2,3, but docker splits values at commas; inner double quotes keep it together.",
            "docker run --rm --gpus '\"device=2,3\"' --shm-size=8g IMAGE torchrun --nproc_per_node=2 train.py",
        ),
        praise="It fits the card and the driver, takes two GPUs only, and its data loaders have room.",
        plan=DataCheck(container.judge, cases.begun),
        wrong=wrong.CONTAINER,
    ),
)
