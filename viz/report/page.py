"""The report: one HTML file about one run, readable in a browser without a network.

Sections of the report about ensembles: modes and tails of the functions with the most time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ensembles.answers.counters import counter_parts
from ensembles.answers.diagnose import DiagnosisAnswer, answer_diagnosis, finding_facts
from ensembles.answers.phases import PhasesAnswer, answer_phases
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.diagnosis.finding import Finding
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import ensembles_from_run, is_long, request_of_counts
from ensembles.ensemble.main_ensemble import ensemble_of, main_group, tasks_of
from ensembles.faces.html import answer_html
from ensembles.faces.words import sentence
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import find_readership
from ensembles.model import __version__
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.statement import Part
from ensembles.passes.group import SummaryRequest
from ensembles.passes.progress import advance, announced
from ensembles.passes.summary import ignoring_run
from ensembles.run.information import collect_information, layer_sentences
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.structure.phases.detect import MOST_EVENTS
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.phasecounts import CountsOfSeveral
from ensembles.viz.common.figures import keep_units, sentence_of, time_range
from ensembles.viz.common.save import page_part, rendered
from ensembles.viz.pictures.counters import counter_pictures, surroundings
from ensembles.viz.pictures.histogram import histogram
from ensembles.viz.pictures.modes import modes
from ensembles.viz.pictures.rate import rate
from ensembles.viz.pictures.tail import tail
from ensembles.viz.pictures.trace_diagram import trace_diagram
from ensembles.viz.report.data import ReportData
from ensembles.viz.report.drawing import embed_pictures
from ensembles.viz.report.folded import Folded, folded_sections, layers_over_each_other
from ensembles.viz.report.tables import (
    DATA_LOST,
    call_colours,
    call_table,
    facts,
    failed_table,
    headline,
    missing,
    moments,
    request_table,
    sites_html,
    size_tables,
    storage_of,
    wait_table,
)

_LINKED = ("trace", "rate", "surroundings")
"""Pictures that share their time axis."""

_COUNTS = "counts"
"""Name of the counts of ensembles in the pass of a report."""


def write_report(
    run: Any, path: str | os.PathLike[str], chunks: Iterable[Events] | None = None, selected: str = ""
) -> int:
    """Write the report of a run.

    The file is written under a temporary name and renamed when it is complete.

    Parameters
    ----------
    run : Run
    path : path-like
        HTML file; an existing file is replaced.
    chunks : iterable of Events, optional
        Events to show; default: all events of the run.
    selected : str
        What these events are, such as the filters that selected them: stated at the top of the page.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    EnsioError
        The file cannot be written, or a file of the run can no longer be read.

    Examples
    --------
    >>> from ensembles import viz
    >>> viz.write_report(en.open("ensio-ior"), "report.html") > 300_000
    True
    """
    path = checked_path(path)
    try:
        # A path that cannot be written is reported before the analysis starts.
        with atomic_write(path, find_readership(run.path)) as descriptor:
            if chunks is None:
                page = page_of_run(run)
            else:
                page = report_html(run, ReportData.from_chunks(chunks, run), selected=selected)
            with open(descriptor, "wb", closefd=False) as file:
                return file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        sentence = f"{path} cannot be written ({error.strerror}): choose another path with -o"
        raise EnsioError(sentence) from error


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the path of a report as text."""
    path = os.fspath(path)
    if not path:
        raise EnsioError("the report has no name: name a file with -o")
    if os.path.isdir(path):
        raise EnsioError(
            f"{path} is a folder: name a file in it, such as {os.path.join(path, 'report.html')}"
        )
    return path


def page_of_run(run: Any) -> str:
    """Return the report of a whole run as HTML."""
    examination = DiagnosisPass(run)
    chosen = _chosen_early(run)
    counts = None if chosen is None else request_of_counts(run, chosen.selections)
    more = examination.requests | ({} if counts is None else {_COUNTS: counts})
    summaries, group = ReportData.from_run(run, more)
    # Ensembles come first, because the same pass finds the phases that findings may name.
    counted = group.summaries.get(_COUNTS)
    shown = shown_ensembles(run, summaries.table, counted, chosen) if summaries.table.durations_known else []
    information = None if summaries.sums is None else collect_information(run, summaries.sums)
    diagnosis = answer_diagnosis(**vars(examination.evaluate(group)))
    return report_html(run, summaries, shown, diagnosis, information)


