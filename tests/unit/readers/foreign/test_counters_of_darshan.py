"""Counters by file and rank are those that PyDarshan's records and its accumulators hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from read_by_pydarshan import EXAMPLES, cffi_backend

import ensembles as en

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
    counters = en.open(path).counters
    assert counters is not None
    found = counters.modules[module]
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


def _sorted(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize(
    ("path", "module"),
    [case for case in CASES if case[1] in DERIVED],
    ids=[i for i in IDS if not i.endswith(("H5F", "H5D"))],
)
def test_rate_by_the_slowest_rank_is_that_of_darshans_accumulators(path: Path, module: str) -> None:
    whole, real = frames(path, module)
    if (real.filter(like="_TIME") < 0).any(axis=None):
        pytest.skip("Darshan's accumulator subtracts the negative times of a clock that was set back")
    prefix = module.replace("-", "") + "_"
    records = {
        "counters": whole.rename(columns=lambda name: name if name in ("id", "rank") else prefix + name),
        "fcounters": real.rename(columns=lambda name: name if name in ("id", "rank") else prefix + name),
    }
    run = en.open(path)
    assert run.counters is not None
    found = run.counters.modules[module]
    derived = cffi_backend.accumulate_records(records, module, run.tasks).derived_metrics
    assert found.slowest_rank_s == pytest.approx(derived.agg_time_by_slowest, rel=1e-6)
    assert (found.rate or 0.0) == pytest.approx(derived.agg_perf_by_slowest * 2**20, rel=1e-6)
    total = derived.category_counters[0]
    assert found.total("bytes_read") == total.total_read_volume_bytes
    assert found.total("bytes_written") == total.total_write_volume_bytes
