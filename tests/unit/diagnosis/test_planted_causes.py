"""Causes that are planted in drawn runs are found, and drawn healthy runs are left alone."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from commands_here import executed
from project import ROOT

import ensembles as en
from ensembles.cli.workload_args import find_pattern
from ensembles.workloads.simulation.scenarios import read_scenarios, run_scenario

sys.path.insert(0, str(ROOT))
from calibration.evaluate.draw import draw
from calibration.evaluate.truth import make_run

pytestmark = pytest.mark.slow

FOUND = (
    "aggregation-mismatch",
    "collective-coordination",
    "imbalance",
    "metadata-storm",
    "redundant-reads",
    "seek-heavy",
    "serialised-metadata",
    "slow-target",
    "small-requests",
    "straggler-node",
    "straggler-task",
    "strided-readahead",
    "sync-per-write",
)


def planted(name: str, folder: Path, strength: float = 1.0) -> en.Run:
    (scenario,) = (scenario for scenario in read_scenarios() if scenario.name == name)
    folder.mkdir()
    run_scenario(scenario, folder, find_pattern, seed=5, strength=strength)
    return en.open(str(folder))


@pytest.mark.parametrize("name", FOUND)
def test_a_strong_cause_is_the_first_finding_and_its_gain_is_near_the_measured_one(name, tmp_path):
    found = en.diagnose(planted(name, tmp_path / "run"))
    truth = json.loads((tmp_path / "run" / "truth.json").read_text())
    (cause,) = truth["causes"]
    first = found.findings[0]
    assert (first.id, first.severity) == (name, "critical")
    assert "strided-readahead" not in {finding.id for finding in found.findings} - {name}
    assert not re.search(r"\b1 of [\d,]+ tasks make\b", first.title)  # one task makes
    low, high = first.gain_s
    assert 0.4 * low <= cause["alone_s"] <= 2.5 * high
    assert first.share_s is None or first.share_s <= truth["span_s"]
    where = cause["where"]
    assert where
    assert first.where.op in (where.get("op", first.where.op), None)
    assert first.evidence.get("target") == where.get("target")
    if "ranks" in where:
        assert first.where.ranks == (tuple(where["ranks"]),)


@pytest.mark.parametrize("name", ["cache-cliff", "close-cost", "misaligned-requests", "too-many-writers"])
def test_what_one_run_cannot_show_is_said_with_its_cost_and_what_to_record(name, tmp_path):
    found = en.diagnose(planted(name, tmp_path / "run"))
    assert name not in {finding.id for finding in found.findings if finding.severity != "note"}
    assert "strided-readahead" not in {finding.id for finding in found.findings}
    (reason,) = (each.reason for each in found.not_examined if each.id == name)
    assert "could cost up to" in reason
    assert "record" in reason


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 24))]
)
def test_drawn_runs_without_a_cause_have_no_finding_above_note(seed, tmp_path):
    truth = make_run(draw(seed * 7 + 5_000_000, healthy=True), tmp_path / "run")
    found = en.diagnose(en.open(str(tmp_path / "run")))
    if not truth["causes"]:
        assert [finding.id for finding in found.findings if finding.severity != "note"] == []


def test_a_drawn_program_of_hdf5_whose_tasks_wait_for_metadata_is_named(tmp_path):
    drawn = draw(919 * 100_003 + 232, healthy=False)
    assert (drawn.kind, [habit.id for habit in drawn.habits]) == ("hdf5", ["hdf5-metadata"])
    (cause,) = make_run(drawn, tmp_path / "run")["causes"]
    first = en.diagnose(en.open(str(tmp_path / "run"))).findings[0]
    assert (first.id, first.severity) == (cause["id"], "critical")
    low, high = first.gain_s
    assert low <= cause["alone_s"] <= high


def test_where_one_task_of_a_node_moves_all_data_its_node_is_slow(tmp_path):
    drawn = draw(919 * 100_003 + 83, healthy=False, pair=True)
    truth = make_run(drawn, tmp_path / "run")
    assert "straggler-node" in {cause["id"] for cause in truth["causes"]}
    found = {finding.id: finding for finding in en.diagnose(en.open(str(tmp_path / "run"))).findings}
    assert found["straggler-node"].severity in ("warning", "critical")
    assert {check.name: check.holds for check in found["straggler-node"].checks}["not-the-task"] is None
    assert "straggler-task" not in found


def test_the_same_seed_draws_the_same_run_and_it_tells_nothing(tmp_path):
    truths = [make_run(draw(77, healthy=False), tmp_path / name) for name in ("a", "b")]
    assert truths[0] == truths[1]
    run = en.open(str(tmp_path / "a"))
    assert (run.info.simulated, run.info.environment) == ("", {})


def test_fail_on_is_an_exit_status(tmp_path):
    planted("sync-per-write", tmp_path / "slow")
    planted("sync-per-write", tmp_path / "healthy", strength=0.0)
    slow, healthy = (
        executed("diagnose", "--fail-on", "critical", tmp_path / name) for name in ("slow", "healthy")
    )
    assert (slow.returncode, healthy.returncode) == (1, 0)
    assert "\ncritical: sync-per-write" in slow.stdout
    assert max(map(len, slow.stdout.splitlines())) <= 80


def test_strengths_other_than_one_make_every_scenario(tmp_path):
    for scenario in read_scenarios():
        if scenario.name in ("small-requests", "aggregation-mismatch"):
            for strength in (0.1, 0.5, 2.0):
                folder = tmp_path / f"{scenario.name}-{strength}"
                folder.mkdir()
                run_scenario(scenario, folder, find_pattern, strength=strength, tasks=16)


def test_simulated_runs_record_the_striping_of_their_files(tmp_path):
    run = planted("slow-target", tmp_path / "run")
    layouts = [run.info.striping_of(path) for path in run.files if path]
    assert all(layout is not None and layout.stripe_count == 1 for layout in layouts)
    assert {target for layout in layouts for target in layout.components[0].targets} <= set(range(48))
