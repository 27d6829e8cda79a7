"""List the runs in a folder, or in a directory that several launches recorded into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import table_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def collect_runs(paths: Iterable[str], open_run: Callable[[str], Run]) -> list[dict[str, Any]]:
    """Collect what ``ensio info --json`` prints of each run; of one that cannot be read, ``error``."""
    return [_described(path, open_run) for path in paths]


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


def run_list_text(path: str, runs: Sequence[dict[str, Any]]) -> str:
    """Format the result of `collect_runs`."""
    rows = [
        (entry["run"], entry["error"], "", "", "")
        if "error" in entry
        else (
            entry["run"],
            entry["name"],
            f"{entry['tasks']:,}",
            (entry["start"] or "unknown").replace("T", " ")[:19],
            "" if entry["complete"] else "warnings",
        )
        for entry in runs
    ]
    table = table_text(
        ("run", "program", "tasks", "start (UTC)", ""),
        [[sanitize_text(cell) for cell in row] for row in rows],
        {0, 1, 3, 4},
    )
    return f"{sanitize_text(path)} holds {len(runs)} runs; name one of them:\n\n{table}"
