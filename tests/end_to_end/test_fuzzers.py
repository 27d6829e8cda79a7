"""The fuzzers of C code that reads untrusted bytes: what is kept in `tests/fuzz/corpus`, and
some thousand inputs made of it from a fixed seed, under the sanitizers of addresses and of undefined
behaviour. `./dev fuzz` goes on from there."""

import os
import subprocess

import pytest
from places import BUILD, ROOT

CORPUS = ROOT / "tests/fuzz/corpus"
RUNS = {"blocks": 2000, "chunks": 4000, "columns": 4000, "sums": 4000, "archives": 100}
"""Inputs of a short run. An archive costs a process and its files; the others, microseconds."""


def run(name, *arguments, folder):
    program = BUILD / "fuzz/tests/fuzz" / f"fuzz_{name}"
    if not program.exists():
        pytest.fail(f"{program} is not built; run ./dev setup test")
    return subprocess.run(
        [program, f"-artifact_prefix={folder}/", "-timeout=300", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TMPDIR": str(folder)},
    )


@pytest.mark.parametrize("name", RUNS)
def test_kept_inputs_are_read_or_refused(tmp_path, name):
    kept = sorted((CORPUS / name).iterdir())
    done = run(name, *kept, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stderr.count("Executed ") == len(kept) > 10


@pytest.mark.parametrize("name", RUNS)
def test_inputs_made_of_them_are_read_or_refused(tmp_path, name):
    (tmp_path / "found").mkdir()
    options = (f"-runs={RUNS[name]}", "-seed=1", "-max_len=2048")
    done = run(name, *options, tmp_path / "found", CORPUS / name, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-5000:]
    assert f"Done {RUNS[name]}" in done.stderr


def test_a_fuzzer_sees_what_the_process_that_it_starts_goes_through(tmp_path):
    """Else it would try inputs blindly: an archive is read by a child."""
    (tmp_path / "found").mkdir()
    done = run("archives", "-runs=0", tmp_path / "found", CORPUS / "archives", folder=tmp_path)
    (inited,) = (line for line in done.stderr.splitlines() if "INITED" in line)
    assert int(inited.partition("cov: ")[2].split()[0]) > 300
