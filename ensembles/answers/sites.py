"""Which places in the program led to the calls."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.call_sites import python_hint
from ensembles.faces.answer import PlainAnswer
from ensembles.model.holds import Holds
from ensembles.model.statement import Column, Paragraph, Statement, Table
from ensembles.model.units import S_PER_NS, share_text
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.summaries.bysite import BySite

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.summaries.bysite import SiteTotals

_MOST_OPERATIONS = 2
_UNITS = {
    "exclusive": "s",
    "share": "share to 0.1 %",
    "slowest": "s",
    "bytes": "bytes",
    "calls": "",
    "site": "",
}
_PYTHON = re.compile(r"(lib)?python3(\.\d+)?($|\.so)")
_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")


def answer_sites(run: Run, selection: Selection) -> PlainAnswer:
    """Add up the calls of each site."""
    run.reading.need(Holds.SOME_CALLS, "sums do not know call sites")
    by_site = run.summarize(ignoring_run(BySite), selection=selection.for_run(run))
    sites = by_site.grouped(run.info.label_of_site)
    refuse_nothing(run, selection, len(sites))
    partly = [*run.notes, *run.info.notes_on_calls]
    notes = (*partly, *_notes(run, sites))
    io_ns = sum(site.io_ns for site in sites)
    values = {
        "run": run.path,
        "sites": [_json(run, site, io_ns) for site in sites],
        "calls_without_site": sum(site.count for site in sites if not site.number),
        "complete": not partly,
        "notes": list(notes),
    }
    return PlainAnswer("sites", site_parts(run, sites), values, notes)


def site_parts(run: Run, sites: Sequence[SiteTotals]) -> tuple[Table | Paragraph, ...]:
    """Tabulate sites; the place comes last, because it may be long."""
    if not sites:
        return ((Statement("sites.none"),),)
    io_ns = sum(site.io_ns for site in sites)
    rows = [
        (
            site.exclusive_ns * S_PER_NS,
            site.share_of(io_ns),
            site.max_ns * S_PER_NS,
            site.bytes or None,
            _operations(site, _MOST_OPERATIONS),
            run.info.label_of_site(site.number),
        )
        for site in sites
    ]
    table = Table.of_rows("site", _UNITS, rows, below=True)
    fewer = Column("calls", "", tuple(_operations(site, 1) for site in sites))
    hover = [Statement("sites.frames", {"frames": _frames(run, site)}) for site in sites]
    some_wait = any(site.only_waits for site in sites) and not all(site.only_waits for site in sites)
    said = (Statement("sites.only_wait"),) if some_wait else ()
    return replace(table, hover=hover, narrower=[{"calls": fewer}, {"slowest": None}]), said


def _frames(run: Run, site: SiteTotals) -> str:
    """Return the frames of a site."""
    places = (
        (f"{frame.file}:{frame.line}" if frame.file else frame.place, frame.module)
        for frame in run.info.sites[site.number].frames
    )
    return "; ".join(f"{place} in {module}" for place, module in places)


def _operations(site: SiteTotals, most: int) -> str:
    """Return the operations with most calls, such as ``12 write, 1 close, ...``."""
    shown = [f"{count:,} {op}" for op, count in site.counts_by_operation.items()]
    fit = _MOST_OPERATIONS + 1 if most == _MOST_OPERATIONS else most
    return ", ".join([*shown[:most], "..."] if len(shown) > fit else shown)


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
        # A module without debug information may have symbols for some of its functions, one with it no lines
        # of some.
        if count and state in words and modules.get(module) != "function" and not states["line", module]:
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
