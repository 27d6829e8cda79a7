"""``ensio sites``: show which places in the program led to the calls."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn_of,
)
from ensembles.model.holds import Holds
from ensembles.model.units import S_PER_NS, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.summaries.bysite import SiteTotals

_MOST_OPERATIONS = 2
_SLOWEST = 2
"""Column of the slowest call."""

NAME = "sites"
HELP = "show which places in the program led to the calls, with their time"

ROWS = 20
_PYTHON = re.compile(r"(lib)?python3(\.\d+)?($|\.so)")
_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_limit(parser, "sites", ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the sites."""
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.summaries.bysite import BySite

    run = open_run(args, args.run)
    run.need(Holds.SOME_CALLS, "sums do not know call sites")
    selection = selection_from_args(args).for_run(run)
    sites = run.summarize(ignoring_run(BySite), selection=selection).grouped(run.info.label_of_site)
    refuse_nothing(run, selection, len(sites))
    partly = run.notes_on_events
    notes = [*partly, *_notes(run, sites)]
    if args.json:
        io_ns = sum(site.io_ns for site in sites)
        result = {
            "run": run.path,
            "sites": [_json(run, site, io_ns) for site in sites],
            "calls_without_site": sum(site.count for site in sites if not site.number),
            "complete": not partly,
            "notes": notes,
        }
        print(json.dumps(result, indent=2))
    else:
        print(_text(run, sites, args.limit))
    warn_of(notes)
    return 0


def _json(run: Run, site: SiteTotals, io_ns: int) -> dict[str, Any]:
    share = site.share_of(io_ns)
    return {
        **run.info.sites[site.number].to_json(),
        "label": run.info.label_of_site(site.number),
        "count": site.count,
        "errors": site.errors,
        "bytes": site.bytes,
        "time_s": site.time_ns * S_PER_NS,
        "exclusive_time_s": site.exclusive_ns * S_PER_NS,
        "share": share,
        "io_share": share,
        "max_s": site.max_ns * S_PER_NS,
        "operations": site.counts_by_operation,
        "calls": {
            call.name: {
                "layer": call.layer,
                "op": call.op,
                "count": totals.count,
                "bytes": totals.bytes,
                "time_s": totals.time_ns * S_PER_NS,
                "exclusive_time_s": totals.exclusive_ns * S_PER_NS,
                "max_s": totals.max_ns * S_PER_NS,
            }
            for call, totals in site.calls.items()
        },
    }


def _notes(run: Run, sites: list[SiteTotals]) -> list[str]:
    """Say why calls have no site, and why places are not known."""
    from ensembles.diagnosis.call_sites import python_hint

    hint = python_hint(run)
    without = sum(site.count for site in sites if not site.number)
    every = sum(site.count for site in sites)
    used = [run.info.sites[site.number] for site in sites if site.number]
    states: Counter[tuple[str, str]] = Counter()
    for site in used:
        for frame in site.frames[:1]:
            states[frame.state, frame.module] += not frame.module.startswith(_SYSTEM)
    words = {
        "rebuilt": "was built again since the run (another build id): its places are addresses",
        "missing": "is not here: look at the run where it was recorded, or keep its trace.h5 from there",
        "unknown": "could not be examined: install binutils, which has addr2line",
        "function": "has no debug information: compile with -g to see lines",
        "stripped": "has neither debug information nor symbols: compile with -g to see lines",
    }
    unknown = [_without_site(run, without, every)] if without else []
    modules: dict[str, str] = {}
    for (state, module), count in states.items():
        # A module without debug information may have symbols for some of its functions.
        if count and state in words and modules.get(module) != "function":
            modules[module] = state
    for module, state in modules.items():
        advice = words[state]
        if not (hint and state in ("function", "stripped") and _PYTHON.match(os.path.basename(module))):
            unknown.append(f"{module} {advice}")
    if hint:
        unknown.append(hint)
    return unknown


def _without_site(run: Run, without: int, every: int) -> str:
    """Say which share of the calls has no site, and why."""
    share = f"{share_text(without / every, None)} of the calls ({without:,} of {every:,}) have no site"
    if run.info.environment.get("ENSIO_CALLPATH") == "0":
        return f"{share}: recorded with ENSIO_CALLPATH=0"
    if len(run.info.sites) < 2:
        return f"{share}: the tool or the ensio that recorded this run does not record call sites"
    return (
        f"{share}: their caller could not be found on the stack, the recorder was short of space, or the "
        "process has more than 65,535 sites"
    )


def _text(run: Run, sites: list[SiteTotals], limit: int) -> str:
    from ensembles.model.table import first_that_fits, table_text
    from ensembles.model.units import bytes_text, count_text, seconds_text

    if not sites:
        return "No calls."
    io_ns = sum(site.io_ns for site in sites)
    # The site comes last, because it may be long.
    headers = ["exclusive", "share", "slowest", "bytes", "calls", "site"]

    def tables() -> Iterator[str]:
        for operations in range(_MOST_OPERATIONS, 0, -1):
            rows = [
                [
                    seconds_text(site.exclusive_ns * S_PER_NS),
                    "" if (share := site.share_of(io_ns)) is None else share_text(share, 1),
                    seconds_text(site.max_ns * S_PER_NS),
                    bytes_text(site.bytes) if site.bytes else "",
                    _operations(site, operations),
                    run.info.label_of_site(site.number),
                ]
                for site in sites[:limit]
            ]
            yield table_text(headers, rows, left={4, 5})
        # The slowest call is in JSON too; a line for each row is easier to read than two.
        shorter = [[cell for column, cell in enumerate(row) if column != _SLOWEST] for row in rows]
        yield table_text([header for header in headers if header != "slowest"], shorter, left={3, 4})
        yield _with_sites_below(headers, rows)

    table = first_that_fits(tables())
    if len(sites) > limit:
        table += f"\n\n{count_text(len(sites) - limit, 'more site')}: raise --limit to see them"
    if any(site.only_waits for site in sites[:limit]) and not all(site.only_waits for site in sites):
        table += "\n\nshare: of the time in I/O calls; sites without it only wait for other tasks"
    return table


def _with_sites_below(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format the table without its last column, which is in a line below each row."""
    from ensembles.model.table import table_text

    head, rule, *lines = table_text(headers[:-1], [row[:-1] for row in rows], left={4}).split("\n")
    below = [f"{line.rstrip()}\n    {row[-1]}" for line, row in zip(lines, rows, strict=True)]
    return "\n".join([f"{head.rstrip()}\n    {headers[-1]}", rule, *below])


def _operations(site: SiteTotals, most: int) -> str:
    """Return the operations with most calls, such as ``12 write, 1 close, ...``."""
    shown = [f"{count:,} {op}" for op, count in site.counts_by_operation.items()]
    fit = _MOST_OPERATIONS + 1 if most == _MOST_OPERATIONS else most
    return ", ".join([*shown[:most], "..."] if len(shown) > fit else shown)
