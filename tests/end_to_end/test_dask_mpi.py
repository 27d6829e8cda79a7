"""The ranks of an MPI program as workers (dask-mpi) answer as one process does."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from synthetic_runs import synthetic_run

from ensembles.cli.replay_program import ANY_TASKS

BIN = Path(sys.executable).parent


def test_ranks_of_mpi_answer_as_one_process_does(tmp_path):
    synthetic_run(tmp_path / "run", 12, 302)
    info = [BIN / "ensio", "info", "--json", tmp_path / "run"]
    expected = subprocess.run(info, check=True, capture_output=True).stdout
    described = tmp_path / "scheduler.json"
    options = ["--scheduler-file", described, "--worker-class", "distributed.Worker", "--nthreads", "1"]
    options += ["--interface", "lo", "--dashboard-address", ":0"]
    command = ["mpiexec", "-n", "3", BIN / "dask-mpi", *options]
    with open(tmp_path / "log", "wb") as log:
        cluster = subprocess.Popen(command, env=os.environ | ANY_TASKS, stdout=log, stderr=log, cwd=tmp_path)
    try:
        while not described.exists() or not described.read_text().strip():
            assert cluster.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        address = json.loads(described.read_text())["address"]
        found = subprocess.run([*info, "--workers", address], check=True, capture_output=True).stdout
    finally:
        cluster.terminate()
        cluster.wait(60)
    assert json.loads(found) == json.loads(expected)
