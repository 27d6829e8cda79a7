"""Objects in notebooks: the numbers of ``ensio info``, hostile names as text, and nothing that is loaded."""

from __future__ import annotations

import html
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_runs import run_of

import ensembles as en
from ensembles.answers.diagnose import DiagnosisAnswer, FindingAnswer, answer_diagnosis
from ensembles.answers.info import answer_info
from ensembles.answers.phases import answer_phases
from ensembles.diagnosis.finding import Finding, Where
from ensembles.faces.words import sentence
from ensembles.model.notebook_html import bars_svg
from ensembles.model.units import seconds_text

HOSTILE = "/scratch/<img src=x onerror=window.hit=1>.out"
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
]


@pytest.fixture
def run(tmp_path: Path) -> en.Run:
    return run_of(tmp_path / "<b>run", TASKS, path=HOSTILE)


def is_harmless(shown: str) -> bool:
    ElementTree.fromstring(f"<div>{shown}</div>".replace("<br>", "<br/>"))
    return (
        "<img" not in shown
        and "<b>run" not in shown
        and "http" not in shown
        and "src=" not in shown.replace("&lt;img src=", "")
    )


def test_a_run_shows_the_numbers_of_info(run: en.Run) -> None:
    shown = run._repr_html_()
    assert answer_info(run)._repr_html_() in shown
    assert "<svg" in shown
    assert is_harmless(run._repr_html_())


def test_events_show_calls_and_durations(run: en.Run) -> None:
    shown = run.events._repr_html_()
    assert "5 calls of 2 tasks" in shown
    assert "2 calls, 2.00 MiB, 520 ms of all tasks" in shown
    assert "<svg" in shown
    assert is_harmless(shown)
    assert "Events: none" in run.events[:0]._repr_html_()


def test_an_ensemble_shows_a_histogram(run: en.Run) -> None:
    shown = run.ensemble(op="write")._repr_html_()
    assert "<svg" in shown
    assert is_harmless(shown)
    assert "<svg" not in en.Ensemble([0.0, 1.0])._repr_html_()
    alike = en.Ensemble([2.0, 2.0, 2.0], name="read")._repr_html_()
    assert "Each of 3 calls of read took 2.00 s." in alike
    assert "<svg" not in alike


def test_a_diagnosis_and_a_comparison_show_their_text(run: en.Run) -> None:
    diagnosis, comparison = en.diagnose(run), en.compare(run, run)
    for found, text in ((diagnosis, sentence(diagnosis.above[0])), (comparison, str(comparison))):
        shown = found._repr_html_()
        assert is_harmless(shown)
        assert text.split("\n")[0] in html.unescape(shown)


def rectangles(shown: str) -> list[tuple[float, float]]:
    """Left and right ends of the bars of a picture, as parts of its width."""
    picture = ElementTree.fromstring(shown[shown.index("<svg") : shown.index("</svg>") + 6])
    width = float(picture.get("width"))
    bars = [(float(bar.get("x")), float(bar.get("width"))) for bar in picture.iter("rect")]
    return [(left / width, (left + long) / width) for left, long in bars]


def test_findings_show_their_gains() -> None:
    def finding(name: str, gain_s: tuple[float, float] | None) -> Finding:
        return Finding(name, 1.0, Where(), {}, (), "advice", gain_s, "title")

    findings = (finding("<b>slow-target", (2.0, 4.0)), finding("imbalance", (1.0, 1.0)), finding("odd", None))
    shown = answer_diagnosis(findings, run="run", examined=(), not_examined=())._repr_html_()
    assert is_harmless(shown)
    (left, right), (other, end) = rectangles(shown)
    assert (left, right) == pytest.approx((0.5, 1.0))
    assert other == pytest.approx(0.25)
    assert end - other < 0.01  # an interval of no length is still seen
    assert "<svg" in FindingAnswer(**vars(findings[0]))._repr_html_()
    assert "<svg" not in FindingAnswer(**vars(findings[2]))._repr_html_()
    assert "<svg" not in DiagnosisAnswer("run", (), (), ())._repr_html_()


def test_bars_are_as_high_as_their_counts() -> None:
    picture = ElementTree.fromstring(bars_svg([1, 0, 4], "<1 s", "2 s", "a & b"))
    heights = [float(bar.get("height")) for bar in picture.iter("rect")]
    assert heights == [15.0, 60.0]
    assert [text.text for text in picture.iter("text")] == ["a & b", "<1 s", "2 s"]
    assert bars_svg([], "", "", "") == ""


def test_totals_phases_and_sums_show_tables(run: en.Run) -> None:
    """As the commands print them: hostile paths are text, and sites have their place."""
    for rows in (
        run.by_file(),
        run.by_rank(),
        run.by_site(),
        run.by_rank()[:1],
        answer_phases(run),
    ):
        shown = rows._repr_html_()
        assert is_harmless(shown)
        assert "<table>" in shown
    assert HOSTILE in html.unescape(run.by_file()._repr_html_())
    cells = ["rank", "node", "1.00 MiB" if run.by_rank()[0].rank else "2.00 MiB", seconds_text(0.53)]
    assert all(cell in run.by_rank()._repr_html_() for cell in cells)
    (site,) = run.by_site()
    assert site.place == "(unknown)"
    assert f"<td>{site.place}</td><td>2 write, 2 open, 1 read</td>" in run.by_site()._repr_html_()
    assert repr(run.summary) == f"CellSummary: 5 calls in {len(run.summary)} cells"
    assert run.phases.sentence in answer_phases(run)._repr_html_()
    assert isinstance(run.by_file(), list)
    assert run.by_rank()[:2] == run.by_rank()


def test_examples_take_bokeh_from_the_package() -> None:
    """A compute node has no network."""
    top = Path(__file__).parents[3]
    pages = [*(top / "docs").rglob("*.md"), *(top / "notebooks").glob("*.ipynb"), top / "README.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert sum("output_notebook(INLINE" in text for text in texts) >= 10
    assert not [page for page, text in zip(pages, texts, strict=True) if "output_notebook()" in text]
