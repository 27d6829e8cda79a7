#!/usr/bin/env python3
"""Prints docs/man/ensio.1: the page of ``man ensio``, with every command, as the parsers define them.

`./dev docs` runs it, in the environment in which ensio is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from commands_page import Row, commands, sentence, title_of

from ensembles.cli.main import DESCRIPTION
from ensembles.model import __version__

EXIT = (
    ("0", "All is done."),
    ("1", "A check failed (history check, compare --fail-on)."),
    ("2", "Wrong usage, or an input that cannot be read: one sentence names the file and the remedy."),
)


def roff(text: str) -> str:
    """Return a text in which nothing is a request or an escape of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def option(text: str) -> str:
    """Return an option as commands_page has it, its name in bold and its value in italics."""
    return re.sub(r"`(-[^` ]*|[^` ]+)([^`]*)`", lambda match: _marked(match[1], match[2]), text)


def _marked(name: str, value: str) -> str:
    marked = f"\\fB{roff(name)}\\fR" if name.startswith("-") else f"\\fI{roff(name)}\\fR"
    return marked + (f" \\fI{roff(value.strip())}\\fR" if value.strip() else "")


def options(rows: Iterable[Row]) -> list[str]:
    """Return a list of options."""
    return [line for name, told in rows for line in (".TP", option(name), roff(sentence(told)))]


def page() -> str:
    """The whole page."""
    found, shared = commands()
    lines = [
        f'.TH ENSIO 1 "" "ensio {__version__}" "ensio"',
        ".SH NAME",
        "ensio \\- statistical I/O ensembles of parallel programs",
        ".SH SYNOPSIS",
        ".B ensio",
        "\\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]",
        ".SH DESCRIPTION",
        roff(DESCRIPTION.strip()),
        "Every command that prints a result takes \\fB\\-\\-json\\fR: one object on standard output,",
        "in SI units.",
        "Progress and messages go to standard error.",
        ".SH COMMANDS",
    ]
    for command in found:
        lines += [f".SS {roff(command.name)}", roff(command.told), ".PP", roff(command.usage)]
        lines += options(command.rows)
        also = [title_of(group).lower() for group in command.shared]
        lines += [".PP", f"Also: {', '.join(also)}."] if also else []
    lines.append(".SH OPTIONS OF SEVERAL COMMANDS")
    for group in shared:
        lines += [f".SS {roff(title_of(group))}", *options(group[1])]
    lines.append(".SH EXIT STATUS")
    lines += [line for status, told in EXIT for line in (".TP", status, roff(told))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
