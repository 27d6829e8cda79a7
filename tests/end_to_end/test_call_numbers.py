"""Numbers of calls: beyond the first 255 they work like the others, and the build refuses wrong ones.
The layer mpimsg has such numbers; the long tests build a recorder in which all of stdio has them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from places import PATIENCE_S, PRELOAD, PROGRAMS, ROOT

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.readers.native.spool import read_spool

TASKS = 3
DURATION = r" +[0-9.]+ [mµn]?s"
SHIFT = 256  # takes the numbers of stdio, 64 to 95, to the block of its id, 320 to 383


def sources(folder: Path) -> Path:
    """A copy of the recorder's sources that CMake can build alone."""
    shutil.copytree(ROOT / "libtrace", folder / "libtrace")
    version = "ensembles/model/__init__.py"
    (folder / version).parent.mkdir(parents=True)
    shutil.copy(ROOT / version, folder / version)
    whole = (ROOT / "CMakeLists.txt").read_text()
    (folder / "CMakeLists.txt").write_text(whole.partition("install(")[0])
    return folder / "libtrace" / "calls"


@pytest.fixture(scope="module")
def shifted(tmp_path_factory) -> Path:
    """The preload library of a recorder in which all calls of stdio have numbers above 255."""
    folder = tmp_path_factory.mktemp("shifted")
    table = sources(folder) / "stdio.def"
    text, count = re.subn(
        r"^CALL\((\d+),", lambda m: f"CALL({int(m[1]) + SHIFT},", table.read_text(), flags=re.MULTILINE
    )
    assert count == text.count("\nCALL(")
    table.write_text(text)
    build = folder / "build"
    subprocess.run(["cmake", "-S", folder, "-B", build], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, "--target", "ensio-preload"], check=True, capture_output=True)
    return build / "lib" / "libensio-preload.so"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("program") / "job_calls"
    source, include = PROGRAMS / "job_calls.c", ROOT / "libtrace/include"
    subprocess.run(["mpicc.openmpi", "-w", "-I", include, source, "-o", made, "-pthread"], check=True)
    return made


def record(program: Path, library: Path, folder: Path, **variables: str) -> tuple[ensembles.Run, str]:
    """The run of a program of known calls under a preload library, and what the banner says."""
    (folder / "data").mkdir(parents=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    environment = clean | ANY_TASKS | {"ENSIO_DIR": str(folder / "run"), "ENSIO_BANNER": "full"} | variables
    done = subprocess.run(
        [
            *["mpiexec.openmpi", "-n", str(TASKS), "env", f"LD_PRELOAD={library}"],
            *[program, folder / "data", "mixed", "40"],
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return ensembles.open(folder / "run"), done.stderr


def counted(run: ensembles.Run) -> dict[str, tuple[int, int]]:
    """Number of calls and bytes of each function of a run with all of its events."""
    found: dict[str, tuple[int, int]] = {}
    for events in run.chunks():
        for number in np.unique(events.call):
            name = run.calls[int(number)].name
            mine = events.call == number
            count, moved = found.get(name, (0, 0))
            sizes = events.moved[mine]
            found[name] = (count + int(mine.sum()), moved + int(sizes[sizes > 0].sum()))
    return found


def table_of(banner: str) -> dict[str, list[str]]:
    """Count, bytes and errors of each function in a full banner."""
    rows = re.findall(
        rf"^# (\w+) +(\d+)(?: +([0-9.]+ [KMG]?i?B))?{3 * DURATION} +(\d+)$", banner, re.MULTILINE
    )
    return {name: rest for name, *rest in rows}


def numbers_of(folder: Path, layer: str) -> set[int]:
    """The numbers of a layer's calls in the dictionaries of a folder's spools."""
    spools = [read_spool(str(path)) for path in folder.glob("*.spool")]
    lines = [line.split() for spool in spools for line in spool.calls_text.decode().splitlines()]
    return {int(number) for number, _, name, _ in lines if name == layer}


@pytest.mark.long
@pytest.mark.parametrize("jobfile", ["1", "0"], ids=["job file", "spools"])
def test_events_of_calls_above_255_are_those_of_the_same_calls(shifted, program, tmp_path, jobfile):
    usual, banner = record(program, PRELOAD, tmp_path / "usual", ENSIO_JOBFILE=jobfile)
    run, other = record(program, shifted, tmp_path / "shifted", ENSIO_JOBFILE=jobfile)
    expected = counted(usual)
    assert expected["fprintf"][0] > 0
    assert counted(run) == expected
    assert table_of(other) == table_of(banner)
    assert "fprintf" in table_of(other)
    if jobfile == "0":
        numbers = numbers_of(tmp_path / "usual" / "run", "stdio")
        assert max(numbers) < 256
        assert numbers_of(tmp_path / "shifted" / "run", "stdio") == {number + SHIFT for number in numbers}


@pytest.mark.long
def test_the_summary_counts_calls_above_255(shifted, program, tmp_path):
    expected, _ = record(program, PRELOAD, tmp_path / "trace")
    run, banner = record(program, shifted, tmp_path / "profile", ENSIO_MODE="profile")
    summary = run.summary
    found: dict[str, int] = {}
    for number, count in zip(summary.cells["call"], summary.cells["count"], strict=True):
        name = run.calls[int(number)].name
        found[name] = found.get(name, 0) + int(count)
    assert found == {name: count for name, (count, _) in counted(expected).items()}
    assert {name: int(row[0]) for name, row in table_of(banner).items()} == found


@pytest.mark.long
def test_layers_can_be_excluded_by_name(shifted, program, tmp_path):
    run, _ = record(program, shifted, tmp_path / "posix", ENSIO_LAYERS="posix")
    assert {run.calls[int(number)].layer for events in run.chunks() for number in events.call} == {"posix"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("CALL(64, ", "CALL(97, ", "fopen has a number of another layer"),
        ("CALL(64, ", "CALL(256, ", "fopen has a number of another layer"),
        ("CALL(64, ", "CALL(65, ", "duplicate case value"),
    ],
    ids=["first numbers of mpiio", "block of posix", "twice"],
)
def test_the_build_refuses_wrong_numbers(tmp_path, old, new, reason):
    table = sources(tmp_path) / "stdio.def"
    text = table.read_text()
    assert text.count(old) == 1
    table.write_text(text.replace(old, new))
    done = subprocess.run(
        [
            *["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-I", tmp_path / "libtrace"],
            *["-I", tmp_path / "libtrace/include", tmp_path / "libtrace/calls/dictionary.c"],
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert reason in done.stderr
