"""``ensio completion``: completion of commands and options in a shell."""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = (
    'Print a script that completes commands, options and files: in bash, eval "$(ensio completion bash)" in '
    "~/.bashrc; in zsh, put the output into a file _ensio in a folder of fpath; in fish, into "
    "~/.config/fish/completions/ensio.fish."
)

_PATHS = ("RUN", "FILE", "DIR", "OUTPUT", "PLACE", "OTHER", "GLOB", "TOML")
"""Metavars of arguments that name files or folders."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


def execute(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from ensembles.cli.main import build_parser

    parser = build_parser()
    _complete_paths(parser, shtab.FILE)
    print(shtab.complete(parser, args.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser, files: Any) -> None:
    """Complete arguments that name files, in all subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _complete_paths(subparser, files)
        elif isinstance(action.metavar, str) and action.metavar.split("[")[0].rstrip(".") in _PATHS:
            action.complete = files  # type: ignore[attr-defined]
