"""Lesson 01: typical wrong answers, each with the outcome and the words that its feedback has to contain."""

from __future__ import annotations

from textwrap import dedent

from labkit.course.lessons.l01_cases import BREAK_EVEN as BREAK_EVEN_PARAMETERS
from labkit.course.registry import Wrong


def _wrong(label: str, outcome: str, says: str, source: str) -> Wrong:
    return Wrong(label, dedent(source).strip() + "\n", outcome, says)


def _kernel(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    return _wrong(label, outcome, says, f"@cuda.jit\ndef {signature}:\n" + _indented(body))


def _function(signature: str, label: str, outcome: str, says: str, body: str) -> Wrong:
    return _wrong(label, outcome, says, f"def {signature}:\n" + _indented(body))


def _indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in dedent(body).strip().split("\n"))


_ADD = "vector_add(a, b, out)"
VECTOR_ADD = (
    _kernel(
        _ADD,
        "missing guard",
        "error",
        "a[1000], but a has shape (1000,)",
        "i = cuda.grid(1)\nout[i] = a[i] + b[i]",
    ),
    _kernel(
        _ADD,
        "off by one: guard with <=",
        "error",
        "a[1000], but a has shape (1000,)",
        "i = cuda.grid(1)\nif i <= out.size:\n    out[i] = a[i] + b[i]",
    ),
    _kernel(
        _ADD,
        "off by one: last element left out",
        "failed",
        "only the last element is untouched",
        "i = cuda.grid(1)\nif i < out.size - 1:\n    out[i] = a[i] + b[i]",
    ),
    _kernel(
        _ADD, "only the first element", "failed", "only the first element was written", "out[0] = a[0] + b[0]"
    ),
    _kernel(
        _ADD,
        "number within the block",
        "failed",
        "cuda.threadIdx.x starts at 0 in every block",
        "i = cuda.threadIdx.x\nif i < out.size:\n    out[i] = a[i] + b[i]",
    ),
    _kernel(
        _ADD,
        "hard-coded result",
        "failed",
        "every element has the same value",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = 3.0",
    ),
    _kernel(
        _ADD,
        "wrong dtype: whole numbers",
        "failed",
        "int() cuts them off",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = int(a[i] + b[i])",
    ),
    _kernel(
        _ADD,
        "writes to its input",
        "failed",
        "changed its input 'a'",
        "i = cuda.grid(1)\nif i < out.size:\n    a[i] += b[i]\n    out[i] = a[i]",
    ),
    _wrong(
        "no kernel",
        "error",
        "write @cuda.jit above its def",
        """
        def vector_add(a, b, out):
            out[:] = a + b
        """,
    ),
)

_SAXPY = "saxpy(a, x, y, out)"
SAXPY = (
    _kernel(
        _SAXPY,
        "no stride: one element a thread",
        "failed",
        "does your loop stride by cuda.gridsize(1)?",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = a * x[i] + y[i]",
    ),
    _kernel(
        _SAXPY,
        "wrong start: number within the block",
        "failed",
        "start at cuda.grid(1)",
        """
        for i in range(cuda.threadIdx.x, out.size, cuda.gridsize(1)):
            out[i] = a * x[i] + y[i]
        """,
    ),
    _kernel(
        _SAXPY,
        "wrong stride: one too many",
        "failed",
        "those that were never written",
        """
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1) + 1):
            out[i] = a * x[i] + y[i]
        """,
    ),
    _kernel(
        _SAXPY,
        "off by one: last element left out",
        "failed",
        "only the last element is untouched",
        "for i in range(cuda.grid(1), out.size - 1, cuda.gridsize(1)):\n    out[i] = a * x[i] + y[i]",
    ),
    _kernel(
        _SAXPY,
        "missing guard",
        "error",
        "reads x[2048], but x has shape (2048,)",
        """
        i = cuda.grid(1)
        for step in range(out.size // cuda.gridsize(1) + 1):
            out[i] = a * x[i] + y[i]
            i += cuda.gridsize(1)
        """,
    ),
    _kernel(
        _SAXPY,
        "infinite loop",
        "error",
        "loop",
        """
        i = cuda.grid(1)
        while i < out.size:
            out[i] = a * x[i] + y[i]
        """,
    ),
    _kernel(
        _SAXPY,
        "x and y swapped",
        "failed",
        "x and y changed places",
        "for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):\n    out[i] = a * y[i] + x[i]",
    ),
    _kernel(_SAXPY, "only the first element", "failed", "only the first element", "out[0] = a * x[0] + y[0]"),
)

_BLUR = "blur(image, out)"
_NINE = """
    total = 0.0
    for dr in range(-1, 2):
        for dc in range(-1, 2):
            {read}
    out[row, col] = total / 9
"""
_CLAMPED = """r = min(max(row + dr, 0), image.shape[0] - 1)
            c = min(max(col + dc, 0), image.shape[1] - 1)
            total += image[r, c]"""
