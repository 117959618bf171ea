"""Lesson 05: typical wrong splits, races and verdicts, each with words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function

_SPLIT = "split(items, speeds)"
_SHARES = "shares = [items * speed / sum(speeds) for speed in speeds]\n"
_FLOORS = _SHARES + "counts = [int(share) for share in shares]\nleft = items - sum(counts)\n"
SPLIT = (
    function(
        _SPLIT, "cut off", "failed", "cut the remainders off", _SHARES + "return [int(s) for s in shares]"
    ),
    function(
        _SPLIT,
        "rounded",
        "failed",
        "rounding each share alone",
        _SHARES + "return [round(s) for s in shares]",
    ),
    function(
        _SPLIT,
        "rounded up",
        "failed",
        "every share was rounded up",
        _SHARES + "return [math.ceil(s) for s in shares]",
    ),
    function(
        _SPLIT,
        "the rest to the last",
        "failed",
        "all that was left over went to one worker",
        _FLOORS + "counts[-1] += left\nreturn counts",
    ),
    function(
        _SPLIT,
        "the rest to the first ones",
        "failed",
        "gets 1 items, and has speed 0",
        _FLOORS + "for worker in range(left):\n    counts[worker] += 1\nreturn counts",
    ),
    function(
        _SPLIT,
        "the smallest remainders first",
        "failed",
        "A remainder of 0.20 was rounded up, and one of 0.60 was not",
        _FLOORS
        + "order = sorted(range(len(speeds)), key=lambda w: shares[w] - counts[w])\n"
        + "for worker in order[:left]:\n    counts[worker] += 1\nreturn counts",
    ),
    function(
        _SPLIT,
        "the fastest first",
        "failed",
        "goes to the largest remainders",
        _FLOORS
        + "order = sorted(range(len(speeds)), key=lambda w: -speeds[w])\n"
        + "for worker in order[:left]:\n    counts[worker] += 1\nreturn counts",
    ),
    function(
        _SPLIT,
        "all that is left to the fastest",
        "failed",
        "one item each",
        _FLOORS + "counts[max(range(len(speeds)), key=lambda w: speeds[w])] += left\nreturn counts",
    ),
    function(
        _SPLIT,
        "equal parts",
        "failed",
        "these are equal parts",
        "n = len(speeds)\nreturn [items // n + (w < items % n) for w in range(n)]",
    ),
    function(_SPLIT, "fractions", "failed", "as whole numbers", _SHARES + "return shares"),
    function(
        _SPLIT,
        "slices",
        "failed",
        "as whole numbers",
        _FLOORS + "return [slice(sum(counts[:w]), sum(counts[: w + 1])) for w in range(len(speeds))]",
    ),
)

_RACE = "race(costs, speeds)"
_PARTS = """
workers, count = len(speeds), len(costs)
ends = [sum(divmod(count, workers)[0] + (v < count % workers) for v in range(w + 1)) for w in range(workers)]
parts = [costs[a:b] for a, b in zip([0, *ends], ends)]
equal = max(sum(part) / speed for part, speed in zip(parts, speeds))
"""
_QUEUE = """
free, owners = [0.0] * len(speeds), []
for cost in costs:
    w = free.index(min(free))
    free[w] += cost / speeds[w]
    owners.append(w)
"""


def _equal(label: str, says: str, body: str) -> Wrong:
    return function(_RACE, label, "failed", says, body + _QUEUE + "return equal, max(free), owners")


def _queue(label: str, says: str, body: str, end: str = "max(free)") -> Wrong:
    return function(_RACE, label, "failed", says, _PARTS + body + f"return equal, {end}, owners")


RACE = (
    _queue("the queue ignores speeds", "the speeds are missing", _QUEUE.replace(" / speeds[w]", "")),
    _queue(
        "dealt out in turn",
        "dealt out in turn",
        """
        free, owners = [0.0] * len(speeds), []
        for item, cost in enumerate(costs):
            w = item % len(speeds)
            free[w] += cost / speeds[w]
            owners.append(w)
        """.replace("\n        ", "\n"),
    ),
    _queue(
        "who would be done first",
        "the queue does not look ahead",
        _QUEUE.replace(
            "w = free.index(min(free))", "w = min(range(len(free)), key=lambda v: free[v] + cost / speeds[v])"
        ),
    ),
    _queue(
        "the highest of ties",
        "the lowest number is first",
        _QUEUE.replace(
            "w = free.index(min(free))", "w = max(v for v in range(len(free)) if free[v] == min(free))"
        ),
    ),
    _queue("speed the wrong way", "a worker's speed divides the cost", _QUEUE.replace("cost /", "cost *")),
    _queue("over when the first is done", "this is the first one who is done", _QUEUE, "min(free)"),
    _queue("all times added up", "all workers' times added up", _QUEUE, "sum(free)"),
    _queue("a perfect division", "what a perfect division would take", _QUEUE, "sum(costs) / sum(speeds)"),
    _equal(
        "the last part is longer",
        "the first parts are one longer",
        _PARTS.replace("v < count % workers", "v >= workers - count % workers"),
    ),
    _equal(
        "equal parts ignore speeds", "divide by its speed", _PARTS.replace("sum(part) / speed", "sum(part)")
    ),
    _equal(
        "equal parts dealt out",
        "equal parts are contiguous",
        "equal = max(sum(costs[w :: len(speeds)]) / speed for w, speed in enumerate(speeds))\n",
    ),
    _equal(
        "the mean of equal parts",
        "this is the mean",
        _PARTS.replace("max(sum(part) / speed", "np.mean(list(sum(part) / speed").replace(
            "zip(parts, speeds))", "zip(parts, speeds)))"
        ),
    ),
    function(
        _RACE,
        "no owners",
        "failed",
        "three things are asked for",
        _PARTS + _QUEUE + "return equal, max(free)",
    ),
)

_GUILTY = "guilty(run)"
_LOOK = """
from labkit.telemetry.traces import spinning

told = spinning.truth(run)
"""
SPIN = (
    function(
        _GUILTY,
        "one that waits",
        "failed",
        "so it is a victim",
        _LOOK
        + "victim = next(r for r in range(4) if r not in (told.rank, told.frugal))\n"
        + "return victim, f'rank.{victim}.wait', told.start, told.end",
    ),
    function(
        _GUILTY,
        "the card that draws least",
        "failed",
        "draws less than the others all the time",
        _LOOK + "return told.frugal, f'gpu.{told.frugal}.power', told.start, told.end",
    ),
    function(
        _GUILTY,
        "the interval of the network",
        "failed",
        "then nobody is guilty",
        _LOOK + "return told.rank, f'rank.{told.rank}.compute', *told.network",
    ),
    function(
        _GUILTY,
        "the whole run",
        "failed",
        "then nobody is guilty",
        _LOOK + "return told.rank, f'rank.{told.rank}.compute', 4.0, told.seconds - 4",
    ),
    function(
        _GUILTY,
        "two seconds of it",
        "failed",
        "it goes on for longer",
        _LOOK + "return told.rank, f'rank.{told.rank}.compute', told.start + 2.5, told.start + 5",
    ),
    function(
        _GUILTY,
        "utilisation as evidence",
        "failed",
        "waiting in NCCL is a kernel, too",
        _LOOK + "return told.rank, f'gpu.{told.rank}.utilization', told.start, told.end",
    ),
    function(
        _GUILTY,
        "no evidence",
        "failed",
        "There is no series",
        _LOOK + "return told.rank, 'power', told.start, told.end",
    ),
    function(_GUILTY, "a guess", "failed", "not", "return 0, 'gpu.0.power', 0, 0.5"),
)
