"""``viz.explore`` without a browser: what it refuses, and what it says outside of Jupyter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_runs import run_of

import ensembles as en
from ensembles import viz

TASKS = [[("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20)]]


def test_a_lacking_anywidget_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "ensembles.viz.explorer.widget", raising=False)
    with pytest.raises(en.EnsioError, match="anywidget is not installed: pip install"):
        viz.explore(run_of(tmp_path / "run", TASKS))


def test_an_unknown_filter_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    with pytest.raises(en.EnsioError, match='"opp" is not a filter of the explorer'):
        viz.explore(run_of(tmp_path / "run", TASKS), opp="write")


def test_outside_of_jupyter_it_names_the_command(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    explorer = viz.explore(run_of(tmp_path / "run 1", TASKS))
    assert (
        repr(explorer)
        == f"Explorer: shown as the value of a cell in Jupyter; elsewhere: ensio serve '{tmp_path}/run 1'"
    )
    assert len(explorer.marked) == 2


def test_parameters_of_a_link_can_be_assigned(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    explorer = viz.explore(run_of(tmp_path / "run", TASKS))
    explorer.view = {"marked-durations": "0.1..0.6"}
    assert [explorer.marked.calls[number].name for number in explorer.marked.call] == ["pwrite"]
    assert explorer.view.durations_s == (0.1, 0.6)
    with pytest.raises(TypeError, match="a View or the parameters of a link"):
        explorer.view = 3


def test_two_runs_are_beside_each_other(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    explorer = viz.explore([run_of(tmp_path / name, TASKS) for name in ("one", "other")])
    assert explorer.view.beside == 1
    root = explorer._document.roots[0]
    assert root.select_one({"name": "explorer_trace_beside"}) is not None
