"""A real Dask cluster gives the answers of one process, also when a worker is killed; or none."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dask
import numpy as np
import pytest
from arrays_of import arrays_of
from summaries_that_kill import MARK, Killed
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.model.errors import EnsioError
from ensembles.passes.damage import DamageReport
from ensembles.passes.dask import DaskExecutor
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.spec import merge_partials
from ensembles.passes.summary import ignoring_run
from ensembles.run.collect import collect
from ensembles.run.selection import Selection
from ensembles.summaries.pyramid import pyramid_request
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import EventCount
from ensembles.viz.common.data_for import data_for
from ensembles.viz.common.single_calls import Window
from ensembles.viz.common.task_order import rows_of_tasks, window_of

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
DASK = [sys.executable, "-m", "dask"]
TASKS, EVENTS = 40, 302


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dask") / "run"
    synthetic_run(folder, TASKS, EVENTS, seed=5)
    return folder


@contextmanager
def scheduler(**settings: str) -> Iterator[str]:
    """A separate process; gives its address."""
    command = [*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
    with subprocess.Popen(command, env=ENVIRONMENT | settings, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"tcp://127\.0\.0\.1:[0-9]+", line):
                    # What it says later must find room.
                    os.set_blocking(process.stderr.fileno(), False)
                    yield found[0]
                    return
            pytest.fail("the scheduler did not start")
        finally:
            process.terminate()


@contextmanager
def workers(address: str, count: int) -> Iterator[list[subprocess.Popen]]:
    """Separate processes, without nannies that would start them again."""
    command = [*DASK, "worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    started = [
        subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler's address, and its three workers, one of which is killed in some test."""
    with scheduler() as address, workers(address, 3) as started:
        DaskExecutor(address)._client.wait_for_workers(3)
        yield address, started


def answer(*arguments: object) -> dict:
    words = [sys.executable, "-m", "ensembles.cli.main", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", [("info",), ("ordinals", "--by", "phase", "--op", "read")], ids=str)
def test_commands_answer_the_same(cluster: tuple, run_path: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    found = answer(name, run_path, "--json", *options, "--workers", cluster[0])
    assert found == answer(name, run_path, "--json", *options)


def test_pictures_are_drawn_by_the_cluster(cluster: tuple, run_path: Path) -> None:
    run = en.open(run_path, cluster[0])
    found, expected = (arrays_of(data_for(each, RateCurve)) for each in (run, en.open(run_path)))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_rasters_rates_and_filtered_calls_of_a_trace_file_are_those_of_one_process(
    cluster: tuple, run_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers share no memory with this process; each reads the chunks that its part needs."""
    monkeypatch.setenv("ENSIO_CACHE", "0")  # nothing is kept: passes are made
    path, _ = collect(str(run_path), str(tmp_path / "trace.h5"))
    end_s = float(en.open(path).events.end.max()) * 1e-9
    filters = {"time": f"{0.3 * end_s:.6f}..{0.6 * end_s:.6f}", "rank": f"1-{TASKS - 2}", "op": "write"}
    requests = {
        "pyramid": pyramid_request(),
        "rate": SummaryRequest(ignoring_run(RateCurve)),
        "count": SummaryRequest(ignoring_run(EventCount)),
    }
    answers = []
    for run in (en.open(path, cluster[0]), en.open(path)):
        selection = Selection.parse(**filters).for_run(run)
        window = Window(int(0.4e9 * end_s), int(0.41e9 * end_s), 0, TASKS - 1)
        arrays = [arrays_of(window_of(run, window, rows_of_tasks(run, "rank"))[0])]
        for chosen in (None, selection):
            arrays += [
                arrays_of(each) for each in run.summarize(requests, selection=chosen).summaries.values()
            ]
        answers.append(arrays)
    for found, expected in zip(*answers, strict=True):
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


def test_a_part_whose_worker_is_killed_is_made_by_another(
    cluster: tuple, run_path: Path, tmp_path: Path
) -> None:
    address, started = cluster
    found = en.open(run_path, DaskExecutor(address)).summarize(partial(Killed, str(tmp_path), os.getpid(), 1))
    assert [path.name for path in tmp_path.iterdir()] == [f"{MARK}0"]
    assert sorted(process.poll() or 0 for process in started) == [-signal.SIGKILL, 0, 0]
    assert found.events == TASKS * EVENTS


def test_summaries_are_merged_without_being_changed() -> None:
    requests = {"count": SummaryRequest(ignoring_run(EventCount))}
    parts = [(SummaryGroup(requests, None), DamageReport(unknown_files=number)) for number in (1, 2)]
    for group, _ in parts:
        group["count"].events = 5
    for _ in range(2):  # Dask may ask again
        whole, damage = merge_partials(parts)
        assert (whole["count"].events, damage.unknown_files) == (10, 3)


def test_without_workers_there_is_no_answer(run_path: Path, tmp_path: Path) -> None:
    # A client whose scheduler is gone would try to connect again for half a minute.
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}), scheduler() as address:
        asked = DaskExecutor(address, patience_s=1.0)
        run = en.open(run_path, asked)
        with pytest.raises(EnsioError, match=rf"the Dask cluster at {address} has no worker: start some"):
            run.summarize(partial(Killed, "", os.getpid(), 0))
        with workers(address, 1):
            asked._client.wait_for_workers(1)
            with pytest.raises(EnsioError, match=r"no worker left, .* start workers"):
                run.summarize(partial(Killed, str(tmp_path), os.getpid(), 1))
    with pytest.raises(EnsioError, match=r"was lost before|has no worker"):
        run.summarize(partial(Killed, "", os.getpid(), 0))


def test_a_part_that_kills_its_workers_gives_no_answer(run_path: Path, tmp_path: Path) -> None:
    with scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as address, workers(address, 1):
        run = en.open(run_path, DaskExecutor(address))
        with pytest.raises(EnsioError, match=r"workers of .* ended while they read .* more memory"):
            run.summarize(partial(Killed, str(tmp_path), os.getpid(), 100))


def test_a_run_that_workers_do_not_see_is_an_error(cluster: tuple, run_path: Path, tmp_path: Path) -> None:
    shutil.copytree(run_path, tmp_path / "run", ignore=shutil.ignore_patterns("trace.h5"))
    run = en.open(tmp_path / "run", DaskExecutor(cluster[0]))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(EnsioError, match="cannot be read"):
        run.summarize(partial(Killed, "", os.getpid(), 0))


def test_where_no_scheduler_is_one_sentence_says_so(run_path: Path) -> None:
    words = [sys.executable, "-m", "ensembles.cli.main", "info", str(run_path)]
    environment = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    words += ["--workers", "tcp://127.0.0.1:9"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ensio: no Dask scheduler answers at tcp://127.0.0.1:9")
    assert done.stderr.count("\n") == 1


def test_a_local_cluster_answers_the_same(run_path: Path) -> None:
    script = """
import sys
import ensembles as en
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        run = en.open(sys.argv[1], cluster.scheduler_address)
        print(run.reading.ranks.count.sum(), run.reading.ranks.io_time_ns(run.tasks).sum())
"""
    words = [sys.executable, "-c", script, str(run_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    ranks = en.open(run_path).reading.ranks
    assert done.stdout.split() == [str(ranks.count.sum()), str(ranks.io_time_ns(TASKS).sum())]
