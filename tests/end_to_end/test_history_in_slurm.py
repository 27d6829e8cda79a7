"""The nightly job of docs/examples/history in a real Slurm: it adds its run, and submits the next night."""

import os
import sys

import pytest
from places import BUILD, ROOT
from slurm import NotPossible, Slurm

from ensembles.history.store import History

EXAMPLES = ROOT / "docs" / "examples" / "history"


@pytest.fixture(scope="module")
def slurm():
    try:
        with Slurm() as running:
            yield running
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")


def test_a_nightly_job_adds_its_run_and_submits_the_next(slurm, tmp_path):
    program = tmp_path / "app"
    program.write_text(f'#!/bin/sh\nexec dd if=/dev/zero of="{tmp_path}/out.$SLURM_PROCID" bs=64k count=40\n')
    program.chmod(0o755)
    here = f"{BUILD}/bin{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    settings = {"ENSIO_HISTORY": str(tmp_path / "runs.db"), "REPEAT": "now+1days", "PATH": here}
    words = (EXAMPLES / "nightly.slurm", EXAMPLES / "nightly.sh", "srun", "--ntasks=2", program)
    done = slurm.run(
        "sbatch", "--wait", "--ntasks=2", "--output=log", *words, env=os.environ | settings, cwd=tmp_path
    )
    log = (tmp_path / "log").read_text()
    assert done.returncode == 0, done.stderr + log
    assert "too-few-runs" in log
    history = History(settings["ENSIO_HISTORY"])
    [run] = history.runs("nightly")
    assert run.tasks == 2, log
    [record] = history.records([run.id])
    assert sum(kind.calls for kind in record.kinds if kind.op == "write") == 80
    waiting = slurm.run("squeue", "--noheader", "--format=%T %r %j").stdout.split("\n")
    assert waiting[0] == "PENDING BeginTime nightly-io"
