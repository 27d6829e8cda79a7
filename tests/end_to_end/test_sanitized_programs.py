"""Programs that were built with a sanitizer are recorded by preload, and are checked as ever."""

import subprocess
import sys

import pytest
from places import PATIENCE_S, PRELOAD

import ensembles

SANITIZERS = {
    "address": ("-fsanitize=address",),
    "address-inside": ("-fsanitize=address", "-static-libasan"),
    "thread": ("-fsanitize=thread",),
    "undefined": ("-fsanitize=undefined",),
    "leak": ("-fsanitize=leak",),
}


def ensio_run(preload, *command, **more):
    """``ensio run`` of this build."""
    words = [sys.executable, "-m", "ensembles.cli.main", "run", "-o", preload.run, "--", *command]
    environment = preload.environment(ENSIO_PRELOAD=str(PRELOAD), **more)
    del environment["ENSIO_DIR"]
    if "LD_PRELOAD" not in more:
        del environment["LD_PRELOAD"]
    return subprocess.run(
        [str(word) for word in words], env=environment, capture_output=True, timeout=PATIENCE_S
    )


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_sanitized_program_is_recorded(preload, tmp_path, sanitizer):
    program = preload.build("checked", *SANITIZERS[sanitizer])
    done = ensio_run(preload, program, tmp_path / "file")
    assert done.returncode == 20, done.stderr.decode(errors="replace")
    run = ensembles.open(preload.run)
    assert run.select(call="write", file="*/file").requested.tolist() == [16] * 101
    assert run.notes == []


def test_address_sanitizer_still_finds_what_is_wrong(preload, tmp_path):
    program = preload.build("checked", "-fsanitize=address")
    done = ensio_run(preload, program, tmp_path / "file", "wrongly", ASAN_OPTIONS="exitcode=55")
    assert done.returncode == 55
    assert b"heap-buffer-overflow" in done.stderr
    run = ensembles.open(preload.run)
    assert run.select(call="write", file="*/file").requested.tolist() == [16] * 100


def test_address_sanitizer_may_call_the_library_while_it_sets_itself_up(preload, tmp_path):
    program = preload.build("checked", "-fsanitize=address")
    log = tmp_path / "folder" / "log"  # it makes the folder as it starts
    done = ensio_run(preload, program, tmp_path / "file", ASAN_OPTIONS=f"log_path={log}")
    assert done.returncode == 20, done.stderr.decode(errors="replace")
    run = ensembles.open(preload.run)
    assert len(run.select(call="write", file="*/file")) == 101


@pytest.mark.parametrize(
    ("compiler", "library"),
    [
        ("gcc", "libasan.so"),
        ("gcc", "libtsan.so"),
        ("gcc", "liblsan.so"),
        ("gcc", "libubsan.so"),
        ("clang", "libclang_rt.asan-x86_64.so"),
    ],
)
def test_preloaded_sanitizer_comes_first_as_it_does_alone(preload, tmp_path, compiler, library):
    """For shared objects with a sanitizer in a program without one. ASan refuses to start behind others."""
    words = [compiler, f"-print-file-name={library}"]
    place = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    environment = {"LD_PRELOAD": f"{place} libm.so.6"}  # not in the Python of ensio run
    program = preload.build("checked")
    alone = preload.untraced(program, tmp_path / "file", environment={**environment, "LD_PRELOAD": place})
    done = ensio_run(preload, program, tmp_path / "file", **environment)
    assert done.returncode == alone.returncode == 20, done.stderr.decode(errors="replace")
    run = ensembles.open(preload.run)
    assert run.select(call="write", file="*/file").requested.tolist() == [16] * 101


def test_programs_without_it_get_no_options(preload, tmp_path):
    done = ensio_run(preload, "/bin/sh", "-c", "echo ${ASAN_OPTIONS-none}")
    assert done.stdout == b"none\n"
