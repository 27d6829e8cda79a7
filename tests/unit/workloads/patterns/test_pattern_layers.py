"""Patterns of several layers: what is made of them, and what is refused before anything runs."""

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern
from ensembles.workloads.patterns.calls import COMMON_NAMES, FILE_CALLS
from ensembles.workloads.patterns.expressions import balanced_factors
from ensembles.workloads.patterns.grid_regions import Regions, WrittenRegions

PATTERNS = ROOT / "testbed" / "patterns"

SOUND = """\
title = "all layers"
layer = "mpiio"

[parameters]
tasks = 4
tasks_per_node = 2
block_bytes = 24

[paper]
block_bytes = 240

[hints]
cb_nodes = "{tasks}"
"hdf5.alignment" = 4096

[files.shared]
path = "shared.dat"

[files.own]
path = "own.{rank}"
layer = "stdio"

[files.many]
path = "many.{index}"
count = 3
layer = "posix"

[files.array]
path = "array.h5"
layer = "hdf5"

[[phases]]
name = "one"

[[phases.operations]]
call = "open"
file = "shared"

[[phases.operations]]
call = "write_at_all"
file = "shared"
offset = "rank * block_bytes / 3"
size = "block_bytes"
pieces = 3
stride = "tasks * block_bytes / 3"

[[phases.operations]]
call = "close"
file = "shared"

[[phases.operations]]
call = "open"
file = "own"

[[phases.operations]]
call = "write"
file = "own"
size = 10

[[phases.operations]]
call = "close"
file = "own"

[[phases.operations]]
call = "open"
file = "many"
index = "rank % 3"

[[phases.operations]]
call = "close"
file = "many"

[[phases]]
name = "two"

[[phases.operations]]
call = "create"
file = "array"

[[phases.operations]]
call = "dataset_create"
file = "array"
size = 100

[[phases.operations]]
call = "write_all"
file = "array"
offset = "rank * 10"
size = "10 * (rank < 2)"

[[phases.operations]]
call = "dataset_close"
file = "array"

[[phases.operations]]
call = "close"
file = "array"

[[phases.operations]]
call = "mpi.exchange"
when = "rank > 0"
to = "rank - 1"
size = 5

[[phases.operations]]
call = "stat"
file = "many"
index = 1
"""


@pytest.fixture
def expanded(tmp_path):
    """Expands the pattern above with some of its text replaced."""

    def expand_with(*changes, **how):
        text = SOUND
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "own.toml"
        path.write_text(text)
        return expand(read_pattern(path), **how)

    return expand_with


def test_every_layer_has_its_calls_and_files(expanded):
    plan = expanded()
    own = plan.column("rank") == 2
    made = [
        (plan.calls[call], plan.files[file] if file >= 0 else None, offset, size)
        for call, file, offset, size in zip(
            *(plan.column(name)[own].tolist() for name in ("call", "file", "offset", "bytes")), strict=True
        )
    ]
    assert made == [
        ("mpiio.open", "shared.dat", 0, 0),
        ("mpiio.write_at_all", "shared.dat", 16, 24),
        ("mpiio.close", "shared.dat", 0, 0),
        ("stdio.fopen", "own.2", 0, 0),
        ("stdio.fwrite", "own.2", 0, 10),
        ("stdio.fclose", "own.2", 10, 0),
        ("posix.open", "many.2", 0, 0),
        ("posix.close", "many.2", 0, 0),
        ("hdf5.create", "array.h5", 0, 0),
        ("hdf5.dataset_create", "array.h5", 0, 100),
        ("hdf5.write_all", "array.h5", 20, 0),
        ("hdf5.dataset_close", "array.h5", 0, 0),
        ("hdf5.close", "array.h5", 0, 0),
        ("mpi.exchange", None, 3, -5),
        ("mpi.exchange", None, 1, 5),
        ("posix.stat", "many.1", 0, 0),
    ]
    assert plan.hints == {"cb_nodes": "4", "hdf5.alignment": "4096"}
    assert plan.needed_bytes() == 96 + 4 * 10 + 100


