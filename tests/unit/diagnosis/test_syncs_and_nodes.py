"""A sync after each write is found although a task also writes headers; few nodes are refused."""

from __future__ import annotations

import pytest

import ensembles as en
from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.rules import disk_waits
from ensembles.workloads.patterns import expand
from ensembles.workloads.patterns.reading import read_pattern
from ensembles.workloads.simulation.models import read_model
from ensembles.workloads.simulation.simulate import simulate

STEPS = """
title = "eight tasks sync after each write, and the first writes headers"
layer = "posix"
[parameters]
tasks = 8
tasks_per_node = 4
headers = 100
[files.data]
path = "data.{rank}"
[files.header]
path = "header"
[[phases]]
name = "open"
[[phases.operations]]
call = "open"
file = "data"
[[phases.operations]]
call = "open"
file = "header"
when = "rank == 0"
[[phases]]
name = "step"
repetitions = 4
barrier = "repetition"
[[phases.operations]]
call = "write_at"
file = "header"
times = "headers"
offset = "(repetition * headers + call) * 512"
size = "512"
when = "rank == 0"
[[phases.operations]]
call = "write_at"
file = "data"
times = 8
offset = "(repetition * 8 + call) * 64 * KiB"
size = "64 * KiB"
[[phases.operations]]
call = "sync"
file = "data"
times = 8
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    folder = tmp_path_factory.mktemp("syncs")
    (folder / "p.toml").write_text(STEPS)
    (folder / "run").mkdir()
    plan = expand(read_pattern(folder / "p.toml"), {})
    simulate(plan, read_model("healthy", ["sync-per-write=1"]), folder / "run", seed=2)
    return en.open(str(folder / "run"))


def test_a_sync_after_each_write_is_found_although_the_last_task_writes_headers(run: en.Run) -> None:
    found = diagnose(run, [disk_waits.sync_per_write]).findings[0]
    assert (found.id, found.severity) == ("sync-per-write", "critical")
    assert found.where.ranks == ((0, 7),)


def test_a_slow_node_of_two_is_refused_with_what_to_record(run: en.Run) -> None:
    found = diagnose(run, [slow_calls.node])
    assert [(entry.id, entry.reason) for entry in found.not_examined] == [
        ("straggler-node", "a slow node needs 4 nodes to compare with: run on more nodes")
    ]
