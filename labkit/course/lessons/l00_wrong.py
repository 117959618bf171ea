"""Lesson 00: typical wrong answers, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l00_cases import FIGURES, RUNS
from labkit.course.lessons.l00_container import GIVEN, IMAGE, PROGRAM
from labkit.course.lessons.l00_reports import REPORTS
from labkit.course.wrong import Wrong, function, wrong

_RATE = "per_second(done, seconds)"
PER_SECOND = (
    function(_RATE, "turned round", "failed", "seconds for each", "return seconds / max(done, 1)"),
    function(_RATE, "cut off", "failed", "the digits after the point", "return done // seconds"),
    function(_RATE, "multiplied", "failed", "this multiplies", "return done * seconds"),
    function(_RATE, "printed", "failed", "do not print it", "print(done / seconds)"),
    function(_RATE, "a text", "failed", "a str", "return f'{done / seconds} images/s'"),
    function(_RATE, "crash", "error", "ZeroDivisionError", "return 1 / (seconds / done)"),
)


def _units(label: str, says: str, **changed: object) -> Wrong:
    right = {key: figure.GBps for key, figure in FIGURES.items()}
    return wrong(label, "failed", says, f"one_way = { ({**right, **changed})!r}")


UNITS = (
    _units("bits taken for bytes", "eight of them are a byte", a=200),
    _units("both directions", "add the two directions", b=600),
    _units("both directions of a slot", "add the two directions", c=64),
    _units("ports not shared", "two GPUs share each", e=50),
    _units("whole switch", "this is the sum of all GPUs and directions", f=4800),
    _units("whole switch, one way", "8 GPUs share this figure", f=2400),
    _units("a port of one's own", "2 GPUs share this figure", g=12.5),
    _units("halved once too often", "for one direction already", h=31.5),
    _units("with its unit", "a plain number of GB/s", d="450 GB/s"),
    _units("one missing", "nothing for figure h", h=None),
)

_REPORT = "find_fault(report)"
_FACTS = {report.text: (report.fault, report.lines[0]) for report in REPORTS}


def _report(label: str, says: str, body: str) -> Wrong:
    """With ``right``: the right fault and line of every report, to be spoiled."""
    return function(_REPORT, label, "failed", says, f"right = {_FACTS!r}[report]\n{body}")


REPORT = (
    _report("another fault", "is not what is wrong here", (
        "fault = 'build without CUDA' if right[0] != 'build without CUDA' else 'driver too old'\n"
        "return fault, right[1]"
    )),
    _report("a fault of one's own", "none of the four faults", "return 'broken', right[1]"),
    _report("half a line", "copy a whole line", "return right[0], right[1][:12]"),
    _report("the line that only complains", "does not show it", "return right[0], 'Is CUDA available: False'"),
    _report("the line of Python", "does not show it", "return right[0], 'Libc version: glibc-2.35'"),
    _report("fault alone", "two texts are asked for", "return right[0]"),
    _report("number of the line", "two texts are asked for", "return right[0], 18"),
)  # fmt: skip

_LAYERS = "name_layers(runs)"
_RIGHT = {name: (truth.layer, truth.series[0], 9.0, 15.0) for name, truth in RUNS.items()}
_SPEED = {name: "own.images/s" if name <= "run-3" else "own.steps/s" for name in RUNS}


def _layers(label: str, says: str, each: str) -> Wrong:
    """``each`` spoils ``layer, series, start, end`` of the run called ``run``."""
    body = (
        f"right, speed = {_RIGHT!r}, {_SPEED!r}\n"
        "found = {}\n"
        "for name, run in runs.items():\n"
        "    layer, series, start, end = right[run]\n"
        f"    {each}\n"
        "    found[name] = layer, series, start, end\n"
        "return found"
    )
    return function(_LAYERS, label, "failed", says, body)


LAYERS = (
    _layers("everything computes", "is not limited by compute", "layer = 'compute'"),
    _layers("everything communicates", "is not limited by communication", "layer = 'communication'"),
    _layers("a fourth layer", "none of the three layers", "layer = 'the GPU'"),
    _layers("speed as evidence", "not why", "series = speed[run]"),
    _layers("a series that is not there", "has no series", "series = 'load'"),
    _layers("before the work", "there is rest as well", "start, end = 0.0, 6.0"),
    _layers("a moment", "too short to tell", "end = start + 1"),
    _layers("backwards", "ends before it begins", "start, end = end, start"),
    function(_LAYERS, "nothing of A", "failed", "says nothing of A", "return {}"),
    function(
        _LAYERS, "a list", "failed", "a dictionary", "return ['compute', 'communication', 'scheduling']"
    ),
)


def _claim(label: str, says: str, verdict: object, number: object, unit: object, left_out: object) -> Wrong:
    answer = {"verdict": verdict, "number": number, "unit": unit, "left_out": left_out}
    return wrong(label, "failed", says, f"claim = {answer!r}")


_UNIT, _RULE = "compute capability", "code for 8.0 runs on 8.6: one major version is binary compatible"
CLAIM = (
    _claim("believed", "no older code", "true", 8.0, _UNIT, _RULE),
    _claim("plainly false", "compilers do know this card", "false", 8.0, _UNIT, _RULE),
    _claim("the card's own", "the card's own", "mostly true", 8.6, _UNIT, _RULE),
    _claim("a CUDA version", "is not what was meant", "mostly true", 11.0, _UNIT, _RULE),
    _claim("wrong unit", "it is a 'compute capability'", "mostly true", 8.0, "GB", _RULE),
    _claim("nothing left out", "what lets older code run", "mostly true", 8.0, _UNIT, "the price"),
    _claim("half empty", "nothing under 'unit'", "mostly true", 8.0, None, _RULE),
)


def _container(
    label: str, says: str, options: str, image: str = IMAGE, program: str = " ".join(PROGRAM)
) -> Wrong:
    command = f"docker run --rm {options} {image} {program}".strip()
    return wrong(label, "failed", says, f"container = { ({'command': command})!r}")


_GPUS, _SHM = "--gpus '\"device=2,3\"'", "--shm-size=8g"
CONTAINER = (
    wrong("as given", "failed", "older than the H100", f"container = { ({'command': GIVEN})!r}"),
    _container("too new", "driver 580", f"{_GPUS} {_SHM}", "nvidia/cuda:13.0.1-devel-ubuntu24.04"),
    _container("another image", "not one of the four", f"{_GPUS} {_SHM}", "nvidia/cuda:latest"),
    _container("all GPUs", "takes everybody's", f"--gpus all {_SHM}"),
    _container("two of them, any", "not GPUs 2 and 3", f"--gpus 2 {_SHM}"),
    _container("quotes lost", "splits the value at the comma", f"--gpus device=2,3 {_SHM}"),
    _container("no GPU", "no GPU", _SHM),
    _container("shared memory forgotten", "64 MiB", _GPUS),
    _container("too little of it", "less than 8 GiB", f"{_GPUS} --shm-size=512m"),
    _container("program lost", "the program follows", f"{_GPUS} {_SHM}", program=""),
    wrong(
        "an open quote",
        "failed",
        "would not understand",
        "container = {'command': 'docker run --gpus \"device=2'}",
    ),
)
