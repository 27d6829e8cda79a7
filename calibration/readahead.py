"""How often ``strided-readahead`` alarms on runs without that fault.

Run by ``./dev calibrate``; ``--quick`` for a glance."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "diagnosis"))

from judging import judged_run, random_healthy

from calibration.page import show


def main(quick: bool = False) -> None:
    """Print one table: claim, measured, goal."""
    times = 100 if quick else 2000
    alarms = np.mean([judged_run(*random_healthy(seed), seed=seed).holds for seed in range(times)])
    rows = [["random runs on a file system without the fault: alarms", f"{alarms:.2%} of {times:,}", "≤ 1 %"]]
    show(rows, ("strided-readahead", "measured", "goal"))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
