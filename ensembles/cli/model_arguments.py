"""What commands that put programs under a model have in common: which model, with which faults."""

from __future__ import annotations

import argparse

from ensembles.cli.arguments import count_of
from ensembles.errors import EnsioError


def add_model_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """Adds the model, its faults and its seed; `required`: there is nothing to do without a model."""
    parser.add_argument(
        "--fs",
        metavar="MODEL",
        required=required,
        help="the model of a parallel file system whose time the calls take: a TOML file, "
        "or the name of a shipped one, such as franklin",
    )
    parser.add_argument(
        "--fault",
        metavar="ID=STRENGTH",
        action="append",
        default=[],
        help="a fault of the model; 1 is as strong as in the papers' case; may be given several times",
    )
    parser.add_argument(
        "--seed", type=count_of("seed", least=0), default=0, metavar="S", help="of its noise (default: 0)"
    )


def model_settings(args: argparse.Namespace) -> str | None:
    """The text of the settings of the model that the arguments name; None: they name none.

    Raises
    ------
    EnsioError
        If there is no such model, a fault makes no sense, or there is a fault and no model.
    """
    from ensembles.simulation.models import read_model

    if args.fs is None:
        if args.fault:
            raise EnsioError(f"--fault {args.fault[0]}: is a fault of no model: name one with --fs")
        return None
    return read_model(args.fs, args.fault).settings_text()
