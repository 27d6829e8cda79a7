"""Requests by API, reads and writes apart, with sizes and alignment."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from builders import make_events
from synthetic_runs import synthetic_run

import ensembles
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call
from ensembles.run.requests import boundary_of, requests_of_run
from ensembles.summaries.calltable import operations_of_transfers
from ensembles.summaries.sizes import Alignment, SizeTable

CALLS = (
    Call("open", "posix", "open"),
    Call("pread", "posix", "read"),
    Call("pwrite", "posix", "write"),
    Call("MPI_File_write_at_all", "mpiio", "write"),
)


def events_of(rows):
    """Events from (function, offset, requested bytes, file)."""
    call, offset, requested, file = np.array(rows, np.int64).T
    columns = {"call": call, "offset": offset, "requested": requested, "file": file, "moved": requested}
    return make_events(columns, CALLS, ("", "/a", "/b"))


def test_alignment_by_hand():
    rows = [
        (0, 7, 100, 1),  # not a transfer
        (1, 0, 1312, 1),  # aligned; larger than the boundary
        (1, 1312, 1024, 1),  # misaligned, 1312 = 1024 + 288; crosses 2048
        (1, 1025, 1023, 1),  # misaligned, ends at 2048
        (2, 1024, 1024, 1),  # aligned
        (2, -1, 1024, 1),  # offset unknown
        (2, 5, 0, 1),  # no byte
        (3, 1536, 4096, 1),  # misaligned, larger than the boundary
        (3, 10, 1, 2),  # boundary unknown
    ]
    found = Alignment(np.array([0, 1024, 0]))
    found.add(events_of(rows))
    assert found.known == {"posix read": 3, "posix write": 1, "mpiio write": 1}
    assert found.misaligned == {"posix read": 2, "posix write": 0, "mpiio write": 1}
    assert found.crossing == {"posix read": 1, "posix write": 0, "mpiio write": 0}
    everywhere = Alignment(1)
    everywhere.add(events_of(rows))
    assert everywhere.known == {"posix read": 3, "posix write": 1, "mpiio write": 2}
    assert sum(everywhere.misaligned.values()) == 0


def test_sizes_of_reads_and_writes_are_counted_apart():
    table = SizeTable(operations_of_transfers)
    table.add(
        events_of([(1, 0, 8192, 1), (2, 0, 8192, 1), (2, 0, 8190, 1), (3, 0, 1312, 1), (2, 0, 8190, 1)])
    )
    assert table.frequent("posix read") == [(8192, 1)]
    assert table.frequent("posix write") == [(8190, 2), (8192, 1)]
    assert table.frequent("mpiio write") == [(1312, 1)]


def test_requests_of_a_run_are_those_of_its_events(tmp_path, capsys):
    synthetic_run(tmp_path / "run", 3, 42, seed=3)
    run = ensembles.open(tmp_path / "run")
    events = run.events
    found = {(row.layer, row.op): row for row in requests_of_run(run, align_bytes=3 << 20)}
    for op in ("read", "write"):
        mine = np.array([events.calls[call].op == op for call in events.call])
        row = found["posix", op]
        assert (row.count, row.bytes) == (int(mine.sum()), int(events.moved[mine].sum()))
        assert row.time_s == pytest.approx(events.duration[mine].sum() * 1e-9)
        assert {size.low_bytes: size.count for size in row.sizes} == Counter(events.requested[mine].tolist())
        assert row.located == np.count_nonzero(events.offset[mine] >= 0) > 0
        assert row.misaligned == np.count_nonzero(events.offset[mine] % (3 << 20)) > 0
        assert row.collective is None
    assert main(["requests", str(tmp_path / "run"), "--align", "3MiB", "--op", "write", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["requests"]
    assert told == json.loads(json.dumps(found["posix", "write"].to_json()))
    assert main(["requests", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split()[:3] == ["API", "op", "requests"]
    assert max(map(len, text.splitlines())) <= 80
    assert "Misaligned: offsets" not in text  # no boundary is known
    assert main(["requests", str(tmp_path / "run"), "--align", "3MiB"]) == 0
    text = capsys.readouterr().out
    assert text.endswith("Misaligned: offsets are not multiples of 3 MiB.\n")


def test_a_profile_has_the_same_sizes_and_no_alignment(tmp_path, capsys):
    synthetic_run(tmp_path / "run", 3, 42, seed=3)
    run = ensembles.open(tmp_path / "run")
    in_full = requests_of_run(run)
    profile = ensembles.open(tmp_path / "run")
    profile.reading.source.metadata.mode = "profile"
    from_summary = requests_of_run(profile)
    for a, b in zip(in_full, from_summary, strict=True):
        assert (a.layer, a.op, a.count, a.bytes, a.sizes) == (b.layer, b.op, b.count, b.bytes, b.sizes)
        assert (b.located, b.misaligned, b.crossing) == (None, None, None)
    with pytest.raises(EnsioError, match="keeps no events, and filters choose among single calls"):
        requests_of_run(profile, op="write")


def test_collective_calls_are_counted_where_names_show_them():
    from ensembles.run.requests import requests_from_sums
    from ensembles.summaries.calltable import CallTable

    events = events_of([(3, 0, 1312, 1), (3, 0, 1312, 1), (2, 0, 8, 1)])
    table, sizes, alignment = CallTable(), SizeTable(operations_of_transfers), Alignment(1024)
    for summary in (table, sizes, alignment):
        summary.add(events)
    mpiio, posix = requests_from_sums({"table": table, "transfer_sizes": sizes, "alignment": alignment})
    assert (mpiio.layer, mpiio.count, mpiio.collective) == ("mpiio", 2, 2)
    assert (posix.layer, posix.collective) == ("posix", None)
    assert mpiio.sizes[0].share == 1.0


def test_bad_boundaries_are_refused(tmp_path, capsys):
    synthetic_run(tmp_path / "run", 1, 12)
    with pytest.raises(EnsioError, match="at least 1 byte"):
        requests_of_run(ensembles.open(tmp_path / "run"), align_bytes=0)
    with pytest.raises(SystemExit):
        main(["requests", str(tmp_path / "run"), "--align", "0"])
    assert boundary_of(ensembles.open(tmp_path / "run"), "") == 0
