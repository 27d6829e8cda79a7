"""The recorder notes why it drops events, and readers say it."""

import json
import resource

import pytest
from test_mpi import compiled
from test_space import CALLS, small_disk

import ensembles
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS

__all__ = ["small_disk"]


def reasons(recorder, program, out, **options):
    """Why events of a program were dropped, by the recorder's account."""
    recorder.execute(program, out, CALLS, check=True, **options)
    run = ensembles.open(recorder.run)
    assert sum(run.info.dropped_by_reason.values()) == run.info.dropped_events > 0
    return set(run.info.dropped_by_reason)


def test_budget(recorder, tmp_path):
    program = recorder.build("acknowledge")
    found = reasons(recorder, program, tmp_path / "out", environment={"ENSIO_MAX_BYTES": "256KiB"})
    assert found == {"budget"}


def test_limit_on_file_size(recorder, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    program = recorder.build("acknowledge")
    assert reasons(recorder, program, tmp_path / "out", preexec_fn=limit) == {"file_size_limit"}


@pytest.mark.usefixtures("small_disk")
def test_little_space(recorder, tmp_path, small_disk):
    """On a disk of 4 MiB: a tenth of it may be taken, or its last twentieth is left, or it is full."""
    recorder.run = small_disk / "run"
    found = reasons(recorder, recorder.build("acknowledge"), tmp_path / "out")
    assert found <= {"budget", "free_space", "file_system_full"}


def test_they_come_by_way_of_the_job_file_too(preload, tmp_path, capsys):
    """Of ranks that put their spools into one file."""
    program = compiled(preload, "mpi_many_writes", "mpicc")
    environment = {
        "ENSIO_MAX_BYTES": "128KiB",
        **ANY_TASKS,
    }
    preload.execute("mpiexec", "-n", 2, program, CALLS, cwd=tmp_path, environment=environment, check=True)
    assert [path.name for path in preload.run.glob("*.ensio")] == ["job.ensio"]
    assert not list(preload.run.glob("*.spool"))
    assert main(["info", str(preload.run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["dropped_events"] > 0
    assert told["dropped_events_by_reason"] == {"budget": told["dropped_events"]}
