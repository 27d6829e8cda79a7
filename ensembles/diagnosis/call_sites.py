"""The call sites of findings: the places in the program that led to the calls they concern."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from glob import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from ensembles.diagnosis.evidence import CallsOfRows
from ensembles.diagnosis.finding import Finding
from ensembles.model.calls import OPS
from ensembles.model.levels import LITTLE
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.sites import Frame, Site
from ensembles.model.units import MOST_NAMED
from ensembles.passes.summary import ignoring_run
from ensembles.run.selection import Selection
from ensembles.structure.libraries import reads_python_lines
from ensembles.summaries.bysite import SelectedSites, Selects, SiteCount

if TYPE_CHECKING:
    from ensembles.run.run import Run

_OF_PYTHON = re.compile(r"(lib)?python3(\.\d+)?($|\.so)|.+\.cpython-3\d+.*\.so$")
"""Names of the interpreter, and of modules of extensions such as h5py's."""

_IO_OPS = [op for op in OPS if op != "wait"]


def with_sites(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Name the call sites of the calls that findings concern, by one pass over the events."""
    if not findings or len(run.info.sites) < 2:
        return list(findings)
    selections: list[Selects] = []
    first = [0]
    for finding in findings:
        selections += _selections(run, finding)
        first.append(len(selections))
    counted = run.summarize(
        ignoring_run(partial(SelectedSites, selections)), columns=SelectedSites.columns_of(selections)
    ).counts
    return [
        replace(finding, where=replace(finding.where, sites=_named(run, _added(counted[low:high]))))
        for finding, (low, high) in zip(findings, pairwise(first), strict=True)
    ]


def _selections(run: Run, finding: Finding) -> list[Selects]:
    """Return what selects the calls of a finding; of three, as `_added` takes them."""
    where = finding.where
    files = [escape(name) for name in where.files] if where.files else None
    if finding.rows is None:
        # Calls in which tasks only wait for each other do no I/O, where a finding is about all of it.
        ops = _IO_OPS if where.op is None and where.calls is None else where.op
        ranks = [f"{low}-{high}" for low, high in where.ranks] or None
        calls = None if where.calls is None else list(where.calls)
        chosen = Selection.parse(op=ops, layer=where.layer, call=calls, file=files, rank=ranks)
        return [chosen.for_run(run)]
    rows = partial(CallsOfRows, Selection.parse(file=files).for_run(run), finding.rows, run.phases)
    if not finding.not_inside:
        return [rows()]
    others = Selection.parse(call=list(finding.not_inside)).for_run(run)
    return [rows(inside=False), rows(inside=True), others]


def _added(counted: Sequence[dict[int, SiteCount]]) -> dict[int, SiteCount]:
    """Add calls inside others up with those outside, but for sites of other calls around them."""
    counts = dict(counted[0])
    if len(counted) > 1:
        _, inside, others = counted
        left = {site: each for site, each in inside.items() if site not in others.keys() - counts.keys()}
        for site, each in (left or inside).items():
            before = counts.get(site, SiteCount())
            counts[site] = SiteCount(before.calls + each.calls, before.time_ns + each.time_ns)
    return counts


def python_hint(run: Run) -> str:
    """Say how to see the lines of a Python script, where call sites are in its interpreter or its modules."""
    if reads_python_lines(run.info.environment):
        return ""
    modules = {frame.module for site in run.info.sites[1:] for frame in site.frames}
    of_python = [module for module in modules if _is_python(module)]
    if not of_python:
        return ""
    # The interpreter, if calls come from it, else the module of an extension.
    name = sanitize_text(min(of_python, key=lambda module: (".cpython-" in module, module)))
    return (
        f"call sites are in {name}, which runs a script: record with ENSIO_PYTHON_LINES=1 to see its lines "
        "(CPython 3.11 to 3.13)"
    )


def place_of(site: Site) -> str:
    """Return the place of a call site as a reader knows it: function and source line, function, or module.

    A function without a source line has many sites, and so has a module that was stripped of its symbols;
    ``ensio sites`` has the addresses of each.

    Examples
    --------
    >>> from ensembles.diagnosis.call_sites import place_of
    >>> from ensembles.model.sites import Frame, Site
    >>> place_of(Site(1, (Frame("/usr/bin/tar", 0x4D786, state="stripped"),)))
    'tar (no symbol here)'
    >>> place_of(Site(1, (Frame("/opt/app", 0x11AB, "", "function", "main", "", 0x42),)))
    'main (app)'
    """
    return " < ".join(dict.fromkeys(_place_of_frame(frame) for frame in site.frames))


def _place_of_frame(frame: Frame) -> str:
    name = os.path.basename(frame.module)
    if frame.function and not frame.file:
        return f"{frame.function} ({name})"
    return f"{name} (no symbol here)" if frame.state == "stripped" else frame.label


def symbol_hint(run: Run, findings: Sequence[Finding]) -> str:
    """Say how to see functions or lines, where findings name programs without them."""
    named = {label for finding in findings for label, _ in finding.where.sites}
    frames = [site.frames[0] for site in run.info.sites[1:] if site.frames and place_of(site) in named]
    modules = sorted(
        {frame.module for frame in frames if frame.state == "stripped" and not _is_python(frame.module)}
    )
    if not modules:
        return ""
    # Several files may have one name, as git and the copy of it for its own commands.
    names = list(dict.fromkeys(sanitize_text(os.path.basename(module)) for module in modules))
    have = "lacks" if len(names) == 1 else "lack"
    return f"{', '.join(names)} {have} symbols: build with -g, and do not strip, to see functions and lines"


def _is_python(module: str) -> bool:
    return _OF_PYTHON.match(os.path.basename(module)) is not None


def _named(run: Run, counts: dict[int, SiteCount]) -> tuple[tuple[str, float], ...]:
    """Return the places of most time with their shares of it; sites of one place are added up."""
    every_ns = sum(site.time_ns for site in counts.values())
    by_label: dict[str, SiteCount] = {}
    for number, site in counts.items():
        if number:
            label = place_of(run.info.sites[number])
            before = by_label.get(label, SiteCount())
            by_label[label] = SiteCount(before.calls + site.calls, before.time_ns + site.time_ns)
    longest = sorted(by_label.items(), key=lambda one: (-one[1].time_ns, -one[1].calls, one[0]))
    shares = [(label, site.time_ns / max(every_ns, 1)) for label, site in longest[:MOST_NAMED]]
    return tuple((label, share) for label, share in shares if share >= LITTLE)
