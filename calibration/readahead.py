"""How often ``strided-readahead`` alarms on runs without that fault."""

from __future__ import annotations

import numpy as np
from judging import judged_run, random_healthy

from calibration.page import show


def main(quick: bool = False) -> None:
    """Print one table: claim, measured, goal."""
    times = 100 if quick else 2000
    alarms = np.mean([judged_run(*random_healthy(seed), seed=seed).holds for seed in range(times)])
    rows = [["random runs on a file system without the fault: alarms", f"{alarms:.2%} of {times:,}", "≤ 1 %"]]
    show(rows, ("strided-readahead", "measured", "goal"))
