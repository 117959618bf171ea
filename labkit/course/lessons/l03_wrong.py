"""Lesson 03: typical wrong functions and claims, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l03_cases import OFFLOAD as OFFLOAD_PARAMETERS
from labkit.course.wrong import Wrong, function, wrong

_FIT = "alpha_beta(sizes, seconds, size)"
_GOOD_FIT = """
n, t = np.array(sizes, float), np.array(seconds, float)
(alpha, slope), *_ = np.linalg.lstsq(np.column_stack([1 / t, n / t]), np.ones(len(t)), rcond=None)
"""
ALPHA_BETA = (
    function(
        _FIT,
        "errors in seconds",
        "failed",
        "the largest sizes decide alone",
        """
        slope, alpha = np.polyfit(sizes, seconds, 1)
        return alpha, 1 / slope, alpha + slope * size
        """,
    ),
    function(
        _FIT,
        "smallest and largest row",
        "failed",
        "this is the time of the smallest move alone",
        """
        alpha, beta = seconds[0], sizes[-1] / seconds[-1]
        return alpha, beta, alpha + size / beta
        """,
    ),
    function(
        _FIT,
        "line through two rows",
        "failed",
        "the line through the first and last row alone",
        """
        slope = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
        alpha = seconds[0] - slope * sizes[0]
        return alpha, 1 / slope, alpha + slope * size
        """,
    ),
    function(
        _FIT,
        "seconds a byte",
        "failed",
        "this is seconds a byte",
        _GOOD_FIT + "return alpha, slope, alpha + slope * size",
    ),
    function(
        _FIT,
        "alpha forgotten in the prediction",
        "failed",
        "alpha is missing from the prediction",
        _GOOD_FIT + "return alpha, 1 / slope, slope * size",
    ),
    function(
        _FIT,
        "microseconds",
        "failed",
        "this is in microseconds",
        _GOOD_FIT + "return alpha * 1e6, 1 / slope, alpha + slope * size",
    ),
    function(
        _FIT,
        "gigabytes a second",
        "failed",
        "this is in GB/s",
        _GOOD_FIT + "return alpha, 1e-9 / slope, alpha + slope * size",
    ),
    function(
        _FIT, "no prediction", "failed", "three numbers are asked for", _GOOD_FIT + "return alpha, 1 / slope"
    ),
    function(_FIT, "hard-coded result", "failed", "expected", "return 1e-5, 1e10, 1e-4"),
)

_OFFLOAD = f"offload({', '.join(OFFLOAD_PARAMETERS)})"
_TIME = """
import itertools

def total(plan):
    places = ["cpu", *plan, {end}]
    t = sum(g if where == "gpu" else c for where, c, g in zip(plan, cpu_s, gpu_s))
    for n in range(len(places) - 1):
        if places[n] != places[n + 1]:
            t += alpha_s + bytes_between[n] / bytes_per_s
    return t