DATASETS = """
title = "Three datasets in one file"
layer = "hdf5"

[parameters]
tasks = 2

[files.array]
path = "array.h5"

[[phases]]
name = "write"
operations = [
    {call = "create", file = "array"},
    {call = "dataset_create", file = "array", times = 3, size = "8 * (call + 1)"},
    {call = "write_all", file = "array", times = 3, alternates = true, offset = "AT", size = 4},
    {call = "dataset_close", file = "array", times = 3, alternates = true},
    {call = "close", file = "array"},
]

[[phases]]
name = "read"
operations = [
    {call = "open", file = "array"},
    {call = "dataset_open", file = "array"},
    {call = "dataset_close", file = "array"},
    {call = "dataset_open", file = "array"},
    {call = "dataset_close", file = "array"},
    {call = "close", file = "array"},
]
""".replace("AT", "4 * (call * (call + 1) + rank)")


def test_datasets_of_a_file_lie_one_behind_the_other(tmp_path):
    """The calls of three turns, and where the datasets of 8, 16 and 24 bytes begin."""
    path = tmp_path / "datasets.toml"
    path.write_text(DATASETS)
    plan = expand(read_pattern(path))
    own = (plan.column("rank") == 1) & (plan.column("step") == 0)
    made = zip(
        (plan.calls[call] for call in plan.column("call")[own]), plan.column("offset")[own], strict=True
    )
    assert [(call.removeprefix("hdf5."), offset) for call, offset in made] == [
        ("create", 0),
        ("dataset_create", 0),
        ("write_all", 4),
        ("dataset_close", 0),
        ("dataset_create", 8),
        ("write_all", 12),
        ("dataset_close", 0),
        ("dataset_create", 24),
        ("write_all", 28),
        ("dataset_close", 0),
        ("close", 0),
    ]
    opened = plan.column("call") == plan.calls.index("hdf5.dataset_open")
    assert plan.column("offset")[opened].tolist() == [0, 8, 0, 8]
    assert plan.needed_bytes() == 48


def test_a_dataset_that_does_not_exist_is_not_opened(tmp_path):
    path = tmp_path / "datasets.toml"
    path.write_text(DATASETS.replace("times = 3", "times = 1"))
    with pytest.raises(EnsioError, match=r"array\.h5 has 1 dataset, and the tasks open 2: create as many"):
        expand(read_pattern(path))


def test_paper_takes_its_values_and_the_command_line_goes_before(expanded):
    assert expanded(paper=True).parameters["block_bytes"] == 240
    assert expanded(paper=True, overrides={"block_bytes": "2 * tasks * 3"}).parameters["block_bytes"] == 24


def test_plan_is_written_as_its_reader_wants_it(expanded, tmp_path):
    plan = expanded()
    plan.write(tmp_path / "plan", tmp_path, 7)
    first, rest = (tmp_path / "plan").read_bytes().split(b"\n", 1)
    word, version, length = first.split()
    assert (word, version) == (b"ensio-plan", b"2")
    lines = rest[: int(length)].decode().splitlines()
    sections = {}
    place = iter(lines)
    for line in place:
        key, value = line.split()
        counted = key in ("calls", "files", "hints", "steps")
        sections[key] = [next(place) for _ in range(int(value))] if counted else int(value)
    assert list(sections) == [
        "seed", "tasks", "tasks_per_node", "calls", "files", "hints", "steps", "operations",
    ]  # fmt: skip
    assert (sections["seed"], sections["tasks"], sections["tasks_per_node"]) == (7, 4, 2)
    assert sections["files"] == [f"{tmp_path}/{name}" for name in plan.files]
    assert sections["hints"] == ["cb_nodes 4", "hdf5.alignment 4096"]
    assert sections["steps"] == ["one 0", "two 0"]
    numbers = np.frombuffer(rest[int(length) :], dtype=np.int64)
    counts, rows = numbers[:4], numbers[4:].reshape(-1, 9)
    assert counts.sum() == len(rows) == sections["operations"] == plan.operations
    np.testing.assert_array_equal(counts, np.bincount(plan.column("rank")))
    np.testing.assert_array_equal(rows[:, 3], plan.column("offset"))
    assert rows[1].tolist() == [0, 1, 0, 0, 24, 3, 32, 1, 0]


CLOSE = 'call = "close"\nfile = "shared"'
CREATE = 'call = "dataset_create"\nfile = "array"\nsize = 100'


def test_plan_that_has_no_room_is_told(expanded):
    with pytest.raises(EnsioError, match=r"/dev/full: the plan of [\d,]+ bytes cannot be written: No space"):
        expanded().write(Path("/dev/full"), Path("/data"), 0)