def _script_text(information: dict[str, Any] | None) -> str:
    """Format the information as JSON in an HTML script: no text in it can end the script."""
    if information is None:
        return ""
    return json.dumps(information).replace("<", "\\u003c").replace("&", "\\u0026")


def report_html(
    run: Any,
    summaries: ReportData,
    shown: Sequence[Shown] = (),
    diagnosis: DiagnosisAnswer | None = None,
    information: dict[str, Any] | None = None,
    selected: str = "",
) -> str:
    """Return the report as HTML.

    `shown`: sections of ensembles; empty if the report shows a selection of the events.
    `diagnosis`: the answer; None if the report shows a selection of the events.
    `information`: from `ensembles.run.information.collect_information`; None if the report shows a selection
    of the events. The page has it as JSON, in the element ``ensio-info``.
    """
    x_range = time_range(*summaries.raster.extent_ns)
    counted = (information or {}).get("counters")
    counted_parts = tuple(counter_parts(counted)) if counted else ()
    pictures: dict[str, Any] = counter_pictures(run.counters)
    counted_names = list(pictures)
    samples = run.surroundings()
    recorded = bool(summaries.table.totals)
    durations_known = summaries.table.durations_known and recorded
    single_calls = summaries.events != 0 and recorded
    drawn = durations_known + 2 * single_calls + bool(len(samples))
    with announced("drawing", run.path, drawn, "pictures"):
        if durations_known:
            pictures["histogram"] = histogram(summaries.histogram)
            advance(1)
        for number, ensemble in enumerate(shown):
            pictures |= {f"{name}_{number}": figure for name, figure in ensemble.pictures.items()}
        if single_calls:
            pictures["trace"] = trace_diagram(
                summaries.raster,
                calls=summaries.outlined,
                x_range=x_range,
                zoomed=summaries.longest,
                is_selection=bool(selected),
                info=run.info,
            )
            advance(1)
            pictures["rate"] = rate(summaries.rate, x_range=x_range, separate=True)
            advance(1)
        if len(samples):
            pictures["surroundings"] = surroundings(samples, x_range=x_range)
            if pictures["surroundings"].select_one({"name": "empty"}):  # too few samples for a line
                del pictures["surroundings"]
            advance(1)
    colours = call_colours(summaries)

    def as_html(parts: tuple[Part, ...]) -> str:
        return keep_units(answer_html(parts, None, "", colours))

    folded = _folded(run, summaries, None if information is None else _phases(run))
    pictures |= {part.name: part.picture for part in folded if part.picture is not None}
    script, divisions = embed_pictures(pictures, _LINKED, selects=False)
    sections = {*pictures, *(f"ensemble-{ensemble.name}" for ensemble in shown)}
    return rendered(
        "report/page.html",
        style=page_part("report/style.html"),
        **({} if diagnosis is None else _findings(diagnosis, sections)),
        headline=headline(run),
        version=__version__,
        simulated=run.info.simulated,
        selected=selected,
        notes=run.notes,
        facts=facts(run, summaries, information),
        data_lost=DATA_LOST,
        information=_script_text(information),
        counted=keep_units(answer_html(counted_parts, None, "")),
        counted_names=counted_names,
        durations_known=durations_known,
        calls=as_html(call_table(summaries)),
        waits=as_html(wait_table(summaries)),
        failed=as_html(failed_table(run, summaries.failed)),
        missing=missing(run, summaries, bool(counted_parts)),
        single_calls=single_calls,
        requests=as_html(request_table(run, summaries.requests)),
        sites=sites_html(run, summaries.sites),
        folded=folded,
        layers=[]
        if information is None
        else [f"{text[0].upper()}{text[1:]}." for text in layer_sentences(information)],
        storage=storage_of(information),
        surroundings="surroundings" in pictures,
        sizes={layer: as_html(parts) for layer, parts in size_tables(summaries.sizes).items()},
        ensembles=shown,
        moments=as_html(moments((summaries.moments, summaries.histogram))),
        script=script,
        divisions=divisions,
    )


