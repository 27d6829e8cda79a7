"""The cost of a call on a path: no system call, few instructions for one that was seen before. No times."""

import re

import pytest
from places import BUILD

# By call of the benchmark's program: its own system calls, and the recorder's instructions at most. They were
# 2,900 and 1,830 when each path took the lock; most of those that are left fill the summary.
CALLS = {"open": (2, 1850), "open-here": (2, 1850), "stat": (1, 700), "stat-here": (1, 700)}
FEW, MANY = 2_000, 12_000
CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
# In mode trace, events are coded meanwhile: 170 instructions of each event (test_cost_of_lives.py).
EVERYTHING = {"ENSIO_EXCLUDE": "", "ENSIO_JOBFILE": "0"}


@pytest.fixture
def binary(recorder):
    return BUILD / "bin" / ("ensio-bench-relinked" if recorder.way == "relinked" else "ensio-bench-program")


@pytest.mark.parametrize("call", CALLS)
def test_no_system_call(recorder, binary, tmp_path, call):
    def system_calls(calls):
        log = tmp_path / "log"
        command = ("strace", "-f", "-c", "-o", log, binary, call, calls)
        recorder.execute(*command, environment=EVERYTHING, check=True)
        # % time, seconds, usecs/call, calls, errors, total
        return int(log.read_text().splitlines()[-1].split()[3])

    more = system_calls(MANY) - system_calls(FEW)
    own = CALLS[call][0] * (MANY - FEW)
    assert own <= more < own + (MANY - FEW) / 20  # windows of events are mapped now and then


def test_no_system_call_for_new_paths_below_a_descriptor(preload, tmp_path):
    """``find`` looks at each file by its name and the descriptor of its folder."""

    def system_calls(execute, files):
        folder, log = tmp_path / f"{files}", tmp_path / "log"
        folder.mkdir(exist_ok=True)
        for number in range(files):
            (folder / f"{number}").touch()
        command = ("strace", "-f", "-c", "-o", log, "find", folder, "-size", "+1k")
        execute(*command, environment=EVERYTHING, check=True)
        return int(log.read_text().splitlines()[-1].split()[3])

    few, many = 500, 4000
    own, more = (
        system_calls(execute, many) - system_calls(execute, few)
        for execute in (preload.untraced, preload.execute)
    )
    assert many - few <= own <= more < own + (many - few) / 10  # memory is mapped now and then


@pytest.mark.parametrize("call", CALLS)
def test_few_instructions(recorder, binary, call):
    def each(execute, mode):
        few, many = (instructions(execute, mode, calls) for calls in (FEW, MANY))
        return (many - few) / (MANY - FEW)

    def instructions(execute, mode, calls):
        environment = EVERYTHING | {"ENSIO_MODE": mode}
        done = execute(*CALLGRIND, binary, call, calls, environment=environment, check=True)
        return int(re.search(rb"Collected : (\d+)", done.stderr)[1])

    untraced = each(recorder.untraced, "trace")
    for mode in ("trace", "profile"):
        assert 100 < each(recorder.execute, mode) - untraced < CALLS[call][1]
