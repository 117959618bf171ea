"""Lesson 03, moving data: its exercises, with tasks and hints; what is said about mistakes stands in l03_why and
l03_programs."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l03_cases as cases
from labkit.course.lessons import l03_programs as programs
from labkit.course.lessons import l03_record as record
from labkit.course.lessons import l03_why as why
from labkit.course.lessons import l03_wrong as wrong
from labkit.course.lessons import l03_wrong_programs as wrong_programs
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

_PROGRAM = ("d", "x", "y", "chunks", "chunk_s")

EXERCISES = (
    Exercise(
        name="03.alpha_beta",
        title="Two numbers for a link",
        function="alpha_beta",
        kind="core",
        minutes=15,
        task=(
            "Write alpha_beta(sizes, seconds, size): fit T = alpha + n / beta to the table by least squares of the "
            "relative errors, and return alpha (seconds), beta (bytes a second) and the seconds it predicts for size."
        ),
        hints=(
            "With s = 1 / beta the law is a straight line, t = alpha + s * n, and np.linalg.lstsq fits two unknowns "
            "to many rows.",
            "Relative means: what should be small is (alpha + s * n - t) / t, that is alpha / t + s * n / t - 1.",
            "So the matrix has the columns 1 / t and n / t, and the right side is all ones: "
            "np.linalg.lstsq(np.column_stack([1 / t, n / t]), np.ones(len(t)), rcond=None).",
        ),
        praise="Right for every table, yours included: two numbers say what a link does at any size.",
        plan=FunctionCheck(("sizes", "seconds", "size"), cases.alpha_beta, why.alpha_beta),
        wrong=wrong.ALPHA_BETA,
        table=cases.link_table,
    ),
    Exercise(
        name="03.pipeline",
        title="Copy, compute, copy: in chunks, side by side",
        function="pipeline",
        kind="core",
        minutes=20,
        task=(
            "Write pipeline(d, x, y, chunks, chunk_s): on the modelled card d, bring x through the kernel into y in "
            "so many chunks, so that no hazard is left, and copying one chunk can run beside the kernel of another."
        ),
        hints=(
            "The device needs room for what comes in and for what goes out: d.buffer('a', x.size) and d.buffer('b', "
            "x.size). x.split(chunks), a.split(chunks) and so on give the matching parts.",
            "Work on one stream runs in order, which is what the three steps of one chunk need. What must different "
            "chunks not share?",
            "A stream for each chunk: in a loop over zip of the parts, make s = d.stream(), then d.copy_in(..., s), "
            "d.kernel('f', reads=..., writes=..., takes=chunk_s, stream=s), d.copy_out(..., s).",
        ),
        praise="Every byte arrives, nothing is read too early, and copies and kernels run side by side.",
        plan=RecordedCheck(_PROGRAM, cases.programs, programs.pipeline, record.pipeline),
        wrong=wrong_programs.PIPELINE,
    ),
    Exercise(
        name="03.events",
        title="Repair the sample with three streams",
        function="three_streams",
        kind="core",
        minutes=15,
        task=(
            "Write three_streams(d, x, y, chunks, chunk_s): one stream copies all chunks in, one runs all kernels, "
            "one copies all results out, and events make each wait for its data, and for nothing else."
        ),
        hints=(
            "Two handovers in each chunk have no order: from the copy in to the kernel, and from the kernel to the "
            "copy out.",
            "e = d.event(); e.record(first) marks what the first stream has been given so far; e.wait(second) holds "
            "back what the second is given from now on. The host goes on at once.",
            "After each copy_in: a new event, recorded on the stream that copies in, waited for by the one that "
            "computes. After each kernel: another one, from the stream that computes to the one that copies out.",
        ),
        praise="Each stage waits for its data and for nothing else.",
        plan=RecordedCheck(_PROGRAM, cases.programs, programs.three_streams, record.pipeline),
        wrong=wrong_programs.EVENTS,
    ),
    Exercise(
        name="03.offload",
        title="What to send to the GPU, and what to leave",
        function="offload",
        kind="core",
        minutes=20,
        task=(
            "Write offload(cpu_s, gpu_s, bytes_between, alpha_s, bytes_per_s): for a chain of stages that starts and "
            "ends on the CPU, return the list of 'cpu' or 'gpu', one a stage, that takes the least time with all "
            "moves, each of which takes alpha_s + n / bytes_per_s."
        ),
        hints=(
            "bytes_between has one entry more than there are stages: entry 0 is moved if stage 0 is on the GPU, entry "
            "i if stages i - 1 and i are on different sides, the last one if the last stage is on the GPU.",
            "Judging each stage alone cannot work: whether a move is due depends on its neighbour. Write a function "
            "that adds up the time of a whole plan first.",
            "There are few stages: itertools.product(['cpu', 'gpu'], repeat=len(cpu_s)) gives every plan, and min(..., "
            "key=...) the best. (Import itertools inside your function.)",
        ),
        praise="Right for every chain: moves counted where the data change sides, and only there.",
        plan=FunctionCheck(cases.OFFLOAD, cases.offload, why.offload),
        wrong=wrong.OFFLOAD,
        table=cases.stages_table,
    ),
    Exercise(
        name="03.claim",
        title="900 against 64",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'NVLink 4.0 has 900 GB/s where PCIe 4.0 has 64 GB/s.' Fill the dictionary claim: verdict "
            "(true, mostly true, misleading, false or unsourced), number and unit (how many times the line rate of "
            "the slot that an H100 sits in its NVLink has, the same directions on both sides), left_out."
        ),
        hints=(
            "labkit.hardware.gpu('H100') says which generation of PCIe its slot has; labkit.hardware.link('nvlink4') "
            "and labkit.hardware.link('pcie5') say what each carries one way.",
            "An H100 has 18 links of NVLink 4, each 25 GB/s in each direction.",
            "18 * 25 = 450 GB/s one way, against 63 GB/s one way of a PCIe 5 slot.",
        ),
        praise="Yes: both add two directions, and the card with one does not sit in the other.",
        plan=DataCheck(why.claim, claim_begun),
        wrong=wrong.CLAIM,
    ),
    Exercise(
        name="03.feed",
        title="Feed several workers from shards",
        function="feed",
        kind="stretch",
        minutes=20,
        task=(
            "Write feed(disk, sample_bytes, worker, workers): yield the samples of this worker (bytes of length "
            "sample_bytes). All workers together give every sample once; each shard is opened once, by one worker; "
            "reads bring at least 32 KiB, except at the end of a shard."
        ),
        hints=(
            "disk.files('shards') lists the shards in an order that is the same for every worker. Which of them are "
            "yours, if everybody takes every workers-th?",
            "with disk.open(name) as file: ... file.read(n) gives n bytes at most, and none at the end.",
            "Read a multiple of sample_bytes, such as 100 * sample_bytes, until nothing comes; cut each piece with "
            "piece[k : k + sample_bytes] for k in range(0, len(piece), sample_bytes).",
        ),
        praise="Every sample once, every shard opened once, many samples a read.",
        plan=RecordedCheck(("disk", "sample_bytes", "worker", "workers"), cases.feeds, why.feed, record.feed),
        wrong=wrong.FEED,
    ),
    Exercise(
        name="03.hidden_sync",
        title="Find the wait that nobody wrote",
        function="train",
        kind="stretch",
        minutes=20,
        task=(
            "Write train(d, x, losses, steps, step_s): each step copies its part of x in and runs a kernel that writes "
            "a loss of 4 bytes; in the end every loss is in losses, which is pageable, and the host has looked at all "
            "of them. No step may be submitted after the host has waited for an earlier one."
        ),
        hints=(
            "Draw the sample's timeline: what does the host wait for, and what runs on the GPU meanwhile?",
            "d.copy_out to pageable memory makes the host wait, as .synchronize() does. Neither may happen before the "
            "last kernel is submitted; the losses can stay on the device until then.",
            "Collect the losses in d.buffer('loss', 4 * steps), one part a step; after the loop one d.copy_out of all "
            "of it, then one d.host_work that reads losses. Copies in need a stream of their own, or one a step.",
        ),
        praise="The host looks once, at the end, and no step waits for it.",
        plan=RecordedCheck(
            ("d", "x", "losses", "steps", "step_s"), cases.trainings, programs.training, record.training
        ),
        wrong=wrong_programs.TRAIN,
    ),
)
