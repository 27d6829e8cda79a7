"""Long OTF2 archives of ours, which several processes read side by side: the same calls in the same order as
one reads, and what happens to one of them happens to all."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from places import BUILD
from synthetic_runs import synthetic_run

import ensembles
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.readers.foreign.otf2 import source
from ensembles.writers.exchange.otf2 import write_otf2

TASKS, CALLS = 6, 25_000  # 600,000 records: enough for four readers
TOOL = BUILD / "bin/ensio-otf2"


@pytest.fixture(autouse=True)
def program_to_read_with(monkeypatch):
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """A run with an archive of a location for each rank, and one of a location for two ranks each."""
    folder = tmp_path_factory.mktemp("long")
    synthetic_run(str(folder / "run"), TASKS, CALLS)
    run = ensembles.open(folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")
        for ranks in (1, 2):
            write_otf2(run, str(folder / str(ranks)), ranks)
    return folder


def read_by(processes, path, monkeypatch):
    monkeypatch.setattr(source, "MOST_PROCESSES", processes)
    return ensembles.open(path)


def processes_that_read(anchor, told, tmp_path):
    """How many processes ended, where the program was told to use so many."""
    log = tmp_path / f"strace-{told}"
    with open(os.devnull, "wb") as nowhere:
        command = ["strace", "-f", "-o", log, "-e", "trace=none", TOOL, "read", anchor, "0", str(told)]
        subprocess.run(command, stdout=nowhere, check=True)
    return sum("+++ exited with 0 +++" in line for line in log.read_text().splitlines())


@pytest.mark.parametrize("ranks", [1, 2])
def test_several_processes_give_what_one_gives_in_the_same_order(archives, monkeypatch, ranks):
    recorded = ensembles.open(archives / "run")
    one = read_by(1, archives / str(ranks), monkeypatch)
    for processes in (2, 4):
        several = read_by(processes, archives / str(ranks), monkeypatch)
        assert (several.calls, several.files, several.notes) == (
            recorded.calls,
            recorded.files,
            recorded.notes,
        )
        for name in COLUMNS:
            np.testing.assert_array_equal(
                several.events.columns[name], one.events.columns[name], err_msg=name
            )
    for name in COLUMNS:
        np.testing.assert_array_equal(
            np.sort(several.events.columns[name]), np.sort(recorded.events.columns[name]), err_msg=name
        )


def test_there_are_no_more_processes_than_long_groups_of_locations(archives, tmp_path):
    counts = [processes_that_read(archives / "1/traces.otf2", told, tmp_path) for told in (1, 2, 3, 64)]
    assert counts == [1, 1 + 2, 1 + 3, 1 + 4]
    assert processes_that_read(archives / "2/traces.otf2", 64, tmp_path) == 1 + 3
    short = Path(__file__).parent / "archives" / "ours" / "traces.otf2"
    assert processes_that_read(short, 64, tmp_path) == 1


@pytest.mark.parametrize("processes", [1, 3])
def test_a_cut_of_a_long_file_is_a_sentence(archives, tmp_path, monkeypatch, processes):
    """Libotf2 sees no end of such a file: it goes on with what it read before."""
    shutil.copytree(archives / "1", tmp_path / "archive")
    path = tmp_path / "archive" / "traces" / f"{5 << 16}.evt"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(
        EnsioError, match=r"the events of its location 327680 are damaged: .*; copy the archive again"
    ):
        read_by(processes, tmp_path / "archive", monkeypatch)


@pytest.mark.parametrize("rank", [0, 5])
def test_definitions_that_one_part_has_lost_are_noticed(archives, tmp_path, monkeypatch, rank):
    shutil.copytree(archives / "1", tmp_path / "archive")
    (tmp_path / "archive" / "traces" / f"{rank << 16}.def").unlink()
    with pytest.raises(EnsioError, match=rf"its location {rank << 16} has lost its definitions"):
        read_by(6, tmp_path / "archive", monkeypatch)


def readers_of(process):
    """The processes that it has started, once there are some: they wait, as their output is not read."""
    for _ in range(3000):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(children) == 3:
            return list(map(int, children))
        time.sleep(0.01)
    raise AssertionError("no readers were started")


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def all_end(pids):
    return any(all(map(has_ended, pids)) or time.sleep(0.01) for _ in range(3000))


def test_a_reader_that_is_killed_ends_them_all(archives):
    with subprocess.Popen(
        [TOOL, "read", archives / "1/traces.otf2", "0", "3"], stdout=subprocess.PIPE
    ) as process:
        readers = readers_of(process)
        os.kill(readers[1], signal.SIGKILL)
        process.stdout.read()
        assert process.wait() == 2
        assert all_end(readers)


def test_readers_end_with_the_process_that_started_them(archives):
    with subprocess.Popen(
        [TOOL, "read", archives / "1/traces.otf2", "0", "3"], stdout=subprocess.PIPE
    ) as process:
        readers = readers_of(process)
        process.kill()
        assert all_end(readers)
