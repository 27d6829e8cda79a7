"""Scenarios: every finding has a run in which it is the planted cause, and that costs time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
from commands_here import executed as ensio
from project import ROOT

import ensembles as en
from ensembles.cli.workload_args import find_pattern
from ensembles.model.errors import EnsioError
from ensembles.workloads.simulation.scenarios import TRUTH_FILE, read_scenario, read_scenarios, run_scenario

pytestmark = pytest.mark.slow

SCENARIOS = ROOT / "testbed" / "scenarios"

FINDINGS = {
    "strided-readahead",
    "node-serialisation",
    "straggler-task",
    "straggler-node",
    "slow-target",
    "misaligned-requests",
    "serialised-metadata",
    "metadata-storm",
    "small-requests",
    "too-many-writers",
    "single-large-call",
    "collective-coordination",
    "aggregation-mismatch",
    "close-cost",
    "sync-per-write",
    "cache-cliff",
    "imbalance",
    "redundant-reads",
    "seek-heavy",
}

ALL = [read_scenario(path) for path in sorted(SCENARIOS.glob("*.toml"))]


@dataclass(frozen=True)
class Made:
    """A run, its length, the time that all tasks together wait for each other (s), and its answer sheet."""

    run: en.Run
    span_s: float
    wait_s: float
    truth: dict


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Made]:
    """Makes the run of a scenario, each only once."""

    @cache
    def make(name: str, strength: float = 1.0) -> Made:
        folder = tmp_path_factory.mktemp(name)
        (scenario,) = (scenario for scenario in ALL if scenario.name == name)
        span_s = run_scenario(scenario, folder, find_pattern, strength=strength).span_s
        run = en.open(str(folder))
        wait_s = float(run.select(op="wait", layer="mpisync").duration.sum()) * 1e-9
        return Made(run, span_s, wait_s, json.loads((folder / TRUTH_FILE).read_text()))

    return make


def test_every_finding_is_planted_somewhere_and_five_runs_are_healthy():
    assert {scenario.cause for scenario in ALL} - {None} == FINDINGS
    assert sum(scenario.cause is None for scenario in ALL) >= 5
    assert [scenario.name for scenario in read_scenarios()] == [scenario.name for scenario in ALL]


@pytest.mark.long
@pytest.mark.parametrize("scenario", [s for s in ALL if s.cause], ids=lambda scenario: scenario.name)
def test_what_is_planted_costs_time(scenario, made):
    planted, healthy = made(scenario.name), made(scenario.name, 0.0)
    if scenario.cause == "node-serialisation":
        # The node moves as much as before: tasks that are served first wait for those that come last.
        assert planted.wait_s > 1.5 * healthy.wait_s
    else:
        assert planted.span_s > 1.05 * healthy.span_s
    assert (planted.truth["cause"], healthy.truth["cause"]) == (scenario.cause, None)
    assert planted.truth["tasks"] == planted.run.tasks


@pytest.mark.parametrize("name", ["strided-readahead", "strided-readahead-franklin"])
def test_the_gain_of_strided_read_ahead_holds_what_it_costs(name, made):
    planted, healthy = made(name), made(name, 0.0)
    (found,) = (each for each in en.diagnose(planted.run).findings if each.id == "strided-readahead")
    low, high = found.gain_s
    assert low <= planted.span_s - healthy.span_s <= high
    assert all(finding.severity == "note" for finding in en.diagnose(healthy.run).findings)


# Of runs with other causes, test_planted_causes.py says the same.
ALONE = [s.name for s in ALL if s.cause in (None, "node-serialisation", "single-large-call")]


@pytest.mark.parametrize("name", ALONE)
def test_no_strided_read_ahead_is_found_where_none_was_planted(name, made):
    found = en.diagnose(made(name).run).findings
    assert "strided-readahead" not in {finding.id for finding in found}


def test_another_seed_is_another_run_and_the_same_seed_the_same(tmp_path):
    (scenario,) = (scenario for scenario in ALL if scenario.name == "healthy-own-files")
    spans = []
    for number, seed in enumerate((1, 1, 2)):
        (tmp_path / str(number)).mkdir()
        spans.append(run_scenario(scenario, tmp_path / str(number), find_pattern, seed).span_s)
    assert spans[0] == spans[1] != spans[2]


def test_the_command_makes_runs_with_their_answers(tmp_path):
    chosen = ("--scenario", "close-cost", "--scenario", "healthy-input")
    done = ensio("scenarios", "run", "--seed", "4", *chosen, "--tasks", "8", "-o", tmp_path / "set", "--json")
    assert done.returncode == 0, done.stderr
    assert [entry["cause"] for entry in json.loads(done.stdout)["runs"]] == ["close-cost", None]
    truth = json.loads((tmp_path / "set" / "close-cost" / "truth.json").read_text())
    assert (truth["cause"], truth["tasks"], truth["seed"]) == ("close-cost", 8, 4)
    info = json.loads(ensio("info", tmp_path / "set" / "close-cost", "--json").stdout)
    assert info["tasks"] == 8
    listed = json.loads(ensio("scenarios", "list", "--json").stdout)["scenarios"]
    assert {entry["cause"] for entry in listed} - {None} == FINDINGS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenario", "no-such"), "no such scenario"),
        (("--set", "strength=much"), "write it like --set strength=0.5"),
        (("--set", "strength=-1"), "write it like --set strength=0.5"),
        (("--seed", "x"), "not a whole number"),
        (("--scenario", "close-cost", "--fs", "nowhere"), "no such model"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments, words, tmp_path):
    done = ensio("scenarios", "run", "-o", tmp_path / "set", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('pattern = "ior"\nmodel = "healthy"\n', "title"),
        ('title = "x"\npattern = "ior"\nmodel = "healthy"\nfaults = 1\n', ':4: "faults" is not a key'),
        ('title = "x"\npattern = "ior"\nmodel = 3\n', ":3: model must be text"),
        ('title = "x"\ncause = "imbalance"\npattern = "ior"\nmodel = "healthy"\n', "a cause needs"),
        ('title = "x"\npattern = "ior"\nmodel = "healthy"\n[planted.calls]\nwithout = 1\n', "with"),
        ('title = "x"\npattern = "ior"\nmodel = "healthy"\n[fault]\nslow-target = "a"\n', "a number"),
        ("title = ", "not TOML"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused_with_its_place(text, words, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(EnsioError, match=re.escape(words)):
        read_scenario(path)
