"""What strace and DFTracer say of a program is what ensio's own recorder says of it."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from places import BUILD

import ensembles
from ensembles.model.events import OPS

PYTHON = """
import os, sys, threading
os.chdir(sys.argv[1])
def work(name):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    for i in range(20):
        os.write(fd, bytes(1000 + i))
    os.lseek(fd, 500, 0)
    while os.read(fd, 3000):
        pass
    os.pwrite(fd, bytes(77), 123456)
    os.pread(fd, 100, 123400)
    os.fsync(fd)
    os.close(fd)
work("a")
thread = threading.Thread(target=work, args=("b",))
thread.start()
thread.join()
try:
    os.open("none", os.O_RDONLY)
except OSError:
    pass
"""

PROGRAMS = {
    "python": [sys.executable, "-c", PYTHON, "FOLDER"],
    "dd": ["dd", "if=/dev/zero", "of=FOLDER/big", "bs=4k", "count=200", "conv=fsync"],
    "cp": ["cp", "-r", "/etc/alternatives/../fonts", "FOLDER/copied"],
    "sqlite3": [
        "sqlite3",
        "FOLDER/db",
        "pragma journal_mode=delete; create table t(x);"
        "insert into t select value from generate_series(1,5000); select sum(x) from t;",
    ],
}

DFTRACER = "dftracer==2.2.0"


def command_for(program, folder):
    folder.mkdir()
    return [word.replace("FOLDER", str(folder)) for word in PROGRAMS[program]]


def transfers(run, folder):
    """Reads and writes on files of a folder: how often each kind, file, offset, size and result."""
    events = run.events
    inside = str(folder) + "/"
    return Counter(
        (OPS[op], events.files[file][len(inside) :], offset, requested, moved)
        for op, file, offset, requested, moved in zip(
            events.op, events.file, events.offset.tolist(), events.requested.tolist(), events.moved.tolist(),
            strict=True,
        )
        if OPS[op] in ("read", "write") and events.files[file].startswith(inside)
    )  # fmt: skip


def opens(run, folder):
    events = run.events
    chosen = (events.op == OPS.index("open")) | (events.op == OPS.index("close"))
    return Counter(
        (OPS[op], os.path.relpath(events.files[file], folder), moved < 0, error)
        for op, file, moved, error in zip(
            events.op[chosen],
            events.file[chosen],
            events.moved[chosen].tolist(),
            events.error[chosen].tolist(),
            strict=True,
        )
        if events.files[file].startswith(str(folder) + "/")
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_strace_and_the_recorder_tell_the_same_of_a_program(preload, tmp_path, program):
    if shutil.which(PROGRAMS[program][0]) is None:
        pytest.skip(f"{PROGRAMS[program][0]} is not installed")
    preload.execute(*command_for(program, tmp_path / "recorded"))
    log = tmp_path / "log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ENSIO_")}
    subprocess.run(
        ["strace", "-f", "-y", "-ttt", "-T", "-o", log, *command_for(program, tmp_path / "traced")],
        env=clean,
        check=False,
        capture_output=True,
    )
    recorded, traced = ensembles.open(preload.run), ensembles.open(log)
    ours, theirs = transfers(recorded, tmp_path / "recorded"), transfers(traced, tmp_path / "traced")
    assert theirs == ours
    assert ours.total() > 0
    assert opens(traced, tmp_path / "traced") == opens(recorded, tmp_path / "recorded")


@pytest.fixture(scope="module")
def dftracer():
    """DFTracer's library for preloading, as its package has it."""
    folder = BUILD / "dftracer"
    found = list(folder.glob("dftracer/lib64/libdftracer_preload.so"))
    if not found:
        words = "install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target"
        command = [sys.executable, "-m", "pip", *words.split(), folder, DFTRACER]
        done = subprocess.run(command, capture_output=True, text=True)
        found = list(folder.glob("dftracer/lib64/libdftracer_preload.so"))
        if not found:
            pytest.skip(f"{DFTRACER} cannot be installed: {done.stderr.strip()[-200:]}")
    return found[0]


@pytest.mark.parametrize("packed", ["1", "0"])
def test_dftracer_and_the_recorder_tell_the_same_of_a_program(preload, dftracer, tmp_path, packed):
    program = preload.build("plain_calls")
    folders = [tmp_path / name for name in ("recorded", "traced")]
    out = tmp_path / "out"
    for folder in (*folders, out):
        folder.mkdir()
    preload.execute(program, folders[0])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ENSIO_")}
    wanted = {
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INC_METADATA": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_DATA_DIR": str(folders[1]),
        "DFTRACER_LOG_FILE": str(out / "t"),
        "DFTRACER_TRACE_COMPRESSION": packed,
        "LD_PRELOAD": str(dftracer),
    }
    subprocess.run([program, folders[1]], env=clean | wanted, capture_output=True, check=True)
    assert {".gz" if packed == "1" else ".pfw"} == {Path(name).suffix for name in os.listdir(out)}
    traced, recorded = ensembles.open(out), ensembles.open(preload.run)
    ours, theirs = transfers(recorded, folders[0]), transfers(traced, folders[1])
    # DFTracer tells an offset only where a call names one.
    assert without_positions(theirs) == without_positions(ours)
    assert {key: count for key, count in theirs.items() if key[2] >= 0} == {
        key: count for key, count in ours.items() if key[2] >= 123_000
    }
    assert traced.tasks == recorded.tasks == 2
    assert [process.ended for process in traced.info.processes] == [True, True]
    assert {process.program for process in traced.info.processes} == {str(program)}
    assert np.bincount(traced.events.thread).tolist() == np.bincount(recorded.events.thread).tolist()
    assert not any("invalid line" in note for note in traced.notes)


def without_positions(counts):
    known = Counter()
    for (op, name, _, requested, moved), count in counts.items():
        known[op, name, requested, moved] += count
    return known
