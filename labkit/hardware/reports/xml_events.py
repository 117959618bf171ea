"""XML as people paste it, cut and mangled: a scanner of tags that never fails and resolves no entities."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

# <name a="1" b="2"> or </name> or <name/>, and the text up to the next tag
_TAG = re.compile(
    r"<(/?)([A-Za-z_][\w.:-]{0,79})((?:\s+[\w.:-]{1,80}\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*(/?)>([^<]*)"
)
_ATTRIBUTE = re.compile(r"([\w.:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def events(line: str) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """``(what, name, attributes, text)`` for each tag of a line; `what` is ``open``, ``close`` or ``empty``."""
    for close, name, attributes, empty, text in _TAG.findall(line):
        what = "close" if close else "empty" if empty else "open"
        yield what, name, _attributes(attributes), html.unescape(text).strip()


def _attributes(text: str) -> dict[str, str]:
    return {name: html.unescape(a or b) for name, a, b in _ATTRIBUTE.findall(text)}
