"""Lesson 09: typical wrong answers to what is found by simulation, with their outcomes and words of the feedback."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function, wrong


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = f'claim = {{"verdict": {verdict}, "number": {number}, "unit": {unit}, "left_out": {left_out}}}'
    return wrong(label, "failed", says, source)


_HIDES = "'the network, the bytes, the GPUs in a node, and what it was compared with'"
CLAIM = (
    _claim("believed", "neither confirmed nor refuted", "'true'", "5.33", "'times'", _HIDES),
    _claim("plainly false", "neither confirmed nor refuted", "'false'", "5.33", "'times'", _HIDES),
    _claim("the claim's own numbers", "12 over 8", "'unsourced'", "12 / 8", "'times'", _HIDES),
    _claim("upside down", "upside down", "'unsourced'", "0.1875", "'times'", _HIDES),
    _claim("against eight rings", "against eight rings", "'unsourced'", "0.7587", "'times'", _HIDES),
    _claim("one GPU a server", "nothing to reduce inside", "'unsourced'", "1.0", "'times'", _HIDES),
    _claim("milliseconds", "a ratio is in 'times'", "'unsourced'", "1.61", "'ms'", _HIDES),
    _claim("nothing left out", "to repeat it", "'unsourced'", "5.33", "'times'", "'the price'"),
    _claim("half empty", "nothing under 'left_out'", "'unsourced'", "5.33", "'times'", "None"),
)

_SCALE = "fastest(server, nodes, size)"
_TRY = """
net = labkit.fabric(server, nodes=nodes)
ways = []
for algorithm in {algorithms}:
    for chunks in {chunks}:
        try:
            seconds = net.all_reduce(size, algorithm, chunks=chunks{protocol}).seconds
        except labkit.LabkitError:
            continue
        ways.append((seconds, algorithm, chunks))
seconds, algorithm, chunks = {best}
return algorithm, chunks, {seconds}
"""
_ALL = {
    "algorithms": "('ring', 'double-tree', 'halving-doubling', 'hierarchical', 'in-switch')",
    "chunks": "(1, 16)",
    "protocol": ", protocol='simple'",
    "best": "min(ways)",
    "seconds": "seconds",
}


def _scale(label: str, says: str, **changed: str) -> Wrong:
    return function(_SCALE, label, "failed", says, _TRY.format(**{**_ALL, **changed}))


AT_SCALE = (
    _scale("always a ring", "a single ring takes 2(n - 1) steps", algorithms="('ring',)", chunks="(1,)"),
    _scale(
        "nothing in the switch",
        "the number of steps decides",
        algorithms="('ring', 'double-tree', 'hierarchical')",
    ),
    _scale("always in chunks", "each chunk pays the start of a message", chunks="(16,)"),
    _scale("the slowest", "another way takes", best="max(ways)"),
    _scale("milliseconds", "seconds are asked for", seconds="1e3 * seconds"),
    _scale("an ideal protocol", "protocol='simple'", protocol=""),
    function(
        _SCALE,
        "crash: switches that cannot add",
        "error",
        "cannot add",
        """
        net = labkit.fabric(server, nodes=nodes)
        names = ("ring", "hierarchical", "in-switch")
        seconds, name = min((net.all_reduce(size, name, protocol="simple", chunks=1).seconds, name) for name in names)
        return name, 1, seconds
        """,
    ),
)
