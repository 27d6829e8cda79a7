"""Which calls a run made, without their times."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Statement, Table
from ensembles.model.units import count_text
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.structure.fingerprint import Fingerprint
from ensembles.structure.phases.detect import Phases, detect_phases

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

FORMAT = "ensio fingerprint 1"
_WITHOUT_FILE = {"mpisync", "mpimsg"}
"""Layers whose calls have no file; they count if the user selects one of these layers."""

_UNITS = {"phase": "count", "tasks": "count", "calls": "count", "read": "bytes", "written": "bytes"}
_UNITS |= {"digest: calls": "", "digest: bytes": ""}
_DIGITS = 8
"""Of digests in tables."""


def answer_fingerprint(run: Run, selection: Selection, whole: bool) -> PlainAnswer:
    """Find which calls a run made."""
    phases = None if whole else detect_phases(run)
    layers = selection.layers or ()
    kind = partial(_empty, phases, bool(layers), bool(_WITHOUT_FILE.intersection(layers)))
    found = run.summarize(kind, selection=selection.for_run(run))
    refuse_nothing(run, selection, found.entries[0].calls.total())
    made = found.to_json()
    rows = [_row("all", made["whole"]), *map(_row, itertools.count(1), made["phases"])]
    files = ", ".join(
        f"{count_text(each['files'], 'file')} used by {count_text(each['tasks'], 'task')}"
        for each in made["files"]
    )
    calls = ", ".join(f"{name} × {count:,}" for name, count in made["whole"]["calls"].items())
    head = Statement("fingerprint.files", {"files": files}), Statement("fingerprint.calls", {"calls": calls})
    values = {"format": FORMAT, "run": run.path, "complete": not run.notes, "notes": run.notes, **made}
    return PlainAnswer("fingerprint", (head, Table.of_rows("phase", _UNITS, rows)), values, tuple(run.notes))


def _row(number: int | str, entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return the cells of a phase, or of the whole run."""
    digests = (entry["digests"][kind][:_DIGITS] for kind in ("ordered", "bytes"))
    moved = entry["read_bytes"] or None, entry["written_bytes"] or None
    return (number, entry["tasks"], sum(entry["calls"].values()), *moved, *digests)


def _empty(phases: Phases | None, nested: bool, without_file: bool, _: Run) -> Fingerprint:
    return Fingerprint(phases, nested, without_file)
