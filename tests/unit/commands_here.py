"""``ensio`` in the process of the tests: to start Python and import NumPy is most of a short command.

Tests of start, signals, pipes and environments start another process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ensembles.cli.main import main

READS = re.compile(r"ensio (?!run |replay |serve |pfs |try |calibrate-fs )[^|&;<>$*?]*")
"""A line of one command that starts no program, without anything that only a shell knows."""


def executed(*words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Execute a command, in a folder if one is named; an exception is the test's failure."""
    arguments = [str(word) for word in words]
    out, told = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.chdir(folder or "."),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
    ):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    texts = [stream.buffer.getvalue().decode() for stream in (out, told)]
    return subprocess.CompletedProcess(arguments, code, *texts)


def limited(most_bytes: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Execute a command with a limit on the size of files, which fails as a full disk does."""
    limits = (most_bytes, resource.RLIM_INFINITY)
    return subprocess.run(
        [sys.executable, "-m", "ensembles.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )


def told(*words: object) -> dict[str, Any]:
    """What a command says as JSON."""
    done = executed(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shell(line: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Execute a line of a page: here if it is one command that reads, else in a shell."""
    if not READS.fullmatch(line):
        return subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
        )
    with patch.dict(os.environ, environment, clear=True):
        return executed(*shlex.split(line)[1:], folder=folder)


def run(
    command: Sequence[object], start=subprocess.run, **options
) -> subprocess.CompletedProcess[str] | subprocess.CompletedProcess[bytes]:
    """Stand in for `subprocess.run` where output is captured: a command that starts no program runs here."""
    words = [str(word) for word in command]
    if "stdin" in options or not READS.match(" ".join(words[:2]) + " "):
        return start(command, **options)
    done = executed(*words[1:], folder=options.get("cwd"))
    if options.get("check") and done.returncode:
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
    if options.get("text"):
        return done
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.encode(), done.stderr.encode())
