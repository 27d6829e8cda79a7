"""Patterns: what is read, what is expanded from it, what is refused and where."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern
from ensembles.workloads.patterns.grid_regions import Regions, WrittenRegions

PATTERNS = ROOT / "testbed" / "patterns"
MIB = 1 << 20

SOUND = """\
title = "two phases"
layer = "posix"

[parameters]
tasks = 4
block_bytes = "1 * KiB"

[files.data]
path = "data.bin"

[[phases]]
name = "open"

[[phases.operations]]
call = "open"
file = "data"

[[phases]]
name = "write"
repetitions = 3
barrier = "repetition"

[[phases.operations]]
call = "pwrite"
file = "data"
times = 2
when = 1
offset = "((repetition * tasks + rank) * 2 + call) * block_bytes"
size = "block_bytes"
"""

READ_AHEAD_LOOP = """\
[[phases]]
name = "middle"
repetitions = 9
barrier = "phase"

[[phases.operations]]
call = "pread"
file = "data"
when = "repetition < 8"
offset = "(repetition * tasks + rank) * block_bytes"
size = "block_bytes"

[[phases.operations]]
call = "pwrite"
file = "data"
when = "repetition >= 1"
offset = "((repetition - 1) * tasks + rank) * block_bytes"
size = "block_bytes"
"""


@pytest.fixture
def pattern_of(tmp_path):
    """Reads a pattern from its text."""

    def read(text):
        path = tmp_path / "own.toml"
        path.write_text(text)
        return read_pattern(path)

    return read


def calls_of(plan, rank):
    """(step, repetition, call, offset, bytes) of each call of a task."""
    own = plan.column("rank") == rank
    return [
        (plan.steps[step].phase, plan.steps[step].repetition, plan.calls[call], offset, size)
        for step, call, offset, size in zip(
            *(plan.column(name)[own].tolist() for name in ("step", "call", "offset", "bytes")), strict=True
        )
    ]


class TestExpansion:
    def test_ior_is_the_workload_of_the_first_figure(self):
        plan = expand(read_pattern(PATTERNS / "ior.toml"), paper=True)
        assert (plan.tasks, plan.tasks_per_node) == (1024, 4)
        for rank in (0, 1023):
            expected = [("open", 0, "posix.open", 0, 0)]
            for direction in ("write", "read"):
                for repetition in range(5):
                    start = (repetition * 1024 + rank) * 512 * MIB
                    expected.append((direction, repetition, "posix.lseek", start, 0))
                    expected.append((direction, repetition, f"posix.{direction}", start, 512 * MIB))
                if direction == "write":
                    expected.append(("sync", 0, "posix.fsync", start + 512 * MIB, 0))
                    expected.append(("sync", 0, "posix.close", start + 512 * MIB, 0))
                    expected.append(("sync", 0, "posix.open", 0, 0))
            expected.append(("close", 0, "posix.close", start + 512 * MIB, 0))
            assert calls_of(plan, rank) == expected
        assert plan.needed_bytes() == 5 * 1024 * 512 * MIB

    @pytest.mark.parametrize("calls", [1, 2, 4, 8])
    def test_ior_blocks_are_covered_without_gap_whatever_the_number_of_calls(self, calls):
        plan = expand(read_pattern(PATTERNS / "ior.toml"), {"tasks": 3, "calls": calls})
        write = plan.column("call") == plan.calls.index("posix.write")
        assert np.count_nonzero(write) == 3 * 5 * calls
        offset, size = plan.column("offset")[write], plan.column("bytes")[write]
        order = np.argsort(offset)
        starts, sizes = offset[order], size[order]
        np.testing.assert_array_equal(starts, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
        assert sizes.sum() == 3 * 5 * 16 * MIB

    def test_when_makes_the_sequence_of_a_read_ahead_loop(self, pattern_of):
        """Eight blocks updated with the reads running one ahead: two reads first, two writes last."""
        text = SOUND[: SOUND.index('[[phases]]\nname = "write"')] + READ_AHEAD_LOOP
        plan = expand(pattern_of(text))
        made = [call for _, _, call, _, _ in calls_of(plan, 2) if call != "posix.open"]
        read, write = "posix.pread", "posix.pwrite"
        assert made == [read] * 2 + [write, read] * 6 + [write] * 2
        assert [(step.phase, step.repetition) for step in plan.steps] == [("open", 0), ("middle", 0)]

    def test_file_for_each_task(self, pattern_of):
        plan = expand(pattern_of(SOUND.replace("data.bin", "part.{rank}")))
        assert list(plan.files) == ["part.0", "part.1", "part.2", "part.3"]
        np.testing.assert_array_equal(plan.column("file"), plan.column("rank"))

    def test_overrides_replace_parameters_and_what_follows_from_them(self, pattern_of):
        pattern = pattern_of(SOUND.replace('"1 * KiB"', '"tasks * KiB"'))
        assert expand(pattern, {"tasks": 7}).parameters == {"tasks": 7, "block_bytes": 7168}
        assert expand(pattern, {"block_bytes": 5}).parameters == {"tasks": 4, "block_bytes": 5}

    def test_examples_of_the_documentation_are_patterns(self, pattern_of):
        text = (ROOT / "docs" / "reference" / "patterns.md").read_text()
        blocks = re.findall(r"\n\n((?:    .*\n|\n)*    title(?:    .*\n|\n|.*\n)*?)(?=\S)", text)
        examples = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks]
        assert len(examples) == 2
        header, matrix = (expand(pattern_of(example)) for example in examples)
        assert header.needed_bytes() == 4 * (4096 + 3 * MIB)
        assert matrix.needed_bytes() == 2 * (4 * 64 * 32 * 8)
        assert matrix.hints == {"cb_nodes": "2"}
        assert calls_of(matrix, 3)[-3:] == [
            ("rows", 0, "task.compute", 0, 5_000_000),
            ("rows", 0, "mpi.exchange", 2, -512),
            ("rows", 0, "mpi.exchange", 0, 512),
        ]


class TestRefusals:
    @pytest.mark.parametrize(
        ("old", "new", "line", "sentence"),
        [
            ("times = 2", "tmies = 2", 26, '"tmies" is not a key of pwrite'),
            ("repetitions = 3", "repeat = 3", 20, '"repeat" is not a key'),
            (
                'layer = "posix"',
                'layer = "mpio"',
                2,
                'layer "mpio" has no calls on files: choose from posix, stdio',
            ),
            (
                'layer = "posix"',
                'layer = "mpiio"',
                24,
                '"pwrite" is not a call of layer mpiio: choose from',
            ),
            ('call = "pwrite"', 'call = "pwritev"', 24, '"pwritev" is not a call of layer posix'),
            ('size = "block_bytes"', "", 23, "the key size of pwrite is missing"),
            ('size = "block_bytes"', "size = 0", 29, "the size is below 1 byte"),
            (
                'size = "block_bytes"',
                'size = "block_bytes - 2 * KiB"',
                29,
                "is -1024 for task 0: the size is below",
            ),
            ('size = "block_bytes"', 'size = "rank"', 29, "is 0 for task 0"),
            ('size = "block_bytes"', "size = 1.5", 29, "neither a whole number nor an expression"),
            ('size = "block_bytes"', 'size = "block"', 29, '"block" is not a name here'),
            ('offset = "((', 'offset = "-((', 28, "is -1024 for task 0: the offset is below 0"),
            ('offset = "((', 'offset = "9223372036854775807 + 0*((', 29, "2**63 bytes or more"),
            ("times = 2", 'times = "rank"', 26, '"rank" is not a name here'),
            ("times = 2", "times = 0", 26, "times is 0, it must be at least 1"),
            ("times = 2", "times = 1000000000", 23, "more than"),
            ("repetitions = 3", "repetitions = 1000000000000", 20, "a task would make more than"),
            ('barrier = "repetition"', 'barrier = "never"', 21, 'barrier is "never"'),
            ("tasks = 4", "tasks = 0", 5, "tasks is 0, it must be at least 1"),
            ("tasks = 4", "takss = 4", 4, "the parameter tasks is missing"),
            ("tasks = 4", "tasks = 4\nrank = 2", 6, '"rank" cannot be the name of a parameter'),
            ('path = "data.bin"', 'path = "../data.bin"', 9, "must be a plain file name"),
            ('path = "data.bin"', 'path = "a{task}"', 9, "must be a plain file name"),
            ('name = "write"', 'name = "write all"', 19, "must be 1 to 63 letters, digits"),
            ("when = 1\n", 'when = 1\nfile = "other"\n', None, "is not TOML"),
            ('call = "open"\nfile = "data"', 'call = "open"\nfile = "date"', 16, "there is no [files.date]"),
            ('call = "open"', 'call = "fsync"', 14, "task 0 makes fsync on data, which is not open there"),
            ('call = "open"', 'call = "open"\ntimes = 2', 14, "which is already open there"),
            ('title = "two phases"', "title = 3", 1, "title must be text in quotes"),
        ],
    )
    def test_sentence_names_file_line_and_problem(self, pattern_of, tmp_path, old, new, line, sentence):
        assert old in SOUND
        with pytest.raises(EnsioError) as raised:
            expand(pattern_of(SOUND.replace(old, new)))
        message = str(raised.value)
        assert sentence in message
        assert message.startswith(f"{tmp_path}/own.toml:{line}: " if line else f"{tmp_path}/own.toml: ")
        assert "\n" not in message

    def test_sound_pattern_is_not_refused(self, pattern_of):
        assert expand(pattern_of(SOUND)).operations == 4 * (1 + 3 * 2)

    def test_overlap_of_two_tasks(self, pattern_of):
        text = SOUND.replace("((repetition * tasks + rank) * 2 + call)", "(rank + call)")
        with pytest.raises(EnsioError, match=r"phase write: tasks . and . both write byte 1024 of data\.bin"):
            expand(pattern_of(text))

    def test_one_task_may_write_its_region_again(self, pattern_of):
        expand(pattern_of(SOUND.replace("((repetition * tasks + rank) * 2 + call)", "rank")))

    def test_unknown_parameter_of_the_command_line(self, pattern_of):
        with pytest.raises(EnsioError, match="there is no parameter calls: choose from tasks, block_bytes"):
            expand(pattern_of(SOUND), {"calls": 2})

    def test_missing_file_and_binary_file(self, tmp_path):
        with pytest.raises(EnsioError, match=r"none\.toml: cannot be read: No such file"):
            read_pattern(tmp_path / "none.toml")
        (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(EnsioError, match="is not a text file"):
            read_pattern(tmp_path / "binary.toml")


regions = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 30), st.integers(1, 12)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("tasks_of_a_block", [1, 2, 4])
@given(regions=regions)
def test_overlaps_are_those_that_counting_bytes_finds(tasks_of_a_block, regions):
    writers = {}
    for rank, file, offset, size in regions:
        for byte in range(offset, offset + size):
            writers.setdefault((file, byte), set()).add(rank)
    written = WrittenRegions()
    found = None
    for first in range(0, 4, tasks_of_a_block):
        rows = sorted(row for row in regions if first <= row[0] < first + tasks_of_a_block)
        if rows and not found:
            columns = np.array(rows, dtype=np.int64).T
            one, none = np.ones(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
            found = written.add(Regions(*columns, one, none, one, none))
    found = found or written.shared_byte()
    shared = {place for place, ranks in writers.items() if len(ranks) > 1}
    assert (found in shared) if shared else found is None