def _phases(run: Run) -> PhasesAnswer | None:
    """Return the phases of a run, unless they are not known or it has too many events for a report."""
    if run.reading.most_events > MOST_EVENTS or run.reading.phases_of_calls is None:
        return None
    found = answer_phases(run)
    return found if found.phases else None


def _folded(run: Any, summaries: ReportData, phases: PhasesAnswer | None) -> list[Folded]:
    """Return the folded sections; none for a selection of the events."""
    if summaries.sums is None:
        return []
    sums = {
        key: each for key, each in (("file", summaries.file), ("rank", summaries.rank)) if each is not None
    }
    layers = layers_over_each_other(summaries.totals.layers.layers)
    return folded_sections(run, sums, phases, summaries.transfers, layers)


def _findings(diagnosis: DiagnosisAnswer, sections: Collection[str]) -> dict[str, Any]:
    """Return what the section of findings shows."""
    shown = []
    for finding in diagnosis.findings:
        facts = finding_facts(finding, diagnosis.cause_of(finding), is_whole=True)
        assert facts.title is not None
        small = "; too small to matter" * diagnosis.is_small(finding)
        body = keep_units(answer_html((replace(facts, title=None),), 0, ""))
        shown.append((sentence(facts.title) + small, body, evidence_links(finding, sections)))
    nothing = () if shown else (*diagnosis.nothing, *diagnosis.of_examined)
    return {
        "above": [*map(sentence, diagnosis.above)],
        "findings": shown,
        "is_note": [finding.severity == "note" for finding in diagnosis.findings],
        "below": [*map(sentence, (*nothing, *diagnosis.below))],
    }


def evidence_links(finding: Finding, sections: Collection[str]) -> list[tuple[str, str]]:
    """Return the sections of a report in which the calls of a finding can be seen."""
    where = finding.where
    when = "" if where.times_s is None else f" from {where.times_s[0]:.3f} to {where.times_s[1]:.3f} s"
    links = [("trace", f"the trace diagram{when}")]
    if where.op in ("read", "write"):
        links.append(("rate", f"the rate of {where.op}s"))
    if where.phases:
        shown = some_spans_text(find_spans(where.phases))
        links.append(("phases", f"phase{'s' * (len(where.phases) > 1)} {shown}"))
    if where.ordinals:
        links.append(("ordinals", "durations by call index"))
    of_calls = [f"ensemble-{name}" for name in (where.calls or ())]
    of_calls += [name for name in sorted(sections) if where.op and name == f"ensemble-{where.op}"]
    links += [
        (name, f"durations of {name.removeprefix('ensemble-')}") for name in of_calls if name in sections
    ]
    if not any(anchor.startswith("ensemble-") for anchor, _ in links):
        links.append(("histogram", "durations of all calls"))
    if where.files:
        links.append(("access_map", "the access map"))
    found = [(anchor, words) for anchor, words in dict.fromkeys(links) if anchor in sections]
    # Of a log of counters, pictures are of sums.
    return found or [(name, name.replace("_", " ")) for name in sorted(sections)[:3]]


@dataclass(frozen=True)
class Shown:
    """The section of a report about one function."""

    name: str  # Name of the function
    pictures: dict[str, Any]  # ``modes`` and ``tail``; empty without an ensemble
    sentences: Sequence[str]  # Data-quality warnings, or the reason why there are no figures


@dataclass(frozen=True)
class Chosen:
    """The functions that a report shows, and the calls of each that are its ensemble."""

    calls: Sequence[Call]
    selections: Sequence[Selection]
    left_out: Sequence[list[str]]  # Sentences on the other calls of each


def _chosen_early(run: Run) -> Chosen | None:
    """Choose the functions before the pass of a report; None: it needs a pass, or an ensemble is refused."""
    table = CallTable()
    if not run.reading.kept.find(SummaryRequest(ignoring_run(CallTable)), table):
        return None
    try:
        return _chosen(run, _calls_that_matter(table))
    except EnsioError:  # `shown_ensembles` says why there are no ensembles
        return None


