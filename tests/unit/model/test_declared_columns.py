"""Columns of tables are declared with their types, units and shapes, and cost no memory."""

from __future__ import annotations

import ast
import inspect
import itertools
import typing

import numpy as np
import numpy.typing as npt
import pytest

import ensembles as en
from ensembles.ensemble.calls import EnsembleCalls
from ensembles.model import events, regions
from ensembles.statistics.extremes.backtest import Backtest
from ensembles.statistics.extremes.tail import Tail

TABLES = {events.Events: events, regions.RegionTable: regions}
UNITS = {"ns": "anoseconds", "bytes": "Bytes"}


def declared(table: type) -> dict[str, object]:
    """Type of each annotated attribute of a class."""
    names = vars(inspect.getmodule(table)) | {"npt": npt}
    annotations = inspect.get_annotations(table)
    return {name: eval(text, names) for name, text in annotations.items() if name[0] != "_"}


def documented(table: type) -> dict[str, str]:
    """The literal below each annotated attribute of a class."""
    body = ast.parse(inspect.getsource(table)).body[0].body
    return {
        line.target.id: below.value.value
        for line, below in itertools.pairwise(body)
        if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr)
    }


@pytest.mark.parametrize("table", TABLES)
def test_tables_declare_each_column_with_its_type(table: type) -> None:
    types = declared(table)
    found = {name: typing.get_args(types[name])[1] for name in TABLES[table].COLUMNS}
    assert {name: np.dtype(typing.get_args(kind)[0]) for name, kind in found.items()} == TABLES[table].COLUMNS


@pytest.mark.parametrize("table", TABLES)
def test_tables_document_the_unit_and_the_shape_of_each_column(table: type) -> None:
    texts = documented(table)
    for name, (unit, _) in TABLES[table].COLUMN_MEANINGS.items():
        assert "Shape (n,)" in texts[name], name
        assert UNITS.get(unit, "") in texts[name], name


@pytest.mark.parametrize("table", TABLES)
def test_tables_have_slots_only(table: type) -> None:
    assert not hasattr(table.empty(), "__dict__")


def test_ensembles_declare_and_document_what_they_hold() -> None:
    held = {name for name in vars(en.Ensemble([0.1, 0.2])) if name[0] != "_"}
    assert {"durations_s", "phase", "rank", "ordinal", "bytes", "start_ns", "node"} <= held
    counted_on_first_use = {"ordinal"}
    assert held == set(declared(EnsembleCalls)) | counted_on_first_use
    texts = documented(EnsembleCalls)
    texts |= {name: inspect.getdoc(getattr(en.Ensemble, name)) for name in counted_on_first_use}
    assert held <= set(texts)
    columns = {name for name, kind in declared(EnsembleCalls).items() if "ndarray" in str(kind)}
    assert len(columns) == 6
    assert all("Shape (n,)" in texts[name] for name in columns | counted_on_first_use)


def test_answers_of_an_ensemble_are_what_they_are_declared_to_be() -> None:
    durations_s = np.random.default_rng(3).lognormal(-5, 1, 400)
    ensemble = en.Ensemble(durations_s, phase=np.arange(400) // 20)
    assert isinstance(ensemble.tail(16, level=0.8, seed=1), Tail)
    assert isinstance(ensemble.backtest(level=0.8, seed=1), Backtest)
    assert inspect.signature(en.Ensemble.tail).return_annotation == "Tail"
    assert inspect.signature(en.Ensemble.backtest).return_annotation == "Backtest"
    with pytest.raises(TypeError, match="levle"):
        ensemble.modes(levle=0.8)
