"""List the runs in a folder, or in a directory that several launches recorded into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.errors import EnsioError
from ensembles.model.statement import Statement, Table

if TYPE_CHECKING:
    from ensembles.run.run import Run

_UNITS = {"run": "", "program": "", "tasks": "count", "start (UTC)": "", "": ""}


def answer_run_list(path: str, paths: Iterable[str], open_run: Callable[[str], Run]) -> PlainAnswer:
    """List the runs of a folder; of one that cannot be read, the JSON has ``error``."""
    runs = [_described(each, open_run) for each in paths]
    rows = [
        (entry["run"], entry["error"], None, None, None)
        if "error" in entry
        else (
            entry["run"],
            entry["name"],
            entry["tasks"],
            (entry["start"] or "unknown").replace("T", " ")[:19],
            None if entry["complete"] else "warnings",
        )
        for entry in runs
    ]
    head = Statement("runs.what", {"path": path, "count": len(runs)})
    return PlainAnswer("info", ((head,), Table.of_rows("run", _UNITS, rows)), {"runs": runs})


def _described(path: str, open_run: Callable[[str], Run]) -> dict[str, Any]:
    try:
        run = open_run(path)
    except EnsioError as error:
        return {"run": path, "error": str(error)}
    return {
        "run": path,
        "name": run.info.name,
        "program": run.info.program,
        "programs": list(run.info.programs),
        "command": list(run.info.command),
        "tasks": run.tasks,
        "job": run.info.job,
        "start": run.info.start and run.info.start.isoformat(),
        "mode": run.mode,
        "complete": not run.notes,
    }
