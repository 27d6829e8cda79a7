"""Plans written by hand, and simulated: what a pattern would be expanded to, without a pattern."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import ensembles
from ensembles.workloads.simulation import simulate
from ensembles.workloads.simulation.models import Model

MIB = 1 << 20
BOX = "box"


@dataclass
class HandmadePlan:
    """A plan of which every task's rows are given.

    Rows are (step, call, file, offset, bytes[, pieces, stride[, planes, plane_stride]]). The call `BOX` is a
    further box of the call before it.
    """

    rows: list[list[tuple]]
    files: list[str] = field(default_factory=lambda: ["data"])
    tasks_per_node: int = 2
    steps: int = 1
    hints: dict[str, object] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, int]:
        return {"tasks_per_node": self.tasks_per_node}

    @property
    def tasks(self) -> int:
        return len(self.rows)

    @property
    def operations(self) -> int:
        return sum(map(len, self.rows))

    def write(self, path: Path, directory: Path, seed: int) -> None:
        calls = sorted({row[1] for rows in self.rows for row in rows} - {BOX})
        lines = [f"seed {seed}", f"tasks {self.tasks}", f"tasks_per_node {self.tasks_per_node}"]
        for key, entries in [
            ("calls", calls),
            ("files", [f"{directory}/{name}" for name in self.files]),
            ("hints", [f"{key} {value}" for key, value in self.hints.items()]),
            ("steps", [f"step{number} 0" for number in range(self.steps)]),
        ]:
            lines += [f"{key} {len(entries)}", *entries]
        lines.append(f"operations {sum(map(len, self.rows))}")
        text = "".join(f"{line}\n" for line in lines).encode()
        numbers = [
            [
                row[0],
                -1 if row[1] == BOX else calls.index(row[1]),
                *row[2:5],
                *(row[5:] + (1, 0, 1, 0)[len(row) - 5 :]),
            ]
            for rows in self.rows
            for row in rows
        ]
        with path.open("wb") as file:
            file.write(b"ensio-plan 2 %d\n" % len(text) + text)
            np.array([len(rows) for rows in self.rows], "i8").tofile(file)
            np.array(numbers, "i8").reshape(-1, 9).tofile(file)


def every_task(tasks: int, rows) -> list[list[tuple]]:
    """The same program for all tasks: `rows` gives that of a rank."""
    return [rows(rank) for rank in range(tasks)]


def healthy(**parameters: float) -> Model:
    """The program's own parameters, some of them changed."""
    return Model("healthy", Path("healthy.toml"), parameters, {})


def simulated(folder: Path, plan: HandmadePlan, model: Model | None = None, mode="trace", seed=1):
    """The run of a simulated plan, and what the simulation says of itself."""
    directory = folder / f"run{len(list(folder.iterdir()))}"
    directory.mkdir()
    result = simulate(plan, model or healthy(), directory, "handmade", seed, mode)
    assert os.listdir(directory) == ["trace.h5"]
    return ensembles.open(directory), result


def called(run, name: str):
    """The events of one function."""
    names = [call.name for call in run.calls]
    return run.events[run.events.call == names.index(name)]


def covered(offsets, lengths) -> list[tuple[int, int]]:
    """The stretches that some pieces cover together; fails where two overlap."""
    stretches: list[tuple[int, int]] = []
    for begin, length in sorted(zip(offsets.tolist(), lengths.tolist(), strict=True)):
        if stretches and begin < stretches[-1][1]:
            raise AssertionError(f"two calls move the byte {begin}: {json.dumps(stretches[-1])}")
        if stretches and begin == stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], begin + length)
        else:
            stretches.append((begin, begin + length))
    return stretches
