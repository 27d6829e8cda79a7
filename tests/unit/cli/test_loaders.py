"""``ensio run`` says beforehand which programs the preload library cannot get into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from project import BUILD

from ensembles.cli.run import unrecorded
from ensembles.recorder.elf import read_interpreter

ENSIO = Path(sys.executable).with_name("ensio")

SOURCE = r"""
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
    int fd = open("started", O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 5; i++)
        if (write(fd, "0123456789", 10) != 10)
            return 1;
    return close(fd);
}
"""

START = ".globl _start\n_start: nop\n"


@pytest.fixture
def ensio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Starts ``ensio`` in an empty folder."""
    library = BUILD / "lib" / "libensio-preload.so"
    if not library.exists():
        pytest.fail(f"{library} is not built; run ./dev setup")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENSIO_PRELOAD", str(library))

    def start(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ENSIO, *map(str, arguments)], capture_output=True, text=True, timeout=600)

    return start


def compiled(folder: Path, *command: str) -> Path:
    """The program, made by this compiler with these options."""
    if shutil.which(command[0]) is None:
        pytest.fail(f"{command[0]} is not installed; on Debian, musl-gcc comes in the package musl-tools")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run([*command, "app.c", "-o", "app"], cwd=folder, check=True)
    return folder / "app"


def test_a_musl_program_starts_unrecorded_and_a_note_says_why(ensio, tmp_path: Path) -> None:
    program = str(compiled(tmp_path, "musl-gcc"))
    loader = read_interpreter(program)
    for number, command in enumerate(([program], [loader, program], ["env", program])):
        done = ensio("run", "-o", f"run{number}", "--", *command)
        assert (done.returncode, done.stdout) == (0, "")
        assert (tmp_path / "started").stat().st_size == 50
        (tmp_path / "started").unlink()
        note, outcome = done.stderr.splitlines()
        named = command[-2] if command[0] == loader else program
        assert note.startswith(f"ensio: note: {named} uses the C library musl (ld-musl-")
        assert outcome.startswith(f"ensio: nothing was recorded in run{number}: {named} uses the C library ")


@pytest.mark.parametrize("command", [["gcc", "-static"], ["gcc", "-static-pie"], ["musl-gcc", "-static"]])
def test_a_static_program_runs_with_a_note(ensio, tmp_path: Path, command: list[str]) -> None:
    compiled(tmp_path, *command)
    done = ensio("run", "-o", "run", "--", "./app")
    assert done.returncode == 0
    assert (tmp_path / "started").stat().st_size == 50
    note, outcome = done.stderr.splitlines()
    assert note.startswith("ensio: note: ./app is linked statically, so the preload library cannot")
    assert outcome.startswith("ensio: nothing was recorded in run: ./app is linked statically")
    assert "ensio-cc" in note
    assert "ensio-cc" in outcome


WAYS = {
    "shell": ["sh", "-c", "./app; :"],
    "folder": ["sh", "-c", "cd sub; ../app; :"],
    "script": ["./script"],
    "chain": ["env", "A=1", "timeout", "60", "sh", "script"],
    "exec": ["bash", "-c", "exec ./app"],
}


@pytest.mark.parametrize(
    ("way", "command", "reason"),
    [
        *((way, ["gcc", "-static"], "linked statically") for way in WAYS),
        ("shell", ["musl-gcc", "-static"], "linked statically"),
        ("shell", ["musl-gcc"], "uses the C library musl"),
    ],
)
def test_what_a_shell_or_launcher_started_is_the_one_reason(
    ensio, tmp_path: Path, way: str, command: list[str], reason: str
) -> None:
    compiled(tmp_path, *command)
    (tmp_path / "sub").mkdir()
    (tmp_path / "script").write_text("#!/bin/sh\n./app\n:\n")
    (tmp_path / "script").chmod(0o755)
    outcome = ensio("run", "-o", "run", "--", *WAYS[way]).stderr.splitlines()[-1]
    assert outcome.startswith(f"ensio: nothing was recorded in run: {tmp_path}/app "), outcome
    assert reason in outcome
    assert not os.listdir("run")