@pytest.mark.slow
def test_calls_of_many_tasks_are_never_all_in_memory():
    """6 M calls of 9 numbers would be 434 MB; what is held are blocks, and intervals that have merged."""
    pattern = read_pattern(PATTERNS / "ior.toml")
    tracemalloc.start()
    try:
        plan = expand(pattern, {"tasks": 1 << 18}, paper=True)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert plan.operations == (1 << 18) * 25
    assert peak_bytes < plan.operations * 72 / 2


@pytest.mark.parametrize(
    ("old", "new", "at", "sentence"),
    [
        ('"hdf5.alignment"', '"hdf5.aligment"', "aligment", '"hdf5.aligment" is not a hint'),
        ('"{tasks}"', '"{taks}"', "cb_nodes", "there is no parameter taks"),
        ("block_bytes = 240", "block_byte = 240", "block_byte = 240", "there is no parameter block_byte"),
        ('layer = "stdio"', 'layer = "hdf5"', "own.{rank}", "all tasks open a file of layer hdf5 together"),
        ("count = 3\n", "", "[files.many]", "{index} and the key count need each other"),
        ("count = 3\n", "count = 2\n", "index", "is 2 for task 2: [files.many] has numbers from 0 to 1"),
        ('index = "rank % 3"\n', "", 'call = "open"\nfile = "many"', "the key index of open is missing"),
        ('path = "many.{index}"', 'path = "own.{index}"', None, "two of the files have the same name"),
        (
            "pieces = 3",
            "pieces = 5",
            'size = "block_bytes"',
            "cannot be divided into this number of equal pieces",
        ),
        ("pieces = 3\n", "", "write_at_all", "pieces and stride need each other"),
        ('stride = "tasks * block_bytes / 3"', "stride = 7", "stride = 7", "the pieces overlap"),
        ("pieces = 3", "planes = 2\nplane_stride = 4\npieces = 3", "plane_stride", "the planes overlap"),
        ('"rank * block_bytes / 3"', '"rank * 4"', "write_at_all", "both write byte 4 of shared.dat"),
        (
            CLOSE,
            f'{CLOSE}\nwhen = "rank != 3"',
            "rank != 3",
            "task 3 does not make the call mpiio.close that task 0 makes",
        ),
        ('call = "create"', 'call = "open"', 'call = "open"\nfile = "array"', "array.h5 does not exist yet"),
        ('call = "create"', 'call = "mpi.barrier"', 'file = "array"', '"file" is not a key of barrier'),
        ("size = 100", 'size = "100 + rank"', "100 + rank", "with 101 bytes, task 0 with 100"),
        ('"dataset_close"', '"flush"', 'call = "close"', "on array, whose dataset is still open there"),
        (CREATE, 'call = "flush"\nfile = "array"', "write_all", "whose dataset is not open there"),
        (
            'to = "rank - 1"',
            'to = "rank + 1"',
            "to =",
            "is 4 for task 3: there is no such task",
        ),
        ("size = 5", "size = 0", "size = 0", "the size is below 1 byte"),
        ("mpi.exchange", "mpi.echange", "mpi.echange", '"mpi.echange" is not a call without a file'),
        ("index = 1", "index = 3", "index = 3", '"3" is 3 for task 0: [files.many] has numbers from 0 to 2'),
        ('layer = "hdf5"', 'layer = "mpisync"', "mpisync", 'layer "mpisync" has no calls on files'),
        ("size = 10\n", "size = 10\npieces = 2\n", "pieces = 2", '"pieces" is not a key of fwrite'),
    ],
)
def test_sentence_names_file_line_and_problem(expanded, tmp_path, old, new, at, sentence):
    """`at` is in the line that is named, or in the operation that begins there."""
    with pytest.raises(EnsioError) as raised:
        expanded((old, new))
    message = str(raised.value)
    assert sentence in message
    assert "\n" not in message
    path = tmp_path / "own.toml"
    if at is None:
        assert message.startswith(f"{path}: ")
        return
    line = int(re.match(re.escape(f"{path}:") + r"(\d+): ", message)[1])
    named = path.read_text().splitlines()[line - 1 :]
    assert at in ("\n".join(named).split("\n\n")[0] if named[0].startswith("[") else named[0])


