"""Buttons of legends in notebooks: which pictures have them, and that pages have none."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.core.serialization import Serializer
from bokeh.models import Plot
from bokeh.plotting import figure
from bokeh.resources import Resources
from explorer_page import TASKS
from made_runs import run_of
from pages import pictures_in

import ensembles as en
from ensembles import viz
from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View
from ensembles.viz.report.drawing import PageSerializer, _library, embed_pictures


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("legends")
    run_of(folder / "run", TASKS)
    return en.open(folder / "run")


def labels_of(picture) -> list[str]:
    figures = sorted(picture.select({"type": Plot}), key=lambda fig: fig.id)
    return [button.label for fig in figures for button in fig.elements]


def test_entries_that_can_be_clicked_have_buttons(run) -> None:
    assert labels_of(viz.rate(run)) == ["show or hide write", "show or hide read"]
    for fig in viz.histogram(run).select({"type": Plot}):
        assert [button.label for button in fig.elements] == [
            f"show or hide {item.label.value}" for item in fig.legend[0].items
        ]
        assert len(fig.elements) > 1
    assert labels_of(viz.trace_diagram(run)) == []  # its legend only explains


def test_a_page_has_neither_the_buttons_nor_the_widgets_of_bokeh(run) -> None:
    picture = viz.rate(run)
    script, _ = embed_pictures({"rate": picture}, linked=())
    assert "show or hide" not in str(pictures_in(script))
    serializer = PageSerializer()
    serializer.encode(picture)
    assert _library(serializer.models) == "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    assert len(picture.elements) == 2  # the picture itself is as before


def test_a_page_has_what_bokeh_writes_of_a_picture_and_all_its_models() -> None:
    fig = figure(x_range=["a", "b"], tooltips=[("calls", "@y")])
    numbers = {"x": ["a", "b"], "y": np.array([1.0, np.nan]), "text": ("<", 2)}
    fig.vbar(x="x", top="y", width=0.5, source=numbers, legend_label="calls")
    serializer = PageSerializer()
    assert serializer.encode(fig) == Serializer(deferred=False).encode(fig)
    assert set(serializer.models) == fig.references()


@pytest.mark.parametrize("in_page", [True, False])
def test_the_explorer_has_them_where_its_page_does_not_make_them(run, in_page: bool) -> None:
    explorer = Explorer([Shown(run)], View(), in_page=in_page)
    for name, direction in (("explorer_rates", "write"), ("explorer_rates_read", "read")):
        rates = explorer.layout.select_one({"name": name})
        names = [] if in_page else [f"show or hide {direction}"]
        assert [button.label for button in rates.elements] == names
