"""Samples of the kernel's counters in spools and trace files, whole or damaged."""

import os
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from made_spools import RUNNING, made_events, spool

import ensembles as en
from ensembles.model.c_layout import CONSTANTS, SURROUNDINGS
from ensembles.model.errors import EnsioError
from ensembles.model.surroundings import COUNTERS, UNKNOWN
from ensembles.run.collect import collect
from ensembles.structure.surroundings import count_sampled, sum_levels, summarize_surroundings

PROCESS, MEMORY, NFS = (CONSTANTS[f"ENSIO_READ_{kind}"] for kind in ("PROCESS", "MEMORY", "NFS"))


def rows(count: int, first_ticks: int = 1000, read: int = PROCESS) -> np.ndarray:
    """Samples every 0.1 s: the n-th one has written n MiB, and 7 in all other counters."""
    made = np.zeros(count, SURROUNDINGS.dtype)
    for name in COUNTERS:
        made[name] = 7
    made["ticks"] = first_ticks + 100_000_000 * np.arange(count)
    made["cost_ns"], made["read"] = 12_000, read
    made["written_by_calls"] = np.arange(count) << 20
    return made


def test_samples_are_a_table_by_rank_and_time(tmp_path) -> None:
    both = rows(3, read=PROCESS | MEMORY)
    spool(tmp_path / "1.spool", [made_events(5)], rank=1, tasks=2, surroundings=rows(2), pid=101)
    spool(tmp_path / "0.spool", [made_events(5)], rank=0, tasks=2, surroundings=both)
    run = en.open(tmp_path)
    table = run.surroundings()
    assert table.rank.tolist() == [0, 0, 0, 1, 1]
    assert table.time.tolist() == [0, 100_000_000, 200_000_000, 0, 100_000_000]
    assert table.written_by_calls.tolist() == [0, 1 << 20, 2 << 20, 0, 1 << 20]
    assert table.dirty_bytes.tolist() == [7, 7, 7, UNKNOWN, UNKNOWN]
    assert set(table.nfs_reads.tolist()) == {UNKNOWN}
    assert set(table.cost.tolist()) == {12_000}
    assert run.notes == []


def test_every_counter_belongs_to_one_kind_of_reading(tmp_path) -> None:
    kinds = [value for name, value in CONSTANTS.items() if name.startswith("ENSIO_READ_")]
    made = np.concatenate([rows(1, 1000 + place, kind) for place, kind in enumerate(kinds)])
    spool(tmp_path / "0.spool", [made_events(5)], rank=0, surroundings=made)
    columns = en.open(tmp_path).surroundings().columns
    known = {name: int((columns[name] != UNKNOWN).sum()) for name in COUNTERS}
    assert known == dict.fromkeys(COUNTERS, 1)


def test_a_run_without_samples_has_an_empty_table(tmp_path) -> None:
    spool(tmp_path / "0.spool", [made_events(5)], rank=0)
    table = en.open(tmp_path).surroundings()
    assert len(table) == 0
    assert repr(table) == "SurroundingsTable: no samples"
    path = collect(str(tmp_path), str(tmp_path / "trace.h5"))[0]
    assert len(en.open(path).surroundings()) == 0


def test_unfinished_and_impossible_rows_are_left_out(tmp_path) -> None:
    made = rows(6)
    made["read"][1] = 0
    made["ticks"][2] = 1 << 63
    made["ticks"][3] = 1
    made["written_by_calls"][4] = (1 << 64) - 5
    spool(tmp_path / "0.spool", [made_events(5)], rank=0, surroundings=made, state=RUNNING)
    run = en.open(tmp_path)
    table = run.surroundings()
    assert table.time.tolist() == [-999, 0, 400_000_000, 500_000_000]
    assert "0.spool: 2 counter samples left out as damaged or incomplete" in run.notes
    assert table.written_by_calls[2] == UNKNOWN


def test_samples_in_a_block_of_zeros_are_counted(tmp_path) -> None:
    path = spool(tmp_path / "run/0.spool", [], rank=0, surroundings=rows(200), state=RUNNING)
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), bytes(4096), CONSTANTS["ENSIO_SPOOL_BYTES"] + 4096)
    trace = collect(str(tmp_path / "run"), str(tmp_path / "trace.h5"))[0]
    for run in (en.open(path), en.open(trace)):
        missing = 200 - len(run.surroundings())
        assert 4096 // SURROUNDINGS.size <= missing <= 4096 // SURROUNDINGS.size + 2
        assert f"0.spool: {missing} counter samples left out as damaged or incomplete" in run.notes


def test_rows_behind_the_end_of_a_truncated_spool_are_missing(tmp_path) -> None:
    path = spool(tmp_path / "0.spool", [], rank=0, surroundings=rows(200), state=RUNNING)
    with path.open("r+b") as file:
        file.truncate(CONSTANTS["ENSIO_SPOOL_BYTES"] + 64 + 10 * SURROUNDINGS.size + 8)
    assert len(en.open(tmp_path).surroundings()) == 10


def test_a_trace_file_holds_the_same(tmp_path) -> None:
    made = rows(40, read=PROCESS | NFS)
    spool(tmp_path / "run/0.spool", [made_events(500)], rank=0, surroundings=made)
    table = en.open(tmp_path / "run").surroundings()
    assert len(table) == 40
    collected = en.open(collect(str(tmp_path / "run"), str(tmp_path / "trace.h5"))[0]).surroundings()
    for name, column in table.columns.items():
        np.testing.assert_array_equal(collected.columns[name], column, err_msg=name)


def test_columns_of_different_lengths_are_refused(tmp_path) -> None:
    spool(tmp_path / "run/0.spool", [made_events(50)], rank=0, surroundings=rows(9))
    path = collect(str(tmp_path / "run"), str(tmp_path / "trace.h5"))[0]
    with h5py.File(path, "r+") as file:
        del file["surroundings/read_calls"]
        file["surroundings/read_calls"] = np.arange(8)
    with pytest.raises(EnsioError, match=r"trace\.h5"):
        en.open(path).surroundings()


def test_threads_read_the_samples_of_one_run_at_the_same_time(tmp_path) -> None:
    # A table is asked for by each thread of a pass; one must not close what another one reads.
    for rank in range(40):
        one = {"rank": rank, "pid": 100 + rank, "surroundings": rows(9)}
        spool(tmp_path / f"{rank}.spool", [made_events(5)], tasks=40, **one)
    run = en.open(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda _: len(run.surroundings()), range(160)))
    assert tables == [360] * 160


@pytest.mark.parametrize("hosts", [("alpha", "alpha"), ("alpha", "beta")])
def test_counters_of_a_node_count_once_although_each_of_its_processes_samples_them(tmp_path, hosts) -> None:
    """Processes without MPI do not know of each other."""
    for rank, host in enumerate(hosts):
        made = rows(3, read=PROCESS | MEMORY | NFS)
        made["nfs_reads"] = [0, 5, 9]
        spool(tmp_path / f"{rank}.spool", [made_events(5)], rank=rank, tasks=2, surroundings=made, host=host)
    for opened in (tmp_path, collect(str(tmp_path), str(tmp_path / "trace.h5"))[0]):
        table = en.open(opened).surroundings()
        nodes = len(set(hosts))
        assert sum_levels(table, "dirty_bytes").value.tolist() == [7 * nodes] * 3
        assert count_sampled(table, "dirty_bytes") == nodes
        assert count_sampled(table, "written_by_calls") == 2
        totals = summarize_surroundings(table)
        assert totals.network["nfs_reads"] == 9 * nodes
        assert totals.process["written_by_calls"] == 2 * (2 << 20)
