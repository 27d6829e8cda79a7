"""The programs that measure how often the statistics are right still run."""

import subprocess
import sys
from pathlib import Path

from calibration.__main__ import NAMES


def test_calibrations_are_there() -> None:
    imports = "\n".join(f"import calibration.{name}; calibration.{name}.main" for name in NAMES)
    subprocess.run([sys.executable, "-c", imports], cwd=Path(__file__).parents[3], check=True)
