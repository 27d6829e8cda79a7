"""Labels, titles and sentences are whole and do not lie on each other, in wide and in narrow pages."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.answers.phases import PhasesAnswer, answer_phases
from ensembles.viz.report.drawing import embed_pictures

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    BROWSER = None
else:
    from browser import browser, chromium
    from drawn_texts import WATCH, drawn_figures

    BROWSER = chromium()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium, playwright or Pillow: nothing is drawn"),
]


def many_modes() -> en.Ensemble:
    """Six modes, three of them close to each other, and slow calls of one phase."""
    random = np.random.default_rng(2)
    places_s = np.repeat([1e-5, 2e-5, 0.045, 0.093, 0.14, 0.19], [600, 800, 500, 500, 600, 900])
    durations_s = random.permutation(places_s) * random.lognormal(0, 0.03, len(places_s))
    phase = np.arange(len(places_s)) // 195
    durations_s[phase == 7] = 5 * random.lognormal(0, 0.1, np.sum(phase == 7))
    return en.Ensemble(
        durations_s, phase=phase, rank=np.arange(len(places_s)) % 195, name="pwrite", op="write"
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    calls = [[("pwrite", 0.1 * i, 0.01 * (1 + i % 3), 1 << 20) for i in range(9)] for _ in range(4)]
    run = run_of(folder / "run", calls)
    modes = many_modes()
    pictures = {
        "modes": viz.modes(modes),
        "phases": viz.phases(long_names(run)),
        "tail": viz.tail(modes, 195),
        "rate": viz.rate(run, by="layer"),
        "histogram": viz.histogram(run, by="size", per="MiB", scale="linear"),
        "ranks": viz.ranks(run),
        "files": viz.files(run),
        "trace": viz.trace_diagram(run),
        "order": viz.tail(modes, tasks=[80, 1024]),
    }
    script, divisions = embed_pictures(pictures, linked=())
    # The margins of a report.
    body = "".join(f'<div style="margin: 0 24px">{each}</div>' for each in divisions.values())
    path = folder / "all.html"
    head = '<head><link rel="icon" href="data:,"></head>'
    path.write_text(f"<html>{head}<body>{body}{script}</body></html>", encoding="utf-8")
    return path


def long_names(run: en.Run) -> PhasesAnswer:
    """Phases with names that are too long for the axis."""
    found = answer_phases(run)
    names = ((number, f"metadata of one record {number}") for number in range(1, 60))
    rows = (replace(found.phases[0], phase=number, name=name) for number, name in names)
    return replace(found, phases=tuple(rows))


@pytest.mark.parametrize("width", [700, 1400])
def test_texts_are_whole_and_labels_of_modes_apart(page: Path, width: int) -> None:
    with browser(width, WATCH) as open_page:
        report = open_page(page)
        assert report.problems == []
        figures = {each.name: each for each in drawn_figures(report.page)}
        shown = report.property_of(
            "modes", "model.renderers.flatMap((one) => one.data_source.data.text ?? [])"
        )
    assert len(figures) >= 10
    assert {name: each.cut_off() for name, each in figures.items() if each.cut_off()} == {}
    modes = figures["modes"]
    labels = modes.of(shown)
    assert {each.text for each in labels} == set(shown)
    assert len(labels) == 10
    for label in labels:
        assert modes.frame.left <= label.left
        assert label.right <= modes.frame.right
        assert modes.frame.top <= label.top
        assert not [each.text for each in labels if each.text != label.text and each.touches(label)]
