"""Programs are linked in many ways; each way records the same calls."""

import re
import subprocess
from collections import Counter

import pytest
from places import BUILD
from test_calls import names

import ensembles

LINKED = {
    "static": ["gcc", "-static"],
    "static-pie": ["gcc", "-static-pie"],
    "link-time optimisation": ["gcc", "-flto"],
    "gold": ["gcc", "-fuse-ld=gold"],
    "language named": ["gcc", "-x", "c"],
    "no optimisation": ["gcc", "-O0"],
}


def record(program, folder, run, environment) -> Counter:
    folder.mkdir()
    done = subprocess.run([program, folder], env=environment | {"ENSIO_DIR": str(run)}, capture_output=True)
    assert done.returncode == 7
    return Counter(names(ensembles.open(run).events))


@pytest.mark.parametrize("compiler", LINKED.values(), ids=LINKED.keys())
def test_linked_programs_record_what_preloaded_ones_do(relinked, preload, tmp_path, compiler):
    source = preload.source("every_call")
    program = tmp_path / "program"
    subprocess.run([relinked.driver, *compiler, "-w", source, "-o", program], check=True)
    counts = record(program, tmp_path / "linked", tmp_path / "run-linked", relinked.environment())
    plain = preload.build("every_call")
    assert counts == record(plain, tmp_path / "plain", tmp_path / "run-plain", preload.environment())
    assert counts.total() > 40


def test_recorder_itself_calls_no_wrapper():
    wrapped = set(re.findall(r"--wrap=(\S+)", (BUILD / "share" / "ensio" / "wrap.rsp").read_text()))
    nm = subprocess.run(
        ["nm", "-u", BUILD / "lib" / "libensio.a"], check=True, capture_output=True, text=True
    )
    missing = {line.split()[-1] for line in nm.stdout.splitlines() if line.startswith(" ")}
    assert "__real_mmap" in missing
    assert missing & wrapped == set()


def test_compiling_and_linking_apart_is_the_same(relinked, tmp_path):
    source = relinked.source("every_call")
    subprocess.run([relinked.driver, "gcc", "-w", "-c", source, "-o", tmp_path / "program.o"], check=True)
    subprocess.run([relinked.driver, "gcc", tmp_path / "program.o", "-o", tmp_path / "program"], check=True)
    counts = record(tmp_path / "program", tmp_path / "data", tmp_path / "run", relinked.environment())
    assert counts.total() > 40


@pytest.mark.parametrize("arguments", [[], ["-o", "x"]])
def test_driver_without_a_compiler_says_what_it_needs(relinked, arguments):
    done = subprocess.run([relinked.driver, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("ensio-cc: ")
    assert done.stderr.count("\n") == 1


def test_a_compiler_that_fails_keeps_its_exit_status(relinked, tmp_path):
    (tmp_path / "wrong.c").write_text("int main(void) { return nothing; }")
    done = subprocess.run(
        [relinked.driver, "gcc", tmp_path / "wrong.c", "-o", tmp_path / "x"], capture_output=True
    )
    assert done.returncode == 1
    assert b"nothing" in done.stderr
