"""Two inspections side by side: which counters changed, and how often over."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from labkit.compute.emulator.counts import COUNTERS, Counts
from labkit.compute.emulator.inspection import Inspection
from labkit.errors import LabkitError
from labkit.hardware.html import table
from labkit.widgets import theme

# Ratios that a learner compares before any total, with the counters they are made of.
_RATIOS = (
    ("sectors a load request", "global_load_sectors", "global_load_requests"),
    ("sectors a store request", "global_store_sectors", "global_store_requests"),
)


@dataclass(frozen=True)
class Row:
    """One figure before and after; ``change`` in words."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> str:
        if self.before == self.after:
            return "the same"
        if not self.before or not self.after:
            return "gone" if self.before else "new"
        more = self.after > self.before
        factor = self.after / self.before if more else self.before / self.after
        return f"{'×' if more else '÷'} {factor:.3g}"


@dataclass(frozen=True)
class Comparison:
    """Counters of two launches, emulated and exact; ``figure()`` draws those that changed."""

    before: str
    after: str
    rows: tuple[Row, ...]
    sampled: bool = False

    @property
    def label(self) -> str:
        return "emulated, scaled up from a sample" if self.sampled else "emulated, exact"

    @property
    def changed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.before != row.after)

    def __repr__(self) -> str:
        wide = max([len(row.name) for row in self.rows], default=0)
        lines = [f"{self.before} -> {self.after} ({self.label})"]
        lines += [
            f"{row.name:<{wide}}  {_short(row.before):>12}  {_short(row.after):>12}  {row.change}"
            for row in self.rows
        ]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        rows = [(escape(r.name), _short(r.before), _short(r.after), escape(r.change)) for r in self.rows]
        return table(("counter", self.before, self.after, "change"), rows, f"counters: {self.label}")

    def to_dict(self) -> dict[str, Any]:
        rows = [{"name": r.name, "before": r.before, "after": r.after} for r in self.rows]
        return {"provenance": self.label, "before": self.before, "after": self.after, "rows": rows}

    def figure(self) -> Any:
        """Bars: each changed counter after, as a share of before (100 %); above 100 % it grew.

        Raises
        ------
        LabkitError
            When no counter that both launches have changed.
        """
        shown = [row for row in self.changed if row.before]
        if not shown:
            raise LabkitError("No counter of the first launch changed: there is nothing to draw.")
        return _bars(self, shown)


def compare(before: Inspection, after: Inspection) -> Comparison:
    """Compare two launches: ``labkit.compare(labkit.inspect(...), labkit.inspect(...))``.

    Raises
    ------
    LabkitError
        When either is not an inspection.
    """
    for one in (before, after):
        if not isinstance(one, Inspection):
            raise LabkitError(
                f"labkit.compare takes two results of labkit.inspect, and one of these is {_article(one)}."
            )
    rows = [*_ratios(before.totals, after.totals), *_counters(before.totals, after.totals)]
    first, second = before.kernel, after.kernel
    if first == second:
        first, second = f"{first} (first)", f"{second} (second)"
    return Comparison(first, second, tuple(rows), min(before.sampled, after.sampled) < 1)


def _ratios(before: Counts, after: Counts) -> list[Row]:
    return [
        Row(name, before[top] / before[bottom], after[top] / after[bottom])
        for name, top, bottom in _RATIOS
        if before[bottom] and after[bottom]
    ]


def _counters(before: Counts, after: Counts) -> list[Row]:
    return [
        Row(key.replace("_", " "), before[key], after[key]) for key in COUNTERS if before[key] or after[key]
    ]


def _bars(comparison: Comparison, rows: list[Row]) -> Any:
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": [row.name for row in rows],
            "x": [100 * row.after / row.before for row in rows],
            "text": [row.change for row in rows],
            "textposition": "auto",
            "marker": {"color": [theme.GREEN if row.after < row.before else theme.RED for row in rows]},
            "customdata": [[_short(row.before), _short(row.after)] for row in rows],
            "hovertemplate": "%{customdata[0]} before, %{customdata[1]} after<extra>%{y}</extra>",
        }
    ]
    layout = {
        "xaxis": theme.axis(f"after, as % of before ({comparison.label})"),
        "yaxis": theme.axis("", autorange="reversed"),
        "shapes": [
            {
                "type": "line",
                "x0": 100,
                "x1": 100,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": theme.INK},
            }
        ],
        "showlegend": False,
    }
    title = f"{comparison.before} → {comparison.after}"
    return theme.figure(data, layout, title, height=150 + 28 * len(rows))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.3g}"


def _article(thing: Any) -> str:
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
