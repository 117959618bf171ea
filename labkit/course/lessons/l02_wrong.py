"""Lesson 02: typical wrong kernels of the core exercises, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import kernel, wrong

_RACE = "Nothing decides which comes first: put cuda.syncthreads() between them"
_TRANSPOSE = "transpose(image, out)"
_TILED = """tile = cuda.shared.array((32, {width}), np.float32)
tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
if top + ty < image.shape[0] and left + tx < image.shape[1]:
    tile[ty, tx] = image[top + ty, left + tx]
{barrier}
if left + ty < out.shape[0] and top + tx < out.shape[1]:
    {write}
"""


def _tiled(write: str, width: int = 32, barrier: str = "cuda.syncthreads()") -> str:
    return _TILED.format(write=write, width=width, barrier=barrier)


TRANSPOSE = (
    kernel(
        _TRANSPOSE,
        "no tile: writes go down columns",
        "failed",
        "32 sectors a store request, target 4",
        "column, row = cuda.grid(2)\nif row < image.shape[0] and column < image.shape[1]:\n"
        "    out[column, row] = image[row, column]",
    ),
    kernel(
        _TRANSPOSE,
        "no tile: reads go down columns",
        "failed",
        "32 sectors a load request, target 4",
        "row, column = cuda.blockIdx.y * 32 + cuda.threadIdx.x, cuda.blockIdx.x * 32 + cuda.threadIdx.y\n"
        "if row < image.shape[0] and column < image.shape[1]:\n    out[column, row] = image[row, column]",
    ),
    kernel(
        _TRANSPOSE,
        "tile read and written the old way",
        "failed",
        "32 sectors a store request, target 4",
        _TILED.format(
            width=32, barrier="cuda.syncthreads()", write="out[left + tx, top + ty] = tile[ty, tx]"
        ).replace(
            "left + ty < out.shape[0] and top + tx < out.shape[1]",
            "left + tx < out.shape[0] and top + ty < out.shape[1]",
        ),
    ),
    kernel(
        _TRANSPOSE,
        "missing barrier",
        "failed",
        _RACE,
        _tiled("out[left + ty, top + tx] = tile[tx, ty]", barrier="pass"),
    ),
    kernel(
        _TRANSPOSE,
        "tile not turned",
        "failed",
        "expected",
        _tiled("out[left + ty, top + tx] = tile[ty, tx]"),
    ),
    kernel(
        _TRANSPOSE,
        "barrier for some threads only",
        "error",
        "syncthreads",
        _tiled("out[left + ty, top + tx] = tile[tx, ty]", barrier="    cuda.syncthreads()"),
    ),
    kernel(
        _TRANSPOSE,
        "sides not exchanged in the guard",
        "error",
        "out has shape",
        _tiled("out[left + ty, top + tx] = tile[tx, ty]").replace(
            "left + ty < out.shape[0] and top + tx < out.shape[1]", "top + tx < out.shape[0]"
        ),
    ),
    kernel(
        _TRANSPOSE,
        "copied, not turned",
        "error",
        "out has shape",
        "column, row = cuda.grid(2)\nif row < image.shape[0] and column < image.shape[1]:\n"
        "    out[row, column] = image[row, column]",
    ),
)

_ROTATE = "rotate(image, out)"
_RIGHT = "out[left + ty, image.shape[0] - 1 - top - tx] = tile[tx, ty]"
PADDING = (
    kernel(_ROTATE, "no padding", "failed", "bank conflicts, target 0", _tiled(_RIGHT)),
    kernel(_ROTATE, "padded by two words", "failed", "bank conflicts, target 0", _tiled(_RIGHT, 34)),
    kernel(
        _ROTATE,
        "padded the wrong side",
        "failed",
        "rows of 33 words",
        _tiled(_RIGHT).replace("(32, 32)", "(33, 32)"),
    ),
    kernel(
        _ROTATE,
        "counterclockwise",
        "failed",
        "turned the other way",
        _tiled("out[image.shape[1] - 1 - left - ty, top + tx] = tile[tx, ty]", 33),
    ),
    kernel(
        _ROTATE,
        "transposed only",
        "failed",
        "this is the transpose",
        _tiled("out[left + ty, top + tx] = tile[tx, ty]", 33),
    ),
    kernel(_ROTATE, "missing barrier", "failed", _RACE, _tiled(_RIGHT, 33, "pass")),
    kernel(
        _ROTATE,
        "no tile",
        "failed",
        "32 sectors a store request, target 4",
        "column, row = cuda.grid(2)\nif row < image.shape[0] and column < image.shape[1]:\n"
        "    out[column, image.shape[0] - 1 - row] = image[row, column]",
    ),
    kernel(
        _ROTATE,
        "one too far",
        "error",
        "out has shape",
        "column, row = cuda.grid(2)\nif row < image.shape[0] and column < image.shape[1]:\n"
        "    out[column, image.shape[0] - row] = image[row, column]",
    ),
)

_MATMUL = "matmul(a, b, c)"
_TILES = """tile_a = cuda.shared.array((16, 16), np.float32)
tile_b = cuda.shared.array((16, 16), np.float32)
tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
j, i = cuda.grid(2)
total = np.float32(0)
for first in range(0, a.shape[1], 16):
    tile_a[ty, tx] = 0
    tile_b[ty, tx] = 0
    if i < a.shape[0] and first + tx < a.shape[1]:
        tile_a[ty, tx] = a[i, first + tx]
    if first + ty < b.shape[0] and j < b.shape[1]:
        tile_b[ty, tx] = b[first + ty, j]
    cuda.syncthreads()  # filled
    for k in range(16):
        total += tile_a[ty, k] * tile_b[k, tx]
    cuda.syncthreads()  # used
