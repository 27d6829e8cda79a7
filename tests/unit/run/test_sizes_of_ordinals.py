"""Call indices are of one request size: a median of two sizes would be a duration that no call has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from made_runs import run_of

from ensembles import viz
from ensembles.cli.main import main
from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.report.page import write_report

MIB = 1 << 20


@pytest.fixture
def run(tmp_path: Path):
    """Four tasks write 1 MiB to one file and 4 KiB to another, by turns, 6 times each."""
    tasks = []
    for rank in range(4):
        calls = []
        for number in range(6):
            at_s = 0.5 * number + 0.01 * rank
            calls += [
                ("pwrite", at_s, 0.2 + 0.01 * rank, MIB, -1, 1),
                ("pwrite", at_s + 0.3, 1e-5, 4096, -1, 2),
            ]
        tasks.append(calls)
    return run_of(tmp_path / "run", tasks, lasted_s=4.0, path=("/scratch/a", "/scratch/b"))


def test_ordinals_take_the_size_that_modes_take(run, capsys) -> None:
    found = run.ordinals(op="write")
    assert [entry.n for entry in found.totals] == [4] * 6
    assert [entry.median_s for entry in found.totals] == pytest.approx([0.215] * 6)
    assert found.to_json()["size_bytes"] == [MIB, MIB]
    modes_notes = run.ensemble(op="write").notes
    assert found.notes == modes_notes
    assert modes_notes[0].endswith(
        "left out: 24 writes of 4.00 KiB (posix), --layer posix --op write --size 4KiB"
    )
    assert main(["ordinals", run.path]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "(n-th write of a task on each file; write calls of 1.00 MiB)" in words
    assert ": 6 call indices of the write calls of 1.00 MiB of a task on each file; " in repr(found)
    small = run.ordinals(op="write", size="4KiB")
    assert (small.size, small.notes) == (None, [])
    assert [entry.median_s for entry in small.totals] == pytest.approx([1e-5] * 6)


def test_sizes_of_different_indices_are_not_separated(tmp_path: Path) -> None:
    """On each file a header of 512 B comes first: no call index mixes sizes."""
    header = ("pwrite", 0.0, 1e-5, 512)
    tasks = [[header, *(("pwrite", 0.1 * n, 0.05, MIB) for n in range(1, 5))] for _ in range(3)]
    found = run_of(tmp_path / "run", tasks).ordinals()
    assert [entry.ordinal for entry in found.totals] == [1, 2, 3, 4, 5]
    assert found.size is None
    assert found.notes[0].startswith("sizes are not separated: the calls of one call index have one size")
    # A task without the header has its large writes one index before the others.
    mixed = run_of(tmp_path / "mixed", [tasks[0], tasks[1], tasks[2][1:]]).ordinals()
    assert [(entry.ordinal, entry.n) for entry in mixed.totals] == [(1, 1), (2, 3), (3, 3), (4, 3), (5, 2)]
    assert mixed.to_json()["size_bytes"] == [MIB, MIB]


def test_report_and_explorer_show_the_same_calls(run, tmp_path: Path) -> None:
    picture = viz.progress(run, op="write", size="1MiB")
    assert [item.label.value for item in picture.legend[0].items] == [f"write {n} (4)" for n in range(1, 7)]
    assert len(viz.progress(run.events, op="write", size=4096).legend[0].items) == 6
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    section = page[page.index('<section id="ordinals">') :].replace("\xa0", " ")
    assert "215 ms" in section
    assert "24 writes of 4.00 KiB (posix)" in section
    document = Document()
    shown = Shown(run)
    explorer = add_explorer(document, [shown], {})
    table = document.select_one({"name": "ordinals"}).source
    assert table.data["calls"] == [4] * 6
    texts = [model.text for model in document.select({}) if isinstance(getattr(model, "text", None), str)]
    assert any(
        "Call indices are those of the write calls of 1.00 MiB of a task on a file" in text for text in texts
    )
    table.selected.indices = [2]
    marked = shown.marked(explorer.view)
    assert np.all(marked.requested == MIB)
    assert len(marked) == 4
