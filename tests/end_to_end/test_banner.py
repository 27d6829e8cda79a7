"""The banner at the end says what the analysis of the same run says."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from test_mpi import FLAVOURS
from test_together import Job

import ensembles
from ensembles.run.information import collect_information

TASKS = 3


@pytest.fixture(params=("relinked", "preloaded"))
def way(request) -> str:
    return request.param


def launch(job, relinked, which, banner, **options):
    return job.launch(relinked.environment(), which, ENSIO_BANNER=banner, **options)


def value(pattern: str, banner: str) -> str:
    found = re.findall(rf"^# {pattern}", banner, re.MULTILINE)
    assert len(found) == 1, (pattern, banner)
    return found[0]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_full_banner_says_what_info_says(relinked, tmp_path, monkeypatch, flavour, way):
    monkeypatch.chdir(tmp_path)
    job = Job(flavour, way, tmp_path, "mpi_writes")
    done = launch(job, relinked, [1] * TASKS, "full")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    banner = done.stderr
    run = ensembles.open(job.run)
    info = collect_information(run)
    ours = [Path(file).is_relative_to(tmp_path) for file in run.files if file]
    assert ours
    assert all(ours)
    assert value(r"tasks     : (.*)", banner) == f"{TASKS} on 1 host"
    assert value(r"calls     : (.*)", banner) == f"{info['events']}, dropped 0"
    assert int(value(r"read .*\((\d+) bytes\)", banner)) == info["bytes_read"] == 0
    assert int(value(r"written .*\((\d+) bytes\)", banner)) == info["bytes_written"] == 6 * (10 + 11 + 12)
    assert value(r"recorded  : (.*)", banner) == str(job.run)
    rate, slowest_s = map(
        float, value(r"written .*, ([0-9.]+) MiB/s by the ([0-9.]+) s in writes of the slowest task", banner)
    )
    written = info["transfers"]["write"]
    assert slowest_s == pytest.approx(written["slowest_task_s"], rel=1e-3, abs=2e-6)
    assert rate == pytest.approx(written["slowest_task_bytes_per_s"] / 2**20, rel=1e-3, abs=2e-3)
    wall_s = float(value(r"wall time : ([0-9.]+) s", banner))
    assert (
        wall_s <= max(process.end_unix_ns - process.start_unix_ns for process in run.processes) / 1e9 + 1e-6
    )
    share = float(value(r"wall time .* in I/O ([0-9.]+) %", banner))
    assert share == pytest.approx(100 * info["io_time_s"] / TASKS / wall_s, rel=0.2, abs=0.02)
    most = float(value(r"wall time .* tasks, ([0-9.]+) % in the slowest task", banner))
    assert share <= most
    assert most == pytest.approx(100 * info["time_in_io"]["slowest_s"] / wall_s, rel=0.2, abs=0.02)
    slowest = value(r"slowest   : (\w+) of rank (\d+), ([0-9.]+) s at ([0-9.]+) s on (.*)", banner)
    expected = info["slowest_call"]
    assert (slowest[0], int(slowest[1])) == (expected["call"], expected["rank"])
    assert float(slowest[2]) == pytest.approx(expected["duration_s"], rel=1e-3, abs=2e-6)
    assert float(slowest[3]) == pytest.approx(expected["start_s"], rel=1e-3, abs=2e-6)
    assert expected["file"].endswith(slowest[4].removeprefix("..."))
    table = re.findall(
        r"^# (\w+) +(\d+) +(\d+) +([0-9.]+) +([0-9.]+) +([0-9.]+) +(\d+)$", banner, re.MULTILINE
    )
    assert {row[0] for row in table} == set(info["calls"])
    for name, count, size, time_s, mean_s, longest_s, errors in table:
        call = info["calls"][name]
        assert (int(count), int(size), int(errors)) == (call["count"], call["bytes"], call["errors"])
        assert float(time_s) == pytest.approx(call["time_s"], rel=1e-3, abs=2e-6)
        assert float(mean_s) == pytest.approx(call["time_s"] / call["count"], rel=1e-3, abs=2e-9)
        assert float(longest_s) == pytest.approx(call["max_s"], rel=1e-3, abs=2e-6)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_where_not_all_ranks_are_recorded_rank_0_speaks_for_itself(
    relinked, tmp_path, monkeypatch, flavour, way
):
    monkeypatch.chdir(tmp_path)
    job = Job(flavour, way, tmp_path, "mpi_writes")
    first = launch(job, relinked, [1, 0], "short").stderr
    assert "of rank 0 only, because not all ranks are recorded" in first
    assert int(value(r"written .*\((\d+) bytes\)", first)) == 60
    assert "##ensio" not in launch(job, relinked, [0, 1], "short").stderr


def test_none_means_none_and_nothing_means_short(relinked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = Job("openmpi", "relinked", tmp_path, "mpi_writes")
    assert launch(job, relinked, [1, 1], "none").stderr == ""
    unset = launch(job, relinked, [1, 1], "").stderr
    assert unset.count("##ensio") == 1
    assert "# call " not in unset


def test_a_program_without_mpi_has_a_banner_only_if_it_is_asked_for(recorder):
    program = recorder.build("every_call")
    done = {}
    for wish in ("", "short"):
        data = recorder.folder / "data"
        data.mkdir()
        done[wish] = recorder.execute(program, data, environment={"ENSIO_BANNER": wish})
        shutil.rmtree(data)
    assert b"##ensio" not in done[""].stderr
    assert done["short"].stderr.count(b"##ensio") == 1
    assert (done["short"].returncode, done["short"].stdout) == (done[""].returncode, done[""].stdout)


def test_a_file_that_has_taken_the_place_of_standard_error_is_not_written_to(preload):
    code = "import os, sys; os.close(2); os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.write(2, b'data')"
    path = preload.folder / "file"
    done = preload.execute(sys.executable, "-c", code, path, environment={"ENSIO_BANNER": "full"})
    assert done.returncode == 0
    assert path.read_bytes() == b"data"


def test_names_cannot_disturb_the_terminal(preload):
    path = preload.folder / "a\x1b[31mb\nc"
    code = "import sys; open(sys.argv[1], 'w').write('x' * 100000)"
    done = preload.execute(sys.executable, "-c", code, path, environment={"ENSIO_BANNER": "full"})
    assert b"\x1b" not in done.stderr
    assert b"##ensio" in done.stderr


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_banner_over_many_threads_and_windows_counts_all(recorder, mode):
    program = recorder.build("threads")
    environment = {"ENSIO_BANNER": "full", "ENSIO_MODE": mode}
    done = recorder.execute(program, recorder.folder, 4, 3000, 2, environment=environment)
    info = collect_information(ensembles.open(recorder.run))
    table = re.findall(r"^# (\w+) +(\d+) +(\d+) ", done.stderr.decode(), re.MULTILINE)
    assert info["calls"]["write"]["count"] >= 4 * 3000 * 2
    assert {name: (int(count), int(size)) for name, count, size in table} == {
        name: (call["count"], call["bytes"]) for name, call in info["calls"].items()
    }
    found = re.findall(
        r"wall time : ([0-9.]+) s, in I/O ([0-9.]+) % .* (\d+) threads\b", done.stderr.decode()
    )
    wall_s, share, threads = map(float, found[0])
    assert threads == info["threads"] > 1
    assert share == pytest.approx(100 * info["io_time_s"] / threads / wall_s, rel=0.02)
    assert share <= 100
