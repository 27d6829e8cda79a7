"""The job script of docs/user/large-runs.md and dask-jobqueue, in a real Slurm, answer as one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from slurm import NotPossible, Slurm
from synthetic_runs import synthetic_run

TOP = Path(__file__).resolve().parents[2]
ENSIO = Path(sys.executable).with_name("ensio")

JOBQUEUE = """
import sys
import ensembles
from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    with SLURMCluster(
        cores=1, processes=1, memory="300MB", walltime="00:10:00", interface="lo",
        scheduler_options={"dashboard_address": None, "interface": "lo"},
    ) as cluster:
        cluster.scale(jobs=2)
        run = ensembles.open(sys.argv[1], cluster.scheduler_address)
        print(run.reading.ranks.count.sum(), run.reading.ranks.io_time_ns(run.tasks).sum())
"""


@pytest.fixture(scope="module")
def slurm():
    try:
        with Slurm() as running:
            yield running
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm-dask") / "run"
    synthetic_run(folder, 12, 302)
    return folder


@pytest.fixture
def environment():
    folder = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_job_script_answers_as_one_process_does(slurm, run_path, environment, tmp_path):
    expected = subprocess.run([ENSIO, "info", "--json", run_path], check=True, capture_output=True)
    script = TOP / "docs" / "examples" / "ensio-dask.slurm"
    options = ("--wait", "--ntasks=2", "--output=out", "--error=err")
    words = (script, "info", "--json", run_path)
    done = slurm.run("sbatch", *options, *words, env=environment, cwd=tmp_path)
    told = (tmp_path / "err").read_text()
    assert done.returncode == 0, done.stderr + told
    assert json.loads((tmp_path / "out").read_text()) == json.loads(expected.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["err", "out"], told


def test_dask_jobqueue_answers_as_one_process_does(slurm, run_path, environment, tmp_path):
    import ensembles

    script = tmp_path / "script.py"
    script.write_text(JOBQUEUE)
    done = slurm.run(sys.executable, script, run_path, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ranks = ensembles.open(run_path).reading.ranks
    assert done.stdout.split() == [str(ranks.count.sum()), str(ranks.io_time_ns(12).sum())]