def test_collective_calls_may_be_different_operations_of_different_tasks(expanded):
    """What counts is that each task makes the same calls in the same order."""
    half = '[[phases.operations]]\ncall = "sync"\nfile = "shared"\nwhen = "{}"\n\n'
    close = '[[phases.operations]]\ncall = "close"\nfile = "shared"'
    expanded((close, half.format("rank < 2") + half.format("rank >= 2") + close))
    with pytest.raises(EnsioError, match=r"task 0 does not make the call mpiio\.sync that task 2 makes"):
        expanded((close, half.format("rank >= 2") + close))


class TestVariants:
    @pytest.fixture
    def variant(self, tmp_path):
        (tmp_path / "base.toml").write_text(SOUND)

        def read(text):
            path = tmp_path / "variant.toml"
            path.write_text(f'title = "another"\n{text}')
            return read_pattern(path)

        return read

    def test_numbers_replace_those_of_the_base(self, variant):
        pattern = variant('based_on = "base"\n[parameters]\ntasks = 8\n[hints]\ncb_nodes = 1\n')
        assert (pattern.name, pattern.title) == ("variant", "another")
        plan = expand(pattern)
        assert plan.tasks == 8
        assert plan.hints == {"cb_nodes": "1", "hdf5.alignment": "4096"}

    @pytest.mark.parametrize(
        ("text", "line", "sentence"),
        [
            ('based_on = "../base"', 2, "is not the name of a pattern"),
            ('based_on = "base"\n[parameters]\ntaks = 8', 4, "there is no parameter taks"),
            ('based_on = "base"\n[files.a]\npath = "b"', 3, '"files" is not a key'),
            ('based_on = "variant"', 2, "is based on another pattern itself"),
        ],
    )
    def test_what_it_cannot_say_is_refused(self, variant, tmp_path, text, line, sentence):
        with pytest.raises(
            EnsioError, match=re.escape(f"{tmp_path}/variant.toml:{line}: ") + ".*" + sentence
        ):
            variant(text)

    def test_base_that_is_not_there_is_named(self, variant):
        with pytest.raises(EnsioError, match=r"none\.toml: cannot be read"):
            variant('based_on = "none"')


def test_common_names_stand_for_calls_of_the_layer():
    for layer, names in COMMON_NAMES.items():
        assert set(names.values()) <= set(FILE_CALLS[layer])
        assert not set(names) & set(FILE_CALLS[layer])


@given(tasks=st.integers(1, 5000), axes=st.integers(1, 4))
def test_tasks_are_shared_among_axes_without_a_rest(tasks, axes):
    factors = balanced_factors(tasks, axes)
    assert len(factors) == axes
    assert np.prod(factors) == tasks
    assert list(factors) == sorted(factors, reverse=True)


@pytest.mark.parametrize(
    ("tasks", "factors"), [(8, (2, 2, 2)), (144, (12, 12)), (192, (8, 6, 4)), (7, (7, 1)), (1, (1,))]
)
def test_shares_are_as_even_as_they_can_be(tasks, factors):
    assert balanced_factors(tasks, len(factors)) == factors


blocks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), *(st.integers(1, 3) for _ in range(3))),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(("stride", "plane_stride"), [(4, 12), (3, 10), (4, 0)])
@given(blocks=blocks)
def test_overlaps_of_pieces_are_those_that_counting_bytes_finds(stride, plane_stride, blocks):
    """Blocks of one array share strides and are boxes; where one reaches over an edge, bytes count."""
    writers, rows = {}, []
    for rank, offset, length, pieces, planes in sorted(blocks):
        planes = planes if plane_stride else 1
        if (pieces - 1) * stride + length > (plane_stride or 99) and planes > 1:
            planes = 1
        rows.append((rank, 0, offset, length * pieces * planes, pieces, stride, planes, plane_stride))
        for plane in range(planes):
            for piece in range(pieces):
                start = offset + piece * stride + plane * plane_stride
                for byte in range(start, start + length):
                    writers.setdefault(byte, set()).add(rank)
    shared = {byte for byte, ranks in writers.items() if len(ranks) > 1}
    written = WrittenRegions()
    found = None
    for first in (0, 2):  # two blocks of tasks
        own = [row for row in rows if first <= row[0] < first + 2]
        if own:
            found = found or written.add(Regions(*np.array(own, dtype=np.int64).T))
    found = found or written.shared_byte()
    assert (found[1] in shared) if shared else found is None
