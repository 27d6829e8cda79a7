"""Logs of real programs, which the package darshan brings along: PyDarshan reads the same in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from read_by_pydarshan import EXAMPLES, cffi_backend, events_of, records_of, segments_of, sums_of

import ensembles as en
from ensembles.run.information import collect_information

LOGS = sorted(EXAMPLES.glob("*/*.darshan"))
TRACED = ("dxt.darshan", "ior_hdf5_example.darshan")


@pytest.mark.parametrize("name", TRACED)
def test_segments_of_real_logs_are_those_that_pydarshan_reads(name: str) -> None:
    path = EXAMPLES / "example_logs" / name
    rows = segments_of(path)
    assert sum(rows.values()) > 100
    run = en.open(path)
    assert run.mode == "trace"
    assert events_of(run) == rows


@pytest.mark.parametrize(
    "path", [path for path in LOGS if path.name not in TRACED], ids=lambda path: path.stem[:24]
)
def test_sums_of_real_logs_are_those_of_pydarshans_counters(path: Path) -> None:
    run = en.open(path)
    cells, found = run.summary.cells, {}
    for i, number in enumerate(cells["call"]):
        call = run.calls[number] if run.summary.calls == run.calls else run.summary.calls[number]
        if call.op in ("read", "write"):
            longest = max(int(cells["max_ns"][i]), 0) * 1e-9
            found[call.layer, call.op] = (
                int(cells["count"][i]),
                int(cells["moved"][i]),
                int(cells["time_ns"][i]) * 1e-9,
                longest,
            )
    expected = sums_of(path)
    assert found.keys() == expected.keys()
    for key, sums in expected.items():
        assert found[key] == pytest.approx(sums, rel=1e-6, abs=1e-6), key
    assert run.mode == "profile"


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem[:24])
def test_jobs_of_real_logs_are_those_that_pydarshan_reads(path: Path) -> None:
    log = cffi_backend.log_open(str(path))
    job, command = cffi_backend.log_get_job(log), cffi_backend.log_get_exe(log)
    mounts = dict(cffi_backend.log_get_mounts(log))
    cffi_backend.log_close(log)
    run = en.open(path)
    assert (run.tasks, run.info.job) == (job["nprocs"], str(job["jobid"]))
    assert run.info.origin_unix_ns == job["start_time_sec"] * 10**9 + job["start_time_nsec"]
    assert " ".join(run.info.command) == command
    tables = list(run.info.mounts.values()) or [()]
    assert {mount.point: mount.type for table in tables for mount in table} == mounts


def test_layouts_on_lustre_are_those_of_the_record() -> None:
    path = EXAMPLES / "example_logs" / "ior_hdf5_example.darshan"
    (record,) = records_of(path, "LUSTRE")
    (component,) = record["components"]
    run = en.open(path)
    (file,) = run.info.file_facts
    striping = run.info.striping_of(file)
    assert striping is not None
    assert striping.stripe_bytes == component["counters"]["LUSTRE_COMP_STRIPE_SIZE"]
    assert striping.components[0].targets == tuple(component["ost_ids"])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem[:24])
def test_time_in_io_is_that_of_all_modules_of_the_main_layer(path: Path) -> None:
    """Layers contain each other, but streams are beside them; PyDarshan's sums are the truth."""
    information = collect_information(en.open(path))
    layers = {name: module["layer"] for name, module in information["counters"]["modules"].items()}
    sums: dict[str, float] = dict.fromkeys(layers.values(), 0.0)
    for module, layer in layers.items():
        for record in records_of(path, module):
            times = record["fcounters"]
            names = [
                name for name in times if name.endswith(("_F_READ_TIME", "_F_WRITE_TIME", "_F_META_TIME"))
            ]
            sums[layer] += sum(max(float(times[name]), 0.0) for name in names)
    streams_s = sums.pop("stdio", 0.0)
    io_s = max(sums.values(), default=0.0) + streams_s
    task_s = information["run_s"] * information["tasks"]
    assert information["io_time_s"] >= (1 - 1e-5) * io_s  # other layers may add to it
    share = io_s / task_s  # above 1: of threads, which Darshan does not count
    assert information["time_in_io"]["mean_share"] == (pytest.approx(share, rel=1e-5) if share <= 1 else None)
    assert information["counters"]["io_time_share"] == pytest.approx(io_s / task_s, rel=1e-5)
    assert information["run_s"] >= information["span_s"]
