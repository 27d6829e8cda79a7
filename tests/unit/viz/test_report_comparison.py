"""The report on two runs says what ``ensio compare`` says, and shows both; findings lead to pictures."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of
from pages import unpacked

import ensembles as en
from ensembles.cli.main import main
from ensembles.diagnosis.finding import Diagnosis
from ensembles.model.units import ratio_text, seconds_text
from ensembles.viz.report.comparison import _traces, write_comparison
from ensembles.viz.report.data import ReportData


def made(folder: Path, factor: float, seed: int):
    rng = np.random.default_rng(seed)
    tasks = [
        [("pwrite", 0.5 * i, float(factor * rng.lognormal(-4, 0.2)), 1 << 20) for i in range(60)]
        + [("fsync", 30.5, 1e-4, 0)]
        for _ in range(4)
    ]
    return run_of(folder, tasks, lasted_s=31.0)


@pytest.fixture
def both(tmp_path: Path) -> list[str]:
    made(tmp_path / "before", 1.0, 1)
    made(tmp_path / "<b>after", 3.0, 2)
    return [str(tmp_path / "before"), str(tmp_path / "<b>after")]


def json_of(page: str, name: str) -> dict:
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page)[1])


def test_the_report_on_two_runs_has_the_numbers_of_compare(both: list[str], tmp_path: Path, capsys) -> None:
    assert main(["report", *both, "-o", str(tmp_path / "both.html")]) == 0
    capsys.readouterr()
    assert main(["compare", *both, "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    page = (tmp_path / "both.html").read_text()
    assert json_of(page, "ensio-compare") == expected
    assert main(["compare", *both]) == 0
    text = capsys.readouterr().out
    section = page[page.index('<section id="verdict">') :].split("</section>")[0]
    words = html.unescape(re.sub("<[^>]*>", " ", section))
    assert set(text.replace("-", "").split()) <= set(words.replace("-", "").split())
    assert "3" in f"{expected['shift']['median_ratio']:.0f}"
    assert f"× {expected['shift']['median_ratio']:.3g}" in page.replace("\xa0", " ")
    # First, how much longer the run and its I/O take, as seconds and as one factor each.
    head = page[page.index("</header>") : page.index("What is different")].replace("\xa0", " ")
    totals = {total["what"]: total for total in expected["run_totals"]}
    for label, what in (("span", "span_s"), ("time in I/O of all tasks", "io_time_s")):
        card = html.unescape(head[head.index(f">{label}<") :].split("</div></div>")[0])
        factor = ratio_text(totals[what]["ratios"][0])
        assert f'class="value">{"equal" if factor == "× 1" else factor}<' in card
        assert " → ".join(map(seconds_text, totals[what]["typical"])) in card
    # Undecided kinds that take hardly any time are one line, and their distributions are not drawn.
    folded = "posix sync: single calls or little time, 400 µs → 400 µs in all; inconclusive."
    assert folded in words.replace("\xa0", " ")
    assert "comparison-posix-sync" not in page
    assert not re.search(r"<p>P = |\. P = ", page)


def test_both_runs_share_a_time_axis(both: list[str], tmp_path: Path) -> None:
    write_comparison([en.open(path) for path in both], tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text()
    groups = json.loads(html.unescape(re.findall(r"data-places='([^']*)'", page)[0]))
    assert ["picture-trace_0", "picture-rate_0", "picture-trace_1", "picture-rate_1"] in groups
    assert "; blank: no recorded call" in page
    assert page.count("mean of each") == unpacked(page).count("mean of each") == 2  # for screen readers too
    # A run that is much longer has longer cells: the rates of both are in these.
    calls = [("pwrite", 5.0 * i, 0.02, 1 << 20) for i in range(60)]
    run_of(tmp_path / "long", [calls] * 4, lasted_s=310.0)
    data = [ReportData.from_run(en.open(path), {})[0] for path in (both[0], str(tmp_path / "long"))]
    assert data[0].rate.cell_ns < data[1].rate.cell_ns
    figures = _traces(["a", "long"], data)
    steps = [re.search(r"mean of each (\S+\s\S+?);", figures[f"rate_{at}"].title.text) for at in (0, 1)]
    assert None not in steps
    assert steps[0][1] == steps[1][1]
    assert figures["rate_0"].y_range is figures["rate_1"].y_range
    assert figures["rate_0"].yaxis.axis_label == figures["rate_1"].yaxis.axis_label
    assert "<b>after" not in page
    assert "&lt;b&gt;after" in page
    visible = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"https?:", visible)


def test_two_runs_are_needed(both: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two runs, not 1"):
        write_comparison([en.open(both[0])], tmp_path / "both.html")


def test_findings_come_first_and_lead_to_sections_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Diagnosis, "is_small", lambda self, finding: finding is self.findings[0])
    command = [
        "ensio",
        "simulate",
        "madbench",
        "--set",
        "sizes=laptop",
        "--fs",
        "franklin",
        "--set",
        "fs_scale=1/64",
    ]
    subprocess.run([*command, "--seed", "1", "-o", str(tmp_path / "mad")], check=True, capture_output=True)
    assert main(["report", str(tmp_path / "mad"), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    ids = re.findall(r'<section id="([^"]*)"', page)
    assert ids[0] == "findings"
    findings = page[page.index('<section id="findings">') :].split("</section>")[0]
    found = en.diagnose(en.open(tmp_path / "mad")).findings
    assert re.findall(r'<h3 id="finding-\d+">\w+: ([\w-]+)', findings) == [each.id for each in found]
    assert findings.count("; too small to matter</h3>") == 1
    anchors = re.findall(r'href="#([^"]*)"', findings)
    assert set(anchors) <= set(ids)
    assert {"trace", "rate", "phases", "ensemble-read"} <= set(anchors)


def test_a_report_without_findings_says_how_many_causes_were_examined(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [[("pwrite", 0.25, 0.5, 1 << 20)]])
    run.report(tmp_path / "report.html")
    examined = len(en.diagnose(run).examined)
    page = (tmp_path / "report.html").read_text().replace("\xa0", " ")
    assert f"<p>{examined} causes examined, " in page
    assert "<p>No finding that matters.</p>" in page
