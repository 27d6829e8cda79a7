"""How much memory a command takes for granted, and that it takes no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensembles.model.errors import EnsioError
from ensembles.passes import memory as budgets
from ensembles.passes.memory import Budget, machine_memory_bytes, resident_bytes

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def folder_of(top: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return top


def memory_of(tmp_path: Path, cgroup: str, limits: dict[str, str]) -> int:
    proc = folder_of(tmp_path / "proc", {"self/cgroup": cgroup})
    groups = folder_of(tmp_path / "groups", limits)
    return machine_memory_bytes(str(proc), str(groups))


def test_control_groups_of_version_2_count(tmp_path: Path) -> None:
    limits = {"job/step/memory.max": "max\n", "job/memory.max": "300000000\n"}
    assert memory_of(tmp_path, "0::/job/step\n", limits) == 300_000_000


def test_control_groups_of_version_1_count(tmp_path: Path) -> None:
    unlimited = str(0x7FFFFFFFFFFFF000)
    limits = {
        "memory/slurm/job_1/memory.limit_in_bytes": "200000000\n",
        "memory/slurm/memory.limit_in_bytes": unlimited,
    }
    cgroup = "5:cpu,cpuacct:/elsewhere\n4:memory:/slurm/job_1\n0::/none\n"
    assert memory_of(tmp_path, cgroup, limits) == 200_000_000


def test_in_a_container_the_group_at_the_top_counts(tmp_path: Path) -> None:
    assert memory_of(tmp_path, "0::/of/the/host\n", {"memory.max": "100000000"}) == 100_000_000


def test_without_control_groups_it_is_the_machine(tmp_path: Path) -> None:
    assert machine_memory_bytes(str(tmp_path), str(tmp_path)) == MACHINE
    assert memory_of(tmp_path, "0::/\n", {"memory.max": "max\n"}) == MACHINE


def test_a_quarter_of_the_machine_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "machine_memory_bytes", lambda: 8 << 30)
    assert Budget.default().memory_bytes == 2 << 30
    monkeypatch.setattr(budgets, "machine_memory_bytes", lambda: 400 << 20)
    assert Budget.default().memory_bytes == budgets.LEAST_BYTES


def test_what_the_process_takes_is_what_the_kernel_says() -> None:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    told = int(status.partition("VmRSS:")[2].split()[0]) * 1024
    assert resident_bytes() == pytest.approx(told, rel=0.2)


def test_to_take_more_is_an_error() -> None:
    Budget(1 << 40).check("run")
    with pytest.raises(EnsioError, match=r"run: the analysis takes more memory than the 1\.00 MiB"):
        Budget(1 << 20).check("run")
    Budget(1 << 20).unwatched().check("run")


def freed_below_the_top_of_the_heap() -> bytes:
    """Free 64 MiB in pieces; what is returned lies above them, so that the C library keeps their pages."""
    pieces = [bytes(1 << 16) for _ in range(1 << 10)]
    above = bytes(1 << 16)
    del pieces
    return above


def test_what_was_freed_is_given_back_before_a_pass_is_refused() -> None:
    Budget(1).spare()
    before = resident_bytes()
    above = freed_below_the_top_of_the_heap()
    assert resident_bytes() > before + (32 << 20)
    Budget(before + (24 << 20)).check("run")
    assert resident_bytes() < before + (24 << 20)

    above = freed_below_the_top_of_the_heap()
    held = resident_bytes()
    Budget(3 * held).spare()
    assert resident_bytes() > held - (8 << 20)
    Budget(held).unwatched().spare()
    assert resident_bytes() > held - (8 << 20)
    Budget(held).spare()
    assert resident_bytes() < held - (32 << 20)
    del above


def test_runs_of_a_process_share_what_is_held_but_not_the_program() -> None:
    process = resident_bytes()
    shared = Budget(2 * process).shared_by_runs(8)
    shared.check("run")
    assert shared.held_events == Budget(process // 4).held_events
    with pytest.raises(EnsioError, match="run: the analysis takes more memory"):
        Budget(process // 2).shared_by_runs(8).check("run")
    assert Budget(1 << 40).shared_by_runs(8).shared_by(4) == Budget(1 << 35)


def test_chunks_become_smaller_with_the_memory() -> None:
    assert Budget(1 << 40).chunk_events == 1 << 15
    assert Budget(5 << 24).chunk_events == 20_480
    assert Budget(1).chunk_events == 1 << 14


def test_threads_fit_into_the_budget() -> None:
    assert [Budget(mib << 20).threads for mib in (16, 208, 224, 320)] == [1, 1, 2, 5]
