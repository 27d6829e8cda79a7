"""Files of MPI-IO that a task opens alone."""

import pytest

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern

HEAD = """\
title = "task 0 makes the file, all write"
layer = "mpiio"

[parameters]
tasks = 3

[files.data]
path = "data.bin"
"""


def expanded(tmp_path, *phases):
    """A pattern whose phases are lists of operations, each a text of keys."""
    text = HEAD
    for number, operations in enumerate(phases):
        text += f'\n[[phases]]\nname = "phase-{number}"\n'
        for keys in operations:
            text += '\n[[phases.operations]]\nfile = "data"\n' + keys.replace("; ", "\n") + "\n"
    path = tmp_path / "own.toml"
    path.write_text(text)
    return expand(read_pattern(path))


ALONE = [
    'call = "open_alone"; when = "rank == 1"',
    'call = "set_size_alone"; when = "rank == 1"; size = 300',
    'call = "write_at"; when = "rank == 1"; offset = 100; size = 50',
    'call = "sync_alone"; when = "rank == 1"',
    'call = "close_alone"; when = "rank == 1"',
]
TOGETHER = ['call = "open"', 'call = "write_at"; offset = "100 * rank"; size = 10', 'call = "close"']


def test_one_task_opens_a_file_alone_and_then_all_together(tmp_path):
    plan = expanded(tmp_path, ALONE, TOGETHER)
    by_rank = {rank: [] for rank in range(3)}
    for rank, call in zip(plan.column("rank"), plan.column("call"), strict=True):
        by_rank[int(rank)].append(plan.calls[call].partition(".")[2])
    together = ["open", "write_at", "close"]
    alone = ["open_alone", "set_size_alone", "write_at", "sync_alone", "close_alone"]
    assert by_rank == {0: together, 1: alone + together, 2: together}


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (['call = "open_alone"', 'call = "write_at_all"; offset = 0; size = 0'], "which it opened alone"),
        (['call = "open_alone"', 'call = "close"'], "which it opened alone"),
        (['call = "open"', 'call = "close_alone"'], "which all tasks opened together"),
        (['call = "open_alone"', 'call = "open_alone"'], "which it opened alone"),
        (['call = "sync_alone"'], "which is not open there"),
        (['call = "open"; when = "rank == 1"'], "collective"),
    ],
)
def test_a_call_that_does_not_fit_the_opening_is_refused(tmp_path, operations, message):
    with pytest.raises(EnsioError, match=message):
        expanded(tmp_path, operations)
