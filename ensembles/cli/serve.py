"""``ensio serve``: explore runs, or a history of runs, in the browser."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ensembles.cli.options import add_scale_arguments, open_run, parse_count, parse_path, warn, warn_of

if TYPE_CHECKING:
    from ensembles.viz.common.serving import Door
    from ensembles.viz.explorer.server import ExplorerServer
    from ensembles.viz.history.server import HistoryServer

DESCRIPTION = (
    "Serve a page on this machine, and print its link. Drag over a peak of the histogram to see who made its "
    "calls and when; draw a rectangle in the trace diagram to see its calls. The page has the filters of the "
    "other commands. Given a history instead (see ensio history), the page shows its experiments, and what "
    "changed. With --follow, the page shows a run in progress. "
    "The link carries a token; the server refuses every browser that has not opened it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        type=parse_path("run"),
        help="runs, as for the other commands, or one history: a SQLite file, or the URL of a database; "
        "two runs are shown on one time axis",
    )
    parser.add_argument(
        "--follow",
        metavar="DIR",
        action="append",
        default=[],
        type=parse_path("run"),
        help="run directory of a run in progress, of which new calls appear as they are recorded; "
        "may be repeated",
    )
    parser.add_argument(
        "--port", metavar="N", type=parse_count("port", least=0), default=0, help="port (default: a free one)"
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        type=parse_path("address"),
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="HOST:PORT",
        action="append",
        default=[],
        help="further address under which browsers reach the page, such as that of a proxy, or that shows it "
        "in a frame; may be repeated",
    )
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Serve until the user interrupts."""
    from ensembles.model.errors import EnsioError
    from ensembles.viz.common.serving import LOOPBACK, Door

    if not (args.runs or args.follow):
        raise EnsioError(
            "there is nothing to serve: name a RUN, a history, or a run in progress after --follow"
        )
    if args.port > 65535:
        raise EnsioError(f"there is no port {args.port}: ports end at 65535")
    announced: list[str] = []

    def announce(link: str) -> None:
        if link in announced:
            return
        announced.append(link)
        if args.address not in LOOPBACK:
            warn(
                f"warning: {args.address} can be reached by other machines, and the connection is not "
                "encrypted: anybody with the link can read the runs"
            )
        print(link, flush=True)
        warn("open the link in a browser; Ctrl+C ends the server")

    of_history = any(map(_is_history, args.runs))
    if of_history and len(args.runs) + len(args.follow) > 1:
        raise EnsioError("a history is served alone: name one history, or runs")
    with Door(args.address, args.port, args.allow_origin) as door:
        server = _of_history(args, door) if of_history else _of_runs(args, door, announce)
        announce(door.link)
        server.run()
    return 0


def _is_history(place: str) -> bool:
    if "://" not in place and not os.path.isfile(place):
        return False  # SQLAlchemy is not imported for run directories
    try:
        from ensembles.history.store import is_history
    except ModuleNotFoundError:
        return False
    return is_history(place)


def _of_history(args: argparse.Namespace, door: Door) -> HistoryServer:
    from ensembles.history.store import History
    from ensembles.viz.history.server import HistoryServer

    return HistoryServer(History(args.runs[0], keep_connection=True), door)


def _of_runs(args: argparse.Namespace, door: Door, announce: Callable[[str], None]) -> ExplorerServer:
    from ensembles.viz.explorer.server import ExplorerServer, wait_at, wait_for_run
    from ensembles.viz.explorer.shown import Shown

    runs = [Shown(open_run(args, path, runs=len(args.runs)), in_background=True) for path in args.runs]
    if args.follow:
        wait_at(door, args.follow, warn, announce)
    runs += [wait_for_run(path, warn) for path in args.follow]
    server = ExplorerServer(runs, door)
    for shown in runs:
        warn_of((*shown.notes, *shown.run.notes))
    return server
