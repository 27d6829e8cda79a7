"""Options of the commands that use a pattern: its file and the values of its parameters."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.options import parse_count, parse_path
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Pattern, Plan

PAPER = "paper"
LAPTOP = "laptop"

_SCALE = re.compile(r"(?:1/)?([1-9][0-9]{0,17})")
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)")
_SIZE = re.compile(r"[0-9.]+ ?[A-Za-z]+")


def add_pattern_arguments(parser: argparse.ArgumentParser, sizes: str = LAPTOP) -> None:
    """Declare PATTERN and the options that modify it; `sizes` is the default of --sizes."""
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        type=parse_path("pattern"),
        help="name of an installed pattern, such as ior, madbench or gcrm, or a TOML file",
    )
    parser.add_argument(
        "--tasks",
        type=parse_count("tasks", least=1),
        metavar="N",
        help="number of MPI tasks (default: that of the pattern)",
    )
    parser.add_argument(
        "--block-size", metavar="SIZE", help="size of a block, such as 1MiB (default: that of the pattern)"
    )
    parser.add_argument(
        "--repetitions",
        type=parse_count("repetitions", least=1),
        metavar="N",
        help="number of repetitions of a phase (default: that of the pattern)",
    )
    parser.add_argument(
        "--calls",
        type=parse_count("calls", least=1),
        metavar="K",
        help="number of calls that transfer a block (default: that of the pattern)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the pattern to a number, a size or an expression, such as "
        "record_bytes=2MiB; may be repeated",
    )
    parser.add_argument(
        "--scale",
        metavar="1/N",
        help="divide the published sizes by N and keep the shape of the pattern (default: 1)",
    )
    parser.add_argument(
        "--sizes",
        choices=(PAPER, LAPTOP),
        default=sizes,
        help="parameters as published, or those for a laptop (default: %(default)s)",
    )
    parser.add_argument(
        "--layer",
        metavar="LAYER",
        help="layer of the calls, if the pattern allows it: posix, stdio or mpiio (default: that of the "
        "pattern)",
    )


def planned(args: argparse.Namespace) -> tuple[Pattern, Plan]:
    """Return the pattern that the arguments select, and the calls of its tasks."""
    from ensembles.workloads.patterns import expand, read_pattern

    pattern = read_pattern(find_pattern(args.pattern), args.layer)
    return pattern, expand(pattern, parse_overrides(args), paper=args.sizes == PAPER)


def parse_overrides(args: argparse.Namespace) -> dict[str, int | str]:
    """Return the values of parameters that the command line gives."""
    from ensembles.model.filters import parse_size

    given: dict[str, int | str | None] = {
        "shrink": None if args.scale is None else parse_divisor(args.scale),
        "tasks": args.tasks,
        "block_bytes": None if args.block_size is None else parse_size(args.block_size),
        "repetitions": args.repetitions,
        "calls": args.calls,
    }
    for setting in args.set:
        found = _SETTING.fullmatch(setting)
        if not found:
            raise EnsioError(f'--set {setting}: write it as NAME=VALUE, such as --set "block_bytes=4MiB"')
        name, value = found[1], found[2].strip()
        given[name] = parse_size(value) if _SIZE.fullmatch(value) else value
    return {name: value for name, value in given.items() if value is not None}


def find_pattern(name: str) -> Path:
    """Return the file of a pattern."""
    from ensembles.workloads.patterns.toml_tables import named_file

    return named_file("pattern", name)


def parse_divisor(scale: str) -> int:
    """Return N of a scale ``1/N``, and 1 of the scale ``1``.

    Examples
    --------
    >>> parse_divisor("1/64")
    64
    """
    found = _SCALE.fullmatch(scale)
    if not found or (scale == found[1] and scale != "1"):
        raise EnsioError(f'"{scale}" is not a scale: write 1 for the published sizes, or 1/N, such as 1/64')
    return int(found[1])
