"""Conditions between the calls of different tasks, checked block by block before a run."""

from __future__ import annotations

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.calls import MAKES_ROOM
from ensembles.workloads.patterns.grid_regions import Regions, WrittenRegions
from ensembles.workloads.patterns.instantiate import Expansion
from ensembles.workloads.patterns.pattern import MOST_OPERATIONS, Operation
from ensembles.workloads.patterns.task_block import FURTHER_BOX, Block, block_of

_STEP, _CALL, _FILE, _OFFSET, _BYTES = range(5)
_NEVER = np.iinfo(np.int64).max


class Checks:
    """Checks of all blocks, in the order of the tasks.

    `ends`: end of the written part of each file, bytes. `operations`: number of rows so far.
    """

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self.operations = 0
        self.ends = np.zeros(len(expansion.files), dtype=np.int64)
        kinds = [operation.kind for operation in expansion.operations]
        self._writes = np.array([kind.writes for kind in kinds])
        self._makes_room = np.array([operation.call in MAKES_ROOM for operation in expansion.operations])
        self._makes_file = np.array([kind.makes_file for kind in kinds])
        self._needs_file = np.array([kind.names_file and not kind.makes_file for kind in kinds])
        self._collective = np.array([kind.collective for kind in kinds])
        self._same_size = np.array([kind.same_size for kind in kinds])
        self._alone = np.array(
            [
                operation.file is not None and expansion.pattern.files[operation.file].one_a_task
                for operation in expansion.operations
            ]
        )
        self._written = [WrittenRegions() for _ in expansion.phases]
        self._made = np.full(len(self.ends), _NEVER)
        self._used: dict[int, tuple[int, int]] = {}  # by file: first step, operation
        self._together: np.ndarray | None = None

    def add(self, block: Block) -> None:
        """Add a block of tasks."""
        self.operations += len(block.rows)
        if self.operations > MOST_OPERATIONS:
            raise EnsioError(
                f"{self._expansion.pattern.path}: the tasks would make more than "
                f"{MOST_OPERATIONS:,} calls in total: reduce the tasks or the calls"
            )
        self._add_written(block)
        self._add_files(block)
        self._add_collective(block)

    def finish(self) -> None:
        """Check the conditions that need the calls of all tasks."""
        for file, (step, operation) in self._used.items():
            if step < self._made[file]:
                raise EnsioError(
                    f"{self._operation(operation).where}: {self._expansion.files[file]} does not exist yet: "
                    "no earlier step creates it"
                )
        for phase, written in enumerate(self._written):
            try:
                shared = written.shared_byte()
            except OverflowError:
                raise EnsioError(
                    f"{self._expansion.pattern.path}: phase {self._expansion.phases[phase].name}: more than "
                    f"{MOST_OPERATIONS:,} pieces cannot be checked for overlaps: use fewer, or equal strides"
                ) from None
            if shared:
                self._refuse_overlap(phase, *shared)

    def _operation(self, number: int) -> Operation:
        return self._expansion.operations[number]

    def _add_written(self, block: Block) -> None:
        rows, operation = block.rows, block.operation
        writes = self._writes[operation] & (rows[:, _BYTES] > 0)
        rooms = self._makes_room[operation]
        np.maximum.at(self.ends, rows[rooms, _FILE], rows[rooms, _OFFSET] + rows[rooms, _BYTES])
        regions = _regions(block, writes)
        length = regions.size // (regions.pieces * regions.planes)
        reach = (regions.planes - 1) * regions.plane_stride + (regions.pieces - 1) * regions.stride + length
        np.maximum.at(self.ends, regions.file, regions.offset + reach)
        shared = ~self._alone[operation[writes]]
        phases = self._expansion.step_phase[rows[writes, _STEP]]
        for phase in np.unique(phases[shared]):
            found = self._written[phase].add(regions[shared & (phases == phase)])
            if found:
                self._refuse_overlap(int(phase), *found)

    def _refuse_overlap(self, phase: int, file: int, byte: int) -> None:
        """Expand the blocks again to find two tasks that write this byte, and report them."""
        writers: dict[int, int] = {}
        for first, end in self._expansion.spans():
            block = block_of(self._expansion, first, end)
            of_phase = self._expansion.step_phase[block.rows[:, _STEP]] == phase
            writes = np.flatnonzero(self._writes[block.operation] & of_phase & (block.rows[:, _BYTES] > 0))
            regions = _regions(block, writes)
            for found in np.flatnonzero(regions.covers(file, byte)):
                writers.setdefault(int(regions.rank[found]), int(block.operation[writes[found]]))
                if len(writers) == 2:
                    break
            if len(writers) == 2:
                break
        (one, _), (other, operation) = writers.items()
        raise EnsioError(
            f"{self._operation(operation).where}: phase {self._expansion.phases[phase].name}: "
            f"tasks {one} and {other} both write byte {byte} of {self._expansion.files[file]}: "
            "assign a separate region to each"
        )

    def _add_files(self, block: Block) -> None:
        rows, operation = block.rows, block.operation
        makes = self._makes_file[operation]
        np.minimum.at(self._made, rows[makes, _FILE], rows[makes, _STEP])
        needs = np.flatnonzero(self._needs_file[operation])
        needs = needs[np.lexsort((rows[needs, _STEP], rows[needs, _FILE]))]
        files, first = np.unique(rows[needs, _FILE], return_index=True)
        for file, row in zip(files.tolist(), needs[first].tolist(), strict=True):
            use = (int(rows[row, _STEP]), int(operation[row]))
            self._used[file] = min(use, self._used.get(file, use))

    def _add_collective(self, block: Block) -> None:
        """Check that all tasks make the same collective calls in the same order."""
        which = np.flatnonzero(self._collective[block.operation] & (block.rows[:, _CALL] != FURTHER_BOX))
        rows, operation = block.rows[which], block.operation[which]
        size = np.where(self._same_size[operation], rows[:, _BYTES], 0)
        made = np.column_stack([rows[:, _STEP], rows[:, _CALL], rows[:, _FILE], size, operation])
        counts = np.bincount(block.rank[which] - block.first, minlength=len(block.counts))
        if self._together is None:
            self._together = made[: counts[0]]
        expected = self._together
        if (counts == len(expected)).all():
            each = made.reshape(len(counts), len(expected), made.shape[1])
            differs = (each[:, :, :4] != expected[None, :, :4]).any(axis=(1, 2))
            if not differs.any():
                return
            task = int(np.argmax(differs))
        else:
            task = int(np.argmax(counts != len(expected)))
        start = int(counts[:task].sum())
        self._refuse_collective(block.first + task, made[start : start + counts[task]], expected)

    def _refuse_collective(self, task: int, made: np.ndarray, expected: np.ndarray) -> None:
        common = min(len(made), len(expected))
        differs = (made[:common, :4] != expected[:common, :4]).any(axis=1)
        place = int(np.argmax(differs)) if differs.any() else common
        own = self._operation(made[place, 4]) if place < len(made) else None
        other = self._operation(expected[place, 4]) if place < len(expected) else None
        if own and other and own.call == other.call and (made[place, :3] == expected[place, :3]).all():
            raise EnsioError(
                f"{own.where}: task {task} makes {own.call} with {made[place, 3]:,} bytes, task 0 with "
                f"{expected[place, 3]:,}: the size must be equal for all tasks"
            )
        # Of two different operations, the other task lacks the one that comes first in the pattern.
        left_out = other and not (own and made[place, 4] < expected[place, 4])
        missing, one, another = (other, task, 0) if left_out else (own, 0, task)
        assert missing is not None
        raise EnsioError(
            f"{missing.where}: task {one} does not make the call {missing.call} that task {another} makes: "
            "all tasks must make collective calls in the same order"
        )


def _regions(block: Block, which: np.ndarray) -> Regions:
    _, _, file, offset, size, pieces, stride, planes, plane_stride = block.rows[which].T
    return Regions(block.rank[which], file, offset, size, pieces, stride, planes, plane_stride)
