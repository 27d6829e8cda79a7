"""Every shipped pattern is replayed: the record has the calls and bytes that its plan has."""

import json
import os
from collections import Counter

import numpy as np
import pytest
from commands_here import told
from places import BUILD, ROOT
from replaying import calls_of, recorded_as

import ensembles
from ensembles.workloads.patterns import expand, read_pattern
from ensembles.workloads.patterns.task_block import FURTHER_BOX

PATTERNS = sorted((ROOT / "testbed" / "patterns").glob("*.toml"))
FINGERPRINTS = (ROOT / "testbed" / "patterns" / "fingerprints").glob("*.json")
HELD = {json.loads(path.read_text())["pattern"] for path in FINGERPRINTS} - {"ior", "btio"}
"""Patterns whose replays are compared with the program itself (test_fingerprints_of_programs)."""
SMALLER = {
    "ior": ["--set", "block_bytes=64KiB"],
    "madbench": ["--tasks", "2", "--set", "scale=1/1024"],
    "calibrate-fs": ["--set", "repetitions=1", "--set", "most_bytes=4MiB"],
}
MESSAGES = {"mpi.allgather": "MPI_Allgather", "mpi.allreduce": "MPI_Allreduce"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in HELD else ())
        for path in PATTERNS
    ],
)
def test_record_has_the_calls_and_bytes_of_the_plan(tmp_path, path, monkeypatch):
    more = SMALLER.get(path.stem, [])
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")
    result = told("replay", path, *more, "--directory", tmp_path, "-o", tmp_path / "run")
    plan = expand(read_pattern(path), result["parameters"])
    run = ensembles.open(result["run"])
    assert run.tasks == plan.tasks
    assert run.info.dropped_events == 0

    expected: dict[tuple[str, int, int], Counter] = {}
    messages = Counter()
    rank, call, file, size = (plan.column(name) for name in ("rank", "call", "file", "bytes"))
    first = np.flatnonzero(call != FURTHER_BOX)  # a call has the bytes of all its boxes
    boxes = np.diff([*first, len(call)])
    of_calls = (rank[first], call[first], file[first], np.add.reduceat(size, first), boxes)
    for rank, call, file, size, count in zip(*(column.tolist() for column in of_calls), strict=True):
        name = plan.calls[call]
        if file >= 0:
            own = expected.setdefault((name.split(".")[0], file, rank), Counter())
            own.update(recorded_as(name, size, count))
        messages[name] += 1
    for (layer, file, rank), calls in expected.items():
        here = Counter(calls_of(run, layer, tmp_path / plan.files[file], rank))
        assert here == calls, f"{layer} calls of rank {rank} on {plan.files[file]}"
    for planned, name in MESSAGES.items():
        sent = run.select(layer="mpisync", call=name) if messages[planned] else run.events[:0]
        assert (sent.depth == 0).sum() == messages[planned]
    phases = [(step["phase"], step["repetition"]) for step in result["steps"]]
    assert phases == [(step.phase, step.repetition) for step in plan.steps]
    named = run.regions[run.regions.rank == 0]
    assert [named.names[number] for number in named.name[named.start.argsort()]] == [
        name for name, _ in phases
    ]
