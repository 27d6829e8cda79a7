"""``ensio anonymise``: write a run without names."""

from __future__ import annotations

import argparse
import secrets

from ensembles.cli.options import add_output, add_scale_arguments, open_run, parse_path, warn

DESCRIPTION = (
    "Write a run to one file in which paths, arguments, users and names of jobs are hashed; sizes, times, "
    "endings such as .h5 and paths of the system stay. All commands read the file."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=parse_path("run"), help="run")
    add_output(parser, "FILE", "file to write", required=True)
    parser.add_argument(
        "--key",
        metavar="FILE",
        type=parse_path("key"),
        help="secret of at least 16 bytes: runs that are written with the same one have the same hashes "
        "(default: a random one, which is not kept)",
    )
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the file."""
    from ensembles.model.units import count_text
    from ensembles.run.anonymise import Names, anonymise, read_key

    names = Names(secrets.token_bytes(16) if args.key is None else read_key(args.key))
    events = anonymise(open_run(args, args.run), args.output, names)
    warn(f"{count_text(events, 'call')} in {args.output}, without names")
    return 0
