"""Patterns with calls of NetCDF and PnetCDF: states of files and requests."""

import pytest

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern

HEAD = """\
title = "PnetCDF"
layer = "pnetcdf"

[parameters]
tasks = 2

[files.a]
path = "a.nc"

[[phases]]
name = "all"
"""
VARIABLE = ("variable_create", "size = 80\npieces = 4\nstride = 20")
POST = ("iput", 'offset = "10 * rank"\nsize = 20\npieces = 2\nstride = 20')
ALONE = ("write", 'offset = "10 * rank"\nsize = 10')


def expanded(tmp_path, *operations):
    """The plan of a pattern with these calls, each a name or a name and its keys."""
    text = HEAD
    for operation in operations:
        call, keys = (operation, "") if isinstance(operation, str) else operation
        text += f'\n[[phases.operations]]\ncall = "{call}"\nfile = "a"\n{keys}\n'
    path = tmp_path / "own.toml"
    path.write_text(text)
    plan = expand(read_pattern(path))
    for _ in plan.blocks():
        pass
    return plan


def test_variable_is_a_grid_and_determines_the_length_of_the_file(tmp_path):
    plan = expanded(tmp_path, "create", VARIABLE, POST, "wait_all", "close")
    assert plan.needed_bytes() == 80
    made = [plan.calls[call] for call in plan.column("call")[plan.column("rank") == 1]]
    assert made == [f"pnetcdf.{name}" for name in ("create", "variable_create", "iput", "wait_all", "close")]
    of_variable = plan.column("call") == plan.calls.index("pnetcdf.variable_create")
    assert set(plan.column("pieces")[of_variable]) == {4}


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (
            ["create", VARIABLE, POST],
            "phase all: task 0 has requests on a that are not complete: end each repetition with wait_all",
        ),
        (["create", VARIABLE, POST, "close"], "on a, which has requests there that are not complete"),
        (["create", VARIABLE, ALONE], "makes write on a, whose transfers are collective there"),
        (
            ["create", VARIABLE, "begin_independent", POST],
            "makes iput on a, whose transfers are independent there",
        ),
        (["create", POST], "makes iput on a, whose dataset is not open there"),
        (["create", ("variable_create", "size = 80\npieces = 3\nstride = 20")], "equal pieces"),
    ],
)
def test_calls_in_a_wrong_state_are_refused(tmp_path, operations, sentence):
    with pytest.raises(EnsioError) as raised:
        expanded(tmp_path, *operations)
    assert sentence in str(raised.value)
