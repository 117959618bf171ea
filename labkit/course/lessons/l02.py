"""Lesson 02, memory: its exercises, with tasks and hints; l02_why has what is said about mistakes."""

from __future__ import annotations

from labkit.course.checks import DataCheck, KernelCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l02_cases as cases
from labkit.course.lessons import l02_why as why
from labkit.course.lessons import l02_wrong as wrong
from labkit.course.lessons import l02_wrong_more as more
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="02.transpose",
        title="Transpose, with rows on both sides",
        function="transpose",
        kind="core",
        minutes=20,
        task=(
            "Write a kernel transpose(image, out): out[column, row] = image[row, column], float32. A block has "
            "32 x 32 threads and takes one tile of the image. Reads and writes of global memory have to go along "
            "rows: 4 sectors a request, both ways."
        ),
        hints=(
            "One of the two goes down a column as long as each thread writes what it has read. Let a thread write "
            "what another thread of its block has read: put the tile into shared memory first.",
            "After cuda.syncthreads() the same threads take new roles: thread (tx, ty) writes row "
            "cuda.blockIdx.x * 32 + ty, column cuda.blockIdx.y * 32 + tx of out.",
            "That element came from tile[tx, ty]. Guard the read with image's sides and the write with out's, and keep "
            "the barrier outside both ifs.",
        ),
        praise="Rows on both sides, and every ragged edge is right.",
        plan=KernelCheck(("image", "out"), cases.transpose, why.transpose),
        wrong=wrong.TRANSPOSE,
    ),
    Exercise(
        name="02.padding",
        title="Turn the photograph without a bank conflict",
        function="rotate",
        kind="core",
        minutes=15,
        task=(
            "Write a kernel rotate(image, out) that turns a float32 image by 90 degrees clockwise: its first row "
            "becomes the last column. Blocks of 32 x 32 threads as before, 4 sectors a request both ways, and no "
            "bank conflict."
        ),
        hints=(
            "Start from your transpose. Turning clockwise is out[column, rows - 1 - row] = image[row, column].",
            "A tile of 32 x 32 words read down a column stays in one bank. How wide would its rows have to be for a "
            "column to visit all 32 banks?",
            "cuda.shared.array((32, 33), np.float32): the last word of each row is never used. The indices stay as "
            "they are.",
        ),
        praise="Turned, with rows on both sides and every bank used once.",
        plan=KernelCheck(("image", "out"), cases.rotate, why.rotate),
        wrong=wrong.PADDING,
    ),
    Exercise(
        name="02.matmul",
        title="A matrix product that fetches less",
        function="matmul",
        kind="core",
        minutes=30,
        task=(
            "Write a kernel matmul(a, b, c): c = a @ b, float32, any sides. A block has 16 x 16 threads for 16 x 16 "
            "elements of c, and brings tiles of a and b into shared memory, so that a sixteenth of the values is "
            "loaded from global memory."
        ),
        hints=(
            "Walk along a's columns and b's rows in steps of 16. At each step the 256 threads bring one tile of a and "
            "one of b, each thread one element of either.",
            "Two barriers a step: none may use a tile before all have brought their elements, and none may overwrite "
            "it before all have used it.",
            "At the edges put 0.0 into the tile where a or b has nothing; threads without an element of c still "
            "have to help bring tiles and reach both barriers.",
        ),
        praise="Right for every shape, and a sixteenth of the loads.",
        plan=KernelCheck(("a", "b", "c"), cases.matmul, why.matmul),
        wrong=wrong.MATMUL,
    ),
    Exercise(
        name="02.reduction",
        title="A tree whose warps agree",
        function="block_sums",
        kind="core",
        minutes=20,
        task=(
            "Write a kernel block_sums(x, out): out[b] is the sum of the elements of block b, 256 threads a block, "
            "one element a thread; the last block may have fewer. Add in a tree in shared memory, without atomics "
            "and bank conflicts, and with at most 6 divergent branches a block."
        ),
        hints=(
            "Each thread puts its element (0.0 beyond the end) into shared memory. Then half of them add, then a "
            "quarter, until one is left; between levels, everybody waits.",
            "Which half? If every other thread adds, all warps have lanes that wait. If the first half adds, whole "
            "warps are done.",
            "step goes 128, 64, ... 1; if t < step: s[t] += s[t + step]; then cuda.syncthreads(), outside the if.",
        ),
        praise="Every sum is right, and warps part only inside the last one.",
        plan=KernelCheck(("x", "out"), cases.reduction, why.reduction),
        wrong=wrong.REDUCTION,
    ),
    Exercise(
        name="02.claim",
        title="1.6 TB/s?",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'HBM2e gives 1.6 TB/s, more than twice GDDR6.' Fill the dictionary claim: verdict (true, "
            "mostly true, misleading, false or unsourced), number and unit (what the HBM2e of an A100 80 GB gives), "
            "left_out (what both figures depend on)."
        ),
        hints=(
            "labkit.hardware.gpu('A100_40_SXM4') and labkit.hardware.gpu('A100_80_SXM4') know their bandwidths.",
            "1.6 TB/s is nearly the A100 with 40 GB, and that has HBM2. The one with 80 GB has HBM2e.",
            "Against large GDDR6 and GDDR6X cards it is 1.5 to 2.6 times, against an L4 5.2: the suggestion is right, "
            "the figure belongs to another memory.",
        ),
        praise="Yes: right in substance, and the figure belongs to a card, not to a kind of memory.",
        plan=DataCheck(why.claim, claim_begun),
        wrong=more.CLAIM,
    ),
    Exercise(
        name="02.histogram",
        title="A histogram for each block",
        function="histogram",
        kind="stretch",
        minutes=20,
        task=(
            "Write a kernel histogram(values, counts): adds to counts, int32 (256,), how often each uint8 value "
            "occurs, for any launch shape. Each block counts in shared memory and adds its 256 sums to counts at the "
            "end: at most 256 atomic updates of global memory a block."
        ),
        hints=(
            "Three phases with a barrier between them: set the block's own counts to zero, count, add up.",
            "A block may have fewer than 256 threads: for k in range(cuda.threadIdx.x, 256, cuda.blockDim.x).",
            "cuda.atomic.add(own, values[i], 1) works in shared memory too, and is needed there as well.",
        ),
        praise="Every value is counted once, and global memory is hardly asked.",
        plan=KernelCheck(("values", "counts"), cases.histogram, why.histogram),
        wrong=more.HISTOGRAM,
    ),
    Exercise(
        name="02.shuffle",
        title="A sum without memory",
        function="warp_sums",
        kind="stretch",
        minutes=15,
        task=(
            "Write a kernel warp_sums(x, out): out[w] is the sum of the 32 elements of warp w, counted through the "
            "grid; the last warp may have fewer. Use cuda.shfl_down_sync, no shared memory, no atomics, one load a "
            "warp."
        ),
        hints=(
            "cuda.shfl_down_sync(0xFFFFFFFF, value, step) returns the value of the lane that is step further on.",
            "value += shfl_down_sync(..., 16), then 8, 4, 2, 1: after that lane 0 has the sum.",
            "All 32 lanes have to take part: give lanes beyond the end 0.0 instead of sending them home.",
        ),
        praise="Five shuffles a warp, and nothing but registers.",
        plan=KernelCheck(("x", "out"), cases.shuffle, why.shuffle),
        wrong=more.SHUFFLE,
    ),
    Exercise(
        name="02.roofline",
        title="Three kernels on the roofline",
        function="intensity",
        kind="stretch",
        minutes=10,
        task=(
            "Fill the dictionary intensity with FLOP for each byte of DRAM traffic, within 10 %: 'saxpy' (out = a * x "
            "+ y, float32), 'blur' (the mean of 3 x 3 float32 pixels, each pixel fetched once thanks to the cache), "
            "'matmul' (two 256 x 256 float32 matrices, each matrix moved once)."
        ),
        hints=(
            "For each element: how many additions and multiplications, how many bytes read, how many written?",
            "blur adds nine pixels (8 additions) and multiplies once; from DRAM it reads each pixel once.",
            "matmul of side n: 2 n^3 operations, and three matrices of 4 n^2 bytes.",
        ),
        praise="All three within 10 %: two far left of any card's ridge, and the product right of an A100's.",
        plan=DataCheck(why.roofline, cases.intensity_begun),
        wrong=more.ROOFLINE,
    ),
)
