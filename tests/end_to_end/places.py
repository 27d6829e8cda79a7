"""Where things are."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ENSIO_BUILD", ROOT / "build"))
PROGRAMS = Path(__file__).parent / "programs"
PRELOAD = BUILD / "lib" / "libensio-preload.so"
ENSIO_CC = BUILD / "bin" / "ensio-cc"
PATIENCE_S = 900
"""After which a program hangs. No other limit is a time: a machine with other work is slow."""