def test_a_program_for_32_bits_and_one_with_more_rights_are_reasons(ensio, tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("this assembler is for another processor than x86-64")
    (tmp_path / "start.s").write_text(".globl _start\n_start: mov $1, %eax\nmov $0, %ebx\nint $0x80\n")
    subprocess.run(["as", "--32", "start.s", "-o", "start.o"], cwd=tmp_path, check=True)
    linked = ["ld", "-m", "elf_i386", "-pie", "-dynamic-linker", "/lib/ld.so", "start.o", "-o", "narrow"]
    subprocess.run(linked, cwd=tmp_path, check=True)
    assert "narrow is for 32 bits" in unrecorded(str(tmp_path / "narrow"))
    app = compiled(tmp_path, "gcc")
    assert unrecorded(str(app)) == ""
    app.chmod(0o4755)
    assert unrecorded(str(app)) == ""  # its owner starts it
    if os.geteuid() == 0:
        os.chown(app, 65534, 65534)
        app.chmod(0o4755)
        outcome = ensio("run", "-o", "run", "--", "sh", "-c", "./app; :").stderr.splitlines()[-1]
        assert f"{app} runs with more rights than its user" in outcome


def test_a_script_is_recorded_as_its_interpreter_is(tmp_path: Path) -> None:
    app = compiled(tmp_path, "gcc", "-static")
    script = tmp_path / "script"
    for first, reason in ((f"#! {app} -x", "app is linked statically"), (f"#!{script}", ""), ("#!", "")):
        script.write_text(f"{first}\n")
        script.chmod(0o755)
        assert reason in unrecorded(str(script))
        assert bool(reason) == bool(unrecorded(str(script)))


def test_bytes_of_a_static_program_beside_recorded_ones_have_its_name(ensio, tmp_path: Path) -> None:
    (tmp_path / "big.c").write_text(SOURCE.replace("i < 5", "i < 200000"))
    subprocess.run(["gcc", "-static", "big.c", "-o", "big"], cwd=tmp_path, check=True)
    child = "import subprocess; subprocess.run(['./big']); open('own', 'w').write('x')"
    ensio("run", "-o", "run", "--", sys.executable, "-c", child)
    for _ in range(2):  # the second time from trace.h5
        (note,) = json.loads(ensio("info", "run", "--json").stdout)["notes"]
        assert note.startswith("the kernel counted 1.91 MiB written by calls, and 1 B are recorded: "), note
        assert f"{tmp_path}/big is linked statically" in note
        assert "raw system calls" not in note


def test_a_static_program_with_the_recorder_in_it_needs_no_note(ensio, tmp_path: Path) -> None:
    compiled(tmp_path, str(BUILD / "bin" / "ensio-cc"), "gcc", "-static")
    done = ensio("run", "-o", "run", "--", "./app")
    assert done.stderr == "ensio: recorded in run: look at it with ensio info run\n"


def test_programs_that_can_be_recorded_and_scripts_need_none(ensio, tmp_path: Path) -> None:
    compiled(tmp_path, "gcc")
    (tmp_path / "script").write_text("#!/bin/sh\nexec ./app\n")
    (tmp_path / "script").chmod(0o755)
    loader = read_interpreter(str(tmp_path / "app"))
    for number, command in enumerate((["./app"], ["./script"], [loader, "./app"])):
        done = ensio("run", "-o", f"run{number}", "--", *command)
        assert done.returncode == 0
        assert done.stderr.startswith(f"ensio: recorded in run{number}: "), command
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("bits", "emulation", "name"),
    [("32", "elf_i386", "/lib/ld-musl-i386.so.1"), ("64", "elf_x86_64", "/lib/ld-musl-x86_64.so.1")],
)
def test_interpreters_of_both_classes_are_read(tmp_path: Path, bits: str, emulation: str, name: str) -> None:
    """As GNU ld writes them, and as readelf reads them."""
    if os.uname().machine != "x86_64":
        pytest.skip("this assembler is for another processor than x86-64")
    (tmp_path / "start.s").write_text(START)
    subprocess.run(["as", f"--{bits}", "start.s", "-o", "start.o"], cwd=tmp_path, check=True)
    linked = ["ld", "-m", emulation, "-pie", "-dynamic-linker", name, "start.o", "-o", "program"]
    subprocess.run(linked, cwd=tmp_path, check=True)
    subprocess.run(["ld", "-m", emulation, "start.o", "-o", "static"], cwd=tmp_path, check=True)
    told = subprocess.run(["readelf", "-lW", "program"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert f"[Requesting program interpreter: {name}]" in told
    assert read_interpreter(str(tmp_path / "program")) == name
    assert read_interpreter(str(tmp_path / "static")) == ""
    assert read_interpreter(str(tmp_path / "start.o")) is None  # no program
    assert read_interpreter(str(tmp_path / "start.s")) is None


def test_a_cut_or_damaged_program_does_no_harm(tmp_path: Path) -> None:
    whole = Path(sys.executable).resolve().read_bytes()[:4096]
    loader = read_interpreter(sys.executable)
    assert loader
    path = tmp_path / "cut"
    for length in range(0, 1000, 7):
        path.write_bytes(whole[:length])
        assert loader.startswith(read_interpreter(str(path)) or "")
    for place in range(64):
        for value in (0, 127, 255):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            assert len(read_interpreter(str(path)) or "") <= 4096


def test_a_program_starts_although_names_cannot_be_left(ensio, tmp_path: Path) -> None:
    compiled(tmp_path, "gcc", "-static")
    ensio("run", "-o", "run", "--", "cat", "app.c")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "run").chmod(0o555)
    without_rights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*without_rights, ENSIO, "run", "--extend", "-o", "run", "--", "sh", "-c", "./app; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "started").stat().st_size == 50
