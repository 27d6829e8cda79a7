"""Paragraphs of 80 columns in which numbers stay with their units."""

from __future__ import annotations

import re
import textwrap

WIDTH = 80

_UNIT = re.compile(
    r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|[KMGTP]?i?B(?:/s)?|%|MiB/s)\b|%|calls?\b|phases?\b|[×x] )|(?<=\d x) "
    r"|(?<=\d min) (?=\d)|(?<=\d h) (?=\d)|(?<=phase) (?=\d)|(?<=Holm) (?=p )|(?<=\bp) (?=\d)"
)


def wrapped(text: str, first: str = "", indent: str = "") -> str:
    """Break a text into lines of at most 80 columns.

    Without an end of line after the last. Longer words stay whole.
    """
    lines = textwrap.fill(
        _UNIT.sub("\N{NO-BREAK SPACE}", text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\N{NO-BREAK SPACE}", " ")
