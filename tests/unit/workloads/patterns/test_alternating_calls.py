"""Operations whose calls take turns."""

import numpy as np
import pytest

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern

TEXT = """\
title = "seeks and writes take turns"
layer = "posix"

[parameters]
tasks = 2
calls = 3

[files.data]
path = "data.bin"

[[phases]]
name = "write"
repetitions = 2

[[phases.operations]]
call = "open"
file = "data"
when = "repetition == 0"

[[phases.operations]]
call = "lseek"
file = "data"
times = "calls"
offset = "1000 * repetition + 100 * rank + 10 * call"

[[phases.operations]]
call = "write"
file = "data"
times = "calls"
alternates = true
when = "rank == 0 or call != 1"
size = "call + 1"

[[phases.operations]]
call = "fsync"
file = "data"
"""


@pytest.fixture
def expanded(tmp_path):
    def made(text):
        path = tmp_path / "own.toml"
        path.write_text(text)
        return expand(read_pattern(path))

    return made


def calls_of(plan, rank):
    own = plan.column("rank") == rank
    names = [plan.calls[call].partition(".")[2] for call in plan.column("call")[own]]
    return list(
        zip(names, plan.column("offset")[own].tolist(), plan.column("bytes")[own].tolist(), strict=True)
    )


def test_calls_take_turns_and_conditions_hold_for_each(expanded):
    plan = expanded(TEXT)
    expected = [("open", 0, 0)]
    for first in (0, 1000):
        for call in range(3):
            expected += [("lseek", first + 10 * call, 0), ("write", first + 10 * call, call + 1)]
        expected.append(("fsync", first + 23, 0))  # a plan has the position there
    assert calls_of(plan, 0) == expected
    # The second write of task 1 is left out; its seek is not.
    assert [name for name, *_ in calls_of(plan, 1)][:6] == [
        "open",
        "lseek",
        "write",
        "lseek",
        "lseek",
        "write",
    ]


def test_without_the_key_all_calls_of_an_operation_come_first(expanded):
    plan = expanded(TEXT.replace("alternates = true\n", ""))
    assert [name for name, *_ in calls_of(plan, 0)][:7] == ["open", *["lseek"] * 3, *["write"] * 3]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alternates = true", "alternates = 1", "alternates is true or false"),
        ('times = "calls"\nalternates', 'times = "calls + 1"\nalternates', "makes 4 calls"),
        ('when = "repetition == 0"', "alternates = true", "no operation before the first"),
        (
            'call = "fsync"\nfile = "data"',
            'call = "mpi.exchange"\nto = "1 - rank"\nsize = 4\nalternates = true',
            "exchanges complete together",
        ),
    ],
)
def test_impossible_turns_are_refused(expanded, old, new, message):
    assert old in TEXT
    with pytest.raises(EnsioError, match=message):
        expanded(TEXT.replace(old, new)).column("call")


def test_each_write_begins_where_the_seek_before_it_went(expanded):
    """A later write without a seek goes on where the last of them ended."""
    every = TEXT.replace('when = "rank == 0 or call != 1"\n', "")
    further = every + '\n[[phases.operations]]\ncall = "write"\nfile = "data"\nsize = 7\n'
    plan = expanded(further)
    for rank in range(2):
        own = plan.column("rank") == rank
        names = np.array([plan.calls[call] for call in plan.column("call")[own]])
        offset, size = plan.column("offset")[own], plan.column("bytes")[own]
        writes = np.flatnonzero(names == "posix.write")
        expected = []
        for repetition in range(2):
            begins = [1000 * repetition + 100 * rank + 10 * call for call in range(3)]
            expected += [*zip(begins, [1, 2, 3], strict=True), (begins[-1] + 3, 7)]
        assert list(zip(offset[writes].tolist(), size[writes].tolist(), strict=True)) == expected
        sought = np.flatnonzero(names == "posix.lseek")
        assert [writes[i] - sought[i - i // 4] for i in range(8) if i % 4 < 3] == [1] * 6


def test_a_write_beyond_the_largest_file_is_refused(expanded):
    every = TEXT.replace('when = "rank == 0 or call != 1"\n', "")
    far = every.replace('"1000 * repetition + 100 * rank + 10 * call"', '"9223372036854775804 + call"')
    with pytest.raises(EnsioError, match=r"2\*\*63 bytes or more"):
        expanded(far)
