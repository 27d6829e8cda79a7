"""The summary of all processes in a job file is read as it was put together; damage is told."""

import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_job_files import collect_spools, packed_summary
from made_spools import RUNNING, made_events, spool
from spool_writer import POSIX_CALLS

import ensembles
from ensembles.model.c_layout import JOB, JOB_CALL, JOB_CELL, JOB_SUMMARY
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.summaries.ranktable import RankTable

RANKS = 3
EVENTS = 2000
NUMBERS = {call: number for number, call in POSIX_CALLS.items()}


def rows_of(ranks: RankTable, rank: int) -> np.ndarray:
    """The rows of a rank as its record has them."""
    mine = np.flatnonzero(ranks.rank == rank)
    rows = np.zeros(len(mine), JOB_CALL.dtype)
    for name in RANK_COLUMNS[2:]:
        rows[name] = getattr(ranks, name)[mine]
    rows["call"] = [NUMBERS[ranks.calls[number]] for number in ranks.call[mine].tolist()]
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory, coder) -> Path:
    """A folder with a trace of three ranks, and the job file that the same run has in mode profile."""
    folder = tmp_path_factory.mktemp("made")
    paths = []
    for rank in range(RANKS):
        events = made_events(EVENTS, seed=rank)
        events["call"] = np.random.default_rng(rank).choice(sorted(POSIX_CALLS)[:4], EVENTS)
        events["moved"][::7] = -28
        events["file"] = 1 + np.arange(EVENTS) % 2
        told = {"files": {1: "/data/shared", 2: f"/data/of/rank.{rank}"}, "rank": rank, "tasks": RANKS}
        spool(folder / "trace" / f"alpha-{rank}.spool", [events], **told, pid=100 + rank)
        paths.append(folder / "profile" / f"alpha-{rank}.spool")
        spool(paths[-1], [], **told, pid=100 + rank, properties={"mode": "profile"})
    run = ensembles.open(folder / "trace")
    numbers = {number: NUMBERS.get(call, 0) for number, call in enumerate(run.calls)}
    rows = {path.name: rows_of(run.reading.ranks, rank) for rank, path in enumerate(paths)}
    (folder / "job").mkdir()
    collect_spools(
        coder,
        paths,
        folder / "job/job.ensio",
        packed_summary(run.summary, numbers, run.info.origin_unix_ns),
        rows,
    )
    return folder


def assert_same(run: ensembles.Run, other: ensembles.Run) -> None:
    ours, theirs = run.summary.to_arrays(), other.summary.to_arrays()
    for name, column in theirs.items():
        np.testing.assert_allclose(ours[name], column, rtol=1e-12, err_msg=name)
    for name, column in other.reading.ranks.to_arrays().items():
        np.testing.assert_array_equal(run.reading.ranks.to_arrays()[name], column, err_msg=name)


def changed(made: Path, folder: Path, change) -> Path:
    """The job file with a changed summary under a checksum that is right."""
    content = bytearray((made / "job/job.ensio").read_bytes())
    change(content, JOB.unpack(content))
    (folder / "job.ensio").write_bytes(content)
    return folder / "job.ensio"


def test_summary_and_ranks_are_those_of_the_events(made):
    run, traced = ensembles.open(made / "job"), ensembles.open(made / "trace")
    assert (run.mode, run.notes, run.info.has(Holds.ALL_CALLS)) == ("profile", [], False)
    assert run.summary.count == len(traced.events) == RANKS * EVENTS
    assert_same(run, traced)
    assert_same(ensembles.open(made / "job/job.ensio"), traced)


def test_a_trace_file_keeps_summary_and_ranks(made, tmp_path):
    from ensembles.run.collect import collect

    collect(str(made / "job"), str(tmp_path / "trace.h5"))
    assert_same(ensembles.open(tmp_path / "trace.h5"), ensembles.open(made / "trace"))


def test_a_spool_beside_it_adds_only_what_came_later(made, tmp_path):
    """A rank went on after the end of MPI: what it had in its summary by then is in that of the job."""
    (tmp_path / "job.ensio").write_bytes((made / "job/job.ensio").read_bytes())
    later = made_events(10, seed=5)
    spool(
        tmp_path / "alpha-1.spool",
        [later],
        rank=1,
        tasks=RANKS,
        pid=101,
        state=RUNNING,
        properties={"mode": "profile"},
    )
    run = ensembles.open(tmp_path)
    assert run.summary.count == RANKS * EVENTS + 10
    assert run.reading.ranks.count[run.reading.ranks.rank == 1].sum() == EVENTS + 10
    assert run.reading.ranks.count[run.reading.ranks.rank == 2].sum() == EVENTS


