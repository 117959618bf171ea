"""Lesson 05, many GPUs in one machine: its exercises, with tasks and hints; what is said about mistakes stands in
l05_why, l05_halo, l05_spin and l05_ways."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l05_cases as cases
from labkit.course.lessons import l05_halo as halo
from labkit.course.lessons import l05_record as record
from labkit.course.lessons import l05_spin as spin
from labkit.course.lessons import l05_ways as ways
from labkit.course.lessons import l05_why as why
from labkit.course.lessons import l05_wrong as wrong
from labkit.course.lessons import l05_wrong_more as wrong_more
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="05.split",
        title="Parts by speed, none lost",
        function="split",
        kind="core",
        minutes=15,
        task=(
            "Write split(items, speeds): how many of the items each worker gets, as a list of whole numbers that add "
            "up to items. Each gets its share, items * speed / sum of speeds, rounded down; what is left over goes, "
            "one item each, to the workers with the largest remainders. A worker with speed 0 gets nothing."
        ),
        hints=(
            "Three workers of speed 1 and ten items: every share is 3.33. Rounded down that is 9; who gets the tenth?",
            "counts = [int(share) for share in shares] and left = items - sum(counts). Then order the workers by "
            "share - count, the largest first.",
            "order = sorted(range(len(speeds)), key=lambda w: shares[w] - counts[w], reverse=True), and for w in "
            "order[:left]: counts[w] += 1.",
        ),
        praise="Nothing lost, nothing done twice, and nobody is more than one item away from his share.",
        plan=FunctionCheck(("items", "speeds"), cases.splits, why.split),
        wrong=wrong.SPLIT,
    ),
    Exercise(
        name="05.race",
        title="A queue against equal parts",
        function="race",
        kind="core",
        minutes=20,
        task=(
            "Write race(costs, speeds) on a virtual clock: item i takes worker w costs[i] / speeds[w] seconds. Return "
            "the seconds of equal parts (contiguous, the first ones one longer), the seconds of a queue (items in "
            "order, whoever is free first takes the next, the lowest number of several), and the worker of each item "
            "in it."
        ),
        hints=(
            "Equal parts: cut costs into len(speeds) slices; each worker adds up its own and divides by its speed. "
            "The last one decides.",
            "The queue: keep a list free with the moment at which each worker is free again, all 0.0 at first. For "
            "each item in order, w = free.index(min(free)).",
            "free.index(min(free)) gives the lowest number of those who are free first. Then free[w] += cost / "
            "speeds[w] and owners.append(w); in the end the queue has taken max(free).",
        ),
        praise="Both clocks are right, and so is every turn at the queue.",
        plan=FunctionCheck(cases.RACE, cases.races, why.race),
        wrong=wrong.RACE,
        table=cases.race_table,
    ),
    Exercise(
        name="05.spin",
        title="Who holds up the others?",
        function="guilty",
        kind="core",
        minutes=15,
        task=(
            "exercise('05.spin').data() names a recording of four ranks whose GPUs all read 100 %. For a while one of "
            "them holds up the other three. Write guilty(run) that returns its rank, the key of a series that shows "
            "it, and the interval (start and end in seconds, to within two)."
        ),
        hints=(
            "spinning.recorded(run) gives the recording; labkit.replay(it, 20) plays it, recording_figure(it) draws "
            "it, and it.values('rank.0.compute') are the numbers, one for every half second.",
            "Who waits is held up. Who does not wait, while all others do, holds them up. When all four wait alike, "
            "it is the network's fault.",
            "Take the compute series of all four. The interval is where one lies near 100 % and the other three near "
            "50 %; a rank's own series is the evidence, whatever the cause.",
        ),
        praise="Yes: the one that does not wait. (Look at its power and its temperature: was it the work or the heat?)",
        plan=FunctionCheck(("run",), cases.spins, spin.spin),
        wrong=wrong.SPIN,
        table=cases.spin_table,
    ),
    Exercise(
        name="05.ring",
        title="A ring with the best worst edge",
        function="ring",
        kind="core",
        minutes=15,
        task=(
            "Write ring(matrix): matrix[i][j] is the bandwidth between GPUs i and j in GB/s, the same both ways. "
            "Return the GPUs in an order in which each sends to the next, and the last to the first, such that the "
            "slowest of these edges is as fast as possible. There are up to eight GPUs."
        ),
        hints=(
            "A ring of n GPUs has n edges: do not forget the one that closes it.",
            "GPU 0 may come first, since a ring has no beginning. That leaves 7! = 5040 orders of eight GPUs, which "
            "are tried in a moment: itertools.permutations(range(1, n)).",
            "return max(orders, key=worst), where worst(order) is min(matrix[a][b] for a, b in zip(order, order[1:] "
            "+ order[:1])) and each order is [0, *rest].",
        ),
        praise="No ring of these GPUs has a faster worst edge. (There may be others that are as good.)",
        plan=FunctionCheck(("matrix",), cases.rings, why.ring),
        wrong=wrong_more.RING,
        table=cases.ring_table,
    ),
    Exercise(
        name="05.halo",
        title="Send the halo, and only that",
        function="heat",
        kind="core",
        minutes=25,
        task=(
            "Write heat(part, rank, ranks, steps), which every rank runs: part holds this rank's rows of a plate "
            "(rank 0 has the top). Return them after so many steps of heat_step, equal to the serial result bit by "
            "bit. Each rank sends one row to each neighbour in every step, and nothing else."
        ),
        hints=(
            "padded = np.zeros((len(part) + 2, part.shape[1])) has room for the halo: row 0 above, row -1 below. "
            "padded[1:-1] = part. Above rank 0 and below the last rank the zeros stay.",
            "In every step, first the halo, then padded[1:-1] = heat_step(padded). The neighbour above needs your "
            "row padded[1], and you need its last one, in padded[0].",
            "if rank > 0: exchange(padded[1], rank - 1, padded[0], rank - 1); if rank < ranks - 1: "
            "exchange(padded[-2], rank + 1, padded[-1], rank + 1). exchange sends and receives at the same time.",
        ),
        praise="Equal to the serial plate in every bit, and not a byte too many was sent.",
        plan=RecordedCheck(("part", "rank", "ranks", "steps"), cases.plates, halo.halo, record.halo),
        wrong=wrong_more.HALO,
    ),
    Exercise(
        name="05.claim",
        title="Zero latency",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'NVLink in an eight-GPU server gives zero-latency sharing.' Fill the dictionary claim: "
            "verdict (true, mostly true, misleading, false or unsourced), number and unit (the latency that was "
            "measured on eight A100 for a small write into a peer's memory), left_out."
        ),
        hints=(
            "labkit.hardware.link('nvlink3') carries the A100's NVLinks; .latency_us and .latency_of say what was "
            "measured, and .source where.",
            "labkit.hardware.latency('gpu-copy-without-peer-access') is the same way with peer access off.",
            "2.1 to 3.3 us, some thousands of clock cycles; 16 to 24 us when the copy goes through the host.",
        ),
        praise="Yes: a few microseconds, ten times as many without peer access, and never zero.",
        plan=DataCheck(ways.claim, claim_begun),
        wrong=wrong_more.CLAIM,
    ),
    Exercise(
        name="05.no_peer",
        title="Without peer access, without shared memory",
        function="way",
        kind="stretch",
        minutes=20,
        task=(
            "Write way(environment, size, legs): which legs a message takes between two GPUs under these NCCL "
            "settings, how many bytes are copied in all, and the seconds, legs one after the other. Legs are 'peer', "
            "'to_host', 'socket' and 'from_host', each (alpha, bytes a second) in legs."
        ),
        hints=(
            "NCCL takes the first that is allowed: directly (peer); through memory that both hosts' processes share "
            "(to_host, from_host); through a socket (to_host, socket, from_host). '1' switches a way off, '0' does "
            "not.",
            "A leg copies the message once, the socket twice: into the kernel and out of it.",
            "Seconds: the sum of alpha + size / rate over the legs that are used.",
        ),
        praise="Right for every setting: the way that is left, its copies, and what they cost.",
        plan=FunctionCheck(cases.WAY, cases.ways, ways.way),
        wrong=wrong_more.WAY,
        table=cases.legs_table,
    ),
)
