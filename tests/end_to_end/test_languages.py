"""I/O by the statements of a language goes through its run-time library: seen by preload, and relinked where
that library is linked statically."""

import subprocess

import pytest
from places import PROGRAMS

import ensembles

LANGUAGES = {
    "Fortran": ("gfortran", "unformatted.f90", "-static-libgfortran", 81920),
    "C++": ("g++", "streams.cpp", "-static-libstdc++", 1_000_000),
}


def check_record(recorder, program, expected) -> None:
    """Run a program that writes its file and reads it, and compare the bytes that were recorded."""
    data = recorder.folder / "data"
    done = recorder.execute(program, data)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    run = ensembles.open(recorder.run)
    assert str(data) in run.files
    for op in ("write", "read"):
        assert run.select(op=op, layer="posix", file=str(data)).moved.sum() == expected


@pytest.mark.parametrize(("compiler", "source", "_", "expected"), LANGUAGES.values(), ids=LANGUAGES.keys())
def test_preload_sees_what_the_runtime_library_does(preload, compiler, source, _, expected):
    program = preload.folder / "program"
    subprocess.run([compiler, PROGRAMS / source, "-o", program], check=True)
    check_record(preload, program, expected)


@pytest.mark.parametrize("everything_static", [False, True], ids=["runtime static", "all static"])
@pytest.mark.parametrize(
    ("compiler", "source", "option", "expected"), LANGUAGES.values(), ids=LANGUAGES.keys()
)
def test_relinking_sees_a_static_runtime_library(
    relinked, compiler, source, option, expected, everything_static
):
    program = relinked.folder / "program"
    how = "-static" if everything_static else option
    subprocess.run([relinked.driver, compiler, how, PROGRAMS / source, "-o", program], check=True)
    check_record(relinked, program, expected)
