"""A place names what is known of it, and leaves out what is not."""

from __future__ import annotations

from pathlib import Path

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Where
from ensembles.diagnosis.rules import not_io
from ensembles.workloads.patterns import expand
from ensembles.workloads.patterns.reading import read_pattern
from ensembles.workloads.simulation.models import read_model
from ensembles.workloads.simulation.simulate import simulate

MOSTLY_COMPUTING = """
title = "four tasks compute, and write a little"
layer = "posix"
[parameters]
tasks = 4
[files.data]
path = "data.dat"
[[phases]]
name = "open"
[[phases.operations]]
call = "open"
file = "data"
[[phases]]
name = "step"
repetitions = 3
[[phases.operations]]
call = "task.compute"
duration_ns = "1000 * ms"
[[phases.operations]]
call = "write_at"
file = "data"
offset = "rank * MiB"
size = "MiB"
"""


def test_ranks_stand_in_parentheses_only_where_they_are_known() -> None:
    assert str(Where(tasks=4)) == "calls, in 4 tasks"
    assert str(Where(tasks=4, ranks=((0, 2), (9, 9)))) == "calls, in 4 tasks (0-2, 9)"


def test_the_place_of_little_io_names_the_tasks(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(MOSTLY_COMPUTING)
    (tmp_path / "run").mkdir()
    plan = expand(read_pattern(tmp_path / "p.toml"), {})
    simulate(plan, read_model("healthy", []), tmp_path / "run", seed=1)
    (found,) = diagnose(en.open(str(tmp_path / "run")), [not_io.rule]).findings
    assert found.id == "not-io"
    assert str(found.where) == "calls, in 4 tasks (0-3)"
