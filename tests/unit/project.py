"""Where the project and what it builds are."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ENSIO_BUILD", ROOT / "build"))
