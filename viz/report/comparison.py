"""The report on two runs: what is different, in words and side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from bokeh.models import Range1d

from ensembles.answers.compare import answer_comparisons, minor_kinds, verdict_of_kind
from ensembles.answers.diagnose import answer_diagnosis
from ensembles.comparison.compare import compare_runs
from ensembles.comparison.report import Comparison
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.faces.html import answer_html
from ensembles.faces.words import cell
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import find_readership
from ensembles.model import __version__
from ensembles.model.errors import EnsioError
from ensembles.model.units import ratio_text, seconds_text
from ensembles.run.run import Run
from ensembles.viz.common.figures import plain, time_range
from ensembles.viz.common.save import page_part, rendered
from ensembles.viz.pictures.comparison import comparison_of_kind
from ensembles.viz.pictures.rate import rates_alike, with_equal_cells
from ensembles.viz.pictures.trace_diagram import trace_diagram
from ensembles.viz.report.data import ReportData
from ensembles.viz.report.drawing import embed_pictures
from ensembles.viz.report.page import checked_path
from ensembles.viz.report.tables import headline

_TIMES = ("span_s", "critical_path_s", "io_time_s")
"""Times of whole runs whose factors come first."""


def write_comparison(runs: Sequence[Run], path: str | os.PathLike[str]) -> int:
    """Write the report on two runs: the words of ``ensio compare``, and the pictures of both.

    The file is written under a temporary name and renamed when it is complete.
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
    diagnoses: list[str] = []
    for run in runs:
        examination = DiagnosisPass(run)
        summaries, group = ReportData.from_run(run, examination.requests)
        data.append(summaries)
        diagnosis = answer_diagnosis(**vars(examination.evaluate(group)))
        diagnoses.append(answer_html(diagnosis.parts, 20, "ensio diagnose"))
    pictures = _traces(names, data)
    traces = list(pictures)
    answer, minor = answer_comparisons(found), minor_kinds(found)
    pictured = []
    drawn = [each for each in found if each.knows_durations and each not in minor]
    for each in drawn[:4]:
        name = _name(each)
        pictures[f"comparison_{name}"] = comparison_of_kind(
            each, runs, (names[0], names[1]), cell(verdict_of_kind(each, is_named=False), "")
        )
        pictured.append(name)
    script, divisions = embed_pictures(pictures, traces, selects=False)
    return rendered(
        "report/comparison.html",
        style=page_part("report/style.html"),
        names=names,
        headlines=[headline(run) for run in runs],
        notes=[f"{name}: {note}" for name, run in zip(names, runs, strict=True) for note in run.notes],
        longer=_longer(found[0]),
        words=answer_html(answer.parts, 50, "ensio compare"),
        pictured=pictured,
        findings=list(zip(names, diagnoses, strict=True)),
        traces=traces,
        divisions=divisions,
        json=json.dumps(answer.to_json()).replace("<", "\\u003c").replace("&", "\\u0026"),
        script=script,
        version=__version__,
    )


def names_of(runs: Sequence[Run]) -> list[str]:
    """Return short names of runs that differ: the last parts of their paths, or the paths."""
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


def _longer(found: Comparison) -> list[tuple[str, str, str]]:
    """Return what a reader asks first: by what factor span and time in I/O differ, and both values."""
    return [
        (
            one.label(each.what),
            _factor(each.ratio),
            f"{seconds_text(each.before_s)} → {seconds_text(each.after_s)}; {each.evidence}",
        )
        for one in found.differences
        for what in _TIMES
        for each in one.times
        if each.what == what
    ]


def _factor(ratio: float | None) -> str:
    if ratio is None:
        return ""
    text = ratio_text(ratio)
    return "equal" if text == "× 1" else text


def _name(found: Comparison) -> str:
    return "-".join(part for part in (found.layer, found.op) if part) or "calls"
