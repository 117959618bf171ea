"""Lesson 06, collectives: its exercises, with tasks and hints; what is said about mistakes stands in l06_why and
l06_choice."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l06_cases as cases
from labkit.course.lessons import l06_choice as choice
from labkit.course.lessons import l06_record as record
from labkit.course.lessons import l06_why as why
from labkit.course.lessons import l06_wrong as wrong
from labkit.course.lessons import l06_wrong_more as wrong_more
from labkit.course.lessons import l06_wrong_trees as wrong_trees
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

_ON_A_RING = ("data", "rank", "ranks")

EXERCISES = (
    Exercise(
        name="06.reduce_scatter",
        title="Half a ring: reduce-scatter",
        function="reduce_scatter",
        kind="core",
        minutes=20,
        task=(
            "Write reduce_scatter(data, rank, ranks), which every rank runs: in the end chunk number rank of data "
            "holds the sum over all ranks (the rest may hold anything). Each rank talks to its right neighbour alone, "
            "in ranks - 1 steps, and sends every chunk but its own, once."
        ),
        hints=(
            "part = chunks(len(data), ranks) gives the slices. A chunk starts right of its owner, passes everybody, "
            "and ends at its owner; on its way each rank adds its share. So what does a rank send first?",
            "First it sends chunk rank - 1, and receives chunk rank - 2 from its left neighbour, all modulo ranks. In "
            "the next step it sends on what it has just added to.",
            "In step s: coming = np.empty_like(data[part[(rank - s - 2) % ranks]]); exchange(data[part[(rank - s - 1) "
            "% ranks]], (rank + 1) % ranks, coming, (rank - 1) % ranks); then add coming to that part of data.",
        ),
        praise="Every chunk passed everybody once and came home complete, and no rank sent a byte too many.",
        plan=RecordedCheck(_ON_A_RING, cases.ring, why.reduce_scatter, record.reduction),
        wrong=wrong.REDUCE_SCATTER,
    ),
    Exercise(
        name="06.all_gather",
        title="The other half: all-gather",
        function="all_gather",
        kind="core",
        minutes=15,
        task=(
            "Write all_gather(data, rank, ranks): chunk number rank of data is right on each rank and the rest is not; "
            "in the end all of data is right everywhere. Each rank talks to its right neighbour alone, in ranks - 1 "
            "steps, and sends every chunk but the one that this neighbour began with, once."
        ),
        hints=(
            "In the first step a rank can send only the chunk that it has. What has it got to send in the second?",
            "In every step it passes on the chunk that came in the step before: rank, then rank - 1, then rank - 2, "
            "all modulo ranks. The chunk that comes belongs one further left.",
            "In step s: exchange(data[part[(rank - s) % ranks]], (rank + 1) % ranks, data[part[(rank - s - 1) % "
            "ranks]], (rank - 1) % ranks). A slice of an array is the array's own memory, so no copy is needed.",
        ),
        praise="With reduce_scatter before it, that is an all-reduce, with the fewest bytes that there can be.",
        plan=RecordedCheck(_ON_A_RING, cases.ring, why.all_gather, record.all_gather),
        wrong=wrong.ALL_GATHER,
    ),
    Exercise(
        name="06.broadcast",
        title="A tree: those who know double",
        function="broadcast",
        kind="core",
        minutes=20,
        task=(
            "Write broadcast(data, root, rank, ranks): the data of rank root come to all ranks, by ranks - 1 messages "
            "in as few steps as there can be: those who have them double in every step."
        ),
        hints=(
            "Count ranks from the root: me = (rank - root) % ranks. Then number 0 has the data, after one step 0 and "
            "1, after two 0 to 3. Back to a real rank it is (me + root) % ranks.",
            "Let reach be how many have the data: 1, 2, 4, ... as long as it is below ranks. Number me sends to me + "
            "reach if me has them, and receives from me - reach if it gets them in this step.",
            "In each step: if me < reach and me + reach < ranks, send; elif reach <= me < 2 * reach, receive. Then "
            "reach *= 2.",
        ),
        praise="Right from any root, in every world, in the logarithm of its size.",
        plan=RecordedCheck(
            ("data", "root", "rank", "ranks"), cases.broadcasts, why.broadcast, record.broadcast
        ),
        wrong=wrong_trees.BROADCAST,
    ),
    Exercise(
        name="06.deadlock",
        title="Break a deadlock",
        function="shift",
        kind="core",
        minutes=10,
        task=(
            "Repair shift(data, rank, ranks): every rank returns a new array with its left neighbour's data, in a "
            "world of one its own. No rank may wait for ever, and not one rank after another: three steps at most."
        ),
        hints=(
            "Who waits for whom? Write it down for three ranks: a circle of waits never ends. Somebody has to do the "
            "two things in the other order, or at once.",
            "If only rank 0 changes the order, the circle is broken, but the others go one after another. If every "
            "second rank does, pairs go at the same time. exchange does both at once.",
            "coming = data.copy(); if ranks > 1: exchange(data, (rank + 1) % ranks, coming, (rank - 1) % ranks); "
            "return coming.",
        ),
        praise="Nobody waits in a circle, and nobody waits in a queue.",
        plan=RecordedCheck(_ON_A_RING, cases.shifts, why.shift, record.shift),
        wrong=wrong_trees.SHIFT,
    ),
    Exercise(
        name="06.choose",
        title="Choose by size",
        function="choose",
        kind="core",
        minutes=20,
        task=(
            "Write choose(tables, size): tables holds, by name, bytes and seconds of some all-reduces; return "
            "the name that will be fastest for size bytes, and its seconds. Sizes are asked for that the tables leave "
            "out, also of published tables; seconds may be off by 20 %."
        ),
        hints=(
            "A law that holds from 8 bytes to gigabytes needs three terms: T = a + b * sqrt(n) + c * n. Fit it to each "
            "table and compare what it says for size.",
            "Relative errors, as in 03.alpha_beta: divide each row by its measured time, so that the right side is all "
            "ones. Otherwise the largest sizes decide alone.",
            "terms = np.column_stack([np.ones(len(n)), np.sqrt(n), n]); x, *_ = np.linalg.lstsq(terms / t[:, None], "
            "np.ones(len(t)), rcond=None); the prediction is x @ [1, size**0.5, size].",
        ),
        praise="Three numbers an algorithm, and the right choice at sizes that nobody showed you.",
        plan=FunctionCheck(("tables", "size"), cases.choices, choice.choose),
        wrong=wrong_more.CHOOSE,
        table=cases.given,
    ),
    Exercise(
        name="06.claim",
        title="480 GB/s out of 450",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'All-reduce on eight H100 reaches 480 GB/s, so every GPU sends 480 GB/s over its "
            "NVLink.' Fill the dictionary claim: verdict (true, mostly true, misleading, false or unsourced), number "
            "and unit (the GB/s that each GPU has to send there at least), left_out."
        ),
        hints=(
            "labkit.hardware.published('nccl_allreduce') has the row: 17,179,869,184 bytes in 62,648 us, 'reduced in "
            "the switch'. labkit.hardware.link('nvlink4') says what 18 links carry one way.",
            "480 GB/s is the bus bandwidth: size over time, multiplied by 2 (n - 1) / n, which is what a ring would "
            "send. Who adds here, and how often does a GPU then have to send its data?",
            "Once: 17.18 GB in 62.6 ms are 274 GB/s, of 450 one way.",
        ),
        praise="Yes: the bus bandwidth is a calculation, made for a ring, and the switch needs no ring.",
        plan=DataCheck(choice.claim, claim_begun),
        wrong=wrong_more.CLAIM,
    ),
    Exercise(
        name="06.any_world",
        title="Halving and doubling, in any world",
        function="all_reduce",
        kind="stretch",
        minutes=30,
        task=(
            "Write all_reduce(data, rank, ranks) by recursive halving and doubling: 2 log2(q) steps, q the largest "
            "power of two in ranks, and two more where ranks is none. Never send all that you share; the ranks beyond "
            "q hand their data to a partner first, and get the result last."
        ),
        hints=(
            "First for 4 ranks, on paper: partners at distance 2 swap halves and add; then partners at distance 1 swap "
            "quarters and add; now each rank has a quarter of the sum. Then the same way back, without adding.",
            "Keep a list of what was kept and what was given at each distance, and walk it in reverse: there you send "
            "what you kept and receive what you gave.",
            "Ranks from q on: send(data, rank - q), recv(data, rank - q), return. Their partners (rank + q < ranks) "
            "first receive and add, and last send all of data. The rest is a loop over distance = q // 2, q // 4, ...",
        ),
        praise="As few bytes as the ring, in the logarithm of its steps, and no world is left out.",
        plan=RecordedCheck(_ON_A_RING, cases.ring, why.all_reduce, record.reduction),
        wrong=wrong_more.ALL_REDUCE,
    ),
)
