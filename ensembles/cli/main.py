"""The command ``ensio``.

A subcommand is a module of this package with ``NAME``, ``HELP``, optionally ``DESCRIPTION``,
``add_arguments(parser)`` and ``execute(args)``, which returns the exit code. Modules import heavy packages
inside ``execute``, so that ``ensio --help`` starts fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from ensembles import __version__
from ensembles.cli.stdio import discard_output, discard_unwritable_output, prepare_output, warn
from ensembles.model.errors import EnsioError

COMMANDS = (
    "run",
    "info",
    "report",
    "events",
    "phases",
    "ordinals",
    "rate",
    "modes",
    "tail",
    "split",
    "diagnose",
    "compare",
    "collect",
    "export",
    "replay",
    "pfs",
    "simulate",
    "scenarios",
    "link-flags",
)

DESCRIPTION = "Record every I/O call of a parallel program, and analyse the distributions of their durations."


class _Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one sentence, like every other error."""

    def error(self, message: str) -> NoReturn:
        warn(f"{message}; see {self.prog} --help")
        self.exit(2)


def build_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Build the parser of the command line.

    Parameters
    ----------
    commands : sequence of str
        The subcommands to include (default: all).
    """
    parser = _Parser(prog="ensio", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"ensio {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name in commands:
        module = import_module(f"ensembles.cli.{name.replace('-', '_')}")
        description = getattr(module, "DESCRIPTION", f"{module.HELP[0].upper()}{module.HELP[1:]}.")
        subparser = subparsers.add_parser(module.NAME, help=module.HELP, description=description)
        module.add_arguments(subparser)
        subparser.set_defaults(execute=module.execute)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``ensio``.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line without the program name (default: that of the process).

    Returns
    -------
    int
        Exit code: 0 success, 1 a check failed, 2 wrong usage or unreadable input.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    named = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS
    prepare_output()
    try:
        args = build_parser(named).parse_args(arguments)
        exit_code: int = args.execute(args)
        sys.stdout.flush()
        return exit_code
    except EnsioError as error:
        warn(str(error))
        return 2
    except MemoryError:
        warn("out of memory: select fewer calls with the filters, or use a larger machine")
        return 2
    except BrokenPipeError:  # the reader of the output has closed it
        discard_output()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        warn(f"{where}{error.strerror or error}")
        discard_unwritable_output()
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