def shown_ensembles(
    run: Run, table: CallTable, counts: CountsOfSeveral | None = None, chosen: Chosen | None = None
) -> list[Shown]:
    """Return the sections of the two reads or writes with the most time, and of a call with more time."""
    calls = _calls_that_matter(table) if chosen is None else chosen.calls
    found = []
    with announced("finding modes of", run.path, len(calls), "ensembles"):
        ensembles = _ensembles(run, calls, counts, chosen)
        for call, each in zip(calls, ensembles, strict=True):
            found.append(_shown(run, call, each))
            advance(1)
    return [*found, *_flights(run)]


def _flights(run: Run) -> list[Shown]:
    """Return the section of the requests with the longest time in flight, if single ones are known."""
    flying = {op: sums.flight_ns for op, sums in run.info.flights.items() if op in ("read", "write")}
    if not flying:
        return []
    try:
        ensemble = ensemble_of(run, op=max(flying, key=lambda op: flying[op]), quantity="flight")
    except EnsioError:  # the sums of the flights are in the information
        return []
    if not ensemble.n:
        return []
    return [_with_pictures(ensemble, ensemble.name, "flight", {"modes": modes(ensemble)})]


def _chosen(run: Run, calls: Sequence[Call]) -> Chosen:
    """Choose of each function the size class with most time."""
    selections, notes = [], []
    for call in calls:
        chosen = Selection.parse(call=call.name, layer=call.layer).for_run(run, from_summary=True)
        left_out: list[str] = []
        # Without the recorder's summary, a long run would be read once more for each function.
        if run.reading.has_summary or not is_long(run):
            chosen, left_out = main_group(run, chosen)
        selections.append(chosen)
        notes.append(left_out)
    return Chosen(calls, selections, notes)


def _ensembles(
    run: Run, calls: Sequence[Call], counts: CountsOfSeveral | None, chosen: Chosen | None
) -> list[Ensemble | EnsioError]:
    """Return the ensemble of each function, or the error that explains why there is none."""
    try:
        chosen = chosen or _chosen(run, calls)
        found = list(ensembles_from_run(run, chosen.selections, counts=counts))
    except EnsioError:
        return [_ensemble(run, call) for call in calls]
    for ensemble, left_out in zip(found, chosen.left_out, strict=True):
        ensemble.notes[:0] = left_out  # below the pictures, not in each of them
    return list(found)


def _ensemble(run: Run, call: Call) -> Ensemble | EnsioError:
    try:
        return ensemble_of(run, call=call.name, layer=call.layer)
    except EnsioError as error:
        return error


def _calls_that_matter(table: CallTable) -> list[Call]:
    """Return the reads and writes with the most time, after a function on which more time was spent."""
    times_ns = {call: each.time_ns for call, each in table.totals.items() if not call.waits_for_tasks}
    ordered = sorted(times_ns, key=lambda call: -times_ns[call])
    moving = [call for call in ordered if call.op in ("read", "write")]
    chosen = moving or ordered
    least_ns = 0.02 * max((times_ns[call] for call in chosen), default=0)
    shown = [call for call in chosen if times_ns[call] >= least_ns][:2]
    # Of the first one: a program that spends its time in fsync is not explained by its writes.
    return [call for call in ordered[:1] if call not in shown] + shown


def _shown(run: Run, call: Call, ensemble: Ensemble | EnsioError) -> Shown:
    try:
        if isinstance(ensemble, EnsioError):
            raise ensemble
        pictures = {"modes": modes(ensemble), "tail": tail(ensemble, tasks_of(ensemble, run.tasks))}
    except EnsioError as error:
        return Shown(call.name, {}, [f"{error}."])
    return _with_pictures(ensemble, call.name, f"{call.layer}_{call.name}", pictures)


def _with_pictures(ensemble: Ensemble, name: str, key: str, pictures: dict[str, Any]) -> Shown:
    for kind, figure in pictures.items():
        figure.name = f"{kind}_{key}"  # names are unique on a page
        if kind == "tail":
            figure.title.visible = False  # it is the heading of the folded part
    return Shown(name, pictures, [sentence_of(note) for note in ensemble.notes])
