"""The notebooks run from a clean start, and their pictures show in a browser that has no network."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import commands_here
import pytest
from project import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

PICTURES = {
    "# Quick start": ("trace_diagram", "tasks_inside", "rate", "histogram_linear"),
    "# Two runs compared": ("histogram_linear",),
    "# From a slow job to a line of its source": ("trace_diagram", "histogram_log"),
    "# A month of nights": ("lines 1", "histogram_linear"),
    "# A Darshan log": ("histogram_log",),
    "# From events to ensembles, redone": ("trace_diagram", "rate", "histogram_linear", "histogram_log"),
    "# Collective I/O on Santos Dumont, redone": ("trace_diagram", "histogram_log"),
    "# TAPIOCA, redone": ("trace_diagram",),
    "# benchio, redone": ("trace_diagram", "rate"),
}
"""Names of the figures of each notebook, by its title."""

LESS = {
    "a_month_of_nights": {"28, 22": "12, 11"},
    "paper_benchio": {"(24, 48, 96, 192, 384, 768, 1536)": "(4, 8, 12, 24)", "(1, 2, 3)": "(1, 2)"},
    "paper_collective_io": {
        "range(1, 6)": "range(1, 4)",
        "8192, 357": "8192, 12",
        "8190, 282": "8190, 12",
        "6554 // 16": "40",
        "5116 // 16": "40",
        "=40": "=4",
        "58_864: 116, 65_536: 104": "65_536: 40",
    },
    "paper_ensembles": {
        'simulate", pattern': 'simulate", pattern, *(fewer if "gcrm" in pattern else ("--tasks", "64"))',
        "folder = Path(temporary.name)": "folder = Path(temporary.name)\n"
        'fewer = ("--set", "steps_1=1", "--set", "steps_6=1")',
    },
    "paper_tapioca": {
        'case for _, _, case in paper.sweep("mira", 1024)': "paper.gains()[:1]",
        'case for _, _, case in paper.sweep("mira", 4096)': "paper.gains()[:2]",
        'case for _, _, case in paper.sweep("theta", 1024)': "paper.gains()[2:3]",
        'case for _, _, case in paper.sweep("theta", 2048)': "paper.gains()[2:4]",
    },
}
"""What ``./dev test`` writes for a text of a notebook: fewer tasks, nights and cases, in the same cells."""

if importlib.util.find_spec("nbconvert") is None or importlib.util.find_spec("ipykernel") is None:
    pytest.skip("nbconvert or ipykernel is not installed: notebooks are not run", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("ensio-replay") is None,
        reason="ensio-replay is not on PATH: notebooks are not run (./dev test puts it there)",
    ),
    # Libraries of Jupyter warn about themselves and about each other.
    pytest.mark.filterwarnings("default"),
]


COMMANDS_HERE = f"""
import subprocess, sys
sys.path.append({str(Path(commands_here.__file__).parent)!r})
import commands_here
subprocess.run = commands_here.run
"""
"""What stands before the cells of a notebook in ``./dev test``: a process less for each command."""


def executed(path: Path, folder: Path, whole: bool):
    """The notebook with its outputs, as if executed in its folder; an error in a cell is an error here."""
    import nbformat
    from nbclient import NotebookClient

    here = folder / "notebooks"
    here.mkdir()
    (here / "runs").symlink_to(path.parent / "runs")
    (folder / "testbed").symlink_to(ROOT / "testbed")
    notebook = nbformat.read(path, as_version=4)
    for text, other in ({} if whole else LESS.get(path.stem, {})).items():
        cells = [cell for cell in notebook.cells if cell.cell_type == "code" and text in cell.source]
        assert cells, f"{path.name} has no {text}"
        for cell in cells:
            cell.source = cell.source.replace(text, other)
    if not whole:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(COMMANDS_HERE))
    NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(here)}}).execute()
    del notebook.cells[: not whole]
    return notebook


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((path, whole), id=path.stem + "-whole" * whole, marks=[pytest.mark.long] * whole)
        for whole in (False, True)
        for path in NOTEBOOKS
    ],
)
def notebook(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    before = {name: os.environ.get(name) for name in ("PATH", "TMPDIR")}
    # The command that belongs to this Python, wherever the tests were started from.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before['PATH']}"
    temporary = tmp_path_factory.mktemp("temporary")
    os.environ["TMPDIR"] = str(temporary)
    try:
        notebook = executed(request.param[0], tmp_path_factory.mktemp("notebook"), *request.param[1:])
        notebook.metadata["left"] = sorted(path.name for path in temporary.glob("ensio-*"))
        notebook.metadata["whole"] = request.param[1]
        return notebook
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def test_runs_of_notebooks_are_deleted_at_their_end(notebook) -> None:
    assert notebook.metadata["left"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path: Path) -> None:
    import nbformat

    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_pictures_show_in_a_browser_without_network(notebook, tmp_path: Path) -> None:
    pytest.importorskip(
        "playwright", reason="playwright is not installed: notebooks are not tried in a browser"
    )
    pytest.importorskip("PIL", reason="Pillow is not installed: notebooks are not tried in a browser")
    from browser import browser, chromium
    from nbconvert import HTMLExporter

    if chromium() is None:
        pytest.skip("no Chromium on PATH: notebooks are not tried in a browser")
    title = notebook.cells[0].source.splitlines()[0]
    if not notebook.metadata["whole"]:
        keep_first_pictures(notebook, PICTURES[title])
    page, _ = HTMLExporter(require_js_url="", mathjax_url="").from_notebook_node(notebook)
    path = tmp_path / "notebook.html"
    path.write_text(page, encoding="utf-8")
    with browser() as open_page:
        report = open_page(path)
        for name in PICTURES[title]:
            report.wait_until(name, "Bokeh.index.find_one(model) != null")
            assert report.property_of(name, "Bokeh.index.find_one(model).frame.bbox.width") > 300
        if "tasks_inside" in PICTURES[title]:
            assert "tasks" in report.hover_text("tasks_inside", *middle_of(report, "tasks_inside"))
        assert report.problems == []


def keep_first_pictures(notebook, names: tuple[str, ...]) -> None:
    """Leave away the pictures after the first of each name: ``./dev test-long`` draws them all."""
    missing = set(names)
    for cell in notebook.cells:
        outputs, kept = cell.get("outputs", []), []
        for output in outputs:
            data = output.get("data", {})
            shown = {name for name in missing if f'"name":"{name}"' in data.get("application/javascript", "")}
            if shown or "application/vnd.bokehjs_exec.v0+json" not in data:
                kept.append(output)
            missing -= shown
        outputs[:] = kept


def middle_of(report, figure: str) -> tuple[float, float]:
    """The point in the middle of a figure, in its coordinates."""
    return tuple(
        report.property_of(figure, f"(model.{axis}_range.start + model.{axis}_range.end) / 2")
        for axis in "xy"
    )
