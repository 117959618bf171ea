"""Tables that read well in a light and in a dark notebook: they colour nothing but a mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

LINE = "1px solid rgba(128,128,128,0.35)"
_CELL = f"padding:4px 10px;text-align:left;vertical-align:top;white-space:normal;border-bottom:{LINE}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> str:
    """An HTML table; cells are HTML already, `head` and `caption` are text."""
    columns = "".join(f'<th scope="col" style="{_CELL};font-weight:600">{escape(word)}</th>' for word in head)
    body = "".join("<tr>" + "".join(cell(content) for content in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{columns}</tr></thead>" if columns else ""
    style = "border-collapse:collapse;background:transparent;color:inherit;max-width:64em"
    return f'<table style="{style}">{_caption(caption)}{top}<tbody>{body}</tbody></table>'


def cell(content: str) -> str:
    return f'<td style="{_CELL}">{content}</td>'


def facts_table(facts: Mapping[str, Any], caption: str = "") -> str:
    """Two columns, name and value; what is not known is left out."""
    rows = [
        (f"<code>{escape(name)}</code>", escape(_words(value)))
        for name, value in facts.items()
        if _known(value)
    ]
    return table((), rows, caption)


def _caption(text: str) -> str:
    style = "caption-side:top;text-align:left;padding:4px 10px;color:inherit;font-weight:600"
    return f'<caption style="{style}">{escape(text)}</caption>' if text else ""


def _known(value: Any) -> bool:
    return value is not None and value != () and value != ""


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items() if _known(part))
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
