"""Failed calls are said by function, error and file, chosen by filters, and named in tables and pages."""

import json
from pathlib import Path

import pytest

import ensembles
from ensembles.answers.info import info_parts
from ensembles.cli.main import main
from ensembles.faces.text import answer_text
from ensembles.run.information import collect_information
from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

LINES = [
    *('openat(AT_FDCWD, "/opt/a/lib.conf", O_RDONLY) = -1 ENOENT (No such file or directory)',) * 30,
    'openat(AT_FDCWD, "/scratch/out", O_WRONLY|O_CREAT, 0644) = 3',
    *('write(3, "x", 4096) = -1 ENOSPC (No space left on device)',) * 8,
    'write(3, "x", 100) = 100',
    "fsync(3) = -1 EIO (Input/output error)",
    "close(3) = 0",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "failing.strace"
    path.write_text(
        "".join(f"7 {1.7e9 + 0.001 * at:.6f} {line} <0.000010>\n" for at, line in enumerate(LINES))
    )
    return path


def test_what_failed_is_said_and_can_be_chosen(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ensembles.open(log)
    information = json.loads(json.dumps(collect_information(run)))
    rows = [(row["call"], row["error"], row["count"], row["file"]) for row in information["failed_calls"]]
    assert rows == [
        ("write", "ENOSPC", 8, "/scratch/out"),
        ("fsync", "EIO", 1, "/scratch/out"),
        ("openat", "ENOENT", 30, "/opt/a/lib.conf"),
    ]
    text = answer_text(info_parts(information))
    assert "--where failed):\n  write: 8 × ENOSPC on /scratch/out, from 31.0" in text
    assert "  no such file or link: 30 × openat, last on /opt/a/lib.conf" in text
    lost = ensembles.diagnose(run).lost_data
    assert lost.startswith("failed, so that files may lack data: write: 8 × ENOSPC on /scratch/out, from 31")
    assert "; fsync: 1 × EIO on /scratch/out" in lost
    assert "openat" not in lost
    assert main(["diagnose", str(log)]) == 0
    assert "Failed, so that files may lack data: write: 8" in capsys.readouterr().out
    # Of summaries the numbers alone are known; of a format without errors not even these.
    summed = information | {"failed_calls": None, "events": 0}
    said = " ".join(answer_text(info_parts(summed)).split())
    assert "Failed calls: openat 30, write 8, fsync 1; errors and files are unknown" in said
    said = " ".join(answer_text(info_parts(summed | {"events": 9})).split())
    assert "fsync 1; errors and files are known of events (ensio events RUN --where failed)" in said
    calls = {name: call | {"errors": 0} for name, call in information["calls"].items()}
    text = answer_text(info_parts(information | {"failed_calls": [], "calls": calls}))
    assert "ailed" not in text

    assert len(run.select(failed=True)) == 39
    assert len(run.select(error="enospc,EIO", failed=True, op="write")) == 8
    assert main(["events", str(log), "--where", "error=EIO,ENOSPC", "--limit", "1"]) == 0
    assert "ENOSPC" in capsys.readouterr().out
    assert main(["events", str(log), "--where", "failed", "--op", "sync", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["error_name"] == "EIO"
    assert main(["events", str(log), "--where", "error=EDQUOT"]) == 2
    told = capsys.readouterr().err
    assert "matches --where error=EDQUOT: the failed calls of the run have EIO, ENOENT, ENOSPC" in told


def test_calls_that_a_signal_interrupts_do_not_ask_for_a_path_again(tmp_path: Path) -> None:
    def opened(result: str) -> str:
        path = tmp_path / f"{len(result)}.strace"
        call = f'openat(AT_FDCWD, "/run/queue", O_RDONLY) = {result} <0.060000>'
        lines = (
            f"7 {1.7e9 + 0.08 * at:.6f} {call}\n7 {1.7e9 + 0.08 * at + 0.07:.6f} close(3) = 0 <0.000010>\n"
            for at in range(8)
        )
        path.write_text("".join(lines))
        return str(path)

    refused = ensembles.diagnose(ensembles.open(opened("-1 ENOENT (No such file or directory)")))
    assert "metadata-storm" in {finding.id for finding in refused.findings}
    interrupted = ensembles.diagnose(ensembles.open(opened("-1 EINTR (Interrupted system call)")))
    assert "metadata-storm" not in {finding.id for finding in interrupted.findings}


def test_the_report_has_a_table_of_failed_calls(log: Path, tmp_path: Path) -> None:
    assert main(["report", str(log), "--op", "write,open", "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    table = page[page.index('<h2 id="failed">') :]
    cells = [cell.partition("</td>")[0].rpartition(">")[2] for cell in table.split("<td")[1:19]]
    assert cells[:6] == ["write", "ENOSPC", "8", "1", "/scratch/out", "/scratch/out"]
    assert cells[9:12] == ["openat", "ENOENT", "30"]
    assert "failed. write: 8 × ENOSPC on /scratch/out, from" in page
    # Lost data are marked; searches, as at each start of an interpreter, are not errors.
    assert page.count('class="fact alarm"') == 1
    searches = page[page.index(">not there<") :]
    assert "30 calls" in searches[:120]


def test_the_explorer_chooses_failed_calls(log: Path) -> None:
    from bokeh.document import Document

    shown, document = Shown(ensembles.open(log)), Document()
    explorer = add_explorer(document, [shown], {"failed": "yes", "error": "ENOSPC,EIO"})
    assert explorer.view == View(filters={"failed": "yes", "error": "ENOSPC,EIO"})
    assert explorer.view.query() == "failed=yes&error=ENOSPC%2CEIO"
    assert (
        explorer.view.command("run")
        == "ensio events run --where failed --where error=ENOSPC,EIO --format csv"
    )
    assert explorer.view.python("run").endswith(".select(failed=True, error='ENOSPC,EIO')")
    slowest = document.select_one({"name": "slowest"}).source.data
    moved = next(each for each in document.select_one({"name": "slowest"}).columns if each.title == "moved")
    assert "error ||" in moved.formatter.template  # a format of numbers would take the template, and fail
    assert sorted(slowest["error"]) == ["EIO"] + ["ENOSPC"] * 8
    document.select_one({"name": "filter_failed"}).value = ""
    document.select_one({"name": "filter_error"}).value = ""
    assert explorer.view == View()
    with pytest.raises(ensembles.EnsioError, match="not a value of failed: write failed=yes"):
        View.from_query({"failed": "1"})
