"""How often the statistics are right, on the programs with a known truth that the tests use too."""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(_TESTS / "unit" / part) for part in ("..", "", "comparison", "diagnosis")]