"""
_ALL = 'itertools.product(["cpu", "gpu"], repeat=len(cpu_s))'
OFFLOAD = (
    function(
        _OFFLOAD,
        "the faster side of each stage",
        "failed",
        "each stage runs where it is faster, however far its data are",
        'return ["gpu" if g < c else "cpu" for c, g in zip(cpu_s, gpu_s)]',
    ),
    function(
        _OFFLOAD, "everything on the GPU", "failed", "everything on the GPU", 'return ["gpu"] * len(cpu_s)'
    ),
    function(
        _OFFLOAD, "everything on the CPU", "failed", "everything on the CPU", 'return ["cpu"] * len(cpu_s)'
    ),
    function(
        _OFFLOAD,
        "there and back at every stage",
        "failed",
        "data may stay on the GPU",
        """
        plan = []
        for n in range(len(cpu_s)):
            moves = 2 * alpha_s + (bytes_between[n] + bytes_between[n + 1]) / bytes_per_s
            plan.append("gpu" if gpu_s[n] + moves < cpu_s[n] else "cpu")
        return plan
        """,
    ),
    function(
        _OFFLOAD,
        "the way back forgotten",
        "failed",
        "the way back is missing",
        _TIME.replace("{end}", "plan[-1]") + f"return list(min({_ALL}, key=total))",
    ),
    function(
        _OFFLOAD,
        "one answer for all stages",
        "failed",
        "one a stage",
        'return "gpu" if sum(gpu_s) < sum(cpu_s) else "cpu"',
    ),
    function(
        _OFFLOAD,
        "other words",
        "failed",
        "each entry is 'cpu' or 'gpu'",
        'return ["GPU" if g < c else "CPU" for c, g in zip(cpu_s, gpu_s)]',
    ),
    function(
        _OFFLOAD,
        "the worst plan",
        "failed",
        "there is one of",
        _TIME.replace("{end}", '"cpu"') + f"return list(max({_ALL}, key=total))",
    ),
    function(
        _OFFLOAD,
        "crash: one size too many",
        "error",
        "IndexError",
        "return ['gpu' if bytes_between[n + 2] else 'cpu' for n in range(len(cpu_s))]",
    ),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = f'claim = {{"verdict": {verdict}, "number": {number}, "unit": {unit}, "left_out": {left_out}}}'
    return wrong(label, "failed", says, source)


_HIDES = "'both directions are added, and the H100 sits in a PCIe 5 slot'"
CLAIM = (
    _claim("believed", "what a GPU with NVLink 4 sits in?", "'true'", "7.1", "'times'", _HIDES),
    _claim("plainly false", "both numbers stand in data sheets", "'false'", "7.1", "'times'", _HIDES),
    _claim(
        "against PCIe 4",
        "the slot that an H100 sits in is PCIe 5",
        "'misleading'",
        "900 / 64",
        "'times'",
        _HIDES,
    ),
    _claim("one way against both", "one side is one way", "'misleading'", "450 / 126", "'times'", _HIDES),
    _claim("one link", "that is one link of NVLink 4", "'misleading'", "25 / 63", "'times'", _HIDES),
    _claim("wrong unit", "a ratio is in 'times'", "'misleading'", "7.1", "'GB/s'", _HIDES),
    _claim(
        "nothing left out", "name what the two numbers hide", "'misleading'", "7.1", "'times'", "'the price'"
    ),
    _claim("half empty", "nothing under 'left_out'", "'misleading'", "7.1", "'times'", "None"),
)

_FEED = "feed(disk, sample_bytes, worker, workers)"
_CUT = """
            while piece := file.read({n}):
                for k in range(0, len(piece), sample_bytes):
                    yield piece[k : k + sample_bytes]
"""
_MINE = "for name in disk.files('shards')[worker::workers]:\n    with disk.open(name) as file:"
_LARGE = _CUT.replace("{n}", "100 * sample_bytes").replace("\n    ", "\n")
FEED = (
    function(
        _FEED,
        "loose files",
        "failed",
        "600 opens, target 6",
        """
        for name in disk.files("loose")[worker::workers]:
            with disk.open(name) as file:
                yield file.read(sample_bytes)
        """,
    ),
    function(
        _FEED,
        "one sample a read",
        "failed",
        "one read should bring many samples",
        _MINE + _CUT.replace("{n}", "sample_bytes").replace("\n    ", "\n"),
    ),
    function(
        _FEED,
        "everybody reads everything",
        "failed",
        "Sample 0 comes twice",
        _MINE.replace("[worker::workers]", "") + _LARGE,
    ),
    function(
        _FEED,
        "every worker opens every shard",
        "failed",
        "open each shard once, and by one worker alone",
        """
        number = 0
        for name in disk.files("shards"):
            with disk.open(name) as file:
                while piece := file.read(100 * sample_bytes):
                    for k in range(0, len(piece), sample_bytes):
                        if number % workers == worker:
                            yield piece[k : k + sample_bytes]
                        number += 1
        """,
    ),
    function(
        _FEED,
        "reads of a round number of bytes",
        "failed",
        "cut what a read returns at multiples of sample_bytes",
        _MINE + _CUT.replace("{n}", "65536").replace("\n    ", "\n"),
    ),
    function(
        _FEED,
        "one read a shard",
        "failed",
        "never comes",
        _MINE
        + """
        piece = file.read(64 * sample_bytes)
        for k in range(0, len(piece), sample_bytes):
            yield piece[k : k + sample_bytes]
""",
    ),
    function(
        _FEED,
        "rounded down",
        "failed",
        "never comes",
        "shards = disk.files('shards')\neach = len(shards) // workers\n"
        + _MINE.replace(
            "disk.files('shards')[worker::workers]", "shards[worker * each : (worker + 1) * each]"
        )
        + _LARGE,
    ),
    function(
        _FEED,
        "all the rest for the last worker",
        "failed",
        "share them out evenly",
        "shards = disk.files('shards')\neach = len(shards) // workers\n"
        "last = len(shards) if worker == workers - 1 else (worker + 1) * each\n"
        + _MINE.replace("disk.files('shards')[worker::workers]", "shards[worker * each : last]")
        + _LARGE,
    ),
    function(_FEED, "returns nothing", "error", "yield each sample", "print(disk.files('shards'))"),
    function(
        _FEED,
        "crash: no such file",
        "error",
        "There is no file",
        "yield disk.open('shard-0').read(sample_bytes)",
    ),
)