def test_two_job_files_in_a_directory_add_up(made, tmp_path):
    """Of two launches: their processes have their own names."""
    content = (made / "job/job.ensio").read_bytes()
    (tmp_path / "job.ensio").write_bytes(content)
    renamed = bytearray(content)
    head = JOB.unpack(renamed)
    from ensembles.model.c_layout import JOB_PROCESS

    position = head.records
    for _ in range(RANKS):
        process = JOB_PROCESS.unpack(renamed, position)
        at = position + JOB_PROCESS.size
        renamed[at : at + 5] = b"gamma"
        begin, end = position + 12, position + process.bytes
        end -= process.coded_bytes
        renamed[position + 8 : begin] = zlib.crc32(renamed[begin:end]).to_bytes(4, "little")
        position += process.bytes
    (tmp_path / "job-2.ensio").write_bytes(renamed)
    run = ensembles.open(tmp_path)
    assert run.summary.count == 2 * RANKS * EVENTS == run.reading.ranks.count.sum()


def test_a_damaged_summary_is_told_and_the_rows_of_ranks_are_read(made, tmp_path):
    def damage(content, head):
        content[head.summary + head.summary_coded // 2] ^= 0xFF

    run = ensembles.open(changed(made, tmp_path, damage))
    assert run.summary.count == 0
    assert any("job.ensio is damaged" in note and "do not include the calls" in note for note in run.notes)
    assert run.reading.ranks.count.sum() == RANKS * EVENTS


@pytest.mark.parametrize("member", ["summary", "summary_coded", "summary_bytes"])
def test_a_summary_that_cannot_lie_there_is_damage(made, tmp_path, member):
    def lead_astray(content, head):
        at = JOB.dtype.fields[member][1]
        content[at : at + 4] = (1 << 31).to_bytes(4, "little")

    with pytest.raises(EnsioError, match="is damaged"):
        ensembles.open(changed(made, tmp_path, lead_astray))


def test_records_that_speak_of_a_summary_where_none_is_are_damage(made, tmp_path):
    def take_away(content, head):
        at = JOB.dtype.fields["summary"][1]
        content[at : at + 8] = bytes(8)

    with pytest.raises(EnsioError, match="is damaged"):
        ensembles.open(changed(made, tmp_path, take_away))


@given(at=st.integers(0), value=st.integers(1, 255), cut=st.booleans())
@settings(max_examples=60)
def test_any_damage_is_an_error_or_told(made, tmp_path_factory, at, value, cut):
    folder = tmp_path_factory.mktemp("any")
    content = bytearray((made / "job/job.ensio").read_bytes())
    at %= len(content)
    content[at] ^= value
    (folder / "job.ensio").write_bytes(content[:at] if cut else content)
    try:
        run = ensembles.open(folder / "job.ensio")
        found, rows = run.summary.count, int(run.reading.ranks.count.sum())
    except EnsioError:
        return
    assert (found, rows) == (RANKS * EVENTS, RANKS * EVENTS) or run.notes


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=100)
def test_forged_summaries_are_refused_or_hold_possible_numbers(made, tmp_path_factory, coder, data):
    """An attacker who forges one may put a right checksum on it."""
    from ensembles.readers.native.job_file_codec import decode_text

    content = (made / "job/job.ensio").read_bytes()
    head = JOB.unpack(content)
    coded = content[head.summary : head.summary + head.summary_coded]
    raw = bytearray(decode_text(coded, b"", head.summary_bytes))
    cells = JOB_SUMMARY.unpack(raw).cells
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(
            st.integers(0, JOB_SUMMARY.size + cells * JOB_CELL.size - 1) | st.integers(0, len(raw) - 1)
        )
        raw[at] = data.draw(st.integers(0, 255))
    forged = coder.text(b"", bytes(raw))
    moved = len(forged) - len(coded)
    members = head._asdict() | {
        "summary_coded": len(forged),
        "summary_checksum": zlib.crc32(forged),
        "bytes": head.bytes + moved,
        "records": head.records + moved,
    }
    path = tmp_path_factory.mktemp("forged") / "job.ensio"
    path.write_bytes(
        JOB.pack(**members) + content[JOB.size : head.summary] + forged + content[head.records :]
    )
    try:
        run = ensembles.open(path)
        summary = run.summary
    except EnsioError:
        return
    assert (summary.cells["count"] > 0).all()
    assert summary.longest[1].rank.max(initial=0) < 1 << 32
    assert all(0 <= number < len(run.files) for number in summary.longest[1].file.tolist())
