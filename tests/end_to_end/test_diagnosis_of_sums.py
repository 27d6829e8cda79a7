"""Programs with a habit, recorded in modes that keep sums: these name what sums can carry."""

from __future__ import annotations

import subprocess

import h5py
import pytest
from compiling import build
from places import PATIENCE_S, ROOT

import ensembles as en
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.holds import Holds

PROGRAMS = ROOT / "calibration" / "habits" / "programs"
MODES = ("profile", "tail")


def built(recorder, name: str, compiler: str = "gcc"):
    return build(recorder.folder / name, compiler, "-O2", "-Wall", "-Werror", PROGRAMS / f"{name}.c")


def named(run: en.Run) -> dict[str, en.diagnose]:
    return {finding.id: finding for finding in en.diagnose(run).findings}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("words", "cause", "evidence"),
    [
        (("write", "every=1", "count=40"), "sync-per-write", {"syncs": 40, "writes_per_sync": 1}),
        (("write", "size=512", "count=30000"), "small-requests", {"calls": 30000, "mean_bytes": 512}),
        (("open", "again=1", "count=3000"), "metadata-storm", {"repeated": 2999}),
        (("write", "flags=dsync", "count=40"), "o-sync", {"writes": 40, "flags": "O_DSYNC"}),
    ],
)
def test_a_habit_is_named_by_sums_and_by_the_trace(mode, words, cause, evidence, preload, tmp_path):
    program = built(preload, "posix_habits")
    action, *options = words
    for folder, how in (("sums", mode), ("trace", "trace")):
        data = tmp_path / f"data-{folder}"
        data.mkdir()
        preload.run = tmp_path / folder
        done = preload.execute(program, action, data, *options, environment={"ENSIO_MODE": how})
        assert (done.returncode, done.stderr) == (0, b"")
        found = named(en.open(preload.run))
        assert cause in found
        if folder == "sums":
            assert {name: found[cause].evidence[name] for name in evidence} == evidence


@pytest.mark.parametrize("mode", MODES)
def test_large_writes_have_no_finding_of_their_own(mode, preload, tmp_path):
    program = built(preload, "posix_habits")
    done = preload.execute(
        program, "write", tmp_path, "size=4194304", "count=8", environment={"ENSIO_MODE": mode}
    )
    assert done.returncode == 0
    assert not set(named(en.open(preload.run))) - {"not-io"}


@pytest.mark.parametrize("mode", MODES)
def test_the_task_that_writes_more_is_named_by_sums(mode, preload, tmp_path):
    program = built(preload, "mpi_habits", "mpicc.openmpi")
    options = ("steps=2", "count=4", "size=1048576", "heavy=1", "times=5", "sync=0")
    command = ["mpiexec.openmpi", "-n", "4", program, "steps", tmp_path, *options]
    subprocess.run(
        command, env=preload.environment(**ANY_TASKS, ENSIO_MODE=mode), check=True, timeout=PATIENCE_S
    )
    run = en.open(preload.run)
    moved = {row.rank: row.bytes_written for row in run.by_rank()}
    assert moved[1] == 5 * moved[0] == 40 << 20
    found = named(run)
    # Whether its bytes took long is the machine's; that no other task is heavy is not.
    if "imbalance" in found:
        assert found["imbalance"].where.ranks == ((1, 1),)
        assert found["imbalance"].evidence["most_to_mean"] == 2.5
        assert found["imbalance"].gain_s[0] == 0.0


def test_what_sums_do_not_hold_says_what_to_record(preload, tmp_path):
    program = built(preload, "posix_habits")
    assert preload.execute(program, "write", tmp_path, environment={"ENSIO_MODE": "profile"}).returncode == 0
    said = en.diagnose(en.open(preload.run))
    assert said.unexplained_s is None
    reasons = {entry.id: entry.reason for entry in said.not_examined}
    for cause in ("seek-heavy", "redundant-reads", "strided-readahead", "interference"):
        assert "ensio run --mode trace" in reasons[cause]
    assert not set(said.examined) & set(reasons)


def test_calls_that_found_no_space_are_in_the_sums(preload, tmp_path):
    """Of 200,000 writes the trace holds a part: the diagnosis says so, and counts all of them."""
    program = built(preload, "posix_habits")
    options = ("size=512", "count=200000")
    limits = {"ENSIO_MAX_BYTES": str(1 << 19)}
    assert preload.execute(program, "write", tmp_path, *options, environment=limits).returncode == 0
    run = en.open(preload.run)
    assert run.info.dropped_events > 1000
    assert not run.info.has(Holds.ALL_CALLS)
    assert named(run)["small-requests"].evidence["calls"] == 200_000


BESIDE = """
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *synced_writes(void *path)
{
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 60; i++)
        if (write(file, "block", 5) != 5 || fdatasync(file) != 0)
            abort();
    close(file);
    return NULL;
}
int main(int count, char **words)
{
    pthread_t thread;
    if (count > 2)
        return synced_writes(words[1]) != NULL;
    pthread_create(&thread, NULL, synced_writes, words[1]);
    return pthread_join(thread, NULL);
}
"""


@pytest.mark.parametrize("beside", [True, False])
def test_io_beside_the_main_thread_is_not_certain_to_cost_the_run_time(beside, preload, tmp_path):
    (tmp_path / "beside.c").write_text(BESIDE)
    subprocess.run(["gcc", "-pthread", tmp_path / "beside.c", "-o", tmp_path / "beside"], check=True)
    preload.execute(tmp_path / "beside", tmp_path / "data", *([] if beside else ["main"]), check=True)
    assert main(["collect", str(preload.run), "-o", str(tmp_path / "run.h5")]) == 0
    for run in (en.open(preload.run), en.open(tmp_path / "run.h5")):
        assert run.info.beside_main.tolist() == [beside]
        assert set(run.select(call="fdatasync").thread.tolist()) == {int(beside)}
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        file["losses"].attrs["processor_wait_ns"] = 0  # of other programs beside the tests
    found = named(en.open(tmp_path / "run.h5"))["sync-per-write"]
    assert (found.gain_s[0] == 0) == beside == (found.severity == "note")
