"""The banner at the end says what the analysis of the same run says."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from places import PATIENCE_S
from test_mpi import FLAVOURS
from test_together import Job

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.units import BINARY_UNITS, bytes_text
from ensembles.run.information import collect_information

TASKS = 3


@pytest.fixture(params=("relinked", "preloaded"))
def way(request) -> str:
    return request.param


def launch(job, relinked, which, banner, **options):
    return job.launch(relinked.environment(), which, ENSIO_BANNER=banner, **options)


UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds_of(text: str) -> float:
    number, unit = text.split()
    return float(number) * UNITS[unit]


def bytes_of(text: str) -> float:
    number, unit = text.split()
    return float(number) * 1024 ** BINARY_UNITS.index(unit)


def table_of(banner: str) -> dict[str, tuple[str, ...]]:
    """Columns of the table by call: count, bytes, time, mean, longest, errors."""
    quantity = r"([0-9.]+ [µ\w]+)"
    rows = re.findall(
        rf"^# (\w+) +(\d+) +(?:([0-9.]+ [KMG]?i?B))? +{quantity} +{quantity} +{quantity} +(\d+)$",
        banner,
        re.MULTILINE,
    )
    return {name: columns for name, *columns in rows}


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
    assert value(r"read      : (.*)", banner) == "0 B"
    assert info["bytes_read"] == 0
    assert info["bytes_written"] == 6 * (10 + 11 + 12)
    # Tasks need not write at the same time: a rate by the time of the slowest one would be none that was.
    amount, slowest = value(r"written   : (.*) in (.*) of writes(?:, syncs)? \(slowest task\)", banner)
    assert amount == bytes_text(info["bytes_written"])
    assert value(r"recorded  : (.*)", banner) == str(job.run)
    written = info["transfers"]["write"]
    assert seconds_of(slowest) == pytest.approx(written["slowest_task_s"], rel=0.006, abs=2e-9)
    wall_s = seconds_of(value(r"wall time : (.*) until MPI_Finalize", banner))
    longest_ns = max(process.end_unix_ns - process.start_unix_ns for process in run.info.processes)
    assert wall_s <= 1.006 * longest_ns / 1e9
    assert wall_s <= 1.006 * info["run_s"]
    of_tasks = (
        rf"((?:< )?[0-9.]+) % on average over {TASKS} tasks with I/O, ((?:< )?[0-9.]+) % in the slowest"
    )
    shares = value(rf"in I/O    : {of_tasks}$", banner)
    for share, name in zip(shares, ("mean_s", "slowest_s"), strict=True):
        percent = 100 * info["time_in_io"][name] / wall_s
        assert float(share.lstrip("< ")) == pytest.approx(
            percent, rel=0.01, abs=0.11 if "<" in share else 0.06
        )
    slowest = value(r"slowest   : (\w+) of rank (\d+), (.*) at (.*) on (.*)", banner)
    expected = info["slowest_call"]
    assert (slowest[0], int(slowest[1])) == (expected["call"], expected["rank"])
    assert seconds_of(slowest[2]) == pytest.approx(expected["duration_s"], rel=0.006, abs=2e-9)
    assert seconds_of(slowest[3]) == pytest.approx(expected["start_s"], rel=0.006, abs=2e-6)
    assert expected["file"].endswith(slowest[4].removeprefix("..."))
    table = table_of(banner)
    assert set(table) == set(info["calls"])
    for name, (count, size, time, mean, longest, errors) in table.items():
        call = info["calls"][name]
        assert (int(count), size, int(errors)) == (
            call["count"],
            bytes_text(call["bytes"]) if call["bytes"] else "",
            call["errors"],
        )
        assert seconds_of(time) == pytest.approx(call["time_s"], rel=0.006, abs=2e-9)
        assert seconds_of(mean) == pytest.approx(call["time_s"] / call["count"], rel=0.006, abs=2e-9)
        assert seconds_of(longest) == pytest.approx(call["max_s"], rel=0.006, abs=2e-9)
    assert {len(line) for line in banner.splitlines() if line.startswith(("##", "# write", "# open"))} == {80}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_where_not_all_ranks_are_recorded_rank_0_speaks_for_itself(
    relinked, tmp_path, monkeypatch, flavour, way
):
    monkeypatch.chdir(tmp_path)
    job = Job(flavour, way, tmp_path, "mpi_writes")
    first = launch(job, relinked, [1, 0], "short").stderr
    assert "of rank 0 only, because not all ranks are recorded" in first
    assert value(r"written   : ([^,]*)", first) == "60 B"
    assert "##ensio" not in launch(job, relinked, [0, 1], "short").stderr


def test_tasks_that_mpi_comm_spawn_started_say_so(preload):
    program = preload.build("mpi_spawn", compiler="mpicc.openmpi")
    settings = {
        "ENSIO_BANNER": "short",
        **ANY_TASKS,
    }
    done = preload.execute(
        "mpiexec.openmpi", "-n", 1, program, cwd=preload.folder, environment=settings, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    banner = done.stderr.decode()
    assert "not all ranks" not in banner
    assert banner.count("of rank 0 only, because MPI_Comm_spawn started the tasks") == 1


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
    # What writes left in memory, syncs write: their time counts for the rate.
    written = collect_information(ensembles.open(f"{recorder.run}#2"))["transfers"]["write"]
    rate, time = value(r"written   : .*, (.*)/s by (.*) in writes, syncs$", done["short"].stderr.decode())
    assert bytes_of(rate) == pytest.approx(written["slowest_task_bytes_per_s"], rel=0.006, abs=1)
    assert seconds_of(time) == pytest.approx(written["slowest_task_s"], rel=0.006, abs=2e-9)
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


@pytest.mark.all_cases  # preloaded, the recorder is there first
def test_a_thread_that_was_there_first_hides_no_message(recorder):
    settings = {"ENSIO_BANNER": "short", "ENSIO_MODE": "unknown", "ENSIO_LAYERS": "posix,none,stdio"}
    program = recorder.build("early_thread")
    done = recorder.execute(program, recorder.folder / "file", environment=settings)
    for words in (b"the mode is trace.", b"is not a layer", b"##ensio", b"written   : 4 B"):
        assert done.stderr.count(words) == 1
    assert (recorder.folder / "file").read_bytes() == b"data"


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_banner_over_many_threads_and_windows_counts_all(recorder, mode):
    program = recorder.build("threads")
    environment = {"ENSIO_BANNER": "full", "ENSIO_MODE": mode}
    done = recorder.execute(program, recorder.folder, 4, 3000, 2, environment=environment)
    info = collect_information(ensembles.open(recorder.run))
    banner = done.stderr.decode()
    assert info["calls"]["write"]["count"] >= 4 * 3000 * 2
    assert {name: (int(row[0]), row[1]) for name, row in table_of(banner).items()} == {
        name: (call["count"], bytes_text(call["bytes"]) if call["bytes"] else "")
        for name, call in info["calls"].items()
    }
    wall_s = seconds_of(value(r"wall time : (.*) until exit", banner))
    share, threads = map(float, value(r"in I/O    : ([0-9.]+) % of the time of (\d+) threads$", banner))
    assert threads == info["threads"] > 1
    assert share == pytest.approx(100 * info["io_time_s"] / threads / wall_s, rel=0.02, abs=0.06)
    assert share <= 100
