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
    for name in ("anywidget", "jupyter_bokeh"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("widget", "bokeh_widget"):
        monkeypatch.delitem(sys.modules, f"ensembles.viz.explorer.{name}", raising=False)
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


def test_jupyter_bokeh_takes_the_place_of_anywidget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jupyter_bokeh", reason="jupyter_bokeh is not installed: the fallback is not tried")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "ensembles.viz.explorer.widget", raising=False)
    explorer = viz.explore(run_of(tmp_path / "run", TASKS), op="write")
    assert type(explorer).__mro__[2].__name__ == "BokehModel"
    assert len(explorer.marked) == 1
    sent = []
    monkeypatch.setattr(type(explorer), "send", lambda self, content, buffers=None: sent.append(content))
    # What a browser sends when a filter is typed: the pictures of the answer are patches.
    field = explorer._explorer.layout.select_one({"name": "filter_op"})
    new = {"kind": "ModelChanged", "model": {"id": field.id}, "attr": "value", "new": "open"}
    explorer._sync_model(explorer, {"event": "jsevent", **new}, [])
    assert explorer.view.filters == {"op": "open"}
    assert len(explorer.marked) == 1
    assert any("1 call is shown" in str(message.get("payload")) for message in sent)
