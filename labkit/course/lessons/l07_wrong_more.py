"""Lesson 07, stretch exercises and claim: typical wrong answers, with words that their feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function, wrong

_LAYERS = "two_layers(world, x, up, up_bias, down, down_bias, dy)"


def _layers(label: str, says: str, y: str, dx: str = "dh @ up\nworld.all_reduce(dx)") -> Wrong:
    body = "\n".join(
        (
            "h = x @ up.T + up_bias",
            "y = np.maximum(h, 0) @ down.T",
            y,
            "dh = (dy @ down) * (h > 0)",
            f"dx = {dx}",
            "return y, dx",
        )
    )
    return function(_LAYERS, label, "failed", says, body)


TWO_LAYERS = (
    _layers("bias on every rank", "added on every rank", "y += down_bias\nworld.all_reduce(y)"),
    _layers("no bias", "down_bias is missing", "world.all_reduce(y)"),
    _layers(
        "mean instead of sum",
        "parts of one sum",
        "world.all_reduce(y)\ny /= world.world_size\ny += down_bias",
    ),
    _layers("shares not added", "the sum over the ranks is y", "y += down_bias"),
    _layers(
        "backward without all-reduce",
        "backward needs an all-reduce of its own",
        "world.all_reduce(y)\ny += down_bias",
        "dh @ up",
    ),
    function(
        _LAYERS,
        "hidden features gathered",
        "failed",
        "nothing is sent there",
        """
        ranks = world.world_size
        whole = lambda part: np.concatenate(world.all_to_all([part] * ranks))
        up, up_bias, down = whole(up), whole(up_bias), whole(np.ascontiguousarray(down.T)).T
        h = x @ up.T + up_bias
        return np.maximum(h, 0) @ down.T + down_bias, ((dy @ down) * (h > 0)) @ up
        """,
    ),
    function(
        _LAYERS,
        "one result",
        "failed",
        "(y, dx) is asked for",
        """
        y = np.maximum(x @ up.T + up_bias, 0) @ down.T
        world.all_reduce(y)
        return y + down_bias
        """,
    ),
)

_PIPELINE = "one_f_one_b(stages, micro_batches, stage)"


def _pipeline(label: str, says: str, body: str) -> Wrong:
    return function(_PIPELINE, label, "failed", says, body)


_TURNS = """
ahead = min({ahead}, micro_batches)
steps = [("forward", m) for m in range(ahead)]
for m in range(ahead, micro_batches):
    steps += [{turn}]
return steps + [("backward", m) for m in range(micro_batches - ahead, micro_batches)]
"""
_TURN = '("forward", m), ("backward", m - ahead)'
PIPELINE = (
    _pipeline(
        "all forward, then all backward",
        "that is GPipe",
        """
        return [("forward", m) for m in range(micro_batches)] + [("backward", m) for m in range(micro_batches)]
        """,
    ),
    _pipeline(
        "as if alone",
        "idles for",
        """
        return [(what, m) for m in range(micro_batches) for what in ("forward", "backward")]
        """,
    ),
    _pipeline(
        "as many ahead on every stage",
        "fewer forward steps before the first backward",
        _TURNS.format(ahead="stages", turn=_TURN),
    ),
    _pipeline(
        "stages counted from the wrong end",
        "wait for each other for ever",
        _TURNS.format(ahead="stage", turn=_TURN),
    ),
    _pipeline(
        "backward before its forward",
        "wait for each other for ever",
        _TURNS.format(ahead="stages - 1 - stage", turn='("backward", m - ahead), ("forward", m)'),
    ),
    _pipeline(
        "fewer micro-batches than stages",
        "m from 0 to 1 here",
        """
        ahead = stages - 1 - stage
        steps = [("forward", m) for m in range(ahead)]
        for m in range(ahead, micro_batches):
            steps += [("forward", m), ("backward", m - ahead)]
        return steps + [("backward", m) for m in range(micro_batches - ahead, micro_batches)]
        """,
    ),
    _pipeline(
        "last steps forgotten",
        "every step comes once",
        """
        ahead = min(stages - 1 - stage, micro_batches)
        steps = [("forward", m) for m in range(ahead)]
        for m in range(ahead, micro_batches):
            steps += [("forward", m), ("backward", m - ahead)]
        return steps
        """,
    ),
    _pipeline("letters", "entries are", 'return [("F", m) for m in range(micro_batches)]'),
)

_ZERO = "zero_stage(parameters, ranks, memory, activations)"


def _zero(
    label: str,
    says: str,
    weights: str = "2",
    gradients: str = "2",
    optimizer: str = "12",
    more: str = "activations",
    compare: str = "<=",
) -> Wrong:
    body = f"""
    for stage in range(4):
        need = parameters * {optimizer} / (ranks if stage >= 1 else 1)
        need += parameters * {gradients} / (ranks if stage >= 2 else 1)
        need += parameters * {weights} / (ranks if stage >= 3 else 1)
        if need + {more} {compare} memory:
            return stage
    return None
    """
    return function(_ZERO, label, "failed", says, body)


ZERO = (
    _zero("activations forgotten", "the activations are missing", more="0"),
    _zero("activations divided", "no ZeRO stage divides activations", more="activations / ranks"),
    _zero("no fp32 weights", "the optimizer keeps 12 bytes", optimizer="8"),
    _zero("fp32 throughout", "have 2 bytes each", weights="4", gradients="4", optimizer="8"),
    _zero("optimizer forgotten", "are missing", optimizer="0"),
    _zero("less than, not at most", "stages divide, one after the other", compare="<"),
    function(
        _ZERO,
        "everything divided from stage 1 on",
        "failed",
        "stages divide, one after the other",
        """
        for stage in range(4):
            if 16 * parameters / (ranks if stage else 1) + activations <= memory:
                return stage
        """,
    ),
    function(
        _ZERO,
        "the highest stage",
        "failed",
        "the lowest that fits counts",
        "return 3 if 16 * parameters / ranks + activations <= memory else None",
    ),
)

_LOOKUP = "lookup(world, block, ids, gradient)"
_EXCHANGE = """
size, ranks = len(block), range(world.world_size)
owner = ids // size
asked = world.all_to_all([ids[owner == k] for k in ranks])
answers = world.all_to_all([block[one - {start}] for one in asked])
rows = np.empty((len(ids), block.shape[1]))
{place}
back = world.all_to_all([gradient[owner == k] for k in ranks])
total = np.zeros_like(block)
for one, g in zip(asked, back):
    {add}
