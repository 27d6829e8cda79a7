"""What several commands share: options (the run, filters, execution, output) and messages."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.sanitize_text import sanitize_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


_RUN = "run directory, spool, job file, trace.h5, or a log of another tool (ensio help importing)"

_MAX_DIGITS = 18
"""Of a count: any number of so many digits fits into 64 bits."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run that a command reads."""
    parser.add_argument("run", metavar="RUN", type=parse_path("run"), help=_RUN)


def add_output(
    parser: argparse.ArgumentParser,
    metavar: str,
    help: str,
    *,
    what: str = "file",
    default: str | None = None,
    required: bool = False,
) -> None:
    """Declare the output path."""
    parser.add_argument(
        "-o",
        "--output",
        metavar=metavar,
        type=parse_path(what),
        default=default,
        required=required,
        help=help,
    )


def add_new_run_directory(parser: argparse.ArgumentParser, metavar: str = "RUN") -> None:
    """Declare the run directory that a command creates."""
    add_output(
        parser,
        metavar,
        "run directory to create (default: a new one in the current folder)",
        what="run directory",
    )


def add_json(parser: argparse.ArgumentParser, help: str = "print one JSON object, in SI units") -> None:
    """Declare the option for output that programs read."""
    parser.add_argument("--json", action="store_true", help=help)


def add_limit(
    parser: argparse.ArgumentParser,
    what: str,
    default: int | None,
    help: str = "maximum number of rows of the table (default: %(default)s)",
) -> None:
    """Declare the maximum number of rows of a table."""
    parser.add_argument("--limit", metavar="N", type=parse_count(what, least=0), default=default, help=help)


def parse_path(what: str) -> Callable[[str], str]:
    """Return a parser of paths that rejects the empty path, which would mean the current folder."""

    def checked(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"the {what} has no name")
        return text

    return checked


