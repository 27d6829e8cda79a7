"""The command that prints access patterns."""

from __future__ import annotations

import json

import pytest
from commands_here import executed
from made_runs import run_of
from synthetic_runs import synthetic_run

import ensembles
from ensembles.cli.main import main
from ensembles.passes.summary import ignoring_run
from ensembles.structure.access.pattern import AccessSummary, pattern_of


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    synthetic_run(folder, 6, 62, seed=3, phases=4)
    return folder


def test_the_command_prints_80_columns_and_json(run_directory, capsys):
    assert main(["pattern", str(run_directory)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert main(["pattern", str(run_directory), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert " ".join(text.split()).startswith(found["pattern"])
    assert found["complete"]
    assert sum(group["tasks"] for group in found["groups"]) >= 1
    assert {group["op"] for group in found["files"]} <= {"read", "write"}
    assert main(["pattern", str(run_directory), "--op", "read", "--rank", "99999"]) == 2
    assert "no call" in capsys.readouterr().err


def test_the_command_reads_the_events_once(run_directory, monkeypatch, capsys):
    from ensembles.run.reading import RunReading

    monkeypatch.setenv("ENSIO_CACHE", "0")
    passes = []
    whole = RunReading._pass
    monkeypatch.setattr(RunReading, "_pass", lambda *given: passes.append(sorted(given[1])) or whole(*given))
    assert main(["pattern", str(run_directory)]) == 0
    assert passes == [["access", "others"]]


def test_it_is_the_same_by_processes(run_directory):
    runs = ensembles.open(str(run_directory)), ensembles.open(str(run_directory), workers=2)
    threads, processes = (run.summarize(ignoring_run(AccessSummary)) for run in runs)
    assert pattern_of(threads, runs[0].files) == pattern_of(processes, runs[1].files)


def test_sizes_of_whole_thousands_have_their_text(tmp_path):
    tasks = [[("pwrite", 0.1 * number, 0.01, 2_000_000) for number in range(8)]]
    run_of(tmp_path / "run", tasks)
    done = executed("pattern", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "write 1.91 MiB" in done.stdout