return rows, total{scale}
"""


def _lookup(label: str, says: str, outcome: str = "failed", **parts: str) -> Wrong:
    usual = {
        "start": "world.rank * size",
        "place": "for k in ranks:\n    rows[owner == k] = answers[k]",
        "add": "np.add.at(total, one - world.rank * size, g)",
        "scale": "",
    }
    return function(_LOOKUP, label, outcome, says, _EXCHANGE.format(**(usual | parts)))


LOOKUP = (
    _lookup("rows in the order of their owners", "not that of ids", place="rows = np.concatenate(answers)"),
    _lookup(
        "rows that come twice",
        "block[ids] += g adds only one",
        add="total[one - world.rank * size] += g",
    ),
    _lookup("ids of the whole table", "out of bounds", outcome="error", start="0"),
    _lookup("mean of the gradients", "is wanted, not the mean", scale=" / world.world_size"),
    function(
        _LOOKUP,
        "the whole table gathered",
        "failed",
        "only the rows that were asked for",
        """
        table = np.concatenate(world.all_to_all([block] * world.world_size))
        total = np.zeros_like(table)
        np.add.at(total, ids, gradient)
        world.all_reduce(total)
        start = world.rank * len(block)
        return table[ids], total[start : start + len(block)]
        """,
    ),
    function(
        _LOOKUP,
        "own rows alone",
        "failed",
        "expected",
        """
        start = world.rank * len(block)
        return block[(ids - start) % len(block)], np.zeros_like(block)
        """,
    ),
    function(
        _LOOKUP, "no gradient", "failed", "(rows, gradient) is asked for", "return block[ids % len(block)]"
    ),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    return wrong(
        label,
        "failed",
        says,
        f'claim = {{"verdict": "{verdict}", "number": {number}, "unit": "{unit}", "left_out": "{left_out}"}}',
    )


CLAIM = (
    _claim("believed", "is not the best verdict", "true", "50", "%", "batch"),
    _claim("time saved", "that is the time saved; how many times", "unsourced", "75", "%", "batch"),
    _claim("time left", "that is the time that is left", "unsourced", "25", "%", "batch"),
    _claim(
        "saved against saved",
        "efficiency is speed-up over cards",
        "unsourced",
        "75 / 87.5 * 100",
        "%",
        "batch",
    ),
    _claim("a fraction", "in per cent, please", "unsourced", "0.5", "%", "batch"),
    _claim("times", "an efficiency is in '%'", "unsourced", "4", "times", "batch"),
    _claim("nothing left out", "name what one would have to know", "unsourced", "50", "%", "it is good"),
    _claim("blank", "has nothing under 'left_out' yet", "unsourced", "50", "%", ""),
)
