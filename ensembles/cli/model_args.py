"""Options of the commands that use a model of a parallel file system."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.options import parse_path, settings_from_args
from ensembles.cli.pattern_args import parse_divisor
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.simulation import Model

_MOST_SEED = (1 << 64) - 1


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
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="seed of the random numbers (default: %(default)s)"
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


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 20 or int(text) > _MOST_SEED:
        raise argparse.ArgumentTypeError(f'"{text[:30]}" is not a whole number from 0 to 2**64 - 1')
    return int(text)
