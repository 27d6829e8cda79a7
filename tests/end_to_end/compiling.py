"""Programs that tests build: a command makes the same of the same sources, and runs once a session."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path


@cache
def _kept() -> Path:
    """The folder that all processes of the session share (conftest.py names it)."""
    return Path(os.environ.get("ENSIO_TESTS_BUILT") or tempfile.mkdtemp(prefix="ensio-built-"))


def build(program: Path, *command: object, **options) -> Path:
    """Run a compiler's command with ``-o program`` behind it, or copy what it made before."""
    words = [str(word) for word in command]
    sources = [Path(word) for word in words if word.endswith((".c", ".cpp", ".f90"))]
    asked = [*(word.encode() for word in words), *(source.read_bytes() for source in sources)]
    kept = _kept() / sha256(b"\0".join(asked)).hexdigest()
    if not kept.exists():
        half = kept.with_suffix(f".{os.getpid()}")
        subprocess.run([*words, "-o", half], check=True, **options)
        half.rename(kept)
    return Path(shutil.copy(kept, program))
