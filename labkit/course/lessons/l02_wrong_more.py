"""Lesson 02: typical wrong answers to the claim and the stretch exercises, with words their feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, kernel, wrong


def _claim(label: str, says: str, **changes: object) -> Wrong:
    right = {
        "verdict": "mostly true",
        "number": 2.039,
        "unit": "TB/s",
        "left_out": "which cards are compared",
    }
    return wrong(label, "failed", says, f"claim = { ({**right, **changes})!r}")


CLAIM = (
    _claim("taken at its word", "'true' is not the best verdict", verdict="true"),
    _claim("thrown out", "the order of magnitude is right", verdict="false"),
    _claim("the figure of the 40 GB card", "whose memory is HBM2", number=1.555),
    _claim("the claim's own figure", "whose memory is HBM2", number=1.6),
    _claim("bits instead of bytes", "bandwidth is asked for", unit="Tbit/s"),
    _claim("nothing left out", "a kind of memory has no bandwidth", left_out="nothing much"),
    wrong(
        "half filled in",
        "failed",
        "nothing under 'number'",
        "claim = {'verdict': 'mostly true', 'number': None}",
    ),
)

_HISTOGRAM = "histogram(values, counts)"
_PRIVATE = """own = cuda.shared.array(256, np.int32)
for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
    own[k] = 0
cuda.syncthreads()  # zero
for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
    cuda.atomic.add(own, values[i], 1)
cuda.syncthreads()  # counted
for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
    cuda.atomic.add(counts, k, own[k])
"""
HISTOGRAM = (
    kernel(
        _HISTOGRAM,
        "straight into global memory",
        "failed",
        "20,000 atomic updates of global memory, target 2,048",
        "for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):\n    cuda.atomic.add(counts, values[i], 1)",
    ),
    kernel(
        _HISTOGRAM,
        "missing barrier: zero",
        "failed",
        "Nothing decides which comes first",
        _PRIVATE.replace("cuda.syncthreads()  # zero", "pass"),
    ),
    kernel(
        _HISTOGRAM,
        "missing barrier: counted",
        "failed",
        "Nothing decides which comes first",
        _PRIVATE.replace("cuda.syncthreads()  # counted", "pass"),
    ),
    kernel(
        _HISTOGRAM,
        "no atomic in shared memory",
        "failed",
        "two threads that add to one bin need cuda.atomic.add",
        _PRIVATE.replace("cuda.atomic.add(own, values[i], 1)", "own[values[i]] += 1"),
    ),
    kernel(
        _HISTOGRAM,
        "not set to zero",
        "failed",
        "which no thread has written yet",
        _PRIVATE.replace("    own[k] = 0\n", "    pass\n"),
    ),
    kernel(
        _HISTOGRAM,
        "every block counts everything",
        "failed",
        "counted once by each block",
        _PRIVATE.replace("cuda.grid(1)", "cuda.threadIdx.x").replace("cuda.gridsize(1)", "cuda.blockDim.x"),
    ),
    kernel(
        _HISTOGRAM,
        "the last block overwrites",
        "failed",
        "expected",
        _PRIVATE.replace("cuda.atomic.add(counts, k, own[k])", "counts[k] = own[k]"),
    ),
)

_SHUFFLE = "warp_sums(x, out)"
_SUM = """i = cuda.grid(1)
value = x[i] if i < x.size else np.float32(0)
step = 16
while step > 0:
    value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    step //= 2
if i % 32 == 0 and i < x.size:
    out[i // 32] = value
"""
SHUFFLE = (
    kernel(
        _SHUFFLE,
        "lane 0 reads everything",
        "failed",
        "load requests, target 16",
        """
        i = cuda.grid(1)
        if i % 32 == 0 and i < x.size:
            total = np.float32(0)
            for k in range(i, min(i + 32, x.size)):
                total += x[k]
            out[i // 32] = total
        """,
    ),
    kernel(
        _SHUFFLE,
        "lanes beyond the end sent home",
        "failed",
        "does not take part",
        "i = cuda.grid(1)\nif i >= x.size:\n    return\n" + _SUM.split("\n", 1)[1],
    ),
    kernel(_SHUFFLE, "every lane writes", "failed", "writes as well", _SUM.replace("i % 32 == 0 and ", "")),
    kernel(
        _SHUFFLE,
        "last level missing",
        "failed",
        "the step 1 is missing",
        _SUM.replace("while step > 0", "while step > 1"),
    ),
    kernel(
        _SHUFFLE,
        "one step only",
        "failed",
        "the sum of two lanes",
        "i = cuda.grid(1)\nvalue = x[i] if i < x.size else np.float32(0)\n"
        "value += cuda.shfl_down_sync(0xFFFFFFFF, value, 1)\nif i % 32 == 0 and i < x.size:\n    out[i // 32] = value",
    ),
    kernel(
        _SHUFFLE,
        "shared memory",
        "failed",
        "requests of shared or local memory, target 0",
        """
        s = cuda.shared.array(128, np.float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        s[t] = x[i] if i < x.size else np.float32(0)
        cuda.syncthreads()
        if t % 32 == 0 and i < x.size:
            total = np.float32(0)
            for k in range(t, t + 32):
                total += s[k]
            out[i // 32] = total
        """,
    ),
    kernel(
        _SHUFFLE,
        "guard forgotten",
        "error",
        "x has shape (100,)",
        _SUM.replace(" if i < x.size else np.float32(0)", ""),
    ),
)


def _intensity(label: str, says: str, **changes: object) -> Wrong:
    right = {"saxpy": 1 / 6, "blur": 9 / 8, "matmul": 42.7}
    return wrong(label, "failed", says, f"intensity = { ({**right, **changes})!r}")


ROOFLINE = (
    _intensity("the write forgotten", "out is written as well", saxpy=2 / 8),
    _intensity("a fused operation counted once", "a multiplication and an addition: 2", saxpy=1 / 12),
    _intensity("neighbours fetched nine times", "neighbours share their pixels", blur=9 / 40),
    _intensity("elements instead of bytes", "count bytes, not elements", matmul=170.7),
    _intensity("no reuse in matmul", "each matrix is moved once", matmul=0.25),
    _intensity("bytes a FLOP", "the other way round", saxpy=6.0),
    _intensity("a text", "it should be a number", blur="9/8"),
    wrong(
        "half filled in", "failed", "is None", "intensity = {'saxpy': 1 / 6, 'blur': None, 'matmul': None}"
    ),
)
