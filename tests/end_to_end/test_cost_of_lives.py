"""The cost of the start and the end of a process, in instructions and system calls. No times."""

import re

import pytest
from places import BUILD

CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
FEW, MANY = 2_000, 12_000
START_INSTRUCTIONS = 650_000
"""629,000 were measured by preload; sums of names and of the table of calls are 49,000 of them."""

START_SYSTEM_CALLS = 111
"""109 were measured by preload, those of the end among them: 3 ask how long it waited for a processor, 3 for
the folder of the run however deep it lies, 16 map a second library, the recorder itself."""

CODING_INSTRUCTIONS = 215
"""Of an event; 172 were measured."""


@pytest.fixture
def empty(recorder):
    return (
        BUILD / "bin" / ("ensio-bench-empty-relinked" if recorder.way == "relinked" else "ensio-bench-empty")
    )


def instructions(execute, *command, **environment):
    done = execute(*CALLGRIND, *command, environment=environment, check=True)
    return int(re.search(rb"Collected : (\d+)", done.stderr)[1])


def system_calls(execute, tmp_path, command):
    log = tmp_path / "log"
    execute("strace", "-f", "-c", "-o", log, command, check=True)
    return int(log.read_text().splitlines()[-1].split()[3])


def test_start_takes_few_instructions(recorder, empty):
    recorded, untraced = (instructions(execute, empty) for execute in (recorder.execute, recorder.untraced))
    assert 10_000 < recorded - untraced < START_INSTRUCTIONS


def test_start_takes_few_system_calls(recorder, empty, tmp_path):
    recorded, untraced = (
        system_calls(execute, tmp_path, empty) for execute in (recorder.execute, recorder.untraced)
    )
    assert 10 < recorded - untraced < START_SYSTEM_CALLS


def test_coding_an_event_takes_few_instructions(recorder):
    binary = BUILD / "bin" / ("ensio-bench-relinked" if recorder.way == "relinked" else "ensio-bench-program")

    def per_event(mode):
        few, many = (
            instructions(recorder.execute, binary, "pwrite", calls, ENSIO_EXCLUDE="", ENSIO_MODE=mode)
            for calls in (FEW, MANY)
        )
        return (many - few) / (MANY - FEW)

    assert 50 < per_event("trace") - per_event("profile") < CODING_INSTRUCTIONS
