"""Plan files for ensio-replay, written by the tests as testbed/replay/plan.h says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BOX = "box"


@dataclass(frozen=True)
class Row:
    """One call of one task.

    Attributes
    ----------
    task : int
    call : str
        ``layer.call``, or `BOX` for a further box of the call before it.
    file : int
        Index into the plan's files; -1: none.
    offset, bytes, pieces, stride, planes, plane_stride : int
        As in plan.h.
    """

    task: int
    call: str
    file: int = 0
    offset: int = 0
    bytes: int = 0
    pieces: int = 1
    stride: int = 0
    planes: int = 1
    plane_stride: int = 0

    def numbers(self) -> tuple[int, ...]:
        """What follows the call in the row."""
        return (self.file, self.offset, self.bytes, self.pieces, self.stride, self.planes, self.plane_stride)

    def covered(self) -> np.ndarray:
        """The bytes of the file that the call moves, in the order of its data: int64, shape (bytes,)."""
        pieces = (
            self.offset
            + np.arange(self.planes)[:, None] * self.plane_stride
            + np.arange(self.pieces) * self.stride
        ).ravel()
        return (pieces[:, None] + np.arange(self.bytes // len(pieces))).ravel()


def everyone(tasks: int, call: str, **values: int) -> list[Row]:
    """The same row for each task."""
    return [Row(task, call, **values) for task in range(tasks)]


def write_plan(
    path: Path,
    tasks: int,
    files: Iterable[Path],
    steps: Sequence[tuple[str, Sequence[Row]]],
    hints: Sequence[tuple[str, str]] = (),
    seed: int = 12345,
) -> Path:
    """Write a plan of version 2; ``steps`` are the phases' names and their rows."""
    files = list(files)
    calls = list(dict.fromkeys(row.call for _, rows in steps for row in rows if row.call != BOX))
    lines = [f"seed {seed}", f"tasks {tasks}", "tasks_per_node 2"]
    lines += [f"calls {len(calls)}", *calls]
    lines += [f"files {len(files)}", *map(str, files)]
    lines += [f"hints {len(hints)}", *(f"{key} {value}" for key, value in hints)]
    lines += [f"steps {len(steps)}", *(f"{name} 0" for name, _ in steps)]
    own = [
        [
            (step, -1 if row.call == BOX else calls.index(row.call), *row.numbers())
            for step, (_, rows) in enumerate(steps)
            for row in rows
            if row.task == task
        ]
        for task in range(tasks)
    ]
    lines.append(f"operations {sum(map(len, own))}")
    text = "".join(f"{line}\n" for line in lines).encode()
    with path.open("wb") as file:
        file.write(b"ensio-plan 2 %d\n" % len(text) + text)
        np.array([len(rows) for rows in own], np.int64).tofile(file)
        for rows in own:
            np.array(rows, np.int64).tofile(file)
    return path