if i < c.shape[0] and j < c.shape[1]:
    c[i, j] = total
"""
MATMUL = (
    kernel(
        _MATMUL,
        "no tiles",
        "failed",
        "sectors loaded from global memory, target 4,096",
        "j, i = cuda.grid(2)\nif i < c.shape[0] and j < c.shape[1]:\n    total = np.float32(0)\n"
        "    for k in range(a.shape[1]):\n        total += a[i, k] * b[k, j]\n    c[i, j] = total",
    ),
    kernel(
        _MATMUL,
        "missing barrier: filled",
        "failed",
        _RACE,
        _TILES.replace("cuda.syncthreads()  # filled", "pass"),
    ),
    kernel(
        _MATMUL,
        "missing barrier: used",
        "failed",
        _RACE,
        _TILES.replace("cuda.syncthreads()  # used", "pass"),
    ),
    kernel(
        _MATMUL,
        "tile of b across",
        "failed",
        "goes down a column of b",
        _TILES.replace("tile_b[k, tx]", "tile_b[tx, k]"),
    ),
    kernel(
        _MATMUL,
        "threads outside c sent home early",
        "failed",
        "expected",
        _TILES.replace(
            "total = np.float32(0)",
            "total = np.float32(0)\nif i >= c.shape[0] or j >= c.shape[1]:\n    return",
        ),
    ),
    kernel(
        _MATMUL,
        "no zeros at the edge",
        "failed",
        "beyond a or b, its elements have to be zero",
        _TILES.replace("    tile_a[ty, tx] = 0\n    tile_b[ty, tx] = 0\n", ""),
    ),
    kernel(
        _MATMUL,
        "no guard at the edge",
        "error",
        "a has shape (20, 33)",
        _TILES.replace("if i < a.shape[0] and first + tx < a.shape[1]:", "if True:"),
    ),
    kernel(
        _MATMUL,
        "total starts anew with every tile",
        "failed",
        "the last tiles alone",
        _TILES.replace("    tile_a[ty, tx] = 0\n", "    total = np.float32(0)\n    tile_a[ty, tx] = 0\n"),
    ),
)

_SUMS = "block_sums(x, out)"
_START = """s = cuda.shared.array(256, np.float32)
t = cuda.threadIdx.x
i = cuda.grid(1)
s[t] = x[i] if i < x.size else np.float32(0)
cuda.syncthreads()
"""
_END = "if t == 0:\n    out[cuda.blockIdx.x] = s[0]"
_TREE = """step = 128
while step > 0:
    if t < step:
        s[t] += s[t + step]
    cuda.syncthreads()
    step //= 2
"""
REDUCTION = (
    kernel(
        _SUMS,
        "every other thread adds",
        "failed",
        "divergent branches, target 24",
        _START + "step = 1\nwhile step < 256:\n    if t % (2 * step) == 0:\n        s[t] += s[t + step]\n"
        "    cuda.syncthreads()\n    step *= 2\n" + _END,
    ),
    kernel(
        _SUMS,
        "first threads add words far apart",
        "failed",
        "bank conflicts, target 0",
        _START
        + "step = 1\nwhile step < 256:\n    k = 2 * step * t\n    if k < 256:\n        s[k] += s[k + step]\n"
        "    cuda.syncthreads()\n    step *= 2\n" + _END,
    ),
    kernel(
        _SUMS,
        "one thread adds all",
        "failed",
        "shared load requests, target 100",
        _START + "total = np.float32(0)\nif t == 0:\n    for k in range(256):\n        total += s[k]\n"
        "    out[cuda.blockIdx.x] = total",
    ),
    kernel(
        _SUMS,
        "atomic additions",
        "failed",
        "atomic requests, target 0",
        """
        s = cuda.shared.array(1, np.float32)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        if t == 0:
            s[0] = 0
        cuda.syncthreads()
        if i < x.size:
            cuda.atomic.add(s, 0, x[i])
        cuda.syncthreads()
        if t == 0:
            out[cuda.blockIdx.x] = s[0]
        """,
    ),
    kernel(
        _SUMS,
        "missing barrier between levels",
        "failed",
        _RACE,
        _START + _TREE.replace("    cuda.syncthreads()\n", "") + _END,
    ),
    kernel(
        _SUMS,
        "barrier inside the if",
        "error",
        "syncthreads",
        _START + _TREE.replace("    cuda.syncthreads()", "        cuda.syncthreads()") + _END,
    ),
    kernel(
        _SUMS,
        "last level missing",
        "failed",
        "the last level of the tree is missing",
        _START + _TREE.replace("while step > 0", "while step > 1") + _END,
    ),
    kernel(
        _SUMS,
        "no guard",
        "error",
        "x has shape (1000,)",
        _START.replace(" if i < x.size else np.float32(0)", "") + _TREE + _END,
    ),
    wrong(
        "no kernel",
        "error",
        "write @cuda.jit above its def",
        """
        def block_sums(x, out):
            out[:] = x.reshape(-1, 256).sum(axis=1)
        """,
    ),
)
