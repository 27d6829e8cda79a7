"""Counters by file and rank are those that PyDarshan's records and its accumulators hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_darshan_logs import MadeLog, counted_log
from read_by_pydarshan import EXAMPLES, cffi_backend, sums_of

import ensembles as en
from ensembles.answers.info import answer_info
from ensembles.comparison.compare import compare_runs
from ensembles.comparison.report import gate
from ensembles.faces.words import cell
from ensembles.readers.foreign.darshan.source import HeatMapSums
from ensembles.structure.counters import counted_requests, file_rows, rank_rows, shared_sentence
from ensembles.viz.report.comparison import comparison_html

LOGS = sorted([*EXAMPLES.glob("*/*.darshan"), *(EXAMPLES.parent / "tests" / "input").glob("*.darshan")])
DERIVED = ("POSIX", "MPI-IO", "STDIO")
_CALLS = {
    "POSIX": (["READS"], ["WRITES"]),
    "STDIO": (["READS"], ["WRITES"]),
    "H5D": (["READS"], ["WRITES"]),
    "H5F": ([], []),
    "MPI-IO": tuple(
        [f"{kind}_{op}" for kind in ("INDEP", "COLL", "SPLIT", "NB")] for op in ("READS", "WRITES")
    ),
}


opened = cache(en.open)
"""Several tests ask each log; to start Darshan's library takes longest."""


