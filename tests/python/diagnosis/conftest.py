"""The real tables are read as the tests of statistics read them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "statistics"))
