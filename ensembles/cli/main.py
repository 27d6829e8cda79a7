"""The command ``ensio``.

A subcommand is an entry of `HEADINGS`, and of `ensembles.cli.questions` or a module of this package with
``add_arguments(parser)``, ``execute(args)``, which returns the exit code, and perhaps ``DESCRIPTION``. It is
loaded when it is named, and imports heavy packages inside ``execute``, so that ``--help`` starts fast.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import re
import sys
import textwrap
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn

from ensembles.cli.options import add_filter_arguments, warn
from ensembles.model import __version__
from ensembles.model.errors import EnsioError
from ensembles.model.nearest_names import nearest_names, suggestion

HEADINGS = {
    "why is it slow": {
        "run": "run a program under the preload library, and record its I/O calls",
        "diagnose": "find causes of slow I/O: evidence, advice and predicted gain of each",
        "predict": "predict what a remedy gains, from the account of a run",
        "try": "predict what a remedy gains, and measure it: the run is made again, with the remedy and "
        "without it",
        "report": "write one HTML file with the pictures and tables of a run, or of two runs compared; it "
        "needs no network",
        "serve": "explore runs in the browser: linked trace diagram, histogram, rates and tables; or a "
        "history of runs",
        "compare": "compare runs or groups of runs: totals, verdict, changes of modes and tail, tests",
        "history": "keep the summaries of runs, and check whether the latest run has changed",
        "docs": "open the documents in a browser (ensio help PAGE: a page in the terminal)",
    },
    "look closer": {
        "info": "summarize a run: time, calls, bytes, access sizes, lost events",
        "phases": "list the phases of a run: time, bytes, idle time of tasks, slowest rank",
        "ranks": "show calls, bytes, rates, time in I/O and time waiting of each rank",
        "files": "show calls, bytes, rates and time in I/O of each file",
        "sites": "show which places in the program led to the calls, with their time",
        "requests": "show number, sizes and alignment of reads and of writes of each API",
        "rate": "show the aggregate data rate over time, and its plateaus",
        "ordinals": "show durations by call index (first, second, ... call of a task on a file) and their "
        "trend",
        "pattern": "show the access pattern: loops of reads and writes, their order in the files, shared and "
        "private files",
        "events": "print the events as a table, CSV or JSON lines, or write them as Parquet",
        "modes": "find the modes of the call durations, with confidence intervals and harmonics",
        "tail": "predict the slowest of N tasks, with a prediction interval and the method used",
        "split": "predict the phase time if each call is split into k smaller calls, with an interval",
        "scaling": "show rates of several runs against the number of tasks, nodes or writers",
        "fingerprint": "show or compare which calls a run made, with their sizes, offsets and order, without "
        "their times",
        "anonymise": "write a run without names: paths, arguments and users are hashed",
        "collect": "put the spools of a run directory into one HDF5 file, trace.h5",
        "export": "write a run, or a selection of it, as OTF2, HDF5, Parquet, CSV or Perfetto JSON",
        "link-flags": "print the options that link the recorder into a program: cc app.o -o app "
        "$(ensio link-flags)",
        "completion": "print the completion of ensio for a shell",
        "mcp": "serve info, diagnose, compare and history as read-only tools of the Model Context Protocol",
    },
    "laboratory": {
        "replay": "execute a pattern, or a recorded run again, with real MPI and real I/O, and record it",
        "calibrate-fs": "measure what calls cost on a file system, for ensio predict",
        "simulate": "execute a pattern in virtual time on a model of a parallel file system",
        "scenarios": "simulate runs with a known cause of slow I/O, each with an answer sheet",
        "pfs": "run a program under the model of a parallel file system",
    },
}
"""The commands under the headings of the help, each with what it does."""

COMMANDS = {name: does for commands in HEADINGS.values() for name, does in commands.items()}

_STARTING_PROGRAMS = ("run", "try", "replay", "calibrate-fs", "pfs", "simulate", "scenarios")
"""Commands that start other programs, which must find the environment of the user."""

_OTHERS_TERMINAL = ("run", "pfs")
"""Commands whose terminal is that of the user's program."""