def parse_count(what: str, least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers that rejects numbers below `least`."""

    def converted(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            expected = f"number of {what}" if what else "whole number"
            raise argparse.ArgumentTypeError(f'"{text}" is not a {expected}')
        if len(text) > _MAX_DIGITS:
            raise argparse.ArgumentTypeError(f"a number with {len(text)} digits is too large")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return int(text)

    return converted


def parse_bytes(what: str, per: str = "") -> Callable[[str], int]:
    """Return a parser of positive sizes; with `per` ``/s``, of rates such as ``16GB/s``."""

    def converted(text: str) -> int:
        from ensembles.model.errors import EnsioError
        from ensembles.model.filters import parse_size

        number, slash, of = text.partition("/")
        if slash and slash + of.strip() != per:
            raise argparse.ArgumentTypeError(f'"{text}" is not a {what}: write it like 16GB{per}')
        try:
            size = parse_size(number)
        except EnsioError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if size < 1:
            raise argparse.ArgumentTypeError(f"the {what} must be at least 1 B{per}")
        return size

    return converted


def parse_ratio(text: str) -> float:
    """Parse a number or a percentage; −1: it is neither."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        return -1.0


def parse_share(text: str) -> float:
    """Parse a share between 0 and 1: ``10%`` or ``0.1``."""
    value = parse_ratio(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f'"{text[:20]}" is not a share between 0 and 1: write it like 10% or 0.1'
        )
    return value


class OldName(argparse.Action):
    """An option under the name of earlier versions, which works with a note.

    `new`: the option, and the beginning of its value.
    """

    def __init__(self, option_strings: Sequence[str], new: str, **how: Any) -> None:
        hidden = argparse.SUPPRESS
        super().__init__(option_strings, **how | {"dest": hidden, "default": hidden, "help": hidden})
        self.new = new

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        """Take the value for the option of the new name."""
        name, _, begins = self.new.partition(" ")
        text = f"{begins}{values or ''}"
        warn(f"note: {option} is {shlex.join([name, text])} now")
        action = parser._option_string_actions[name]
        action(parser, namespace, parser._get_values(action, [text]), name)


def add_old_names(parser: argparse.ArgumentParser, names: Mapping[str, str]) -> None:
    """Declare options under earlier names; of those without a value, the new one has it."""
    for old, new in names.items():
        takes_value = new.endswith("=") or " " not in new
        parser.add_argument(old, action=OldName, new=new, nargs=None if takes_value else 0)


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select events."""
    group = parser.add_argument_group("filters (comma-separated lists; default: every call)")
    group.add_argument("--op", metavar="OP", help="read, write, open, close, seek, sync, meta or wait")
    group.add_argument("--call", metavar="NAME", help="functions, such as pread,pwrite")
    group.add_argument(
        "--layer",
        metavar="NAME",
        help="layers: posix, stdio, mpiio, mpisync, hdf5, netcdf, pnetcdf or mpimsg",
    )
    group.add_argument(
        "--file", metavar="GLOB", action="append", help="paths or their ends, with wildcards; may be repeated"
    )
    group.add_argument("--rank", metavar="RANKS", help="ranks, such as 0-63 or 0,5")
    group.add_argument("--size", metavar="SIZES", help="requested bytes, such as 1MiB or 1MiB..4MiB")
    group.add_argument(
        "--time",
        metavar="FROM..TO",
        help="start of the call, in seconds since the start of the run, such as 1.5..3",
    )
    group.add_argument(
        "--phase", metavar="NUMBERS", help="phases, as numbered by ensio phases, such as 3 or 1,4-8"
    )
    group.add_argument(
        "--per-byte",
        action="store_true",
        help="only calls that moved bytes, with durations in seconds per MiB",
    )
    group.add_argument(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="any filter, such as 'duration>10ms', 'offset=1GiB..2GiB', 'rate<10MiB' (bytes moved per "
        "second of the call), failed, error=ENOSPC,EIO, region=NAME (of the program), site=restart.f90:212 "
        "(file, line or function) or ordinal=4-8 (call index of a rank, operation and file); may be repeated",
    )
    names = ("duration", "offset", "rate", "error", "region", "site", "ordinal")
    add_old_names(
        parser, {f"--{name}": f"--where {name}=" for name in names} | {"--failed": "--where failed"}
    )


def filters_from_args(args: argparse.Namespace) -> dict[str, Any]:
    """Return the filters that the user gave, by name."""
    from ensembles.model.filters import WITH_OPTION
    from ensembles.run.selection import parse_where

    found = {name: getattr(args, name) for name in WITH_OPTION if getattr(args, name)}
    return parse_where(args.where, found) if args.where else found


def filter_words(args: argparse.Namespace) -> list[str]:
    """Return the filters as on a command line."""
    from ensembles.model.filters import WITH_OPTION

    words = []
    for name in (*WITH_OPTION, "where"):
        value = getattr(args, name)
        for each in value if isinstance(value, list) else [value] * bool(value):
            words += [f"--{name.replace('_', '-')}", *([] if each is True else [each])]
    return words


def selection_from_args(args: argparse.Namespace) -> Selection:
    """Return the selection that the arguments describe."""
    from ensembles.run.selection import Selection

    return Selection.parse(quantity=getattr(args, "quantity", "duration"), **filters_from_args(args))


def add_set(parser: argparse.ArgumentParser, help: str, old: Mapping[str, str]) -> None:
    """Declare the option of values that have no option each; `old`: options that some had."""
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=help)
    add_old_names(parser, {name: f"--set {new}=" for name, new in old.items()})


def settings_from_args(args: argparse.Namespace) -> dict[str, str]:
    """Return the values of ``--set`` by name."""
    from ensembles.model.errors import EnsioError

    found = {}
    for setting in args.set:
        match = _SETTING.fullmatch(setting)
        if not match:
            raise EnsioError(f'--set {setting}: write it as NAME=VALUE, such as --set "block_bytes=4MiB"')
        found[match[1]] = match[2].strip()
    return found


_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://.+")
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)")


def add_scale_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for large runs."""
    group = parser.add_argument_group("large runs (ensio help large-runs)")
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_bytes("memory"),
        help="maximum memory of this process and its workers on this machine, such as 1GiB (default: a "
        "quarter of the machine's memory)",
    )
    group.add_argument(
        "--workers",
        metavar="N|ADDRESS",
        type=_workers,
        help="number of worker processes on this machine (default: none, threads of this process), or "
        "address of the scheduler of a Dask cluster whose workers read the events, such as "
        "tcp://10.0.0.1:8786",
    )
    add_old_names(parser, {"--scheduler": "--workers"})


def open_run(args: argparse.Namespace, path: str, runs: int = 1) -> Run:
    """Open a run with the executor and the memory that the options select."""
    from ensembles.passes.executors import executor_for, suited_to
    from ensembles.passes.memory import Budget
    from ensembles.run.open import open_as
    from ensembles.run.run import Run

    if "executor" not in args:
        args.executor = executor_for(args.workers)
    budget = (Budget(args.memory) if args.memory else Budget.default()).shared_by_runs(runs)
    run = open_as(Run, path, args.executor, budget.memory_bytes)
    run.reading.budget, run.reading.executor = budget, suited_to(args.executor, run)
    return run


def _workers(text: str) -> int | str:
    if text.lstrip("-").isalnum():
        return parse_count("workers", least=1)(text)
    if not _ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f'"{text}" is not the address of a scheduler: write it like tcp://HOST:8786'
        )
    return text


def warn_of(notes: Iterable[str]) -> None:
    """Print notes on standard error, each once."""
    for note in dict.fromkeys(notes):
        warn(f"note: {note}")


def warn(sentence: str) -> None:
    """Print a message on standard error, in one line unless it is a terminal; never fail by it."""
    if sys.stderr is None:  # print would use standard output
        return
    text = f"ensio: {sanitize_text(sentence)}"
    try:
        if sys.stderr.isatty():  # elsewhere a message stays in one line, for searching
            import shutil

            width = shutil.get_terminal_size().columns
            text = textwrap.fill(text, max(width, 40), break_long_words=False, break_on_hyphens=False)
        print(text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # otherwise the last flush of the interpreter fails too, with status 120