@cache
def frames(path: Path, module: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All records of a module: counters and timers, with id and rank."""
    log = cffi_backend.log_open(str(path))
    whole, real = [], []
    while (record := cffi_backend.log_get_record(log, module, dtype="dict")) is not None:
        key = {"id": record["id"], "rank": record["rank"]}
        whole.append(key | record["counters"])
        real.append(key | record["fcounters"])
    cffi_backend.log_close(log)
    prefix = module.replace("-", "") + "_"
    return tuple(  # type: ignore[return-value]
        pd.DataFrame(rows).rename(columns=lambda name: name.removeprefix(prefix)) for rows in (whole, real)
    )


def modules_of(path: Path) -> list[str]:
    log = cffi_backend.log_open(str(path))
    found = [name for name in cffi_backend.log_get_modules(log) if name in _CALLS]
    cffi_backend.log_close(log)
    return found


CASES = [(path, module) for path in LOGS for module in modules_of(path)]
IDS = [f"{path.parent.name}/{path.stem[:24]}-{module}" for path, module in CASES]


@pytest.mark.parametrize(("path", "module"), CASES, ids=IDS)
def test_totals_by_file_and_rank_are_those_of_pydarshans_records(path: Path, module: str) -> None:
    whole, real = frames(path, module)
    found = opened(path).counters.modules[module]
    assert (found.records, found.shared_records) == (len(whole), int((whole["rank"] < 0).sum()))
    expected = pd.DataFrame({"id": whole["id"], "rank": whole["rank"]})
    for name, kinds in zip(("reads", "writes"), _CALLS[module], strict=True):
        expected[name] = whole[kinds].clip(lower=0).sum(axis=1) if kinds else 0
    for name, counter in (("bytes_read", "BYTES_READ"), ("bytes_written", "BYTES_WRITTEN")):
        expected[name] = whole[counter].clip(lower=0) if counter in whole else 0
    for name, counter in (("file_misaligned", "FILE_NOT_ALIGNED"), ("memory_misaligned", "MEM_NOT_ALIGNED")):
        expected[name] = whole[counter].clip(lower=0) if counter in whole else 0
    for name, counters_of in (("sequential", "SEQ"), ("consecutive", "CONSEC")):
        of = [f"{counters_of}_READS", f"{counters_of}_WRITES"]
        expected[name] = whole[of].clip(lower=0).sum(axis=1) if of[0] in whole else 0
    for name in ("read", "write", "meta"):
        timer = f"F_{name.upper()}_TIME"
        expected[f"{name}_s"] = real[timer].clip(lower=0) if timer in real else 0.0
    columns = list(expected.columns[2:])
    by_file = expected.groupby("id")[columns].sum()
    # The order of files differs: sorted rows are compared.
    ours = np.stack([found.by_file[name] for name in columns], axis=1).astype(float)
    assert np.allclose(_sorted(ours), _sorted(by_file.to_numpy(float)), rtol=1e-9)
    own = expected[expected["rank"] >= 0].groupby("rank")[columns].sum()
    rows = np.flatnonzero(np.asarray(found.by_rank["records"]) > 0)
    assert found.by_rank["rank"][rows].tolist() == own.index.tolist()
    for name in columns:
        np.testing.assert_allclose(found.by_rank[name][rows], own[name], rtol=1e-9)
    for name, total in found.totals.items():
        if total is not None and name in whole and "MAX_" not in name:
            assert total == int(whole[name][whole[name] >= 0].sum()), name
        elif name.endswith("_TIME") and name.startswith(("F_READ", "F_WRITE", "F_META")):
            assert total == pytest.approx(real[name].clip(lower=0).sum()), name


@pytest.mark.parametrize(
    ("path", "module"),
    [case for case in CASES if case[1] in ("POSIX", "MPI-IO")],
    ids=lambda case: str(case)[-40:],
)
def test_counted_requests_are_those_of_pydarshans_records(path: Path, module: str) -> None:
    whole, _ = frames(path, module)
    run = opened(path)
    layer = run.counters.modules[module].layer
    (found,) = [entry for entry in counted_requests(run.info) if entry["layer"] == layer] or [None]
    calls = int(whole[[name for kinds in _CALLS[module] for name in kinds]].clip(lower=0).sum().sum())
    if found is None:
        assert calls == 0
        return
    assert found["count"] == calls
    if module == "POSIX":
        assert found["misaligned"] == int(whole["FILE_NOT_ALIGNED"].clip(lower=0).sum())
        assert found["alignment_bytes"] == sorted({int(size) for size in whole["FILE_ALIGNMENT"] if size > 0})
    counts: dict[int, int] = {}
    for place in range(1, 5):
        for size, count in zip(whole[f"ACCESS{place}_ACCESS"], whole[f"ACCESS{place}_COUNT"], strict=True):
            if count > 0:
                counts[int(size)] = counts.get(int(size), 0) + int(count)
    for entry in found["common_sizes"]:
        assert counts[entry["bytes"]] == entry["count"]
    assert found["common_sizes"][0]["count"] == max(counts.values())


def _is_sound(real: pd.DataFrame) -> bool:
    """Darshan's accumulator subtracts negative times, of a clock that was set back."""
    return not (real.filter(like="_TIME") < 0).any(axis=None)


OF_DERIVED = [i for i, case in enumerate(CASES) if case[1] in DERIVED]


def test_most_logs_have_sound_times() -> None:
    assert sum(_is_sound(frames(*CASES[i])[1]) for i in OF_DERIVED) >= 25


def _sorted(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize(("path", "module"), [CASES[i] for i in OF_DERIVED], ids=[IDS[i] for i in OF_DERIVED])
def test_rate_by_the_slowest_rank_is_that_of_darshans_accumulators(path: Path, module: str) -> None:
    whole, real = frames(path, module)
    if not _is_sound(real):
        pytest.skip("a clock was set back: Darshan's accumulator subtracts its negative times")
    prefix = module.replace("-", "") + "_"
    records = {
        "counters": whole.rename(columns=lambda name: name if name in ("id", "rank") else prefix + name),
        "fcounters": real.rename(columns=lambda name: name if name in ("id", "rank") else prefix + name),
    }
    run = opened(path)
    found = run.counters.modules[module]
    derived = cffi_backend.accumulate_records(records, module, run.tasks).derived_metrics
    assert found.slowest_rank_s == pytest.approx(derived.agg_time_by_slowest, rel=1e-6)
    # No task is in calls for longer than the job, though PyDarshan's sums over threads may be.
    moved_s = derived.agg_time_by_slowest / min(derived.agg_time_by_slowest, run.counters.run_time_s or 1e9)
    assert (found.rate or 0.0) == pytest.approx(derived.agg_perf_by_slowest * moved_s * 2**20, rel=1e-6)
    assert found.rate_is_bound == (moved_s > 1)
    total = derived.category_counters[0]
    assert found.total("bytes_read") == total.total_read_volume_bytes
    assert found.total("bytes_written") == total.total_write_volume_bytes


def test_heat_maps_are_summed_over_ranks(tmp_path: Path) -> None:
    log = MadeLog(tasks=3, names={7: "/scratch/a", 99: "heatmap:POSIX"})
    log.count("POSIX", 7, 0, WRITES=2, BYTES_WRITTEN=30, F_WRITE_TIME=1.0)
    log.heat_map(99, 0, 0.5, [10, 0, 20], [0, 0, 0])
    log.heat_map(99, 2, 0.5, [0, 5, 0], [1, 2, 3])
    counters = en.open(log.write(tmp_path / "log")).counters
    found = counters.heatmaps["POSIX"]
    assert (found.bin_s, found.written.tolist(), found.read.tolist()) == (0.5, [10, 5, 20], [1, 2, 3])
    assert (found.rank.tolist(), found.rank_written.tolist()) == ([0, 2], [30, 5])
    assert found.row_written.tolist() == [[10, 0, 20], [0, 0, 0], [0, 5, 0]]
    assert found.row_read.tolist() == [[0, 0, 0], [0, 0, 0], [1, 2, 3]]


def test_heat_maps_of_many_ranks_have_few_rows_with_all_bytes() -> None:
    rng = np.random.default_rng(1)
    moved = rng.integers(0, 1 << 20, (3000, 4))
    sums = HeatMapSums()
    for rank in rng.permutation(3000).tolist():
        sums.add("heatmap:POSIX", 0.5, [np.array([7]), np.array([rank]), moved[rank], np.zeros(4, np.int64)])
    found = sums.finished()["POSIX"]
    assert found.ranks_per_row == 8
    np.testing.assert_array_equal(found.row_written, moved.reshape(375, 8, 4).sum(axis=1))


def test_variables_of_pnetcdf_are_counted(tmp_path: Path) -> None:
    log = MadeLog(tasks=4, names={7: "/scratch/a.nc", 8: "a.nc:temperature"})
    log.count_variable(8, 7, -1, 12, 1200, 3.0, (2, 1.5))
    run = en.open(log.write(tmp_path / "log"))
    found = run.counters.modules["PNETCDF_VAR"]
    assert (found.layer, found.total("writes"), found.total("bytes_written")) == ("pnetcdf", 12, 1200)
    (row,) = file_rows(run.info)
    assert (row["path"], row["is_shared"], row["slowest_rank"], row["slowest_s"]) == (
        "a.nc:temperature",
        True,
        2,
        1.5,
    )


def test_shared_records_only_bound_the_time_of_ranks(tmp_path: Path) -> None:
    log = MadeLog(tasks=4, names={7: "/scratch/shared", 8: "/scratch/own"})
    log.count("POSIX", 7, -1, WRITES=8, BYTES_WRITTEN=800, F_WRITE_TIME=10.0, SLOWEST_RANK=3, FASTEST_RANK=1,
              F_SLOWEST_RANK_TIME=4.0, F_FASTEST_RANK_TIME=1.0)  # fmt: skip
    log.count("POSIX", 8, 2, READS=1, BYTES_READ=5, F_READ_TIME=0.5)
    run = en.open(log.write(tmp_path / "log"))
    rows = {
        row["rank"]: (row["bytes_written"], row["time_s"], row["low_s"], row["high_s"])
        for row in rank_rows(run.info)
    }
    assert rows == {3: (0, 0.0, 4.0, 4.0), 1: (0, 0.0, 1.0, 1.0), 2: (0, 0.5, 1.5, 4.5)}
    assert "1 file record with sums over all ranks" in shared_sentence(run.info)


def test_a_slowest_rank_that_no_counter_names_is_a_bound(tmp_path: Path) -> None:
    log = MadeLog(tasks=4, names={7: "/scratch/shared"})
    log.count("POSIX", 7, -1, WRITES=8, BYTES_WRITTEN=800, F_WRITE_TIME=10.0)
    run = en.open(log.write(tmp_path / "log"))
    module = run.counters.modules["POSIX"]
    assert (module.slowest_is_bound, module.slowest_rank_s, module.rate) == (True, 10.0, None)
    assert file_rows(run.info)[0]["slowest_s"] is None
    text = str(answer_info(run))
    assert "≤ 10.0 s" in text
    assert "unknown" in text


def test_the_text_says_what_took_the_time(tmp_path: Path) -> None:
    path = EXAMPLES / "example_logs" / "sample-badost.darshan"
    text = str(answer_info(en.open(path)))
    assert "12 min 58 s (rank 1507)" in text
    ost = text[text.index("OST  files") :].splitlines()[2].split()
    assert ost[:2] == ["14", "85"]
    text = str(answer_info(en.open(EXAMPLES / "example_logs" / "dxt.darshan")))
    assert "metadata 3 h 07 min (> 99.9 %)" in text
    assert "0.0 % of thread time" not in text
    assert "ensio run" not in text
    assert "implausible" not in text  # counted times have no threads


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem[:24]}")
def test_no_answer_on_a_log_of_another_tool_advises_to_record_with_ensio(path: Path) -> None:
    run = opened(path)
    texts = [str(answer_info(run)), *run.notes]
    for ask in (lambda: run.phases, lambda: run.ensemble(op="write"), lambda: run.select(phase="1")):
        try:
            ask()
        except en.EnsioError as error:
            texts.append(str(error))
    assert not [text for text in texts if "ensio run" in text]


def test_two_logs_with_counters_are_compared_by_their_sums() -> None:
    paths = [EXAMPLES.parent / "tests" / "input" / f"sample-{name}.darshan" for name in ("goodost", "badost")]
    runs = [en.open(path) for path in paths]
    found = compare_runs([[run] for run in runs])
    kinds = {(one.layer, one.op): one for one in found}
    for key in (("posix", "write"), ("stdio", "write")):
        sums = [sums_of(path)[key] for path in paths]
        totals = {total.what: total.typical for total in kinds[key].totals}
        assert (totals["calls"], totals["bytes"]) == tuple([one[at] for one in sums] for at in (0, 1))
        assert totals["time_s"] == pytest.approx([one[2] for one in sums], rel=1e-6)
        assert kinds[key].verdict == "different"
        assert not kinds[key].tests
        assert "single calls are not in the record" in kinds[key].reason
    opens, slowest_s = [], []
    for path in paths:
        opens.append(sum(frames(path, module)[0].OPENS.sum() for module in ("POSIX", "STDIO")))
        real = frames(path, "POSIX")[1]
        assert (real["rank"] >= 0).all()
        times = real.F_READ_TIME + real.F_WRITE_TIME + real.F_META_TIME
        slowest_s.append(times.groupby(real["rank"]).sum().max())
    totals = {total.what: total.typical for total in found[0].run_totals}
    assert totals["opens"] == opens
    assert totals["slowest_task_s"] == pytest.approx(slowest_s, rel=1e-6)
    assert found[0].run_times[0].what == "slowest_task_s"
    judged = gate(found, 1.1)
    assert judged.whole_runs_fail
    failed = cell(judged.failed[0], "")
    assert "I/O of slowest task" in failed
    # Counters record no waiting: tasks that wait for the slowest are outside of their calls.
    assert "each task: outside of these calls +" in failed
    assert "single calls are not in the record" in comparison_html(runs)


@pytest.mark.parametrize(
    ("latest_s", "verdict", "direction"), [(30.0, "different", "slower"), (10.4, "inconclusive", None)]
)
def test_a_new_log_with_counters_is_judged_by_how_much_its_baselines_vary(
    tmp_path: Path, latest_s: float, verdict: str, direction: str | None
) -> None:
    runs = []
    for number, write_s in enumerate((10.0, 10.6, 9.6, 10.2, latest_s)):
        log = MadeLog(tasks=2, names={7: "/scratch/a"})
        log.count("POSIX", 7, 1, WRITES=64, BYTES_WRITTEN=64 << 20, F_WRITE_TIME=write_s)
        runs.append(en.open(log.write(tmp_path / f"log{number}")))
    (found,) = compare_runs([runs[:4], runs[4:]])
    assert (found.verdict, found.direction) == (verdict, direction)
    assert found.times[0].ratio == pytest.approx(latest_s / 10.1)
    assert [total.differs for total in found.totals if total.what in ("calls", "bytes")] == [False, False]
    assert [(group.runs, group.calls, group.median_s) for group in found.groups] == [
        (4, 256, None),
        (1, 64, None),
    ]


def test_sums_are_compared_neither_with_single_calls_nor_for_a_part_of_the_calls() -> None:
    folder = EXAMPLES / "example_logs"
    summed, traced = en.open(folder / "sample-badost.darshan"), en.open(folder / "dxt.darshan")
    with pytest.raises(en.EnsioError, match=r"badost\.darshan holds sums of calls, and .*dxt\.darshan"):
        en.compare(traced, summed)
    with pytest.raises(en.EnsioError, match="no duration of single calls"):
        en.compare(summed, summed, size="4MiB")


@pytest.mark.parametrize("maps", [0, 2])
def test_mapped_files_are_not_in_the_counters(tmp_path: Path, maps: int) -> None:
    log = counted_log()
    log.count("POSIX", 9, 0, OPENS=1, MMAPS=maps)
    run = en.open(log.write(tmp_path / "log"))
    assert (run.unseen is not None and "accesses to mapped files" in run.unseen.sentence) == bool(maps)
    assert run.unseen is None or "not-io" not in {finding.id for finding in en.diagnose(run).findings}
