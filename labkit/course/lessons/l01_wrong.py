"""Lesson 01: typical wrong functions and claims, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l01_cases import BREAK_EVEN as BREAK_EVEN_PARAMETERS
from labkit.course.wrong import Wrong, function, wrong

_AMDAHL = "amdahl_limit(workers, seconds)"
AMDAHL = (
    function(
        _AMDAHL,
        "best speed-up measured",
        "failed",
        "best speed-up in the table",
        "return seconds[0] / min(seconds)",
    ),
    function(
        _AMDAHL,
        "last row alone",
        "failed",
        "last row alone",
        """
        t = seconds[-1] / seconds[0]
        n = workers[-1]
        return (1 - 1 / n) / (t - 1 / n)
        """,
    ),
    function(
        _AMDAHL,
        "the share, not the limit",
        "failed",
        "serial share itself",
        """
        n = np.array(workers)
        t = np.array(seconds) / seconds[0]
        u = 1 - 1 / n
        return np.sum(u * (t - 1 / n)) / np.sum(u * u)
        """,
    ),
    function(_AMDAHL, "hard-coded result", "failed", "expected", "return 8.0"),
    function(_AMDAHL, "wrong type: a text", "failed", "a str", "return f'{seconds[0] / seconds[-1]:.1f}'"),
    function(
        _AMDAHL, "crash: index too large", "error", "IndexError in line", "return seconds[len(workers)]"
    ),
    function(
        _AMDAHL,
        "infinite loop",
        "error",
        "was stopped after",
        """
        n = workers[-1]
        while seconds[0] > 0:
            n = n * 2
        return n
        """,
    ),
    function(
        _AMDAHL, "prints and returns nothing", "failed", "returned None", "print(seconds[0] / seconds[-1])"
    ),
)

_BREAK = f"break_even({', '.join(BREAK_EVEN_PARAMETERS)})"
_GAIN = "gain = cpu_s_per_element - gpu_s_per_element - bytes_per_element / copy_bytes_per_s\n"
_NEVER = _GAIN + "if gain <= 0:\n    return None\n"
BREAK_EVEN = (
    function(
        _BREAK,
        "off by one: a tie counts as a win",
        "failed",
        "strictly faster is asked for",
        _NEVER + "return math.ceil((launch_s + copy_latency_s) / gain)",
    ),
    function(
        _BREAK,
        "copies forgotten",
        "failed",
        "the time that the copies take is missing",
        """
        gain = cpu_s_per_element - gpu_s_per_element
        return math.floor((launch_s + copy_latency_s) / gain) + 1 if gain > 0 else None
        """,
    ),
    function(
        _BREAK,
        "latency forgotten",
        "failed",
        "the latency of the copies is missing",
        _NEVER + "return math.floor(launch_s / gain) + 1",
    ),
    function(
        _BREAK,
        "wrong dtype: a fraction",
        "failed",
        "elements are counted",
        _NEVER + "return (launch_s + copy_latency_s) / gain",
    ),
    function(
        _BREAK,
        "never is not considered",
        "failed",
        "it never wins, return None",
        """
        copy = bytes_per_element / copy_bytes_per_s
        gain = cpu_s_per_element - gpu_s_per_element - copy
        return math.floor((launch_s + copy_latency_s) / abs(gain or 1.0)) + 1
        """,
    ),
    function(
        _BREAK,
        "infinite loop where the GPU never wins",
        "error",
        "was stopped after",
        _GAIN
        + """
n = 1
while n * gain <= launch_s + copy_latency_s:
    n += 1
return n
""",
    ),
    function(
        _BREAK,
        "crash: division by zero",
        "error",
        "ZeroDivisionError",
        _GAIN + "n = math.floor((launch_s + copy_latency_s) / gain) + 1\nreturn n if n > 0 else None",
    ),
    function(_BREAK, "hard-coded result", "failed", "expected", "return 10000"),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = f'claim = {{"verdict": {verdict}, "number": {number}, "unit": {unit}, "left_out": {left_out}}}'
    return wrong(label, "failed", says, source)


CLAIM = (
    _claim("believed", "not the best verdict", "'true'", "6912", "'lanes'", "'FLOP/s and bytes/s'"),
    _claim("plainly false", "GPUs are sometimes", "'false'", "6912", "'lanes'", "'FLOP/s and bytes/s'"),
    _claim("SMs counted", "each has 64 fp32 lanes", "'misleading'", "108", "'lanes'", "'FLOP/s and bytes/s'"),
    _claim(
        "wrong unit", "what an A100 has thousands", "'misleading'", "6912", "'cores'", "'FLOP/s and bytes/s'"
    ),
    _claim(
        "number as text", "a plain number", "'misleading'", "'6912 lanes'", "'lanes'", "'FLOP/s and bytes/s'"
    ),
    _claim("nothing left out", "instead of cores", "'misleading'", "6912", "'lanes'", "'the price'"),
    _claim("half empty", "nothing under 'left_out'", "'misleading'", "6912", "'lanes'", "None"),
)
