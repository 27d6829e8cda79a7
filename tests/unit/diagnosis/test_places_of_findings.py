"""A place names what is known of it, and leaves out what is not."""

from __future__ import annotations

from pathlib import Path

from made_patterns import OPEN, model, operation, pattern, simulated, stage

from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Where
from ensembles.diagnosis.rules import not_io

MOSTLY_COMPUTING = pattern(
    OPEN,
    stage(
        "step",
        operation("task.compute", duration_ns="1000 * ms"),
        operation("write_at", offset="rank * MiB", size="MiB"),
        repetitions=3,
    ),
    tasks=4,
)


def test_ranks_stand_in_parentheses_only_where_they_are_known() -> None:
    assert str(Where(tasks=4)) == "calls, in 4 tasks"
    assert str(Where(tasks=4, ranks=((0, 2), (9, 9)))) == "calls, in 4 tasks (0-2, 9)"


def test_the_place_of_little_io_names_the_tasks(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", MOSTLY_COMPUTING, model())
    (found,) = diagnose(run, [not_io.rule]).findings
    assert found.id == "not-io"
    assert str(found.where) == "calls, in 4 tasks (0-3)"
