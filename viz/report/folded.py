"""Sections of the report that are folded until the reader opens them.

Phases, layers, call indices, requests by API, files, offsets, storage targets, ranks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.answers.ordinals import RunOrdinals, answer_ordinals, durations_by_ordinal
from ensembles.answers.phases import PhasesAnswer
from ensembles.answers.requests import request_parts
from ensembles.faces.html import answer_html
from ensembles.faces.words import cell
from ensembles.model.errors import EnsioError
from ensembles.model.levels import LITTLE
from ensembles.model.units import MOST_NAMED, bytes_text, count_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.progress import advance, announced
from ensembles.passes.summary import ignoring_run
from ensembles.run.requests import RequestTotals
from ensembles.run.selection import Selection
from ensembles.run.tables import FileTotals, files_from_sums, ranks_from_sums
from ensembles.structure.phases.detect import MOST_EVENTS
from ensembles.summaries.totals_by import TotalsBy
from ensembles.viz.common.figures import keep_units
from ensembles.viz.common.single_calls import LAYERS
from ensembles.viz.pictures.access_map import access_map
from ensembles.viz.pictures.bars import files, plain_path
from ensembles.viz.pictures.phases import phases as draw_phases
from ensembles.viz.pictures.progress import progress
from ensembles.viz.pictures.ranks import ranks
from ensembles.viz.pictures.targets import busiest_text, load_request, targets
from ensembles.viz.pictures.trace_diagram import trace_diagram

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.table import PhaseTotals
    from ensembles.summaries.runtotals import LayerTime
    from ensembles.summaries.target_load import TargetLoad

_WHY_THESE = (
    "Of reads and writes, those with most time are shown; ensio ordinals --op numbers other calls. The calls "
    "of a task on a file that is opened again go on counting."
)


@dataclass(frozen=True)
class Folded:
    """A section that the reader opens."""

    name: str  # Anchor of the section, and name of its picture
    title: str  # What is in it, with the most important number
    picture: Any = None
    html: str = ""  # Tables and sentences of an answer
    sentences: Sequence[str] = field(default=())  # What stands below


def folded_requests() -> dict[str, SummaryRequest]:
    """Return the requests for the summaries of events that `folded_sections` takes."""
    return {key: SummaryRequest(ignoring_run(partial(TotalsBy, key))) for key in ("file", "rank")}


def folded_sections(
    run: Run,
    sums: Mapping[str, TotalsBy],
    phases: PhasesAnswer | None,
    transfers: Sequence[RequestTotals] = (),
    layers: Sequence[str] = (),
) -> list[Folded]:
    """Return the sections of a run.

    `sums`: by ``"file"`` and ``"rank"``: the summaries of `folded_requests`; empty if not every call is an
    event.
    """
    made: list[Callable[[], list[Folded]]] = []
    if phases is not None and (phases.found.count > 1 or phases.steps is not None):
        made.append(lambda: [_of_phases(phases)])
    if sums:
        made += [lambda: _of_layers(run, layers), lambda: _of_ordinals(run)]
    if transfers:
        made.append(lambda: [_of_requests(transfers)])
    if sums:
        by_file = files_from_sums(run, sums["file"].totals())
        made += [
            lambda: _of_files(by_file),
            lambda: _of_offsets(run, by_file),
            lambda: _of_targets(run),
            lambda: _of_ranks(run, sums["rank"]),
        ]
    sections: list[Folded] = []
    with announced("drawing", run.path, len(made), "tables"):
        for make in made:
            sections += make()
            advance(1)
    return sections


def _of_phases(found: PhasesAnswer) -> Folded:
    with_io = [entry for entry in found.phases if entry.calls]
    longest = max(with_io, key=lambda entry: entry.time_s)
    title = f"Phases: {count_text(found.found.count, 'phase')}, the longest is {_named(longest)}"
    title += f" with {seconds_text(longest.time_s)}"
    worst = max(with_io, key=lambda entry: -1.0 if math.isnan(entry.lost_s) else entry.lost_s)
    if worst.lost_s >= LITTLE * sum(entry.time_s * entry.tasks for entry in with_io):
        at = "there" if worst is longest else f"in {_named(worst)}"
        title += f"; most idle time is {at}, {seconds_text(worst.lost_s)} of all tasks: "
        title += f"rank {worst.slowest_task} came last"
    html = keep_units(answer_html(found.parts, 40, "ensio phases"))
    return Folded("phases", title, draw_phases(found), html=html)


def _named(entry: PhaseTotals) -> str:
    return f"{entry.phase} {entry.name}" if entry.name else str(entry.phase)


def layers_over_each_other(found: Mapping[str, LayerTime]) -> list[str]:
    """Return the layers whose calls the report draws above each other.

    Those that call others first. Empty: no call is inside another one.
    """
    if all(each.exclusive_ns == each.time_ns for each in found.values()):
        return []
    least_ns = 0.01 * max(each.time_ns for each in found.values())
    some = [name for name in LAYERS if name in found and found[name].time_ns >= least_ns]
    return some if len(some) > 1 else []


def _of_layers(run: Run, layers: Sequence[str]) -> list[Folded]:
    if not layers or run.reading.most_events > MOST_EVENTS:
        return []
    title = f"Layers: calls of {layers[0]} above those of {' and '.join(layers[1:])}"
    return [Folded("by_layer", title, trace_diagram(run, layers=layers))]


def _of_targets(run: Run) -> list[Folded]:
    request = load_request(run, most_pieces=8_000_000) if run.reading.most_events <= MOST_EVENTS else None
    if request is None:
        return []
    load: TargetLoad = run.summarize({"": request})[""]
    if not load.known_bytes:
        return []
    reached = int(np.count_nonzero(load.of_targets("calls")))
    title = f"Storage targets: {reached:,} of {len(load.targets):,} reached, {busiest_text(load)}"
    if len(load.targets) == 1:
        title = f"Storage targets: all bytes on OST {load.targets[0]}"
    sentence = "Bytes count at the time of their call: the page cache may send them later."
    return [Folded("targets", title, targets(load), sentences=(sentence,))]


def _of_ordinals(run: Run) -> list[Folded]:
    if run.reading.most_events > MOST_EVENTS:
        return []
    try:
        found = durations_by_ordinal(run, Selection.parse())
    except EnsioError:
        return []  # no reads or writes
    if len(found.totals) < 2:
        return []
    sentences = [f"{text[0].upper()}{text[1:]}." for text in found.notes]
    sentences.append(_WHY_THESE)
    picture = None
    if any(entry.n > 1 for entry in found.totals):
        shown = _shown_ordinals(found)
        picture = progress(run, op=found.op, ordinal=shown, size=found.size, layer=found.layers)
    title = f"Call index: {count_text(found.totals[-1].to, found.op)} of a task on a file"
    if found.trend.worsening and found.trend.rise is not None:
        title += f", becoming {found.trend.rise:.1f} times as long"
    html = keep_units(answer_html(answer_ordinals(found).parts, 20, "ensio ordinals"))
    return [Folded("ordinals", title, picture, html=html, sentences=sentences)]


def _shown_ordinals(found: RunOrdinals) -> str | None:
    """Return the call indices that became slower, with the one before; None: no few ones did."""
    first, last = found.trend.from_, found.trend.to
    if not found.trend.worsening or first is None or last is None or last - first >= 8:
        return None
    return f"{max(first - 1, 1)}-{last}"


def _of_requests(found: Sequence[RequestTotals]) -> Folded:
    """Tabulate the requests of each API, as ``ensio requests`` does."""
    most = max(found, key=lambda row: (row.bytes, row.time_s))
    moved = f"{bytes_text(most.bytes)} in {count_text(most.count, 'request')}"
    title = f"Requests: {most.layer} {most.op} moved most, {moved}"
    off = [row for row in found if row.misaligned and row.located]
    if off:
        worst = max(off, key=lambda row: row.misaligned or 0)
        part = cell((worst.misaligned, worst.located), "part")
        title = f"Requests: {part} of {worst.layer} {worst.op} misaligned"
    html = keep_units(
        answer_html(request_parts(found, MOST_NAMED), len(found) * MOST_NAMED, "ensio requests")
    )
    return Folded("transfers", title, html=html, sentences=("ensio requests lists all sizes.",))


def _of_files(totals: list[FileTotals]) -> list[Folded]:
    named = [row for row in totals if row.path]
    if len(named) < 2:
        return []
    busiest = max(named, key=lambda row: row.io_time_s)
    title = f"Files: {count_text(len(named), 'file')}, {share_text(busiest.share)} of the I/O time on one"
    return [Folded("files", title, files(totals), sentences=("ensio files lists all.",))]


def _of_offsets(run: Run, totals: list[FileTotals]) -> list[Folded]:
    """Draw where calls read and wrote in the file with most bytes, if it has many calls."""
    moved = [row for row in totals if row.path and row.order("bytes")]
    if not moved or run.reading.most_events > MOST_EVENTS:
        return []
    file = max(moved, key=lambda row: row.order("bytes"))
    if file.calls < 20:
        return []
    name = plain_path(os.path.basename(file.path))
    picture = access_map(run, file.path, title=f"Accesses of {name}: bytes by offset and time")
    if picture.select_one({"name": "empty"}):  # the offsets are not known
        return []
    title = f"Offsets: where calls read and wrote in {name}, the file with most bytes"
    return [Folded("access_map", title, picture)]


def _of_ranks(run: Run, sums: TotalsBy) -> list[Folded]:
    totals = ranks_from_sums(run, sums.totals())
    if len(totals) < 2:
        return []
    slowest = max(totals, key=lambda row: row.io_time_s)
    mean_s = sum(row.io_time_s for row in totals) / len(totals)
    title = f"Ranks: rank {slowest.rank} is longest in I/O, {seconds_text(slowest.io_time_s)}"
    title += f"; the mean is {seconds_text(mean_s)}"
    return [Folded("ranks", title, ranks(totals), sentences=("ensio ranks lists all.",))]
