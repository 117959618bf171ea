"""Lesson 01, CPU and GPU: its exercises, with tasks and hints; l01_why has what is said about mistakes."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck, KernelCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l01_cases as cases
from labkit.course.lessons import l01_why as why
from labkit.course.lessons import l01_wrong as wrong
from labkit.course.lessons import l01_wrong_kernels as kernels
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="01.vector_add",
        title="Add two vectors, one element a thread",
        function="vector_add",
        kind="core",
        minutes=10,
        task=(
            "Write a kernel vector_add(a, b, out): each thread adds one pair of elements. The last block "
            "may have more threads than there are elements left; those threads must do nothing."
        ),
        hints=(
            "cuda.grid(1) is this thread's number in the whole grid, counted from 0.",
            "A block always starts whole: with 1000 elements and blocks of 128, 24 threads have no element. "
            "Compare the thread's number with out.size before you touch any array.",
            "The body is three lines: i = cuda.grid(1), then if i < out.size, then out[i] = a[i] + b[i].",
        ),
        praise="Every element is right, and no thread reached past the end.",
        plan=KernelCheck(("a", "b", "out"), cases.vector_add, why.vector_add),
        wrong=kernels.VECTOR_ADD,
    ),
    Exercise(
        name="01.saxpy",
        title="a times x plus y, for any number of threads",
        function="saxpy",
        kind="core",
        minutes=15,
        task=(
            "Write a kernel saxpy(a, x, y, out) that computes out = a * x + y however many threads are "
            "launched, even one: each thread starts at its own number and moves on by the number of "
            "threads in the grid."
        ),
        hints=(
            "With fewer threads than elements, a thread has to take several elements: it needs a loop.",
            "cuda.gridsize(1) is the number of threads in the whole grid, and therefore the step from one "
            "element of a thread to its next.",
            "range takes a start, an end and a step: for i in range(cuda.grid(1), out.size, "
            "cuda.gridsize(1)).",
        ),
        praise="Right for every launch shape, from one thread to more threads than elements.",
        plan=KernelCheck(("a", "x", "y", "out"), cases.saxpy, why.saxpy),
        wrong=kernels.SAXPY,
    ),
    Exercise(
        name="01.blur",
        title="Blur a photograph",
        function="blur",
        kind="core",
        minutes=20,
        task=(
            "Write a kernel blur(image, out) for 2-D float32 images: each pixel of out is the mean of the "
            "3 x 3 pixels around it. Where a neighbour lies beyond the edge, take the nearest pixel of the "
            "image instead."
        ),
        hints=(
            "cuda.grid(2) gives two numbers. Decide which of them is the row, compare each with its own "
            "side of image.shape, and let the threads outside do nothing.",
            "Two loops over -1, 0, 1 visit the nine neighbours; add their values up and divide by nine.",
            "Near the edge row + dr becomes -1 or the number of rows. Bring it back before you read: "
            "r = min(max(row + dr, 0), image.shape[0] - 1), and likewise for the column.",
        ),
        praise="Right in the middle, along all four edges and in the corners.",
        plan=KernelCheck(("image", "out"), cases.blur, why.blur),
        wrong=kernels.BLUR,
    ),
    Exercise(
        name="01.amdahl",
        title="The limit of adding workers",
        function="amdahl_limit",
        kind="core",
        minutes=15,
        task=(
            "Write amdahl_limit(workers, seconds): from the seconds measured with 1, 2, 4, ... workers, "
            "find the serial share s by least squares and return the speed-up that no number of workers "
            "can exceed. With t = seconds / seconds[0], Amdahl's law says t = s + (1 - s) / workers."
        ),
        hints=(
            "Take the law apart: t - 1/n = s * (1 - 1/n). That is y = s * u, a straight line through zero.",
            "Least squares for y = s * u: s is the sum of u * y divided by the sum of u * u.",
            "With endless workers (1 - s) / n is gone, and t is s: the limit of the speed-up is 1 / s.",
        ),
        praise="Right for every table, yours included.",
        plan=FunctionCheck(("workers", "seconds"), cases.amdahl, why.amdahl),
        wrong=wrong.AMDAHL,
        table=cases.amdahl_table,
    ),
    Exercise(
        name="01.break_even",
        title="From which size on the GPU wins",
        function="break_even",
        kind="core",
        minutes=15,
        task=(
            "Write break_even(cpu_s_per_element, gpu_s_per_element, launch_s, copy_latency_s, "
            "copy_bytes_per_s, bytes_per_element): the smallest whole number of elements for which the "
            "GPU, with its launch, the copies' latency, the copies themselves and the work, is strictly "
            "faster than the CPU. None if it never is."
        ),
        hints=(
            "Write down both times for n elements. The CPU's is n * cpu_s_per_element. Which parts of the "
            "GPU's grow with n, and which are paid once?",
            "Copying n elements takes n * bytes_per_element / copy_bytes_per_s. What does the GPU gain "
            "with every further element?",
            "n * gain has to be more than launch_s + copy_latency_s. With a gain of zero or less it never "
            "is. Strictly more means that a tie is one element too few: math.floor(fixed / gain) + 1.",
        ),
        praise="Right for every case: ties, copies that eat up the gain, and a GPU that never wins.",
        plan=FunctionCheck(cases.BREAK_EVEN, cases.break_even, why.break_even),
        wrong=wrong.BREAK_EVEN,
        table=cases.break_even_table,
    ),
    Exercise(
        name="01.claim",
        title="Thousands of cores?",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'A CPU has 4 to 8 cores, a GPU thousands, so a GPU is 10 to 100 times faster "
            "at matrix work.' Fill the dictionary claim: verdict (true, mostly true, misleading, false or "
            "unsourced), number and unit (what an A100 really has thousands of: SMs times fp32 lanes in "
            "each), left_out (what one has to compare instead)."
        ),
        hints=(
            "An A100 has 108 streaming multiprocessors (SMs), and each has 64 lanes that do one fp32 "
            "operation at a time. Which of the two resembles a CPU core?",
            "A CPU core has lanes as well: 16 to 32 for fp32. And servers have 32 to 192 cores, not 4 to 8.",
            "The counts are not invented, but they are counts of different things: neither true nor "
            "plainly false. A fair comparison names a kernel and gives FLOP/s and bytes/s for both.",
        ),
        praise="Yes: cores and lanes are different things, and FLOP/s and bytes/s are what can be compared.",
        plan=DataCheck(why.claim, claim_begun),
        wrong=wrong.CLAIM,
    ),
)
