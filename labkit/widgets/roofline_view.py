"""The roofline of a card, with launches upon it: how much work they do for every byte, and what bounds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.compute import model
from labkit.compute.emulator.inspection import Inspection
from labkit.errors import LabkitError
from labkit.hardware.records import GPU
from labkit.widgets import theme

LOWEST, HIGHEST = (
    1 / 32,
    512.0,
)  # FLOP a byte; wide enough for what lessons do, and made wider where a point needs it


def roofline(
    *launches: Inspection, gpu: str | GPU | None = None, names: Sequence[str] = (), precision: str = "fp32"
) -> Any:
    """Draw inspected launches on the roofline of a card: ``labkit.roofline(a, b, gpu="T4")``.

    Every launch is a hollow point: its intensity is counted (emulated), its rate is what the card could reach at
    most (modelled). Where a launch was also measured on a GPU, a full point stands below it.

    Parameters
    ----------
    launches : Inspection
        From ``labkit.inspect``; none draws the roof alone.
    gpu : str, optional
        A card of the catalogue; by default the one the first launch was inspected for.
    names : sequence of str
        One a launch; by default the kernels' names.

    Raises
    ------
    LabkitError
        For a launch without traffic or operations, which has no place on a roofline, and for an unknown card.
    """
    for one in launches:
        _check(one)
    if names and len(names) != len(launches):
        raise LabkitError(
            f"There are {len(launches)} launches and {len(names)} names: give one name a launch."
        )
    card = gpu if gpu is not None else launches[0].gpu if launches else "A100"
    roof = model.roofline(card, precision)
    named = dict(enumerate(names or [one.kernel for one in launches]))
    points = [(named[k], one) for k, one in enumerate(launches)]
    return draw(roof, points)


def draw(roof: model.Roofline, points: Sequence[tuple[str, Inspection]]) -> Any:
    """The figure: the roof, then the points."""
    intensities = [float(one.roofline.intensity or 0) for _, one in points]
    low, high = min([LOWEST, *(i / 2 for i in intensities)]), max([HIGHEST, *(2 * i for i in intensities)])
    grid = [low * (high / low) ** (k / 120) for k in range(121)]
    grid = sorted([*grid, roof.ridge])
    traces = [_roof(roof, grid), *_attainable(roof, points), *_measured(points)]
    layout = {
        "xaxis": theme.axis("intensity: FLOP for every byte of DRAM traffic", **_powers(low, high)),
        "yaxis": theme.axis("FLOP/s", type="log", exponentformat="SI", dtick=1),
        "annotations": [_ridge(roof)],
    }
    return theme.figure(traces, layout, f"Roofline of {roof.gpu}, {roof.precision}", height=460)


def _check(launch: Any) -> None:
    if not isinstance(launch, Inspection):
        raise LabkitError(
            f"labkit.roofline draws what labkit.inspect returns, not {type(launch).__name__}: "
            "inspect the launch first."
        )
    if not launch.roofline.intensity:
        what = "moves no byte" if launch.roofline.intensity is None else "does no floating-point operation"
        raise LabkitError(f"'{launch.kernel}' {what}, so it has no place on a roofline.")


def _roof(roof: model.Roofline, grid: Sequence[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"roof of {roof.gpu}: peaks of the data sheet",
        "x": list(grid),
        "y": [roof.attainable(x) for x in grid],
        "line": {"color": theme.GREY, "width": 3},
        "hovertemplate": "%{x:.3g} FLOP a byte: at most %{y:.3s}FLOP/s<extra>data sheet</extra>",
    }


def _attainable(roof: model.Roofline, points: Sequence[tuple[str, Inspection]]) -> list[dict[str, Any]]:
    traces = []
    for k, (name, one) in enumerate(points):
        x = float(one.roofline.intensity or 0)
        bound = "memory" if x < roof.ridge else "compute"
        trace = {
            "type": "scatter",
            "mode": "markers",
            "name": f"{name}: intensity emulated, rate modelled",
            "x": [x],
            "y": [roof.attainable(x)],
            "marker": {
                "size": 14,
                "symbol": "circle-open",
                "color": _colour(k),
                "line": {"width": 3, "color": _colour(k)},
            },
            "hovertemplate": f"{name}: %{{x:.3g}} FLOP a byte, bound by {bound}<br>at most %{{y:.3s}}FLOP/s"
            "<extra>modelled</extra>",
        }
        traces.append(trace)
    return traces


def _measured(points: Sequence[tuple[str, Inspection]]) -> list[dict[str, Any]]:
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{name}: measured on this machine's GPU",
            "x": [one.roofline.intensity],
            "y": [one.totals.flops / one.measured_s],
            "marker": {"size": 13, "symbol": "circle", "color": _colour(k)},
            "hovertemplate": f"{name}: %{{y:.3s}}FLOP/s<extra>measured</extra>",
        }
        for k, (name, one) in enumerate(points)
        if one.measured_s
    ]


def _colour(k: int) -> str:
    colours = theme.COLOURS[:-1]  # grey is the roof
    return colours[k % len(colours)]


def _ridge(roof: model.Roofline) -> Mapping[str, Any]:
    from math import log10

    return {
        "x": log10(roof.ridge),
        "y": log10(roof.peak_flops),
        "text": f"ridge: {roof.ridge:.3g} FLOP a byte",
        "showarrow": True,
        "arrowcolor": theme.INK,
        "ax": 20,
        "ay": -28,
        "xanchor": "center",
    }


def _powers(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis with powers of two."""
    from math import ceil, floor, log2

    ticks = [2.0**k for k in range(ceil(log2(low)), floor(log2(high)) + 1, 2)]
    return {
        "type": "log",
        "tickvals": ticks,
        "ticktext": [f"{t:g}" if t >= 1 else f"1/{1 / t:g}" for t in ticks],
    }
