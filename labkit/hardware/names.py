"""From a name somebody typed, or a tool printed, to an entry of the catalogue, or to an honest no."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from labkit.errors import LabkitError

_BRANDS = re.compile(r"\b(nvidia|amd|geforce|tesla|instinct)\b")
_LAPTOP = re.compile(r"\s*\(?\b(laptop( gpu)?|mobile|max-q( design)?|with max-q design)\b\)?", re.IGNORECASE)
_SLICE = re.compile(r"\s*\bMIG\b.*", re.IGNORECASE)
_SIZE = re.compile(r"[\s_-]+(\d+)\s*gb\s*$", re.IGNORECASE)


def fold(name: str) -> str:
    """A name without brand, case, spaces, punctuation: ``"NVIDIA A100-SXM4-80GB"`` -> ``"a100sxm480gb"``."""
    return re.sub(r"[^a-z0-9.]", "", _BRANDS.sub(" ", name.lower()))


def index(entries: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Folded name -> id, for ids and all the names they go by."""
    return {fold(name): identity for identity, names in entries.items() for name in (identity, *names)}


def split_size(name: str) -> tuple[str, int | None]:
    """``"RTX 3080 12GB"`` gives ``("rtx3080", 12)``: the folded name, and the memory in GB at its end."""
    size = _SIZE.search(name)
    return (fold(name[: size.start()]), int(size[1])) if size else (fold(name), None)


def refuse_partial(name: str, known: Mapping[str, str]) -> None:
    """Raise for names of something that is not the whole desktop or server card."""
    for pattern, why in (
        (_SLICE, "is a MIG slice, a part of a card with its own share of multiprocessors and memory"),
        (
            _LAPTOP,
            "is a laptop GPU, whose multiprocessors and clocks are not the desktop card's",
        ),
    ):
        whole = pattern.sub("", name).strip()
        if whole != name.strip():
            ask = f" Ask for gpu({whole!r}) if the whole card will do." if fold(whole) in known else ""
            raise LabkitError(f"{name!r} {why}, and the catalogue has no figures for it.{ask}")


def unknown(what: str, name: str, known: Mapping[str, str], listing: str) -> LabkitError:
    """The error for a name nobody knows: suggests the nearest."""
    from difflib import get_close_matches

    near = list(dict.fromkeys(known[match] for match in get_close_matches(fold(name), known, 3, 0.6)))
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return LabkitError(f"The catalogue has no {what} {name!r}.{hint} {listing} lists them all.")
