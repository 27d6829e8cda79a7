"""OLAM, whose program is not public: the calls of its pattern below HDF5 are those that Table I counts."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from places import BUILD, PATIENCE_S

import ensembles

ENSIO = Path(sys.executable).with_name("ensio")


@pytest.mark.parametrize("openmpi", [0, 1])
def test_aggregators_write_939_stripes_of_a_file(tmp_path, openmpi):
    few = [f"--set={name}" for name in (f"openmpi={openmpi}", "outputs=1", "reads_8192=1", "reads_8190=1")]
    command = [ENSIO, "simulate", "olam", "--fs", "healthy", *few, "-o", tmp_path / "run"]
    path = f"{BUILD / 'bin'}:{os.environ['PATH']}"
    subprocess.run(
        command, env=os.environ | {"PATH": path}, check=True, capture_output=True, timeout=PATIENCE_S
    )
    run = ensembles.open(tmp_path / "run")
    posix = Counter(run.select(layer="posix").requested.tolist())
    assert 49 * posix[1 << 20] == 46_011
    assert posix[512] == 126_186
    # Table I has these two and the reads of 8,192 and 8,190 bytes: no other size is as frequent.
    others = {size: count for size, count in posix.items() if size not in (0, 512, 1 << 20)}
    assert 49 * max(others.values()) < 46_011
