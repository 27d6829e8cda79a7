"""The options that say who goes through the events of a run, and with how much memory."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from ensembles.cli.common_args import parse_count

if TYPE_CHECKING:
    from ensembles.run.run import Run

_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://.+")


def add_scale_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("large runs (docs/user/large-runs.md)")
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=_memory,
        help="memory to take at most, workers on this machine included, such as 1GiB (default: a quarter of "
        "the machine's)",
    )
    who = group.add_mutually_exclusive_group()
    who.add_argument(
        "--workers",
        metavar="N",
        type=parse_count("workers", least=1),
        help="so many processes on this machine go through the events (default: this one, in threads)",
    )
    who.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        type=_address,
        help="the workers of a Dask cluster do; the address of its scheduler, such as tcp://10.0.0.1:8786",
    )


def open_run(args: argparse.Namespace, path: str, runs: int = 1) -> Run:
    """Open a run as the options say.

    Parameters
    ----------
    args : argparse.Namespace
    path : str
    runs : int
        So many are open at once, and share the memory.

    Raises
    ------
    EnsioError
        It cannot be read, or no scheduler answers.
    """
    import ensembles
    from ensembles.passes.executors import executor_for
    from ensembles.passes.memory import Budget

    if "executor" not in args:
        args.executor = executor_for(args.scheduler or args.workers)
    budget = Budget(args.memory) if args.memory else Budget.default()
    return ensembles.open(path, args.executor, budget.shared_by(runs).memory_bytes)


def _memory(text: str) -> int:
    from ensembles.model.errors import EnsioError
    from ensembles.run.selection import parse_size

    try:
        size = parse_size(text)
    except EnsioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < 1:
        raise argparse.ArgumentTypeError("no memory is too little")
    return size


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f'"{text}" is no address of a scheduler: write it like tcp://HOST:8786'
        )
    return text
