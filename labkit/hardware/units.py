"""Sizes, rates and times as people write them, to and from SI floats.

Inside labkit a size is a float of bytes, a rate bytes a second, a time seconds. At the door all of them may
be strings: ``"64MiB"``, ``"25Gbit/s"``, ``"5us"``. A bare number is taken to be SI already.
"""

from __future__ import annotations

import re

from labkit.errors import LabkitError

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_PREFIX = _DECIMAL | _BINARY
# Dividing by 1e6 is exact where multiplying by 1e-6 is not: parse("5us") == 5e-6.
_TIME = {
    "ns": (1.0, 1e9),
    "us": (1.0, 1e6),
    "µs": (1.0, 1e6),  # micro sign
    "μs": (1.0, 1e6),  # Greek mu
    "ms": (1.0, 1e3),
    "s": (1.0, 1.0),
    "min": (60.0, 1.0),
    "h": (3600.0, 1.0),
}
_EXAMPLES = {"size": "'64MiB' or '1.5GB'", "rate": "'25Gbit/s' or '12GB/s'", "time": "'5us' or '1.2ms'"}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")
_AMOUNT = re.compile(r"(Ki|Mi|Gi|Ti|Pi|[kKMGTP]?)(Bytes|bytes|Byte|byte|B|bits|bit|b)")


def parse(value: str | float, kind: str | None = None) -> float:
    """A size in bytes, a rate in bytes/s or a time in seconds.

    Parameters
    ----------
    value : str or float
        ``"64MiB"``, ``"25Gbit/s"``, ``"25Gbps"``, ``"5us"``, or a number that is SI already.
        kB, MB, GB are powers of ten and KiB, MiB, GiB powers of two (IEC 80000-13); 8 bits make a byte.
    kind : {"size", "rate", "time"}, optional
        What is wanted; a string of another kind is refused.

    Raises
    ------
    LabkitError
        For an unknown or ambiguous unit, the wrong kind, or a value that is negative or not finite.
    """
    if isinstance(value, str):
        number, unit = _split(value, kind)
        found, (factor, divisor) = _unit(unit, value)
        if kind is not None and found != kind:
            raise LabkitError(
                f"{value!r} is a {found}, and a {kind} is wanted here: write {_EXAMPLES[kind]}."
            )
        return _checked(number * factor / divisor, value)
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        kinds = " or ".join(_EXAMPLES.values()) if kind is None else _EXAMPLES[kind]
        raise LabkitError(f"{value!r} is neither a number nor a string such as {kinds}.")
    return _checked(float(value), value)


def show_bytes(size: float) -> str:
    """A size in the largest binary unit that leaves at least 1, four significant digits: ``"64 MiB"``."""
    return _show(size, {"B": 1.0, **{f"{prefix}B": factor for prefix, factor in _BINARY.items()}})


def show_rate(rate: float, *, bits: bool = False) -> str:
    """A rate given in bytes/s, in decimal units: ``"3.125 GB/s"``, or with `bits` ``"25 Gbit/s"``."""
    units = {
        f"{prefix}{'bit' if bits else 'B'}/s": factor for prefix, factor in _DECIMAL.items() if prefix != "K"
    }
    return _show(rate * 8 if bits else rate, units)


def show_time(seconds: float) -> str:
    """A time in ns, us, ms or s, four significant digits: ``"5 us"``."""
    return _show(seconds, {unit: 1 / _TIME[unit][1] for unit in ("ns", "us", "ms", "s")})


def _split(text: str, kind: str | None) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text)
    example = _EXAMPLES[kind] if kind else _EXAMPLES["size"]
    if match is None:
        raise LabkitError(
            f"{text!r} does not start with a number: write a number and a unit, such as {example}."
        )
    if match[2] is None:
        raise LabkitError(
            f"{text!r} has no unit: write one, such as {example}, or pass a number in SI units."
        )
    return float(match[1]), match[2]


def _unit(unit: str, text: str) -> tuple[str, tuple[float, float]]:
    if unit in _TIME:
        return "time", _TIME[unit]
    amount, per_second = re.subn(r"(/s|ps)$", "", unit)
    match = _AMOUNT.fullmatch(amount)
    if match is None:
        raise LabkitError(f"{text!r} has the unit {unit!r}, which {_hint(amount)}.")
    prefix, base = match.groups()
    if base == "b" and not per_second:
        # Half of those who write Mb for a size mean MB: refuse rather than be wrong by a factor of 8.
        raise LabkitError(f"{text!r} may mean bits or bytes: write {prefix}bit or {prefix}B.")
    return "rate" if per_second else "size", (_PREFIX[prefix], 8.0 if base in ("b", "bit", "bits") else 1.0)


def _hint(amount: str) -> str:
    lowered = re.fullmatch(r"([kmgtp]i?)b", amount.lower())
    if lowered:
        prefix = lowered[1][0].upper() + lowered[1][1:]
        return f"may mean bits or bytes: write {prefix}B or {prefix}bit"
    return "is not known: sizes are in B, kB, MB, KiB, MiB, bit, ...; rates add /s; times are ns, us, ms, s"


def _checked(number: float, value: object) -> float:
    if not 0 <= number < float("inf"):
        raise LabkitError(f"{value!r} is not a size, rate or time: it must be zero or more, and finite.")
    return number


def _show(number: float, units: dict[str, float]) -> str:
    fitting = [unit for unit, factor in units.items() if abs(number) >= factor]
    unit = fitting[-1] if fitting else next(iter(units))
    return f"{number / units[unit]:.4g} {unit}"
