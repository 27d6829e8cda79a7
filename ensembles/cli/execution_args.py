"""Options for the workers and the memory of a pass over the events."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from ensembles.cli.common_args import parse_count

if TYPE_CHECKING:
    from ensembles.run.run import Run

_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://.+")


def add_scale_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for large runs."""
    group = parser.add_argument_group("large runs (docs/user/large-runs.md)")
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=_memory,
        help="maximum memory of this process and its workers on this machine, such as 1GiB (default: a "
        "quarter of the machine's memory)",
    )
    who = group.add_mutually_exclusive_group()
    who.add_argument(
        "--workers",
        metavar="N",
        type=parse_count("workers", least=1),
        help="number of worker processes on this machine (default: none, threads of this process)",
    )
    who.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        type=_address,
        help="address of the scheduler of a Dask cluster whose workers read the events, such as "
        "tcp://10.0.0.1:8786",
    )


def open_run(args: argparse.Namespace, path: str, runs: int = 1) -> Run:
    """Open a run with the executor and the memory that the options select.

    Parameters
    ----------
    args : argparse.Namespace
    path : str
    runs : int
        Number of runs that are open at the same time and share the memory.

    Raises
    ------
    EnsioError
        The run cannot be read, or the scheduler does not answer.
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
        raise argparse.ArgumentTypeError("the memory must be at least 1 byte")
    return size


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f'"{text}" is not the address of a scheduler: write it like tcp://HOST:8786'
        )
    return text
