"""``ensio simulate``: a pattern on a model is a run like any other, and mistakes are told beforehand."""

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands_here import executed, limited
from places import BUILD, PATIENCE_S

import ensembles
from ensembles.cli.main import main

ENSIO = Path(sys.executable).with_name("ensio")
KIB = 1 << 10

MODEL = """\
title = "a model of the tests"
targets = 8
"""


@pytest.fixture
def simulate(tmp_path, monkeypatch):
    """Executes ``ensio simulate`` in a folder with a model; returns what came of it."""
    if not (BUILD / "bin" / "ensio-simulate").exists():
        pytest.fail(f"ensio-simulate is not built in {BUILD}; run ./dev setup")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "mine.toml").write_text(MODEL)

    return functools.partial(executed, "simulate")


def simulated(simulate, *arguments):
    """The result of a simulation that went well."""
    result = simulate(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def small_ior(*more):
    return ("ior", "--tasks", 6, "--set", "block_bytes=64KiB", "--set", "repetitions=2", *more)


def test_ior_is_simulated_call_by_call(simulate):
    told = simulated(simulate, *small_ior("--calls", 4, "--fs", "./mine.toml", "--seed", 5, "-o", "run"))
    assert told["tasks"] == 6
    assert told["nodes"] == 2
    assert told["model"] == "mine"
    assert told["seed"] == 5
    assert told["mode"] == "trace"
    run = ensembles.open(told["run"])
    writes = run.select(call="write")
    assert len(writes) == 6 * 2 * 4
    assert set(writes.moved.tolist()) == {16 * KIB}
    blocks = np.sort(writes.offset)
    assert blocks.tolist() == list(range(0, 6 * 2 * 64 * KIB, 16 * KIB))
    assert told["events"] == len(run.events)
    phases = [(step["phase"], step["repetition"]) for step in told["steps"]]
    assert [phase for phase, _ in phases] == list(run.phases.names)
    assert phases[1:3] == [("write", 0), ("write", 1)]
    assert sum(step["phase_s"] for step in told["steps"]) == pytest.approx(told["span_s"], rel=1e-6)


def test_model_says_how_many_tasks_a_node_has_where_the_pattern_does_not(simulate, tmp_path):
    with (tmp_path / "mine.toml").open("a") as model:
        model.write("tasks_per_node = 2\n")
    (tmp_path / "odd.toml").write_text(
        'title = "nothing but an open"\nlayer = "posix"\n[parameters]\ntasks = 5\n'
        '[files.data]\npath = "data"\n[[phases]]\nname = "open"\n'
        '[[phases.operations]]\ncall = "open"\nfile = "data"\n'
        '[[phases.operations]]\ncall = "close"\nfile = "data"\n'
    )
    assert simulated(simulate, "./odd.toml", "--fs", "./mine.toml")["nodes"] == 3
    assert simulated(simulate, *small_ior("--fs", "./mine.toml"))["nodes"] == 2  # four, as ior.toml says


def test_run_says_what_it_is(simulate, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ensio", "simulate", "ior"])
    told = simulated(simulate, *small_ior("--fs", "./mine.toml", "--fault", "slow-target=2", "--seed", 7))
    run = ensembles.open(told["run"])
    assert told["faults"] == {"slow-target": 2}
    assert run.notes == []
    assert (
        run.info.simulated
        == "on the model mine with the faults slow-target=2, seed 7: no call was really made"
    )
    assert run.info.environment["ENSIO_SIMULATED_PATTERN"] == "ior"
    assert run.info.environment["ENSIO_SIMULATED_FAULTS"] == "slow-target=2"
    assert run.info.command[:3] == ("ensio", "simulate", "ior")
    assert run.info.filesystem_of(run.files[1]).type == "simulated"
    assert run.info.clock_error_s == 0


@pytest.mark.quick
@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_commands_take_a_simulated_run(simulate, mode, capsys):
    simulated(simulate, *small_ior("--fs", "./mine.toml", "--mode", mode, "-o", "run"))
    for command in [
        ("info", "run"),
        ("phases", "run"),
        ("ordinals", "run", "--op", "write"),
        ("modes", "run", "--op", "write"),
        ("tail", "run", "--op", "write", "--tasks", "6"),
        ("report", "run", "-o", "report.html"),
    ]:
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"
    if mode == "trace":
        assert main(("events", "run", "--op", "wait", "--slowest", "5")) == 2
        assert "these calls wait for other tasks" in capsys.readouterr().err


def test_an_end_from_outside_leaves_nothing(simulate, tmp_path):
    """A signal that ends the command also ends the program that it started."""
    command = [str(ENSIO), "simulate", "ior", "--tasks", "20000", "--fs", "./mine.toml", "-o", "run"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        while not (inner := [*tmp_path.glob("run/.ensio-simulate-*/output/events")]):
            assert started.poll() is None, started.stderr.read()
            time.sleep(0.05)
        started.terminate()
        assert started.wait(timeout=PATIENCE_S) == 130
    assert not inner[0].exists()
    assert not (tmp_path / "run").exists()


def test_same_seed_same_events(simulate):
    def columns(seed, name):
        simulated(simulate, *small_ior("--fs", "./mine.toml", "--seed", seed, "-o", name))
        return {key: column.tobytes() for key, column in ensembles.open(name).events.columns.items()}

    first = columns(1, "a")
    assert columns(1, "b") == first
    assert columns(2, "c") != first


def test_profile_counts_what_the_trace_holds(simulate):
    arguments = ("gcrm", "--set", "sizes=laptop", "--fs", "./mine.toml", "--tasks", 12)
    trace = ensembles.open(simulated(simulate, *arguments, "-o", "t")["run"])
    profile = ensembles.open(simulated(simulate, *arguments, "--mode", "profile", "-o", "p")["run"])
    assert profile.mode == "profile"
    assert len(profile.events) == 0
    for name in ("count", "moved", "time_ns", "max_ns", "start_ns", "end_ns"):
        np.testing.assert_array_equal(profile.summary.cells[name], trace.summary.cells[name])
    moved = [np.bincount(run.reading.ranks.rank, run.reading.ranks.moved) for run in (profile, trace)]
    np.testing.assert_array_equal(*moved)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ior", "--fs", "nosuch"), "nosuch: no such model in "),
        (("ior",), "the following arguments are required: --fs"),
        (("nosuch", "--fs", "./mine.toml"), "nosuch: no such pattern"),
        (("ior", "--fs", "./mine.toml", "--fault", "nosuch=1"), "there is no fault nosuch in the model"),
        (
            ("ior", "--fs", "./mine.toml", "--fault", "slow-target=much"),
            'the strength "much" is not a number',
        ),
        (("ior", "--fs", "./wrong.toml"), "wrong.toml:2: there is no key tragets"),
        (("ior", "--fs", "./mine.toml", "--seed", "-1"), 'argument --seed: "-1" is not a whole number'),
        (("ior", "--fs", "./mine.toml", "-o", "full"), "is not empty"),
    ],
)
def test_mistakes_are_told_in_one_sentence(simulate, tmp_path, arguments, sentence):
    (tmp_path / "wrong.toml").write_text(MODEL.replace("targets", "tragets"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    before = sorted(path.name for path in tmp_path.iterdir())
    result = simulate(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("mode", ["trace", "profile"])
@pytest.mark.parametrize(
    ("most_bytes", "sentence"),
    [
        (100, "plan: the plan of 5,616 bytes cannot be written: File too large"),
        (4000, "plan: the plan of 5,616 bytes cannot be written: File too large"),
        (12_000, "cannot be written: File too large"),
    ],
    ids=["text of the plan", "plan", "output"],
)
def test_full_disk_is_told_and_leaves_nothing(simulate, tmp_path, mode, most_bytes, sentence):
    """A file may not become longer than this."""
    result = limited(most_bytes, "simulate", *small_ior("--fs", "./mine.toml", "--mode", mode, "-o", "run"))
    assert result.returncode == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
