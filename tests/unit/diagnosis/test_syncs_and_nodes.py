"""A sync after each write is found although a task also writes headers; few nodes are refused."""

from __future__ import annotations

import pytest
from made_patterns import OPEN, model, operation, pattern, simulated, stage

import ensembles as en
from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.rules import disk_waits

OF_OWN = {"times": 8, "offset": "(repetition * 8 + call) * 64 * KiB", "size": "64 * KiB"}
HEADERS = {"times": "headers", "offset": "(repetition * headers + call) * 512", "size": "512"}
STEPS = pattern(
    OPEN + operation("open", file="header", when="rank == 0"),
    stage(
        "step",
        operation("write_at", file="header", when="rank == 0", **HEADERS),
        operation("write_at", **OF_OWN),
        operation("sync", times=8),
        repetitions=4,
        barrier="repetition",
    ),
    files={"data": "data.{rank}", "header": "header"},
    tasks=8,
    tasks_per_node=4,
    headers=100,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    machine = model(["sync-per-write=1"])
    return simulated(tmp_path_factory.mktemp("syncs") / "run", STEPS, machine, seed=2)


def test_a_sync_after_each_write_is_found_although_the_last_task_writes_headers(run: en.Run) -> None:
    found = diagnose(run, [disk_waits.sync_per_write]).findings[0]
    assert (found.id, found.severity) == ("sync-per-write", "critical")
    assert found.where.ranks == ((0, 7),)


def test_a_slow_node_of_two_is_refused_with_what_to_record(run: en.Run) -> None:
    found = diagnose(run, [slow_calls.node])
    assert [(entry.id, entry.reason) for entry in found.not_examined] == [
        ("straggler-node", "a slow node needs 4 nodes to compare with: run on more nodes")
    ]
