"""Samples of the kernel's counters beside the events of real programs."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands_here import executed
from test_mpi import FLAVOURS, compiled

import ensembles
from ensembles.cli.main import main
from ensembles.model.surroundings import COUNTERS, UNKNOWN

MIB = 1 << 20
PROCESS = tuple(COUNTERS)[: tuple(COUNTERS).index("available_bytes")]
SLOW_US = 20_000  # a pause after each MiB: 200 of them take longer than the least time between samples


def check_samples(table, written: int) -> None:
    """The counters of a process that wrote this, from its first call to its end."""
    assert table.rises("written_by_calls").rise.sum() >= written
    assert table.rises("written_by_calls").rise.sum() < written + MIB
    assert table.rises("write_calls").rise.sum() >= written // MIB
    for name in PROCESS:
        assert table.columns[name][0] != UNKNOWN
        assert (table.rises(name).rise >= 0).all()
    assert (table.cost > 0).all()


def test_counters_rise_by_what_the_program_writes(recorder, tmp_path):
    program = recorder.build("bulk_writes")
    done = recorder.execute(program, tmp_path / "out", 200, 0, check=True)
    run = ensembles.open(recorder.run)
    table = run.surroundings()
    check_samples(table, 200 * MIB)
    first, last = table[0], table[-1]
    assert table.columns["write_bytes"][-1] - table.columns["write_bytes"][0] >= 200 * MIB
    # The program and the recorder look at the same node, one after the other.
    assert last.columns["dirty_bytes"][0] >= int(done.stdout) // 2
    assert first.columns["available_bytes"][0] > 0 < last.columns["cached_bytes"][0]
    span = int(run.events.end.max())
    assert first.time[0] <= span
    assert last.time[0] >= span
    assert run.notes == []


def test_samples_of_a_killed_process_are_kept(recorder, tmp_path):
    program = recorder.build("bulk_writes")
    process = subprocess.Popen(
        [program, tmp_path / "out", "200", str(2 * SLOW_US), "wait"],  # clocks are renewed within 5 s
        env=recorder.environment(),
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    table = ensembles.open(recorder.run).surroundings()
    assert len(table) >= 2
    assert len(table.known("dirty_bytes")) >= 1
    assert 0 < table.rises("written_by_calls").rise.sum() <= 200 * MIB + MIB
    assert (np.diff(table.time) >= 999_000_000).all()


def test_a_static_program_has_samples(relinked, tmp_path):
    program = relinked.build("bulk_writes", "-static")
    relinked.execute(program, tmp_path / "out", 100, 1000, check=True)
    check_samples(ensembles.open(relinked.run).surroundings(), 100 * MIB)


def test_samples_can_be_switched_off(recorder, tmp_path):
    program = recorder.build("bulk_writes")
    recorder.execute(program, tmp_path / "out", 50, 1000, check=True, environment={"ENSIO_SURROUNDINGS": "0"})
    run = ensembles.open(recorder.run)
    assert len(run.surroundings()) == 0
    assert len(run.select(call="write")) >= 50


@pytest.mark.parametrize("mode", ["profile", "tail"])
def test_every_mode_has_samples(recorder, tmp_path, mode):
    program = recorder.build("bulk_writes")
    recorder.execute(program, tmp_path / "out", 100, 1000, check=True, environment={"ENSIO_MODE": mode})
    check_samples(ensembles.open(recorder.run).surroundings(), 100 * MIB)


def test_a_program_with_threads_has_samples(recorder, tmp_path):
    program = recorder.build("threads")
    done = recorder.execute(program, tmp_path, 4, 5000, 3, check=True)
    table = ensembles.open(recorder.run).surroundings()
    assert len(table) >= 2
    # Signals come in between, whose handler writes as well.
    assert table.rises("write_calls").rise.sum() >= 4 * 5000 * 3 - 100
    handled, _ = map(int, done.stdout.split())
    assert len(ensembles.open(recorder.run).select(call="write")) == 4 * 5000 * 3 + handled


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("keep", ["1", "0"])
def test_job_file_holds_them_and_one_task_tells_of_the_node(relinked, tmp_path, flavour, keep):
    program = compiled(relinked, "mpi_writes", f"mpicc.{flavour}")
    run = relinked.tasks(flavour, program, ENSIO_JOBFILE=keep)
    assert (relinked.run / "job.ensio").exists() == (keep == "1")
    table = run.surroundings()
    assert set(table.rank.tolist()) == {0, 1}
    assert (table.read_calls != UNKNOWN).all()
    of_node = table.rank[table.dirty_bytes != UNKNOWN]
    assert set(of_node.tolist()) == {0}
    # 10 writes of 6 bytes by rank 0, 11 by rank 1, after the open that the first sample follows.
    for rank in (0, 1):
        own = table[table.rank == rank]
        if len(own) > 1:
            assert own.rises("written_by_calls").rise.sum() >= 0
    assert run.notes == []


def test_trace_file_holds_the_same(recorder, tmp_path):
    program = recorder.build("bulk_writes")
    recorder.execute(program, tmp_path / "out", 50, 1000, check=True)
    assert main(["collect", str(recorder.run), "-o", str(tmp_path / "trace.h5")]) == 0
    whole, collected = (ensembles.open(path).surroundings() for path in (recorder.run, tmp_path / "trace.h5"))
    assert len(whole) >= 2
    for name, column in whole.columns.items():
        np.testing.assert_array_equal(collected.columns[name], column)


def test_info_gives_their_totals(recorder, tmp_path, capsys):
    program = recorder.build("bulk_writes")
    recorder.execute(program, tmp_path / "out", 50, 1000, check=True)
    assert main(["info", "--json", str(recorder.run)]) == 0
    around = json.loads(capsys.readouterr().out)["surroundings"]
    assert around["samples"] >= 2
    assert 50 * MIB <= around["process"]["written_by_calls"] < 51 * MIB
    assert around["dirty_bytes"] > 0
    # The kernel adds the two times up one after the other: "full" can be some microseconds ahead of "some".
    assert 0 <= around["io_full_share"] <= around["io_some_share"] + 0.01
    assert around["io_some_share"] <= 1


FORKS = """
import os, time
def write(name, count):
    with open(name, "wb", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(1 << 20))
