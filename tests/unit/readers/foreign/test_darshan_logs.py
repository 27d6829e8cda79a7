"""Darshan logs that were made for a test: what is read in them, and what is said about them."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands_here import executed
from made_darshan_logs import START_S, MadeLog, Segment, counted_log, traced_log
from read_by_pydarshan import events_of, segments_of

import ensembles as en
from ensembles.answers.counters import counter_parts
from ensembles.faces.html import answer_html
from ensembles.faces.words import sentence
from ensembles.model.holds import Holds
from ensembles.model.statement import Facts, Table
from ensembles.model.units import bytes_text, share_text
from ensembles.structure.counters import counted_sums
from ensembles.viz.common.figures import keep_units
from ensembles.viz.pictures.counters import counter_pictures

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", ["3.10", "3.21", "3.41"])
def test_made_logs_of_old_versions_and_other_byte_orders_are_what_pydarshan_reads(
    tmp_path: Path, version: str, order: str
) -> None:
    log = traced_log(version=version, order=order, streams=3)
    log.stripe(7, 4 << 20, [3, 1, 4])
    run = en.open(log.write(tmp_path / "some.log"))
    assert events_of(run) == segments_of(tmp_path / "some.log")
    striping = run.info.striping_of("/scratch/shared.dat")
    assert striping is not None
    assert (striping.stripe_bytes, striping.components[0].targets) == (4 << 20, (3, 1, 4))
    assert run.info.filesystem_of("/scratch/own.dat").type == "lustre"  # type: ignore[union-attr]
    nanoseconds = 0 if version < "3.41" else 250_000_000
    assert run.info.origin_unix_ns == START_S * 10**9 + nanoseconds


def test_offsets_that_the_first_version_did_not_keep_are_not_known(tmp_path: Path) -> None:
    log = traced_log(version="3.10", module_versions={"DXT_MPIIO": 1, "DXT_POSIX": 1})
    run = en.open(log.write(tmp_path / "log"))
    assert set(run.select(layer="mpiio").offset.tolist()) == {-1}
    assert -1 not in run.select(layer="posix").offset


def test_posix_calls_inside_mpi_calls_are_inside_and_count_once(tmp_path: Path) -> None:
    run = en.open(traced_log().write(tmp_path / "log"))
    assert set(run.select(layer="mpiio").depth.tolist()) == {0}
    inner = run.select(layer="posix", file="*/shared.dat")
    assert set(inner.depth.tolist()) == {1}
    assert set(inner.carried.tolist()) == {2}
    assert set(run.select(file="*/own.dat").depth.tolist()) == {0}
    information = _json("info", tmp_path / "log")
    assert information["bytes_written"] == 6 << 20
    assert information["bytes_read"] == 50
    # 6 calls of MPI-IO of 1/8 s, 1/16 s of each in POSIX, and 9/16 s of POSIX alone.
    assert information["layers"]["mpiio"]["exclusive_time_s"] == pytest.approx(6 / 16)
    assert information["io_time_s"] == pytest.approx(6 / 8 + 9 / 16)
    assert run.info.hosts == ["node0", "node1"]


def test_a_read_inside_a_collective_write_is_not_counted_by_it(tmp_path: Path) -> None:
    log = MadeLog(tasks=1, names={7: "/f"})
    log.trace("DXT_MPIIO", 7, 0, [Segment(0, 100, 1.0, 2.0)])
    log.trace("DXT_POSIX", 7, 0, [Segment(0, 4096, 1.75, 1.9)], [Segment(0, 4096, 1.25, 1.5)])
    run = en.open(log.write(tmp_path / "log"))
    assert [(run.calls[e].name, d, c) for e, d, c in zip(*_inside(run), strict=True)] == [
        ("MPI_File_write", 0, 0),
        ("read", 1, 2),
        ("write", 1, 2),
    ]
    information = _json("info", tmp_path / "log")
    assert (information["bytes_read"], information["bytes_written"]) == (4096, 100)


def _inside(run: en.Run) -> tuple[list[int], ...]:
    events = run.events
    return events.call.tolist(), events.depth.tolist(), events.carried.tolist()


def test_threads_are_numbered_by_rank_and_only_their_own_calls_are_around() -> None:
    from ensembles.readers.foreign.darshan.segments import CALLS, Converter, SegmentBlocks

    def packed(rows: list[tuple[int, float, float]]) -> bytes:
        return b"".join(struct.pack("<qqddQ", 0, 1, start, end, thread) for thread, start, end in rows)

    def parts(module: str, rank: list[int], count: list[int]) -> SegmentBlocks:
        ones = np.ones(len(rank), np.int64)
        return SegmentBlocks(module, np.array(rank), np.array(count), ones, ones, True, True, False)

    converter = Converter(sum(CALLS.values(), ()))
    outer = converter.columns(parts("DXT_MPIIO", [0], [1]), packed([(901, 0.5, 20.0)]))
    assert outer["thread"].tolist() == [0]
    rows = [(900 + i % 3, 1.0 + i, 1.5 + i) for i in range(6)]
    inner = converter.columns(parts("DXT_POSIX", [0, 1], [6, 6]), packed(rows + rows))
    assert inner["thread"].tolist() == [1, 0, 2, 1, 0, 2, 0, 1, 2, 0, 1, 2]
    assert inner["depth"].tolist() == [0, 1, 0, 0, 1, 0] + [0] * 6
    assert len(converter.threads) == 6


def test_a_log_that_is_newer_than_the_library_is_called_so(tmp_path: Path) -> None:
    path = traced_log(module_versions={"DXT_POSIX": 9, "DXT_MPIIO": 9}).write(tmp_path / "log")
    with pytest.raises(en.EnsioError, match="newer Darshan than the package darshan that is installed"):
        en.open(path)


def test_more_segments_than_fit_into_a_block_are_all_read(tmp_path: Path) -> None:
    from ensembles.readers.foreign.darshan.source import DarshanImport

    log = traced_log()
    log.trace("DXT_POSIX", 8, 0, [Segment(i, i, float(i), i + 0.5) for i in range(100)])
    trace = DarshanImport(str(log.write(tmp_path / "log")))
    blocks = list(trace.blocks(7))
    assert max(len(block["rank"]) for block in blocks) == 7
    moved = np.concatenate([block["moved"] for block in blocks])
    whole = en.open(tmp_path / "log").events
    assert sorted(moved.tolist()) == sorted(whole.moved.tolist())


def bytes_of_ranks(run: en.Run) -> list[float]:
    """Bytes that each rank moved, of all layers."""
    ranks = run.reading.ranks
    return np.bincount(ranks.rank, np.maximum(ranks.moved, 0)).tolist()


def test_counters_say_what_each_rank_did(tmp_path: Path) -> None:
    run = en.open(counted_log().write(tmp_path / "log"))
    mib = 1 << 20
    assert bytes_of_ranks(run) == [6000 + 8 * mib + 40, 6001 + 8 * mib + 40]
    # Own file 0.5 + 0.125, shared file 0.75 by MPI-IO of which 0.5 in POSIX, stream 0.0625.
    assert run.reading.ranks.io_time_ns(2).tolist() == [1_437_500_000, 1_437_500_000]
    information = _json("info", tmp_path / "log")
    assert information["bytes_written"] == 12_001 + 8 * mib + 80
    assert information["io_time_s"] == pytest.approx(2 * 1.4375)
    assert information["calls"]["write"] == {
        "layer": "posix",
        "op": "write",
        "count": 10,
        "bytes": 12_001 + 8 * mib,
        "time_s": 2.0,
        "exclusive_time_s": 2.0,
        "max_s": 0.5,
        "mean_s": 0.2,
        "io_share": pytest.approx(2 / (2 * 1.4375)),
        "wait_share": None,
        "is_io": True,
        "errors": 0,
    }
    assert information["calls"]["fwrite"]["max_s"] is None
    assert information["calls"]["open, seek, stat, sync"]["count"] == 10
    assert information["span_s"] == 5.0
    assert information["frequent_size_classes"]["posix"] == [
        {"low_bytes": 1025, "high_bytes": 10240, "count": 6},
        {"low_bytes": mib + 1, "high_bytes": 4 * mib, "count": 4},
    ]
    assert information["slowest_call"] is None
    assert information["durations_known"] is False


def test_the_text_for_people_says_that_these_are_sums(tmp_path: Path) -> None:
    shown = _ensio("info", counted_log().write(tmp_path / "log")).stdout
    assert "profile: totals of all calls, no events" in shown
    assert "sums of calls, bytes and time, not single calls" in " ".join(shown.split())
    assert "ensio run" not in shown


def test_a_file_that_darshan_added_up_over_the_ranks_has_no_ranks(tmp_path: Path) -> None:
    log = counted_log()
    log.count("POSIX", 7, -1, WRITES=2, BYTES_WRITTEN=100, F_WRITE_TIME=1.0)
    run = en.open(log.write(tmp_path / "log"))
    assert any("1 file record with sums over all ranks" in note for note in run.notes)
    with pytest.raises(en.EnsioError, match="its sums are not by rank"):
        run.reading.ranks  # noqa: B018


@pytest.mark.parametrize(
    "command",
    [
        ("modes",),
        ("tail", "--tasks", "8"),
        ("split", "--calls", "1,2", "--tasks", "8"),
        ("ordinals", "--op", "write"),
        ("phases",),
        ("rate",),
        ("events",),
    ],
    ids=lambda command: command[0],
)
def test_what_needs_single_calls_refuses_sums(tmp_path: Path, command: tuple[str, ...]) -> None:
    counted_log().write(tmp_path / "log")
    done = _ensio(*command, tmp_path / "log", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = [line for line in done.stderr.splitlines() if not line.startswith("ensio: note: ")]
    assert str(tmp_path / "log") in sentence


def test_a_report_of_sums_shows_tables_and_says_what_is_not_known(tmp_path: Path) -> None:
    counted_log().write(tmp_path / "log")
    _ensio("report", tmp_path / "log", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "This run holds Darshan" in page
    assert "DXT_ENABLE_IO_TRACE=1" in page
    run = en.open(tmp_path / "log")
    assert "counted_sizes_posix" in page
    assert keep_units(answer_html(counter_parts(counted_sums(run.info)), None, "")) in page
    assert f"<h1>I/O of {Path(run.info.command[0]).name}</h1>" in page  # the log has no program
    pictures = counter_pictures(run.counters)
    assert {"counted_sizes_mpiio", "counted_sizes_posix"} < set(pictures)
    # There is no request of 10 KiB to 1 MiB, and a place for it.
    assert pictures["counted_sizes_posix"].x_range.factors == ["to 10 KiB", "to 1 MiB", "to 4 MiB"]
    assert "no durations were recorded" not in page
    assert "ensio run" not in page
    assert "MPI_File_write" in page


def test_operations_are_counted_as_the_log_names_them(tmp_path: Path) -> None:
    counted_log().write(tmp_path / "log")
    run = en.open(tmp_path / "log")
    said = [part for part in counter_parts(counted_sums(run.info)) if isinstance(part, Facts)]
    for (name, module), facts in zip(run.counters.modules.items(), said, strict=True):
        calls = dict(facts.rows)["calls"]
        for counted in ("OPENS", "INDEP_OPENS", "COLL_OPENS", "SEEKS", "STATS", "WRITES", "COLL_WRITES"):
            if number := module.totals.get(counted):
                assert f"{counted.lower().replace('_', ' ')} {number:,}" in calls
        assert facts.title is not None
        assert facts.title.values["name"] == name
        assert facts.title.values["files"] == len(module.by_file["file"])


def test_the_page_info_and_the_account_agree_on_bytes_and_share() -> None:
    """HDF5 wrote what POSIX wrote, and POSIX wrote padding and metadata as well: neither is counted twice."""
    import darshan

    from ensembles.run.information import collect_information
    from ensembles.viz.report.data import ReportData
    from ensembles.viz.report.tables import facts

    (path,) = Path(darshan.__file__).parent.glob("examples/example_logs/sample-badost.darshan")
    run = en.open(path)
    information, account = collect_information(run), en.diagnose(run).account
    shown = {name: value for name, value, _ in facts(run, ReportData.from_run(run)[0], information)}
    assert shown["written"] == bytes_text(information["bytes_written"])
    assert account is not None
    assert shown["I/O time"] == share_text(account.io_s / account.run_s, None)


def test_what_a_table_of_counters_leaves_out_is_said_below_it() -> None:
    import darshan

    (path,) = Path(darshan.__file__).parent.glob("examples/example_logs/sample-badost.darshan")
    parts = list(counter_parts(counted_sums(en.open(path).info)))
    notes = {
        table.noun: " ".join(map(sentence, below))
        for table, below in itertools.pairwise(parts)
        if isinstance(table, Table) and isinstance(below, tuple)
    }
    assert notes["file"].startswith("The first 8 of 2,051 rows; ")
    assert notes["OST"].startswith("24 OSTs, that with the slowest files first")
    assert notes["rank"].startswith("The first 8 of 2,052 rows; ")
    (files,) = [part for part in parts if isinstance(part, Table) and part.noun == "file"]
    groups = [name for name, _ in itertools.groupby(files.columns[0].values)]
    assert len(set(groups)) == len(groups)  # the layers of a file follow each other


def test_a_bound_is_not_drawn_as_a_measured_time() -> None:
    from ensembles.model.counters import Counters
    from ensembles.viz.pictures.counters import counter_pictures

    log = en.open(
        next(Path(__import__("darshan").__file__).parent.glob("examples/example_logs/example.darshan"))
    )
    counters: Counters = log.counters
    figure = counter_pictures(counters)["counted_time"]
    columns = next(r.data_source.data for r in figure.renderers if "slowest" in r.data_source.data)
    modules = [module for module in counters.modules.values() if module.time_s > 0][::-1]
    for module, drawn, text in zip(modules, columns["slowest"], columns["text"], strict=True):
        assert np.isnan(drawn) == module.slowest_is_bound
        assert text.startswith("at most ") == module.slowest_is_bound


def test_calls_that_dxt_did_not_keep_are_lost(tmp_path: Path) -> None:
    log = traced_log(partial=("DXT_POSIX",))
    log.count("POSIX", 8, 1, READS=5, BYTES_READ=500, OPENS=2, F_READ_TIME=1.0)
    run = en.open(log.write(tmp_path / "log"))
    assert (run.info.dropped_events, run.info.lost_calls, run.info.has(Holds.CALL_ORDER)) == (3, 3, False)
    assert any("memory for DXT_POSIX was full" in note for note in run.notes)
    assert any("3 reads and writes are counted by Darshan but missing in DXT" in note for note in run.notes)


def test_what_is_only_counted_beside_a_trace_is_told(tmp_path: Path) -> None:
    log = traced_log()
    log.count("STDIO", 10, 0, WRITES=7, BYTES_WRITTEN=70, F_WRITE_TIME=0.5)
    run = en.open(log.write(tmp_path / "log"))
    assert any("counted only: 7 × fwrite of stdio (500 ms)" in note for note in run.notes)
    assert any("lacks the names of 1 file" in note for note in run.notes)
    assert run.info.lost_calls == 0
    assert run.info.has(Holds.ALL_CALLS)


def test_a_call_whose_clock_was_set_back_has_no_duration(tmp_path: Path) -> None:
    log = MadeLog(tasks=1, names={7: "/f"})
    log.trace("DXT_POSIX", 7, 0, [Segment(0, 1, 2.0, 1.0)])
    run = en.open(log.write(tmp_path / "log"))
    assert run.events.duration.tolist() == [0]
    assert any("1 call with an end before the start" in note for note in run.notes)


def _ensio(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = executed(*words)
    assert not check or done.returncode == 0, done.stderr
    return done


def _json(command: str, path: Path) -> dict[str, Any]:
    return json.loads(_ensio(command, path, "--json").stdout)


@pytest.mark.parametrize("options", [{}, {"version": "3.21"}, {"order": ">"}], ids=str)
def test_logs_of_one_job_in_a_folder_are_one_run(tmp_path: Path, options: dict[str, str]) -> None:
    alone = en.open(traced_log(**options).write(tmp_path / "alone")).events
    folder = tmp_path / "job"
    folder.mkdir()
    # The names are in another order than the starts.
    traced_log(**options).write(folder / "b.darshan")
    later = traced_log(start_s=START_S + 10, command="/opt/other", **options)
    later.write(folder / "a.darshan")
    (folder / "notes.txt").write_text("not a log")
    run = en.open(folder)
    assert (run.tasks, run.info.job, run.length_s) == (4, "4242", pytest.approx(70, abs=0.25))
    assert [(one.rank, one.command[0]) for one in run.info.processes] == [
        (0, "/opt/app"),
        (1, "/opt/app"),
        (2, "/opt/other"),
        (3, "/opt/other"),
    ]
    for first, after_ns in ((0, 0), (2, 10**10)):
        mine = run.events[np.isin(run.events.rank, (first, first + 1))]
        assert (mine.rank - first).tolist() == alone.rank.tolist()
        assert (mine.start - after_ns).tolist() == alone.start.tolist()
        for name in ("duration", "moved", "offset", "depth", "carried", "thread"):
            assert getattr(mine, name).tolist() == getattr(alone, name).tolist()
        assert [run.files[at] for at in mine.file] == [run.files[at] for at in alone.file]


def test_counters_of_one_job_are_added_up_and_each_process_is_a_rank(tmp_path: Path) -> None:
    for number in range(3):
        log = MadeLog(tasks=1, names={7: "/scratch/a", 8: "/scratch/b"}, start_s=START_S + 10 * number)
        if number == 0:
            log.count("MPI-IO", 7, 0, INDEP_WRITES=1, BYTES_WRITTEN=100, F_WRITE_TIME=1.0)
        # Only the first process made these calls inside of MPI-IO. Darshan can keep sums over one rank.
        log.count("POSIX", 7, -1, WRITES=1, BYTES_WRITTEN=100, F_WRITE_TIME=1.0 + number,
                  F_WRITE_START=2.0, F_WRITE_END=5.0)  # fmt: skip
        log.write(tmp_path / f"{number}.darshan")
    run = en.open(tmp_path)
    assert bytes_of_ranks(run) == [200, 100, 100]  # of all layers
    assert run.reading.ranks.io_time_ns(3).tolist() == [10**9, 2 * 10**9, 3 * 10**9]
    information = _json("info", tmp_path)
    assert (information["tasks"], information["bytes_written"]) == (3, 300)
    assert information["counters"]["run_time_s"] == pytest.approx(80, abs=0.25)
    assert information["span_s"] == 23.0
    posix = information["counters"]["modules"]["POSIX"]
    assert (posix["writes"], posix["shared_records"], posix["slowest_rank_s"]) == (3, 0, 3.0)


def test_logs_of_several_jobs_in_a_folder_are_refused(tmp_path: Path) -> None:
    traced_log().write(tmp_path / "a.darshan")
    traced_log(number=4243).write(tmp_path / "b.darshan")
    with pytest.raises(en.EnsioError, match=r"logs of 2 jobs: .*ensio history add --darshan"):
        en.open(tmp_path)
    (tmp_path / "b.darshan").write_bytes((tmp_path / "a.darshan").read_bytes()[:1400])
    with pytest.raises(en.EnsioError, match=r"b\.darshan is a damaged Darshan log"):
        en.open(tmp_path)


def test_logs_of_processes_without_mpi_are_one_run(tmp_path: Path) -> None:
    """Two at one time, of which one has DXT, and one later in the same job."""
    for number, start_s in enumerate((START_S, START_S + 5, START_S + 500)):
        log = MadeLog(tasks=1, names={7: "/scratch/a"}, start_s=start_s)
        log.count("POSIX", 7, 0, WRITES=1, BYTES_WRITTEN=100, F_WRITE_TIME=1.0)
        if number == 0:
            log.trace("DXT_POSIX", 7, 0, [Segment(0, 100, 1.0, 2.0)])
        log.write(tmp_path / f"u_app_id4242-{number}.darshan")
    both = en.open(tmp_path)
    assert (both.tasks, both.summary.count, both.mode) == (3, 3, "profile")
    assert any("2 of 3 logs" in note and "have counters only" in note for note in both.notes)
    said = [
        any("has 2 logs in" in note for note in en.open(path).notes) for path in sorted(tmp_path.iterdir())
    ]
    assert said == [True, True, False]
