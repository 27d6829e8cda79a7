#!/usr/bin/env python3
"""Prints docs/reference/commands.md: every command of ensio with its options, as the parsers define them.

`./dev docs` runs it, in the environment in which ensio is installed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from ensembles.cli.main import DESCRIPTION, build_parser

INTRODUCTION = f"""\
# Commands

{DESCRIPTION}
`ensio COMMAND --help` prints the same. `ensio help reading` says which command answers which question.

Every command that prints a result takes `--json`: one object on standard output, in SI units. Progress and
messages go to standard error. The exit code is 0 if all is done, 1 if a check failed
(`compare --fail-on`), and 2 for wrong usage or unreadable input. Each error is one sentence that
names the file and the remedy.
"""
SHARED = 3
"""Groups of options that so many commands have in common are listed once."""

OPTIONS = "options"
USAGE_WIDTH = 100

Row = tuple[str, str]
Group = tuple[str, tuple[Row, ...]]


def parsers(parser: argparse.ArgumentParser, help_text: str) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """A parser and those of its subcommands, in their order, each with what it does."""
    yield parser, parser.description or help_text
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, subparser in action.choices.items():
                yield from parsers(subparser, told.get(name, ""))


def row_of(action: argparse.Action, parser: argparse.ArgumentParser) -> Row:
    """An option as the page shows it, and what it says."""
    formatter = parser._get_formatter()
    if action.option_strings:
        value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        names = (f"{name} {value}" if action.nargs != 0 else name for name in action.option_strings)
        shown = ", ".join(f"`{name}`" for name in names)
    elif action.nargs == argparse.REMAINDER:
        shown = f"`{action.metavar or action.dest}`"
    else:
        shown = f"`{formatter._format_args(action, formatter._get_default_metavar_for_positional(action))}`"
    said = formatter._expand_help(action) if action.help else ""
    return " ".join(shown.split()), " ".join(said.split())


def groups_of(parser: argparse.ArgumentParser) -> list[Group]:
    """The groups of options of a parser, without --help."""
    groups = []
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
            and action.help is not argparse.SUPPRESS
        ]
        if actions:
            groups.append((group.title or OPTIONS, tuple(row_of(action, parser) for action in actions)))
    return groups


def table(rows: tuple[Row, ...]) -> str:
    """Of options, in Markdown."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(["| option | meaning |", "|---|---|", *(f"| {a} | {b} |" for a, b in cells)]) + "\n"


def anchor(heading: str) -> str:
    """As links name a heading."""
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def sentence(text: str) -> str:
    """What a help text says, as a sentence."""
    text = " ".join(text.split())
    end = "" if text.endswith("..") else "."  # of an open range
    return text[:1].upper() + text[1:].removesuffix(".") + end if text else ""


@dataclass(frozen=True)
class Command:
    """A command: its name, what it does, how it is called, its own options, and the groups that many have."""

    name: str
    told: str
    usage: str
    rows: tuple[Row, ...]
    shared: tuple[Group, ...]


def commands() -> tuple[list[Command], list[Group]]:
    """Every command and subcommand, and the groups of options that are listed once."""
    every = [(parser, told, groups_of(parser)) for parser, told in parsers(build_parser(), "")]
    often = Counter(group for _, _, groups in every for group in groups)
    shared = [group for group, times in often.items() if times >= SHARED and len(group[1]) > 1]
    found = [
        Command(
            parser.prog,
            sentence(told),
            " ".join(parser.format_usage().removeprefix("usage: ").split()).replace(" [-h]", ""),
            tuple(row for group in groups if group not in shared for row in group[1]),
            tuple(group for group in groups if group in shared),
        )
        for parser, told, groups in every[1:]
    ]
    return found, shared


def title_of(group: Group) -> str:
    """The heading of a group that many commands have."""
    return group[0].partition(" (")[0].capitalize()


def page() -> str:
    """The whole page."""
    found, shared = commands()
    parts = [INTRODUCTION]
    for command in found:
        parts += [f"## {command.name}\n", command.told + "\n"]
        parts.append(
            "    " + "\n        ".join(wrap(command.usage, USAGE_WIDTH, break_on_hyphens=False)) + "\n"
        )
        if command.rows:
            parts.append(table(command.rows))
        links = [f"[{title_of(group).lower()}](#{anchor(title_of(group))})" for group in command.shared]
        if links:
            parts.append(f"Also: {', '.join(links)}.\n")
    for group in shared:
        remark = group[0].partition(" (")[2].rstrip(")")
        if remark.startswith("docs/"):
            remark = f"see [{remark}](../{remark.removeprefix('docs/')})"
        parts += [f"## {title_of(group)}\n", sentence(remark) + "\n", table(group[1])]
    return "\n".join(part for part in parts if part.strip())


if __name__ == "__main__":
    print(page(), end="")
