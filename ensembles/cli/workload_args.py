"""Options of the commands that use a pattern, its parameters, or a model of a parallel file system."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.options import add_set, parse_count, parse_path, settings_from_args
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Pattern, Plan
    from ensembles.workloads.simulation import Model

PAPER = "paper"
LAPTOP = "laptop"
FS_SCALE = "fs_scale=1/N divides the sizes in bytes of the model (caches, windows, stripes) by N"

_SCALE = re.compile(r"(?:1/)?([1-9][0-9]{0,17})")
_OLD = {"--block-size": "block_bytes", "--fs-scale": "fs_scale"}
_OLD |= {f"--{name}": name for name in ("repetitions", "calls", "scale", "sizes")}
"""Settings that were options until 0.1."""

_SIZE = re.compile(r"[0-9.]+ ?[A-Za-z]+")


def add_pattern_arguments(parser: argparse.ArgumentParser, sizes: str = LAPTOP) -> None:
    """Declare PATTERN and the options that modify it; `sizes` are those by default."""
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
    add_set(
        parser,
        "set a parameter of the pattern to a number, a size or an expression, such as block_bytes=1MiB, "
        "repetitions=3, calls=4 (that transfer a block) or record_bytes=2MiB; scale=1/64 divides the "
        "published sizes and keeps the shape; sizes=paper takes parameters as published, sizes=laptop those "
        f"for a laptop (default: {sizes}); {FS_SCALE}; may be repeated",
        _OLD,
    )
    parser.set_defaults(sizes=sizes)
    parser.add_argument(
        "--layer",
        metavar="LAYER",
        help="layer of the calls, if the pattern allows it: posix, stdio or mpiio (default: that of the "
        "pattern)",
    )


def planned(args: argparse.Namespace) -> tuple[Pattern, Plan]:
    """Return the pattern that the arguments select, and the calls of its tasks."""
    from ensembles.workloads.patterns import expand, read_pattern

    sizes = settings_from_args(args).get("sizes", args.sizes)
    if sizes not in (PAPER, LAPTOP):
        raise EnsioError(f'"{sizes}" are not sizes of a pattern: write --set sizes={PAPER} or ={LAPTOP}')
    pattern = read_pattern(find_pattern(args.pattern), args.layer)
    return pattern, expand(pattern, parse_overrides(args), paper=sizes == PAPER)


def parse_overrides(args: argparse.Namespace) -> dict[str, int | str]:
    """Return the values of parameters that the command line gives."""
    from ensembles.model.filters import parse_size

    given: dict[str, int | str] = {} if args.tasks is None else {"tasks": args.tasks}
    for name, value in settings_from_args(args).items():
        if name == "scale":
            given["shrink"] = parse_divisor(value)
        elif name not in ("sizes", "fs_scale"):
            given[name] = parse_size(value) if _SIZE.fullmatch(value) else value
    return given


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


def add_model_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Declare --fs and the options that modify the model; `required`: the command needs a model."""
    parser.add_argument(
        "--fs",
        required=required,
        metavar="MODEL",
        type=parse_path("model"),
        help="model of a file system: archer, franklin, franklin-patched, healthy, jaguar, sdumont, or a "
        "TOML file (ensio help pfsmodel)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="ID=STRENGTH",
        help="set the strength of a fault of the model: 1 as published, 0 off; may be repeated",
    )
    add_seed(parser)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Declare ``--seed``."""
    parser.add_argument(
        "--seed",
        type=parse_count("", least=0),
        default=0,
        metavar="S",
        help="seed of the random numbers (default: %(default)s)",
    )


def model_from_args(args: argparse.Namespace) -> Model:
    """Return the model that the arguments select."""
    from ensembles.workloads.simulation.models import read_model

    model = read_model(args.fs, args.fault)
    scale = settings_from_args(args).get("fs_scale")
    return model if scale is None else model.divided_by(parse_divisor(scale))


def model_if_asked_for(args: argparse.Namespace) -> Model | None:
    """Return the model that the arguments select, or None without --fs."""
    if args.fs is not None:
        return model_from_args(args)
    changed = [f"--fault {fault}" for fault in args.fault]
    changed += [f"--set {text}" for text in args.set if text.startswith("fs_scale=")]
    if changed:
        raise EnsioError(f"{changed[0]} modifies a model, but no model is selected: name one with --fs")
    return None
