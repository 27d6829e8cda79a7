"""A process without MPI codes its spool at its end; no call is lost, and the program does not notice."""

import contextlib
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest
from places import PATIENCE_S

import ensembles
from ensembles.cli.main import main
from ensembles.model.c_layout import JOB, JOB_PROCESS
from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.run.information import collect_information

SEEDS = [pytest.param(seed, marks=pytest.mark.long if seed >= 4 else ()) for seed in range(60)]
CALLS = 3000
ONCE = 1
MANY = 1_000_000


def sizes(run):
    """Bytes on disk of the files of a run, by suffix."""
    return {
        suffix: [path.stat().st_blocks * 512 for path in run.glob(f"*{suffix}")]
        for suffix in (".spool", ".ensio", ".tmp")
    }


def writes(run):
    """The calls of the program, from a run opened anew."""
    return ensembles.open(run).select(call="pwrite")


def execute(recorder, tmp_path, how, calls=CALLS, **environment):
    """Run the program; it ends as it does without the recorder."""
    program = recorder.build("ends")
    done = recorder.execute(program, how, calls, tmp_path / "out", environment=environment)
    assert (done.returncode, done.stderr) == (7, b"")
    return done.stdout


def wait_for_calls(run, count):
    """Wait until a running program has made so many calls."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(EnsioError):
            if len(writes(run)) >= count:
                return
        time.sleep(0.02)
    pytest.fail(f"there are fewer than {count} calls after a minute")


def test_small_recording_takes_little_space(recorder, tmp_path):
    execute(recorder, tmp_path, "returns", 1000)
    used = sizes(recorder.run)
    assert (used[".spool"], used[".tmp"]) == ([], [])
    assert len(used[".ensio"]) == 1
    assert used[".ensio"][0] <= 24 << 10
    assert len(writes(recorder.run)) == 1000


def test_a_damaged_text_costs_nothing(recorder, tmp_path):
    """The texts are there twice, as in the file of an MPI job, and are read by the same rule."""
    execute(recorder, tmp_path, "returns")
    (path,) = recorder.run.glob("*.ensio")
    content, whole = path.read_bytes(), ensembles.open(path)
    job = JOB.unpack(content)
    process = JOB_PROCESS.unpack(content, job.records)
    first = job.records + process.bytes - process.coded_bytes
    for begin, end in ((first, job.bytes), (job.bytes, len(content))):
        assert end - begin > 1000
        path.write_bytes(content[:begin] + bytes(end - begin) + content[end:])
        run = ensembles.open(path)
        assert (len(run.events), run.files, run.notes) == (len(whole.events), whole.files, [])
        assert [run.calls[call] for call in set(run.events.call)] == [
            whole.calls[call] for call in set(whole.events.call)
        ]
    path.write_bytes(content[:first] + bytes(len(content) - first))
    with pytest.raises(EnsioError, match=r"\.ensio is damaged: its contents cannot be located"):
        ensembles.open(path)


def test_long_recording_takes_at_most_eight_bytes_an_event(recorder, tmp_path):
    execute(recorder, tmp_path, "returns", 200_000)
    ((used,), spools) = (sizes(recorder.run)[name] for name in (".ensio", ".spool"))
    assert not spools
    assert used <= 8 * 200_000


@pytest.mark.parametrize("how", ["returns", "_exit", "late", "limited", "execs", "forks"])
@pytest.mark.parametrize("mode", ["trace", "profile", "tail"])
def test_coded_and_uncoded_recordings_agree(recorder, tmp_path, how, mode):
    found = {}
    for kept in ("1", "0"):
        recorder.run = tmp_path / f"run-{kept}"
        execute(recorder, tmp_path, how, ENSIO_JOBFILE=kept, ENSIO_MODE=mode)
        run = ensembles.open(recorder.run)
        by_call = {
            run.summary.calls[number].name: [
                int(run.summary.cells[name][run.summary.cells["call"] == number].sum())
                for name in ("count", "moved")
            ]
            for number in set(run.summary.cells["call"].tolist())
        }
        events = len(writes(recorder.run))
        found[kept] = (by_call, events if mode == "trace" else None, run.notes)
    assert found["1"] == found["0"]
    expected = {"execs": 2, "forks": 3}.get(how, ONCE) * CALLS + (how == "late")
    assert found["1"][0]["pwrite"] == [expected, 8 * expected]
    assert found["1"][2] == []


def test_every_column_comes_back(recorder, tmp_path):
    execute(recorder, tmp_path, "returns")
    calls = writes(recorder.run)
    assert np.array_equal(calls.offset, 8 * (np.arange(CALLS) % 512))
    assert np.all(calls.moved == 8)
    assert np.all(calls.duration > 0)
    assert np.all(np.diff(calls.start) > 0)
    assert (
        set(calls.file_paths()[calls.file]) == {str(tmp_path / "out")}
        if hasattr(calls, "file_paths")
        else True
    )


def test_limit_on_the_size_of_files_leaves_the_spool(recorder, tmp_path):
    execute(recorder, tmp_path, "limited")
    used = sizes(recorder.run)
    assert (len(used[".spool"]), used[".ensio"], used[".tmp"]) == (1, [], [])
    assert len(writes(recorder.run)) == CALLS


def test_full_disk_leaves_the_spool(recorder, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount file systems")
    try:
        recorder.run = folder / "run"
        program = recorder.build("ends")
        filler = folder / "filler"
        # The disk becomes full after the calls: the program waits for a reader of its standard output.
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        filled = os.write(writing, bytes(1 << 16))
        os.set_blocking(writing, True)
        process = subprocess.Popen(
            [program, "returns", str(CALLS), tmp_path / "out"], env=recorder.environment(), stdout=writing
        )
        os.close(writing)
        wait_for_calls(recorder.run, CALLS)
        free = os.statvfs(folder)
        with open(filler, "wb") as file:
            file.write(bytes(free.f_bavail * free.f_bsize))
        os.read(reading, filled)
        assert process.wait() == 7
        used = sizes(recorder.run)
        assert (len(used[".spool"]), used[".ensio"], used[".tmp"]) == (1, [], [])
        assert len(writes(recorder.run)) == CALLS
    finally:
        process.kill()
        process.wait()
        subprocess.run(["umount", folder], check=True)


def test_calls_of_threads_that_still_run_are_not_lost(recorder, tmp_path):
    said = np.frombuffer(execute(recorder, tmp_path, "threads", 20_000), "u8")
    calls = writes(recorder.run)
    by_thread = np.sort(np.bincount(calls.thread))
    at_least = np.sort([20_000, *said[1:]])
    assert len(said) == 3
    assert np.all(by_thread >= at_least)
    used = sizes(recorder.run)
    assert (len(used[".spool"]), len(used[".ensio"]), used[".tmp"]) == (1, 1, [])
    assert used[".ensio"][0] > 0
    assert int(ensembles.open(recorder.run).summary.count) == len(calls) + 1


def test_part_without_its_spool_is_called_partial(recorder, tmp_path):
    execute(recorder, tmp_path, "threads", 400_000)
    (spool,) = recorder.run.glob("*.spool")
    (part,) = recorder.run.glob("*.ensio")
    whole = len(writes(recorder.run))
    assert len(writes(part)) == len(writes(spool)) == whole
    space = spool.stat().st_blocks * 512
    spool.unlink()
    run = ensembles.open(recorder.run)
    coded = len(run.select(call="pwrite"))
    assert 0 < coded <= whole
    # What both held took no space in the spool any more; the last window of each thread may be a large page.
    assert coded > 400_000
    assert space < 48 * (whole - coded) + (8 << 20)
    assert any("is missing here" in note for note in run.notes)


@pytest.mark.parametrize("seed", SEEDS)
def test_process_killed_while_it_codes_keeps_every_call(recorder, tmp_path, seed):
    program = recorder.build("ends")
    process = subprocess.Popen(
        [program, "returns", str(MANY), tmp_path / "out"], env=recorder.environment(), stdout=subprocess.PIPE
    )
    assert len(process.stdout.read(8)) == 8
    time.sleep(random.Random(seed).uniform(0, 0.06))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    calls = writes(recorder.run)
    assert len(calls) == MANY
    assert int(calls.moved.sum()) == 8 * MANY
    assert np.array_equal(calls.offset[:2000], 8 * (np.arange(2000) % 512))
    assert int(ensembles.open(recorder.run).summary.count) == MANY + 1


def test_what_the_recorder_took_at_starts_and_ends_is_in_the_account(preload, tmp_path):
    copies = "for i in $(seq 20); do dd if=/dev/zero of=data bs=100 count=1 conv=fsync; done"
    one = {"ENSIO_LAUNCH": "copies"}  # what these have started is one run
    assert preload.execute("sh", "-c", copies, cwd=tmp_path, environment=one).returncode == 0
    run = ensembles.open(preload.run)
    took_s = run.info.recorder_s
    assert 20e-6 < took_s < run.length_s
    account = ensembles.diagnose(run).account
    assert account is not None
    assert {each.id: each.time_s for each in account.entries}["recorder"] == pytest.approx(took_s)
    assert seconds_text(took_s) in collect_information(run)["recorder"]
    assert main(["collect", str(preload.run)]) == 0
    assert ensembles.open(preload.run / "trace.h5").info.recorder_s == took_s
