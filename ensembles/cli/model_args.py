"""What commands that take a model of a parallel file system have in common: which, and what is changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.common_args import parse_path
from ensembles.cli.pattern_args import parse_divisor
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.simulation import Model

_MOST_SEED = (1 << 64) - 1


def add_model_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Adds --fs and the options that change it; `required`: there is nothing to do without a model."""
    parser.add_argument(
        "--fs",
        required=required,
        metavar="MODEL",
        type=parse_path("model"),
        help="franklin, franklin-patched, jaguar, healthy, or a TOML file (docs/reference/pfsmodel.md)",
    )
    parser.add_argument(
        "--fs-scale",
        metavar="1/N",
        help="what the model counts in bytes (caches, windows, stripes) divided by N",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="ID=STRENGTH",
        help="switch a fault of the model on; strength 1 is that of the papers, 0 switches it off",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="of what is drawn: the same seed, the same run"
    )


def model_from_args(args: argparse.Namespace) -> Model:
    """The model that the arguments name.

    Raises
    ------
    EnsioError
        If there is no such model, or it makes no sense with these values.
    """
    from ensembles.workloads.simulation.models import read_model

    model = read_model(args.fs, args.fault)
    return model if args.fs_scale is None else model.divided_by(parse_divisor(args.fs_scale))


def model_if_asked_for(args: argparse.Namespace) -> Model | None:
    """The model that the arguments name; None: they name none.

    Raises
    ------
    EnsioError
        As `model_from_args`, or if something of a model is changed and no model is named.
    """
    if args.fs is not None:
        return model_from_args(args)
    changed = [f"--fault {fault}" for fault in args.fault]
    changed += [f"--fs-scale {args.fs_scale}"] * (args.fs_scale is not None)
    if changed:
        raise EnsioError(f"{changed[0]}: changes a model, and there is none: name one with --fs")
    return None


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 20 or int(text) > _MOST_SEED:
        raise argparse.ArgumentTypeError(f'"{text[:30]}" is no whole number from 0 to 2**64 - 1')
    return int(text)