pids = []
for child in range(3):
    pids.append(os.fork())
    if not pids[-1]:
        if child == 0 and not os.fork():  # a grandchild
            write("grandchild", 7)
            os._exit(0)
        write(f"child{child}", 10)
        if child == 0:
            os.wait()
        os._exit(0)
write("parent", 5)
for pid in pids:
    os.waitpid(pid, 0)
time.sleep(0.02)
write("end", 1)
"""


@pytest.mark.parametrize("environment", [{}, {"PMI_RANK": "0", "PMI_SIZE": "1"}])
def test_what_children_move_counts_once(preload, tmp_path, environment):
    preload.execute(sys.executable, "-c", FORKS, check=True, cwd=tmp_path, environment=environment)
    run = ensembles.open(preload.run)
    assert run.tasks == (1 if environment else 5)
    for process in run.info.processes if not environment else ():  # a process begins before its first call
        first = int(run.events.start[run.events.rank == process.rank].min())
        assert first >= process.start_unix_ns - run.info.origin_unix_ns
    written = int(run.surroundings().rises("written_by_calls").rise.sum())
    assert 43 * MIB <= written < 44 * MIB


def test_waiting_for_a_busy_processor_is_kept_in_the_trace_file_too(preload):
    one = str(min(os.sched_getaffinity(0)))
    waited = "print(open('/proc/self/schedstat').read().split()[1])"
    script = f"import os\nfor _ in range(200): os.fsync(os.open('d', os.O_CREAT | os.O_WRONLY))\n{waited}"
    with subprocess.Popen(["taskset", "-c", one, sys.executable, "-c", "while True: pass"]) as other:
        done = preload.execute("taskset", "-c", one, sys.executable, "-c", script, cwd=preload.folder)
        other.kill()
    told_s = 1e-9 * int(done.stdout)
    run = ensembles.open(preload.run)
    assert 0 < told_s <= run.info.processor_wait_s
    assert executed("collect", preload.run, "-o", preload.folder / "trace.h5").returncode == 0
    kept = ensembles.open(preload.folder / "trace.h5")
    assert kept.info.processor_wait_s == run.info.processor_wait_s
