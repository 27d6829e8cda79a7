"""The report as a file: what is in it, and what happens when it cannot be written."""

from __future__ import annotations

import html
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of
from pages import unpacked
from spool_writer import SpoolContent, write_spool
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.cli.main import main
from ensembles.ensemble import from_run
from ensembles.model.c_layout import EVENT
from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.run.collect import collect
from ensembles.run.reading import RunReading
from ensembles.viz import write_report
from ensembles.viz.report import page as report
from ensembles.viz.report.data import ReportData

pytestmark = pytest.mark.slow

TASKS = [
    [("open", 0.1, 0.01, 0), ("pwrite", 0.2, 0.5, 1 << 20), ("close", 0.9, 0.001, 0)],
    [("open", 0.1, 0.02, 0), ("pread", 0.3, 0.25, 1 << 19), ("close", 0.9, 0.001, 0)],
]


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    run_of(tmp_path / "run", TASKS)
    return tmp_path / "run"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of that run, by the command."""
    folder = tmp_path_factory.mktemp("page")
    run_of(folder / "run", TASKS)
    assert main(["report", str(folder / "run"), "-o", str(folder / "a.html")]) == 0
    return (folder / "a.html").read_text(encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader sees of a page, without its scripts and styles."""
    without_code = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", without_code).split()))


def test_report_tells_what_ran_and_what_it_moved(page: str) -> None:
    # No line ends between a number and its unit, and a command is as it was typed.
    assert '<div class="value">1.00\xa0MiB</div>' in page
    texts = re.sub(r"<(script|style|code).*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
    assert not re.search(r"\d (?:(?:MiB|KiB|ms|s)\b|%)", texts)
    text = text_of(page)
    assert "I/O of app" in text
    assert "2 tasks" in text
    assert "app --input deck.in" in text
    assert "written 1.00 MiB" in text
    assert "read 512 KiB" in text
    # Of a process of 1 s: 0.5 + 0.01 + 0.001 s in one task, and a mean over tasks of half of 0.782 s.
    assert "Slowest task 511 ms (rank 0, 51.1 % of the run)" in text
    assert "Mean of 2 tasks 391 ms (39.1 % of the run)" in text
    assert "slowest call 500 ms pwrite of rank 0 at 200 ms, data.out" in text


def test_report_shows_the_steps_of_collective_calls_that_phases_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, page = str(tmp_path / "run"), tmp_path / "a.html"
    words = ["simulate", "benchio", "--fs", "healthy", "--set", "sizes=laptop", "--set", "hdf5=0", "-o", run]
    assert main(words) == 0
    assert main(["report", run, "-o", str(page)]) == 0
    capsys.readouterr()
    assert main(["phases", run, "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["collective_steps"]["rows"]
    assert step["call"] == "MPI_File_write_all"
    text = page.read_text(encoding="utf-8").replace("\xa0", " ")
    table = next(part for part in text.split("</table>") if "<th>collective call</th>" in part)
    table = table.rpartition("<table>")[2]
    headers = re.findall(r"<th>([^<]*)</th>", table)
    assert headers[4:] == ["communication", "storage", "entry", "others"]
    cells = re.findall(r"<td>([^<]*)</td>", table)
    assert cells[:3] == [
        step["call"].removeprefix("MPI_File_"),
        str(step["collective_calls"]),
        str(step["tasks"]),
    ]
    shown = [float(cell.removesuffix(" %").removeprefix("< ")) for cell in cells[4:8]]
    assert shown == pytest.approx([100 * share for share in step["shares"].values()], abs=0.51)
    assert sum(shown) == pytest.approx(100, abs=2)


def test_report_of_calls_that_are_not_collective_has_no_steps(page: str) -> None:
    assert "collective call" not in page


def test_report_and_info_count_nested_transfers_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = np.zeros(3, EVENT.dtype)
    events["call"], events["file"], events["depth"] = 6, 1, [1, 1, 0]
    events["flags"] = [2, 2, 0]  # the bytes of the first two are part of the last one's
    events["start"], events["duration"] = [2000, 5000, 1000], [1000, 2000, 9000]
    events["requested"] = events["moved"] = 100
    write_spool(tmp_path / "s.spool", SpoolContent([events], files={1: "/d"}, head={"rank": 0}))
    assert main(["info", "--json", str(tmp_path)]) == 0
    information = json.loads(capsys.readouterr().out)
    assert information["bytes_written"] == 100
    assert information["calls"]["pwrite"]["bytes"] == 300
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "a.html")]) == 0
    assert "written 100 B" in text_of((tmp_path / "a.html").read_text(encoding="utf-8"))