_COORDINATES = "row, col = cuda.grid(2)\n"
_GUARD = "if row < image.shape[0] and col < image.shape[1]:"
BLUR = (
    _kernel(
        _BLUR,
        "no halo: edge left out",
        "failed",
        "only pixels at the edge were not written",
        _COORDINATES
        + "if 0 < row < image.shape[0] - 1 and 0 < col < image.shape[1] - 1:"
        + _NINE.format(read="total += image[row + dr, col + dc]"),
    ),
    _kernel(
        _BLUR,
        "halo outside the image",
        "error",
        "reads image[",
        _COORDINATES + _GUARD + _NINE.format(read="total += image[row + dr, col + dc]"),
    ),
    _kernel(
        _BLUR,
        "halo of zeros",
        "failed",
        "only pixels at the edge are wrong",
        _COORDINATES
        + _GUARD
        + _NINE.format(
            read="r = row + dr\n            c = col + dc\n"
            "            if 0 <= r < image.shape[0] and 0 <= c < image.shape[1]:\n                total += "
            "image[r, c]"
        ),
    ),
    _kernel(
        _BLUR,
        "missing guard",
        "error",
        "but out has shape (20, 37)",
        _COORDINATES + "if True:" + _NINE.format(read=_CLAMPED),
    ),
    _kernel(
        _BLUR,
        "sides swapped",
        "error",
        "writes out[20, 0], but out has shape (20, 37)",
        _COORDINATES + "if row < image.shape[1] and col < image.shape[0]:" + _NINE.format(read=_CLAMPED),
    ),
    _kernel(
        _BLUR,
        "sum instead of mean",
        "failed",
        "nine times too much",
        _COORDINATES + _GUARD + _NINE.format(read=_CLAMPED).replace(" / 9", ""),
    ),
    _kernel(
        _BLUR,
        "image copied",
        "failed",
        "came out unchanged",
        _COORDINATES + _GUARD + "\n    out[row, col] = image[row, col]",
    ),
    _kernel(
        _BLUR,
        "off by one: only one side of neighbours",
        "failed",
        "expected",
        _COORDINATES + _GUARD + _NINE.format(read=_CLAMPED).replace("range(-1, 2)", "range(-1, 1)"),
    ),
)

_AMDAHL = "amdahl_limit(workers, seconds)"
AMDAHL = (
    _function(
        _AMDAHL,
        "best speed-up measured",
        "failed",
        "best speed-up in the table",
        "return seconds[0] / min(seconds)",
    ),
    _function(
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
    _function(
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
    _function(_AMDAHL, "hard-coded result", "failed", "expected", "return 8.0"),
    _function(_AMDAHL, "wrong type: a text", "failed", "a str", "return f'{seconds[0] / seconds[-1]:.1f}'"),
    _function(
        _AMDAHL, "crash: index too large", "error", "IndexError in line", "return seconds[len(workers)]"
    ),
    _function(
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
    _function(
        _AMDAHL, "prints and returns nothing", "failed", "returned None", "print(seconds[0] / seconds[-1])"
    ),
)

_BREAK = f"break_even({', '.join(BREAK_EVEN_PARAMETERS)})"
_GAIN = "gain = cpu_s_per_element - gpu_s_per_element - bytes_per_element / copy_bytes_per_s\n"
_NEVER = _GAIN + "if gain <= 0:\n    return None\n"
BREAK_EVEN = (
    _function(
        _BREAK,
        "off by one: a tie counts as a win",
        "failed",
        "strictly faster is asked for",
        _NEVER + "return math.ceil((launch_s + copy_latency_s) / gain)",
    ),
    _function(
        _BREAK,
        "copies forgotten",
        "failed",
        "the time that the copies take is missing",
        """
        gain = cpu_s_per_element - gpu_s_per_element
        return math.floor((launch_s + copy_latency_s) / gain) + 1 if gain > 0 else None
        """,
    ),
    _function(
        _BREAK,
        "latency forgotten",
        "failed",
        "the latency of the copies is missing",
        _NEVER + "return math.floor(launch_s / gain) + 1",
    ),
    _function(
        _BREAK,
        "wrong dtype: a fraction",
        "failed",
        "elements are counted",
        _NEVER + "return (launch_s + copy_latency_s) / gain",
    ),
    _function(
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
    _function(
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
    _function(
        _BREAK,
        "crash: division by zero",
        "error",
        "ZeroDivisionError",
        _GAIN + "n = math.floor((launch_s + copy_latency_s) / gain) + 1\nreturn n if n > 0 else None",
    ),
    _function(_BREAK, "hard-coded result", "failed", "expected", "return 10000"),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = f'claim = {{"verdict": {verdict}, "number": {number}, "unit": {unit}, "left_out": {left_out}}}'
    return _wrong(label, "failed", says, source)


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
