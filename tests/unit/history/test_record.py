"""What a history keeps of a run is what a comparison needs, and never too large."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from night import night, night_record

import ensembles as en
from ensembles.comparison.compare import compare_read_runs, compare_runs
from ensembles.history.record import MOST_BYTES, KindRecord, PhaseRecord, RunRecord
from ensembles.model.errors import EnsioError
from ensembles.run.collect import collect
from ensembles.summaries.bins import BIN_COUNT


def test_a_record_survives_its_encoding(tmp_path: Path) -> None:
    record = night_record(tmp_path / "run", 1)
    again = RunRecord.decode(record.encode())
    assert again == record
    assert (record.tasks, record.totals["bytes_written"]) == (4, 800 << 20)
    assert {(kind.op, kind.calls) for kind in record.kinds} == {("write", 800), ("sync", 16)}
    assert record.rates_bytes_per_s["write"] > 0


def test_a_record_that_inflates_without_end_takes_bounded_memory() -> None:
    """64 KiB of zlib can hold 66 MiB, and longer ones gigabytes; records that are made are short."""
    bomb = zlib.compress(b"\xdd\x04\0\0\0" + bytes(64 << 20), 9)  # a list of zeros
    tracemalloc.start()
    try:
        with pytest.raises(EnsioError, match="the record is damaged"):
            RunRecord.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_records_are_compared_as_runs_are(tmp_path: Path) -> None:
    groups = [[night(tmp_path / f"a{k}", k) for k in range(4)], [night(tmp_path / "b", 9, slower=2.0)]]
    direct = compare_runs(groups)
    read = [[RunRecord.decode(RunRecord.of_run(run).encode()).as_read() for run in group] for group in groups]
    kept = compare_read_runs(read)
    assert [one.to_json() for one in kept] == [one.to_json() for one in direct]
    assert {one.op: one.verdict for one in kept}["write"] == "different"


def test_spools_and_the_collected_run_are_one_run(tmp_path: Path) -> None:
    run = night(tmp_path / "run", 3)
    before = RunRecord.of_run(run)
    collect(run.path)
    after = RunRecord.of_run(en.open(run.path))
    assert after.identity == before.identity
    assert night_record(tmp_path / "other", 4).identity != before.identity


def test_the_largest_run_fits(tmp_path: Path) -> None:
    record = night_record(tmp_path / "run", 1)
    rng = np.random.default_rng(7)
    kinds = [
        KindRecord(
            "posix",
            f"op{k}",
            10**9,
            10**15,
            1e6,
            1e-9,
            1e5,
            list(range(BIN_COUNT)),
            rng.integers(1, 10**12, BIN_COUNT).tolist(),
        )
        for k in range(40)
    ]
    phases = [PhaseRecord(k, f"phase {k}", *rng.random(2), *rng.integers(0, 10**15, 3)) for k in range(256)]
    phases = [msgspec.convert(msgspec.to_builtins(phase, enc_hook=int), PhaseRecord) for phase in phases]
    large = msgspec.structs.replace(record, kinds=kinds, phases=phases, command=["word" * 1000] * 1000)
    encoded = large.encode()
    assert len(encoded) <= MOST_BYTES
    again = RunRecord.decode(encoded)
    assert [sum(kind.counts) for kind in again.kinds] == [sum(kind.counts) for kind in kinds]
    assert any("times as wide" in note for note in again.caveats)
    assert again.as_read().calls.sample(("posix", "op0")).total == sum(kinds[0].counts)


@pytest.mark.parametrize("damage", [b"", b"nothing", zlib.compress(b"\xc1")])
def test_a_damaged_record_is_one_sentence(damage: bytes) -> None:
    with pytest.raises(EnsioError, match="record is damaged"):
        RunRecord.decode(damage)


def test_a_record_of_a_later_version_is_refused(tmp_path: Path) -> None:
    record = night_record(tmp_path / "run", 1)
    later = msgspec.structs.replace(record, version=99)
    with pytest.raises(EnsioError, match="later ensio"):
        RunRecord.decode(later.encode())