def test_page_asks_for_nothing_from_a_network(page: str) -> None:
    assert not re.search(r"<(script|img|iframe|link)\b[^>]*\b(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "cdn.bokeh.org" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(
        r"@import|url\(\s*[\"']?https?:", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    )


def test_json_names_the_file_and_its_size(run_path: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.html"
    assert main(["report", str(run_path), "-o", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(path), "bytes": path.stat().st_size}


def test_report_is_readable_for_those_the_umask_lets_read(run_path: Path, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        main(["report", str(run_path), "-o", str(tmp_path / "a.html")])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.html").stat().st_mode) == 0o640


@pytest.mark.parametrize("place", ["missing/a.html", ".", "/dev/null/a.html"])
def test_unwritable_destination_is_one_sentence_and_exit_2(
    run_path: Path, tmp_path: Path, place: str, capsys
) -> None:
    assert main(["report", str(run_path), "-o", str(tmp_path / place)]) == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("ensio: ")
    assert sentence.count("\n") == 1


def test_empty_name_is_refused(run_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(run_path), "-o", ""])
    assert ended.value.code == 2
    sentence = capsys.readouterr().err
    assert "the report has no name" in sentence
    assert sentence.count("\n") == 1


def test_failure_while_writing_leaves_the_old_report_and_no_other_file(
    run_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.html"
    path.write_text("the old report")

    def broken_chunks():
        raise EnsioError("the run went away")
        yield

    import ensembles

    with pytest.raises(EnsioError, match="went away"):
        write_report(ensembles.open(run_path), path, chunks=broken_chunks())
    assert path.read_text() == "the old report"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.html", "run"]


def test_full_disk_is_told_in_one_sentence(run_path: Path, tmp_path: Path) -> None:
    # The shell's limit on the size of files stands in for a disk that is full.
    limited = "ulimit -f 64; trap '' XFSZ; exec \"$@\""
    program = "import sys; from ensembles.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "report", run_path, "-o", "out.html"]
    done = subprocess.run(["sh", "-c", limited, "sh", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(
        r"ensio: out\.html cannot be written \(.*\): choose another path with -o\n", done.stderr
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_notes_of_a_partial_run_are_on_the_page(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", TASKS, head={"state": 0, "dropped_events": 77})
    write_report(run, tmp_path / "a.html")
    text = text_of((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Data-quality warnings" in text
    for note in run.notes:
        assert " ".join(note.split()) in text
    assert "lost 154 calls" in text


def test_a_run_without_calls_has_a_sentence_instead_of_pictures(tmp_path: Path) -> None:
    write_report(run_of(tmp_path / "run", [[], []]), tmp_path / "a.html")
    text = text_of((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "There is nothing to draw: no call was recorded" in text
    assert "No finding, because nothing could be examined: " in text
    assert "Drag to zoom" not in text


def test_names_that_are_no_text_are_shown_all_the_same(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", TASKS, path=os.fsdecode(b"/tmp/\xff\xfe.dat"))
    assert write_report(run, tmp_path / "a.html") == (tmp_path / "a.html").stat().st_size


def test_one_pass_fills_every_summary(tmp_path: Path) -> None:
    made = synthetic_run(tmp_path / "run", 6, 42)
    run = en.open(tmp_path / "run")
    summaries = ReportData.from_chunks(run.chunks(max_events=17), run)
    assert summaries.table.events == 6 * 42
    written = 6 * int(made.requested[made.call == 6].sum())
    assert summaries.rate.total_bytes("write") == summaries.totals.bytes_written == written
    events = run.events
    assert summaries.raster.time_ns.sum() == events.duration.sum()
    assert sum(moments.n for moments in summaries.moments.moments.values()) == len(events)
    assert sum(counts.sum() for counts in summaries.histogram.counts.values()) == len(events)


def test_report_has_the_phases_and_what_happens_between_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Path(__file__).resolve().parents[2] / "corpus" / "runs"
    subprocess.run(["tar", "-xJf", corpus / "replay-btio.tar.xz", "-C", tmp_path], check=True)
    run, page = tmp_path / "replay-btio", tmp_path / "a.html"
    assert main(["phases", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["report", str(run), "-o", str(page)]) == 0
    text = text_of(page.read_text(encoding="utf-8"))
    assert f"{told['count']} phases: {told['sentence']}" in text
    assert "Idle, because other tasks took longer" in text
    section = (
        page.read_text(encoding="utf-8").partition('<section id="phases">')[2].partition("</section>")[0]
    )
    assert section.partition("</table>")[0].count("<tr") == told["count"] + 1
    last = told["phases"][-1]
    # Its last call, a close of 326 µs, is not why it came last: it began 11.7 ms after the others.
    assert last["late_outside"]["begins_s"] > last["later_s"]
    assert f"{last['slowest_task']} late start" in text
    share = f"({100 * told['collective']['above_storage_share']:.0f} %) no task was in a storage call"
    assert "Collective I/O: some task was in a collective call" in text
    assert share in text


def test_the_slowest_calls_are_outlined_if_they_are_few_among_all(tmp_path: Path) -> None:
    def outlined(calls: int, name: str):
        made = [("pwrite", 0.001 * i, 1e-4 * (1 + i % 7), 1) for i in range(calls)]
        return ReportData.from_run(run_of(tmp_path / name, [made]))[0].outlined

    assert outlined(99, "few") is None
    some = outlined(450, "some")
    assert some.duration.tolist() == [700_000] * 4
    assert len(outlined(9000, "many")) == 60


def test_ensembles_of_the_report_are_those_of_the_commands(tmp_path: Path) -> None:
    """Few large writes and many small ones: a mode of both would be of neither."""
    tasks = [
        [("pwrite", 0.001 * i, 4e-6, 4096) for i in range(200)]
        + [("pwrite", 0.3 + 0.01 * i, 1e-3 * (1 + 0.01 * i), 1 << 20) for i in range(40)]
        for _ in range(2)
    ]
    run = run_of(tmp_path / "run", tasks)
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text().replace("\xa0", " ")
    ensemble = run.ensemble(op="write")
    assert ensemble.n == 80
    assert f"in {ensemble.n} calls" in page
    assert html.escape(f"T{ensemble.notes[0][1:]}.") in page
    assert "modes in 480 calls" not in page
    assert "mode in 480 calls" not in page


def test_the_title_of_phases_names_the_task_that_most_idle_time_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensembles.viz.report.folded.LITTLE", 0.01)
    synthetic_run(tmp_path / "run", 8, 600, seed=3)
    run = en.open(tmp_path / "run")
    assert main(["phases", str(tmp_path / "run"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["phases"]
    worst = max((row for row in rows if row["calls"]), key=lambda row: row["lost_s"])
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text().replace("\xa0", " ")
    title = re.search(r'<section id="phases"><details><summary><h2>(.*?)</h2>', page)[1]
    assert f", {seconds_text(worst['lost_s'])} of all tasks: rank {worst['slowest_task']} came last" in title


def test_folded_parts_hold_phases_call_indices_and_ranks(tmp_path: Path) -> None:
    """Reads become slower from the third on, and rank 1 is slowest."""
    tasks = [
        [("pread", 1.0 * i, (0.02 if i < 2 else 0.1 * i) * (1 + rank), 1 << 20) for i in range(6)]
        for rank in range(2)
    ]
    run = run_of(tmp_path / "run", tasks, lasted_s=8.0)
    write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text().replace("\xa0", " ")
    parts = dict(re.findall(r'<section id="(\w+)"><details><summary><h2>(.*?)</h2>', page))
    assert set(parts) == {"phases", "ordinals", "transfers", "ranks"}
    assert parts["ordinals"].startswith("Call index: 6 reads of a task on a file")
    assert parts["ranks"].startswith("Ranks: rank 1 is longest in I/O, 2.88 s; the mean is 2.16 s")
    assert 'id="picture-ranks"' in page
    rows = re.search(r'(?s)<section id="ordinals">.*?</section>', page)[0]
    assert all(f"<td>{text}</td>" in rows for text in ("30.0 ms", "300 ms", "450 ms", "600 ms", "750 ms"))


def test_a_page_of_a_large_noisy_run_is_small(tmp_path: Path) -> None:
    """Three thousand tasks with calls at any time: the image is coarser, and the page below 2.3 MB."""
    rng = np.random.default_rng(7)
    starts_s, took_s = np.sort(rng.uniform(0, 60, (3000, 9)), axis=1), rng.exponential(0.3, (3000, 9))
    tasks = [
        [("pwrite", start_s, time_s, 1 << 20) for start_s, time_s in zip(*task, strict=True)]
        for task in zip(starts_s.tolist(), took_s.tolist(), strict=True)
    ]
    size = write_report(run_of(tmp_path / "run", tasks, lasted_s=70.0), tmp_path / "a.html")
    assert size < 2_300_000


def test_one_pass_counts_the_ensembles_of_a_collected_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls that matter and the phases are known from what trace.h5 keeps."""
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    synthetic_run(tmp_path / "run", 6, 4200, phases=3)
    collect(str(tmp_path / "run"), str(tmp_path / "run.h5"))
    passes: list[list[str]] = []
    plain = RunReading._pass

    def noted(self, requests, selection):
        passes.append(sorted(requests))
        return plain(self, requests, selection)

    monkeypatch.setattr(RunReading, "_pass", noted)
    pages, numbers = [], []
    for known in (True, False):
        if not known:
            monkeypatch.setattr(report, "_chosen_early", lambda run: None)
        passes.clear()
        write_report(en.open(tmp_path / "run.h5"), tmp_path / "a.html")
        page = (tmp_path / "a.html").read_text()
        page = re.sub(r'(?<=id="pictures")[^<]*', "", page) + unpacked(page)
        pages.append(re.sub(r"\bp\d+\b", "p", page))  # numbers of models
        numbers.append(len(passes))
        assert any("counts" in requests and "evidence" in requests for requests in passes) == known
    assert pages[0] == pages[1]
    assert numbers[0] == numbers[1] - 1


def test_filters_select_the_calls_of_a_report(
    run_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "a.html"
    assert main(["report", str(run_path), "--op", "write", "--file", "*/<data*", "-o", str(page)]) == 2
    assert 'matches --file "*/<data*"' in capsys.readouterr().err
    assert main(["report", str(run_path), "--op", "write", "--rank", "0-63", "-o", str(page)]) == 0
    text = text_of(page.read_text(encoding="utf-8"))
    assert "Only a part of the calls: --op write --rank 0-63 . Findings, modes" in text
    assert "written 1.00 MiB" in text
    assert "read 0 B" not in text
    assert "calls 1 of 2 tasks on 1 file" in text
    # Rank 1 wrote nothing: the diagram has no empty row, and blank is not "no recorded call".
    assert "Trace diagram of rank 0; blank: no selected call" in page.read_text(encoding="utf-8")
    assert "pread" not in text
    for absent in ("Findings 1", "No finding", "Phases:", "Ranks:"):
        assert absent not in text


def test_filters_are_of_one_run_whose_calls_are_events(
    run_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", str(run_path), str(run_path), "--op", "write", "-o", str(tmp_path / "a.html")]
    assert main(words) == 2
    assert "--op write selects calls of one run, and two are named" in capsys.readouterr().err
    corpus = Path(__file__).resolve().parents[2] / "corpus" / "runs"
    subprocess.run(["tar", "-xJf", corpus / "replay-profile.tar.xz", "-C", tmp_path], check=True)
    assert main(["report", str(tmp_path / "replay-profile"), "--op", "write", "-o", words[-1]]) == 2
    assert "keeps no events, and filters choose among single calls" in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()
