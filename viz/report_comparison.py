"""The report on two runs: what is different, in words and side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from bokeh.models import Range1d

from ensembles import __version__
from ensembles.comparison.compare import compare_runs
from ensembles.comparison.report import DIFFERENT, Comparison
from ensembles.comparison.text import comparisons_text, sentences_of_runs
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.diagnosis.finding import Diagnosis
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import find_readership
from ensembles.model.errors import EnsioError
from ensembles.model.units import ratio_text, seconds_text
from ensembles.run.information import collect_information
from ensembles.run.run import Run
from ensembles.viz.comparison import comparison
from ensembles.viz.figures import plain, time_range
from ensembles.viz.rate import rates_alike
from ensembles.viz.rate_curves import with_equal_cells
from ensembles.viz.report import ReportData, checked_path
from ensembles.viz.report_drawing import embed_pictures, library_for
from ensembles.viz.report_tables import facts, headline
from ensembles.viz.templates import page_part, rendered
from ensembles.viz.trace_diagram import trace_diagram

_MOST_PICTURED = 4
"""Kinds of calls whose distributions are drawn, those that differ most first."""


def write_comparison(runs: Sequence[Run], path: str | os.PathLike[str]) -> int:
    """Write the report on two runs: the words of ``ensio compare``, and the pictures of both.

    The file is written under a temporary name and renamed when it is complete.

    Parameters
    ----------
    runs : sequence of Run
        Two; the first one is the baseline.
    path : path-like
        HTML file; an existing file is replaced.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    EnsioError
        The file cannot be written, the runs have no kind of calls in common, or a file of a run can no longer
        be read.
    ValueError
        There are not two runs.

    Examples
    --------
    >>> from ensembles.viz.report_comparison import write_comparison
    >>> write_comparison([en.open("ensio-ior"), en.open("ensio-ior-2")], "both.html") > 1_000_000
    True
    """
    if len(runs) != 2:
        raise ValueError(f"a comparison has two runs, not {len(runs)}")
    path = checked_path(path)
    try:
        with atomic_write(path, find_readership(runs[0].path)) as descriptor:
            page = comparison_html(runs)
            with open(descriptor, "wb", closefd=False) as file:
                return file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        raise EnsioError(
            f"{path} cannot be written ({error.strerror}): choose another path with -o"
        ) from error


def comparison_html(runs: Sequence[Run]) -> str:
    """Return the report on two runs as HTML.

    The JSON of ``ensio compare`` is in the element ``ensio-compare``.
    """
    found = compare_runs([[run] for run in runs])
    names = names_of(runs)
    data: list[ReportData] = []
    diagnoses: list[Diagnosis] = []
    figures: list[list[tuple[str, str, str]]] = []
    for run in runs:
        examination = DiagnosisPass(run)
        summaries, group = ReportData.from_run(run, examination.requests)
        data.append(summaries)
        diagnoses.append(examination.evaluate(group))
        information = None if summaries.sums is None else collect_information(run, summaries.sums)
        figures.append(facts(run, summaries, information))
    pictures = _traces(names, data)
    traces = list(pictures)
    pictured = []
    for each in found[:_MOST_PICTURED]:
        name = _name(each)
        pictures[f"comparison_{name}"] = comparison(
            *runs, names=(names[0], names[1]), op=each.op, layer=each.layer
        )
        pictured.append(name)
    script, divisions = embed_pictures(pictures, traces, selects=False)
    verdicts = [
        (_name(each), _verdict(each), _sentence(each.reason, [run.path for run in runs])) for each in found
    ]
    ops = [each.to_json() for each in found]
    return rendered(
        "report_comparison.html",
        style=page_part("report_style.html"),
        names=names,
        headlines=[headline(run, each.rank) for run, each in zip(runs, data, strict=True)],
        notes=[f"{name}: {note}" for name, run in zip(names, runs, strict=True) for note in run.notes],
        of_runs=[_sentence(each) for each in sentences_of_runs(found[0])],
        verdicts=verdicts,
        words=comparisons_text(found),
        pictured=pictured,
        facts=_side_by_side(figures),
        findings=list(zip(names, diagnoses, strict=True)),
        traces=traces,
        divisions=divisions,
        json=json.dumps(ops[0] | {"ops": ops}).replace("<", "\\u003c").replace("&", "\\u0026"),
        bokeh=library_for(pictures.values()),
        script=script,
        version=__version__,
    )


def names_of(runs: Sequence[Run]) -> list[str]:
    """Return short names of runs that differ: the last parts of their paths, or the paths.

    Examples
    --------
    >>> from ensembles.viz.report_comparison import names_of
    >>> names_of([en.open("ensio-ior"), en.open("ensio-ior-2")])
    ['ensio-ior', 'ensio-ior-2']
    """
    last = [os.path.basename(os.path.normpath(run.path)) for run in runs]
    if len(set(last)) == len(last):
        return last
    paths = [run.path for run in runs]
    if len(set(paths)) == len(paths):
        return paths
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def _traces(names: Sequence[str], data: Sequence[ReportData]) -> dict[str, Any]:
    """Draw the trace diagrams and rates of both runs on one time axis."""
    if any(each.events == 0 for each in data):
        return {}
    extents = [each.raster.extent_ns for each in data]
    times: Range1d = time_range(min(low for low, _ in extents), max(high for _, high in extents))
    pictures: dict[str, Any] = {}
    curves = with_equal_cells([each.rate for each in data])
    steps = [seconds_text(curve.cell_ns * 1e-9) for curve in curves]
    titles = [
        f"Rate of {plain(name)}, mean of each {step}; the area is the bytes moved"
        for name, step in zip(names, steps, strict=True)
    ]
    rates = rates_alike(curves, titles, times)
    for number, (name, each) in enumerate(zip(names, data, strict=True)):
        pictures[f"trace_{number}"] = trace_diagram(
            each.raster, title=f"Trace diagram of {plain(name)}; blank: no recorded call", x_range=times
        )
        pictures[f"rate_{number}"] = rates[number][""]
    return pictures


def _side_by_side(
    figures: Sequence[list[tuple[str, str, str]]],
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the key figures by name: value and meaning of each run."""
    order = list(dict.fromkeys(name for each in figures for name, _, _ in each))
    known = [{name: (value, meaning) for name, value, meaning in each} for each in figures]
    return [(name, [each.get(name, ("none", "")) for each in known]) for name in order]


