"""Streams, and third-party programs, under the model of a parallel file system."""

import os
import re
import subprocess

import pytest
from places import PATIENCE_S
from test_transparency import PROGRAMS, contents
from test_under_model import FAST, data, run_under

from ensembles.workloads.simulation.live_model import environment_for, held_back, shared_model

__all__ = ["data"]  # a fixture


def test_streams_are_unchanged(recorder, tmp_path):
    program = recorder.build("stdio_calls")
    folders = [tmp_path / part for part in ("under", "alone")]
    for folder in folders:
        folder.mkdir()
    with shared_model(FAST, 1) as model:
        under = run_under(model, tmp_path, [program, folders[0]], recorder.environment(), cwd=folders[0])
    alone = recorder.untraced(program, folders[1], cwd=folders[1])
    assert (under.stdout, under.stderr, under.returncode) == (alone.stdout, alone.stderr, alone.returncode)


STREAMS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments)
{
    static char bytes[1 << 20];
    char line[300];
    srand(atoi(arguments[2]));
    FILE *file = fopen(arguments[1], "w+");
    if (rand() % 3 == 0)
        setvbuf(file, NULL, _IOFBF, 1000 + rand() % 100000);
    for (int i = 0; i < 60; i++)
        switch (rand() % 6) {
        case 0: fwrite(bytes, 1, rand() % 200, file); break;
        case 1: fwrite(bytes, 1, rand() % 20000, file); break;
        case 2: fwrite(bytes, 1, rand() % sizeof bytes, file); break;
        case 3: fprintf(file, "%*d\\n", 1 + rand() % 100, i); break;
        case 4: for (int j = rand() % 6000; j > 0; j--) putc('x', file); break;
        case 5: fflush(file); break;
        }
    fclose(file);
    file = fopen(arguments[1], "r");
    for (int i = 0; i < 60; i++)
        switch (rand() % 4) {
        case 0: if (fread(bytes, 1, rand() % 300, file)) {} break;
        case 1: if (fread(bytes, 1, rand() % 20000, file)) {} break;
        case 2: if (fread(bytes, 1, rand() % sizeof bytes, file)) {} break;
        case 3: for (int j = rand() % 6000; j > 0; j--) getc(file); break;
        }
    fclose(file);
    return 0;
}
"""


@pytest.mark.parametrize("seed", range(5))
def test_the_model_is_asked_for_the_bytes_that_libc_moves_under_streams(tmp_path, data, seed):
    source, program, log = tmp_path / "streams.c", tmp_path / "streams", tmp_path / "log"
    source.write_text(STREAMS)
    subprocess.run(["gcc", "-O1", "-w", source, "-o", program], check=True)
    file = data / "stream"
    with shared_model(FAST, 1) as model:
        run_under(model, data, [program, file, seed], check=True)
        counted = held_back(model)
    calls = ["strace", "-y", "-e", "trace=read,write", "-o", log, program, file, str(seed)]
    subprocess.run(calls, check=True, capture_output=True)
    moved = {"read": 0, "write": 0}
    for call, result in re.findall(rf"^(read|write)\(\d+<{file}>.* = (\d+)$", log.read_text(), re.M):
        moved[call] += int(result)
    assert min(moved.values()) > 0
    assert (counted.bytes_read, counted.bytes_written) == (moved["read"], moved["write"])


@pytest.mark.parametrize("command", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_of_others_print_and_leave_the_same(tmp_path, command):
    left, printed = [], []
    for number in range(2):
        folder = tmp_path / "here"  # the same name for both: some leave it in their files
        folder.mkdir()
        with shared_model(FAST, 1) as model:
            under = environment_for(model, [folder], dict(os.environ)) if number else None
            done = subprocess.run(
                [str(word) for word in command],
                env=under,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_S,
            )
            counted = held_back(model)
        printed.append((done.returncode, done.stdout, done.stderr))
        left.append(contents(folder))
        folder.rename(tmp_path / str(number))
    assert printed[0] == printed[1]
    assert left[0] == left[1]
    assert counted.calls > 20
    assert counted.let_go_calls == counted.restarts == counted.nested_calls == counted.without_slot_calls == 0


def test_a_program_with_its_own_allocator_is_under_the_model(preload, tmp_path):
    program = preload.build("own_malloc")
    with shared_model(FAST, 1) as model:
        under = run_under(model, tmp_path, [program, tmp_path / "under"], cwd=tmp_path)
        counted = held_back(model)
    alone = preload.untraced(program, tmp_path / "alone", cwd=tmp_path)
    assert (under.returncode, under.stdout, under.stderr) == (5, b"allocated\n", b"")
    assert (alone.returncode, alone.stdout) == (5, b"allocated\n")
    assert counted.calls > 0