_COLLECTION = (150_000, 20, 50)
"""Thresholds of Python's collector of cyclic garbage. The objects of thousands of processes, and of pictures,
stay until the command ends; looking through them again and again took a tenth of its time."""

DESCRIPTION = "Record every I/O call of a parallel program, and analyse the distributions of their durations."

_PAGES = "ensio help README lists the pages; ensio help PAGE shows one, or a finding: recording, o-sync ..."


_CHOICE = re.compile(r"argument (\S+?)(?:/\S+)*: invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
_UNRECOGNIZED = re.compile(r"unrecognized arguments: (\S+).*", re.DOTALL)


_ABOUT_WHOLE_RUNS = ("ensio info", "ensio diagnose", "ensio serve")
_WITH_FILTERS = "ensio report, ranks, files, requests, phases, modes and events"


class _HeadedHelp(argparse.HelpFormatter):
    """Help with a heading above the first command of each group, and with paths that can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)

    def _format_action(self, action: argparse.Action) -> str:
        headings = [heading for heading, names in HEADINGS.items() if action.dest == next(iter(names))]
        return "".join(f"\n  {heading}:\n" for heading in headings) + super()._format_action(action)


class _Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one sentence, like every other error."""

    subcommand: argparse.ArgumentParser | None = None
    """The only subcommand of this parser."""

    def error(self, message: str) -> NoReturn:
        choice, option = _CHOICE.fullmatch(message), _UNRECOGNIZED.fullmatch(message)
        prog = self.prog
        if choice:
            known = [name.strip(" '") for name in choice[3].split(",")]
            what = "command" if choice[1] == "COMMAND" else f"{choice[1]}"
            message = f'there is no {what} "{choice[2]}": {suggestion(choice[2], known, "it is one of")}'
        elif option and self.subcommand is not None:
            prog = self.subcommand.prog
            known = list(self.subcommand._option_string_actions)
            near = nearest_names(option[1], known) if option[1].startswith("-") else []
            near = _options_with_choice(self.subcommand, option[1]) or near
            if prog in _ABOUT_WHOLE_RUNS and option[1].partition("=")[0] in _filters():
                near = []
            message = f'there is no {"option" if option[1].startswith("-") else "argument"} "{option[1]}"'
            if near:
                message += f": did you mean {' or '.join(near)}?"
            elif not option[1].startswith("-"):
                message += f": {prog} takes {_taken(self.subcommand)}"
            elif prog in _ABOUT_WHOLE_RUNS and option[1].partition("=")[0] in _filters():
                message += f", because {prog} is about whole runs: {_WITH_FILTERS} take filters"
        warn(f"{message}{'' if message.endswith('?') else ';'} see {prog} --help")
        self.exit(2)


def _filters() -> set[str]:
    """Return the options that select calls."""
    parser = argparse.ArgumentParser(add_help=False)
    add_filter_arguments(parser)
    return set(parser._option_string_actions)


def _taken(parser: argparse.ArgumentParser) -> str:
    """Return the arguments apart from its options, as in the usage."""
    named = [
        (str(action.metavar or action.dest), action.nargs)
        for action in parser._actions
        if not action.option_strings
    ]
    return " ".join(f"[{name}]" if nargs in ("?", "*") else name for name, nargs in named) or "options only"


def _options_with_choice(parser: argparse.ArgumentParser, option: str) -> list[str]:
    """Return the options of which a wrong one is a choice, as ``--format csv`` for ``--csv``."""
    word = option.removeprefix("--")
    return [
        f"{action.option_strings[-1]} {word}"
        for action in parser._actions
        if action.option_strings and action.choices and word in action.choices
    ]


def build_parser(commands: Collection[str] = COMMANDS, is_whole: bool = True) -> argparse.ArgumentParser:
    """Build the parser of the command line; unless it `is_whole`, it only names the commands."""
    parser = _Parser(prog="ensio", description=DESCRIPTION, epilog=_PAGES, formatter_class=_HeadedHelp)
    parser.add_argument("-V", "--version", action="version", version=f"ensio {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name in commands:
        does = COMMANDS[name]
        subparser = subparsers.add_parser(name, help=does, add_help=is_whole)
        parser.subcommand = subparser if len(commands) == 1 else None
        if is_whole:
            module = command(name)
            subparser.description = getattr(module, "DESCRIPTION", f"{does[0].upper()}{does[1:]}.")
            module.add_arguments(subparser)
            subparser.set_defaults(execute=module.execute)
    return parser


def command(name: str) -> Any:
    """Load a command: an entry of `ensembles.cli.questions`, or a module."""
    from ensembles.cli.questions import QUESTIONS

    return QUESTIONS.get(name) or import_module(f"ensembles.cli.{name.replace('-', '_')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``ensio``, and return 0: success, 1: a check failed, 2: wrong usage or input."""
    is_program = arguments is None
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    page = arguments[1] if arguments[:1] == ["help"] and len(arguments) == 2 else None
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    first = next((word for word in arguments if word != "--"), "")
    is_named = first in COMMANDS
    _prepare_output()
    collection = gc.get_threshold()
    if is_named and first not in _STARTING_PROGRAMS:
        _use_one_blas_thread()
        gc.set_threshold(*_COLLECTION)
    try:
        if page is not None:
            from ensembles.cli import docs

            if page not in COMMANDS or docs.is_for_users(page):
                return docs.show_page(page)
        args = build_parser([first] if is_named else COMMANDS, is_named).parse_args(arguments)
        if first not in _OTHERS_TERMINAL:
            from ensembles.cli.terminal import show_progress

            show_progress()
        exit_code: int = args.execute(args)
        sys.stdout.flush()
        return exit_code
    except EnsioError as error:
        warn(str(error))
        return 2
    except ModuleNotFoundError as error:
        warn(_bringing(error))
        return 2
    except MemoryError:
        warn("out of memory: select fewer calls with the filters, or use a larger machine")
        return 2
    except BrokenPipeError:  # the reader of the output has closed it
        _discard_output()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        warn(f"{where}{error.strerror or error}")
        _discard_unwritable_output()
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        if is_program:
            gc.freeze()  # the end of Python searches what is left: a fifth of a small report
        else:
            gc.set_threshold(*collection)  # callers of this function live on


def _bringing(error: ModuleNotFoundError) -> str:
    """Say which extra of ensio brings a package; a module that none brings is a defect."""
    from importlib.metadata import requires

    package = (error.name or "").partition(".")[0]
    for line in requires("ensio") or ():
        if found := re.fullmatch(rf"{package}\b.*; extra == [\"'](\w+)[\"']", line):
            return f"this needs {package}: pip install 'ensio[{found[1]}]'"
    raise error


def _use_one_blas_thread() -> None:
    """Keep OpenBLAS from starting a thread for each core, which takes longer than a small command."""
    if "numpy" not in sys.modules and "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _ClosedOutput(io.TextIOBase):
    """Replacement of a standard output that the calling process has closed; Python sets it to None."""

    def write(self, text: str) -> NoReturn:
        raise EnsioError("standard output is closed, so the result cannot be written: redirect it to a file")


def _prepare_output() -> None:
    """Let standard output accept every text; paths that are not valid UTF-8 keep their bytes."""
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        unicode = sys.stdout.encoding.lower() in ("utf-8", "utf8")
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "backslashreplace")


def _discard_output() -> None:
    """Discard buffered output, which the interpreter would otherwise fail to flush when it exits."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


def _discard_unwritable_output() -> None:
    """Discard buffered output if standard output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


if __name__ == "__main__":
    sys.exit(main())