def _name(found: Comparison) -> str:
    return "-".join(part for part in (found.layer, found.op) if part) or "calls"


def _verdict(found: Comparison) -> str:
    what = " ".join(part for part in (found.layer, found.op) if part)
    shift = found.shift
    # A ratio that one pair of runs cannot tell from 1 does not belong to a verdict.
    median = shift.median_ratio if shift is not None and shift.is_certain else None
    ratio = f", median {ratio_text(median)}" if median is not None else ""
    # The time a run, where it is certain, is what a reader asks for first.
    times = [each.text for each in found.times if each.is_certain(found.level)]
    if times:
        return f"{what}: {found.direction or found.verdict}, {times[0]}"
    if found.sizes_differ and found.blocked is None:
        return f"{what}: another size of calls"
    if found.verdict == DIFFERENT and found.counts_differ and not found.moved:
        return f"{what}: another number of calls"
    direction = f", {found.direction}" if found.direction else ""
    return f"{what}: {found.verdict}{direction}{ratio}"


def _sentence(text: str, names: Sequence[str] = ()) -> str:
    """Return a clause as a sentence; the name of a run stays as it is."""
    first = text[:1] if text.startswith(tuple(names)) and names else text[:1].upper()
    return f"{first}{text[1:].rstrip('.')}." if text else ""
