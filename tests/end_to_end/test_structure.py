"""Phases, ordinals and rates of real MPI programs: what the pattern says is what is found."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import commands_here
import numpy as np
import pytest
from places import BUILD, ROOT

import ensembles

PHASES = 9  # open, three of writes, sync, three of reads, close
TASKS = 8
BLOCK_BYTES = 1 << 20


@pytest.fixture
def ensio(tmp_path, monkeypatch):
    """Runs a subcommand in an empty folder; returns its JSON."""
    if not (BUILD / "bin" / "ensio-replay").exists():
        pytest.fail(f"ensio-replay is not built in {BUILD}; run ./dev setup")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run(*arguments):
        done = commands_here.shell(
            shlex.join(["ensio", *map(str, arguments), "--json"]), tmp_path, os.environ
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(("layers", "rule"), [("posix,mpisync", "barriers"), ("posix", "steps")])
def test_the_phases_of_ior_are_those_between_its_barriers(ensio, layers, rule):
    launcher = f"env ENSIO_LAYERS={layers} mpiexec"
    arguments = ("--tasks", TASKS, "--repetitions", 3, "--block-size", BLOCK_BYTES, "--launcher", launcher)
    run = ensio("replay", "ior", *arguments)["run"]
    named = ensio("phases", run)
    assert (named["rule"], named["count"]) == ("named", PHASES)
    result = ensio("phases", run, "--by", rule)
    assert (result["rule"], result["count"], result["complete"]) == (rule, PHASES, True)
    assert {entry["tasks"] for entry in result["phases"]} == {TASKS}
    moved = [0, *[TASKS * BLOCK_BYTES] * 3, 0]
    assert [entry["bytes_written"] for entry in result["phases"]] == [*moved, 0, 0, 0, 0]
    assert [entry["bytes_read"] for entry in result["phases"]] == [0, 0, 0, 0, *moved]
    last = [entry["last_call"]["call"] for entry in result["phases"]]
    assert last == ["open", *["write"] * 3, "open", *["read"] * 3, "close"]
    for entry in result["phases"]:
        assert 0 <= entry["lost_share"] < 1
    # Seeks belong to the phase of what they seek for.
    events = ensembles.open(run).events
    names = np.array([call.name for call in events.calls])[events.call]
    for name, phases in (("lseek", {2, 3, 4, 6, 7, 8}), ("read", {6, 7, 8}), ("open", {1, 5})):
        assert set(events.phase[names == name].tolist()) == phases
    if rule == "barriers":
        assert ensio("phases", run, "--by", "steps")["count"] == PHASES
    ordinals = ensio("ordinals", run, "--op", "write")["ordinals"]
    assert [(entry["ordinal"], entry["n"]) for entry in ordinals] == [(1, TASKS), (2, TASKS), (3, TASKS)]
    for rates in ensio("rate", run)["rates"]:
        assert rates["bytes"] == 3 * TASKS * BLOCK_BYTES


def test_a_python_program_names_its_phases(ensio, tmp_path):
    (tmp_path / "app.py").write_text(
        "from ensembles.recorder.annotate import phase\n"
        "for name in ('first', 'second', 'first'):\n"
        "    phase(name)\n"
        "    with open('data', 'wb', buffering=0) as file:\n"
        "        for _ in range(4):\n"
        "            file.write(bytes(1000))\n"
    )
    recorded = subprocess.run(
        [sys.executable, "-m", "ensembles.cli.main", "run", "-o", "run", "--", sys.executable, "app.py"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert recorded.returncode == 0, recorded.stderr
    result = ensio("phases", "run", "--op", "write", "--file", "*/data")
    assert result["rule"] == "named"
    assert [(entry["name"], entry["calls"]) for entry in result["phases"]] == [
        ("first", 4),
        ("second", 4),
        ("first", 4),
    ]


def test_ordinals_of_a_run_in_mode_profile_come_from_its_summary(ensio):
    command = ["dd", "if=/dev/zero", "of=data", "bs=4k", "count=300"]
    recorder = [sys.executable, "-m", "ensembles.cli.main", "run", "--mode", "profile", "-o", "run", "--"]
    recorded = subprocess.run([*recorder, *command], capture_output=True, text=True)
    assert recorded.returncode == 0, recorded.stderr
    result = ensio("ordinals", "run", "--op", "write")
    assert not result["exact_quantiles"]
    ordinals = [(entry["ordinal"], entry["to"], entry["n"]) for entry in result["ordinals"]]
    octaves = [(17, 31, 15), (32, 63, 32), (64, 127, 64), (128, 255, 128), (256, 511, 45)]
    assert ordinals == [*((n, n, 1) for n in range(1, 17)), *octaves]
    refused = commands_here.executed("ordinals", "run", "--op", "write", "--rank", "0")
    assert refused.returncode == 2
    assert "its summary does not distinguish ranks" in refused.stderr
