"""What commands that take a pattern have in common: finding it, and the values of its parameters."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.common_args import parse_count, parse_path
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Pattern, Plan

PAPER = "paper"
LAPTOP = "laptop"

_PROGRAMS = ("ensio-replay", "ensio-simulate")
_SCALE = re.compile(r"(?:1/)?([1-9][0-9]{0,17})")
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)")
_SIZE = re.compile(r"[0-9.]+ ?[A-Za-z]+")


def add_pattern_arguments(parser: argparse.ArgumentParser, sizes: str = LAPTOP) -> None:
    """Adds PATTERN and the options that change it; `sizes` is what is taken if --sizes is not given."""
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        type=parse_path("pattern"),
        help="a file, or the name of a shipped pattern such as ior, madbench or gcrm",
    )
    parser.add_argument(
        "--tasks", type=parse_count("tasks", least=1), metavar="N", help="number of MPI tasks"
    )
    parser.add_argument("--block-size", metavar="SIZE", help="bytes of a block, such as 1MiB")
    parser.add_argument(
        "--repetitions",
        type=parse_count("repetitions", least=1),
        metavar="N",
        help="how often a phase is repeated",
    )
    parser.add_argument(
        "--calls",
        type=parse_count("calls", least=1),
        metavar="K",
        help="calls in which a block is moved",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='any parameter of the pattern: a number, a size or an expression, such as "record_bytes=2MiB"',
    )
    parser.add_argument(
        "--scale", metavar="1/N", help="the paper's sizes divided by N, with the shape of the pattern kept"
    )
    parser.add_argument(
        "--sizes",
        choices=(PAPER, LAPTOP),
        default=sizes,
        help="the parameters of the publication, or those for a laptop (default: %(default)s)",
    )
    parser.add_argument(
        "--layer",
        metavar="LAYER",
        help="make the calls through another layer, where the pattern allows it: posix, stdio or mpiio",
    )


def planned(args: argparse.Namespace) -> tuple[Pattern, Plan]:
    """The pattern that the arguments name, and the calls of its tasks.

    Raises
    ------
    EnsioError
        If there is no such pattern, or it makes no sense with these values.
    """
    from ensembles.workloads.patterns import expand, read_pattern

    pattern = read_pattern(find_pattern(args.pattern), args.layer)
    return pattern, expand(pattern, parse_overrides(args), paper=args.sizes == PAPER)


def parse_overrides(args: argparse.Namespace) -> dict[str, int | str]:
    """Values of parameters that the command line gives."""
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
    """The file of a pattern: a path, or the name of one in ``share/ensio/patterns`` of an installation.

    Raises
    ------
    EnsioError
        If there is neither.
    """
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    folders = list(dict.fromkeys(_pattern_folders()))
    for folder in folders:
        if (path := folder / f"{name}.toml").is_file():
            return path
    names = sorted({entry.stem for folder in folders for entry in folder.glob("*.toml")})
    if not names:
        raise EnsioError(
            f"{name}: no patterns are installed: build them with ./dev setup, put the bin folder of an "
            "installation on PATH, or name a file"
        )
    raise EnsioError(f"{name}: no such pattern in {folders[0]}: it may be {', '.join(names)} or a path")


def _pattern_folders() -> Iterator[Path]:
    from ensembles.recorder.install_paths import install_prefixes

    for program in _PROGRAMS:
        if path := shutil.which(program):
            yield Path(path).resolve().parent.parent / "share" / "ensio" / "patterns"
    for prefix in install_prefixes():
        yield prefix / "share" / "ensio" / "patterns"


def parse_divisor(scale: str) -> int:
    """N of a scale 1/N; 1 of the scale 1.

    Raises
    ------
    EnsioError
        If it is no such scale.
    """
    found = _SCALE.fullmatch(scale)
    if not found or (scale == found[1] and scale != "1"):
        raise EnsioError(f'"{scale}" is no scale: it is 1 for the sizes of the paper, or 1/N, such as 1/64')
    return int(found[1])
