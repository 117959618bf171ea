"""Lesson 01: typical wrong kernels, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import kernel, wrong

_ADD = "vector_add(a, b, out)"
VECTOR_ADD = (
    kernel(
        _ADD,
        "one thread does it all",
        "failed",
        "128 requests to store 128 elements",
        "if cuda.grid(1) == 0:\n    for i in range(out.size):\n        out[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD,
        "every thread does everything",
        "failed",
        "or every thread does everything",
        "for i in range(out.size):\n    out[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD,
        "missing guard",
        "error",
        "a[1000], but a has shape (1000,)",
        "i = cuda.grid(1)\nout[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD,
        "off by one: guard with <=",
        "error",
        "a[1000], but a has shape (1000,)",
        "i = cuda.grid(1)\nif i <= out.size:\n    out[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD,
        "off by one: last element left out",
        "failed",
        "only the last element is untouched",
        "i = cuda.grid(1)\nif i < out.size - 1:\n    out[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD, "only the first element", "failed", "only the first element was written", "out[0] = a[0] + b[0]"
    ),
    kernel(
        _ADD,
        "number within the block",
        "failed",
        "cuda.threadIdx.x starts at 0 in every block",
        "i = cuda.threadIdx.x\nif i < out.size:\n    out[i] = a[i] + b[i]",
    ),
    kernel(
        _ADD,
        "hard-coded result",
        "failed",
        "every element has the same value",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = 3.0",
    ),
    kernel(
        _ADD,
        "wrong dtype: whole numbers",
        "failed",
        "int() cuts them off",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = int(a[i] + b[i])",
    ),
    kernel(
        _ADD,
        "writes to its input",
        "failed",
        "changed its input 'a'",
        "i = cuda.grid(1)\nif i < out.size:\n    a[i] += b[i]\n    out[i] = a[i]",
    ),
    wrong(
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
    kernel(
        _SAXPY,
        "one thread does it all",
        "failed",
        "2,048 requests to store 2,048 elements",
        "if cuda.grid(1) == 0:\n    for i in range(out.size):\n        out[i] = a * x[i] + y[i]",
    ),
    kernel(
        _SAXPY,
        "no stride: one element a thread",
        "failed",
        "does your loop stride by cuda.gridsize(1)?",
        "i = cuda.grid(1)\nif i < out.size:\n    out[i] = a * x[i] + y[i]",
    ),
    kernel(
        _SAXPY,
        "wrong start: number within the block",
        "failed",
        "start at cuda.grid(1)",
        """
        for i in range(cuda.threadIdx.x, out.size, cuda.gridsize(1)):
            out[i] = a * x[i] + y[i]
        """,
    ),
    kernel(
        _SAXPY,
        "wrong stride: one too many",
        "failed",
        "those that were never written",
        """
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1) + 1):
            out[i] = a * x[i] + y[i]
        """,
    ),
    kernel(
        _SAXPY,
        "off by one: last element left out",
        "failed",
        "only the last element is untouched",
        "for i in range(cuda.grid(1), out.size - 1, cuda.gridsize(1)):\n    out[i] = a * x[i] + y[i]",
    ),
    kernel(
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
    kernel(
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
    kernel(
        _SAXPY,
        "x and y swapped",
        "failed",
        "x and y changed places",
        "for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):\n    out[i] = a * y[i] + x[i]",
    ),
    kernel(_SAXPY, "only the first element", "failed", "only the first element", "out[0] = a * x[0] + y[0]"),
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
    kernel(
        _BLUR,
        "one thread does it all",
        "failed",
        "1,024 requests to store 1,024 elements",
        "x, y = cuda.grid(2)\n"
        "for pixel in range(image.size if x == y == 0 else 0):\n"
        "    row, col = pixel // image.shape[1], pixel % image.shape[1]" + _NINE.format(read=_CLAMPED),
    ),
    kernel(
        _BLUR,
        "no halo: edge left out",
        "failed",
        "only pixels at the edge were not written",
        _COORDINATES
        + "if 0 < row < image.shape[0] - 1 and 0 < col < image.shape[1] - 1:"
        + _NINE.format(read="total += image[row + dr, col + dc]"),
    ),
    kernel(
        _BLUR,
        "halo outside the image",
        "error",
        "reads image[",
        _COORDINATES + _GUARD + _NINE.format(read="total += image[row + dr, col + dc]"),
    ),
    kernel(
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
    kernel(
        _BLUR,
        "missing guard",
        "error",
        "but out has shape (20, 37)",
        _COORDINATES + "if True:" + _NINE.format(read=_CLAMPED),
    ),
    kernel(
        _BLUR,
        "sides swapped",
        "error",
        "writes out[20, 0], but out has shape (20, 37)",
        _COORDINATES + "if row < image.shape[1] and col < image.shape[0]:" + _NINE.format(read=_CLAMPED),
    ),
    kernel(
        _BLUR,
        "sum instead of mean",
        "failed",
        "nine times too much",
        _COORDINATES + _GUARD + _NINE.format(read=_CLAMPED).replace(" / 9", ""),
    ),
    kernel(
        _BLUR,
        "image copied",
        "failed",
        "came out unchanged",
        _COORDINATES + _GUARD + "\n    out[row, col] = image[row, col]",
    ),
    kernel(
        _BLUR,
        "off by one: only one side of neighbours",
        "failed",
        "expected",
        _COORDINATES + _GUARD + _NINE.format(read=_CLAMPED).replace("range(-1, 2)", "range(-1, 1)"),
    ),
)
