"""Expansion of the calls of a block of tasks, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import LARGEST_INT64, ROWS_AT_ONCE, count_text
from ensembles.workloads.patterns.calls import ALONE, EXCHANGE, FileState
from ensembles.workloads.patterns.expressions import Expression, Number
from ensembles.workloads.patterns.instantiate import Expansion, evaluated, holds
from ensembles.workloads.patterns.pattern import Operation, evaluate_count

ROW = ("step", "call", "file", "offset", "bytes", "pieces", "stride", "planes", "plane_stride")
"""Columns of a plan's rows."""

FURTHER_BOX = -1
"""Call of a row that has a further box of the call in the row before it."""

_STEP, _CALL, _FILE, _OFFSET, _BYTES, _PIECES, _STRIDE, _PLANES, _PLANE_STRIDE, _OPERATION, _RANK = range(11)


@dataclass(frozen=True)
class Block:
    """The calls of consecutive tasks."""

    first: int  # First task
    counts: np.ndarray  # int64, shape (tasks,): Number of rows of each task
    # int64, shape (rows, 9): Sorted by task, then in the order of the calls; columns as in `ROW`. A call of
    # several boxes has a row for each, of which only the first names the call (`FURTHER_BOX`).
    rows: np.ndarray
    operation: np.ndarray  # int64, shape (rows,): Index of the operation of each row

    @property
    def rank(self) -> np.ndarray:
        """Task of each row."""
        return np.repeat(np.arange(self.first, self.first + len(self.counts)), self.counts)


def block_of(expansion: Expansion, first: int, end: int) -> Block:
    """Expand the calls of the tasks from `first` to `end` - 1."""
    return BlockState(expansion, first, end).block()


class BlockState:
    """Open files and file positions of a block of tasks during the expansion."""

    def __init__(self, expansion: Expansion, first: int, end: int) -> None:
        self.expansion = expansion
        self.first, self.end = first, end
        keys, tasks = expansion.pattern.files, end - first
        self.state = {key: np.zeros(tasks, dtype=np.int8) for key in keys}
        self.position = {key: np.zeros(tasks, dtype=np.int64) for key in keys}
        self.opened = {key: np.zeros(tasks, dtype=np.int64) for key in keys}
        self.datasets: dict[int, list[int]] = {}  # by file: where its datasets begin, and the end of the last
        self.next_dataset: dict[int, int] = {}

    def block(self) -> Block:
        """Expand all calls of these tasks; raises as `block_of`."""
        parts = self._parts()
        columns = np.concatenate(parts, axis=1) if parts else np.empty((11, 0), dtype=np.int64)
        columns = columns[:, np.argsort(columns[_RANK], kind="stable")]
        return Block(
            first=self.first,
            counts=np.bincount(columns[_RANK] - self.first, minlength=self.end - self.first),
            rows=np.ascontiguousarray(columns[: len(ROW)].T),
            operation=columns[_OPERATION],
        )

    def _parts(self) -> list[np.ndarray]:
        """Return the calls in the order of the pattern, arrays of shape (11, calls)."""
        parts: list[np.ndarray] = []
        before = -1
        for step, phase, _, names in self.expansion.passes():
            if step != before:
                self._refuse_posted(before)
                before = step
            for group in _taking_turns(phase.operations):
                if group[0].call == EXCHANGE:
                    parts += self._received(group[0], names, step)
                parts += self._group(group, names, step)
        self._refuse_posted(before)
        return parts

    def _group(self, group: list[Operation], names: Mapping[str, Number], step: int) -> Iterator[np.ndarray]:
        """Yield the calls of an operation, or of operations whose calls take turns."""
        turns = _turns(group, names)
        if turns is None:
            yield self._made(group[0], names, step, None)
            return
        before = {key: state.copy() for key, state in self.state.items()}
        for operation in group if turns else ():
            yield self._made(operation, names, step, range(1))
        # If no turn leaves a trace, all further turns can be expanded at once.
        stays = all((self.state[key] == state).all() for key, state in before.items())
        if stays and _seeks_before_each(group):
            seek, move = group
            yield _in_turns(self._moved_where_sought(seek, move, names, step, turns[1:]))
            return
        if stays and not any(_depends_on_turn(operation) for operation in group):
            yield _in_turns([self._made(operation, names, step, turns[1:], False) for operation in group])
            return
        for call in turns[1:]:
            for operation in group:
                yield self._made(operation, names, step, range(call, call + 1))

    def _moved_where_sought(
        self, seek: Operation, move: Operation, names: Mapping[str, Number], step: int, calls: range
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return seeks, and transfers that each begin where the seek before it went."""
        sought = self._made(seek, names, step, calls, False)
        moved = self._made(move, names, step, calls, False)
        moved[_OFFSET] = sought[_OFFSET]
        too_far = moved[_OFFSET] > LARGEST_INT64 - moved[_BYTES]
        what = "the file would have 2**63 bytes or more"
        _refuse_where(too_far, moved[_BYTES], moved, move.values["size"], what)
        assert move.file is not None
        self.position[move.file][moved[_RANK] - self.first] = moved[_OFFSET] + moved[_BYTES]
        return sought, moved

    def _refuse_posted(self, step: int) -> None:
        """Reject requests that are not complete at the end of a step, when their memory is used again."""
        for key, state in self.state.items():
            posted = state == FileState.POSTED
            if posted.any():
                raise EnsioError(
                    f"{self.expansion.pattern.path}: phase {self.expansion.steps[step].phase}: task "
                    f"{int(np.argmax(posted)) + self.first} has requests on {key} that are not complete: "
                    "end each repetition with wait_all"
                )

    def _made(
        self,
        operation: Operation,
        names: Mapping[str, Number],
        step: int,
        calls: range | None,
        follows_state: bool = True,
    ) -> np.ndarray:
        """Return all calls of an operation, or those with these numbers."""
        values = _callers(operation, names, self.first, self.end, calls)
        if "boxes" in operation.values:
            values = _for_each_box(operation.values["boxes"], values)
        ranks = values["rank"]
        assert isinstance(ranks, np.ndarray)
        part = np.empty((11, len(ranks)), dtype=np.int64)
        if not len(ranks):
            return part
        part[_RANK], part[_STEP] = ranks, step
        part[_OPERATION], part[_CALL] = self.expansion.evaluate_numbers(operation)
        part[_OFFSET], part[_BYTES] = 0, 0
        part[_PIECES], part[_STRIDE], part[_PLANES], part[_PLANE_STRIDE] = 1, 0, 1, 0
        part[_FILE] = -1
        if operation.file:
            self._on_file(operation, values, part, follows_state)
        elif operation.call == EXCHANGE:
            part[_OFFSET], part[_BYTES] = self._peers(operation, values, ranks)
        else:
            self._sizes(operation, values, part)
        if "boxes" in operation.values:
            return _with_further_boxes(operation, values, part)
        return part

    def _on_file(
        self, operation: Operation, values: Mapping[str, Number], part: np.ndarray, follows_state: bool
    ) -> None:
        kind, key = operation.kind, operation.file
        assert key is not None
        task = part[_RANK] - self.first
        if follows_state:
            self._follow_state(
                operation, key, task[np.asarray(values["box"]) == 0] if "box" in values else task
            )
        if kind.names_file:
            part[_FILE] = self._named(operation, key, values, part[_RANK])
            if kind.after is not None:
                self.opened[key][task] = part[_FILE]
                self.position[key][task] = 0
        else:
            part[_FILE] = self.opened[key][task]
        self._sizes(operation, values, part)
        offset, size = part[_OFFSET], part[_BYTES]
        if "offset" in operation.values:
            offset[:] = evaluated(operation.values["offset"], values)
            _refuse_where(offset < 0, offset, part, operation.values["offset"], "the offset is below 0")
        elif kind.moves or not operation.values:
            offset[:] = self.position[key][task]
        self._follow_datasets(operation, part)
        if kind.moves_position:
            reach = int(offset.max()) + int(size.max()) * len(size)
            _refuse_where(
                np.full(len(size), reach > LARGEST_INT64),
                size,
                part,
                operation.values["size"],
                "the file would have 2**63 bytes or more",
            )
            offset += _before_each(task, size)
        if kind.moves or kind.in_pieces:
            self._lay_pieces(operation, values, part)
        if kind.sets_position:
            self.position[key][task] = offset
        elif kind.moves_position:
            self.position[key][task] = offset + size

    def _follow_state(self, operation: Operation, key: str, task: np.ndarray) -> None:
        kind, state = operation.kind, self.state[key]
        allowed = np.isin(state[task], [int(one) for one in kind.before])
        if kind.after is not None:
            again = np.concatenate([[False], task[1:] == task[:-1]])
            if kind.after not in kind.before and again.any() and allowed.all():
                state[task] = kind.after
                allowed = ~again
        if not allowed.all():
            wrong = int(task[np.argmin(allowed)])
            call = operation.call.partition(".")[2]
            raise EnsioError(
                f"{operation.where}: task {wrong + self.first} makes {call} on {key}, "
                f"{_state_told(FileState(int(state[wrong])), kind.before)}"
            )
        if kind.after is not None:
            state[task] = kind.after

    def _follow_datasets(self, operation: Operation, part: np.ndarray) -> None:
        """Lay the datasets of HDF5 files one behind the other; to create or open one gets its first byte."""
        layer, _, call = operation.call.partition(".")
        if layer != "hdf5":
            return
        file = int(part[_FILE][0])  # the tasks of a block open and create together
        if call == "create":
            self.datasets[file] = [0]
        if call in ("create", "open"):
            self.next_dataset[file] = 0
        if call not in ("dataset_create", "dataset_open"):
            return
        begins, number = self.datasets.setdefault(file, [0]), self.next_dataset.get(file, 0)
        sizes = part[_BYTES][part[_RANK] == part[_RANK][0]]
        if call == "dataset_create":
            number = len(begins) - 1
            begins += (begins[-1] + np.cumsum(sizes)).tolist()
        elif number + len(sizes) >= len(begins):
            there = count_text(len(begins) - 1, "dataset")
            raise EnsioError(
                f"{operation.where}: {self.expansion.files[file]} has {there}, and the tasks open "
                f"{number + len(sizes)}: create as many"
            )
        part[_OFFSET] = np.resize(begins[number : number + len(sizes)], part.shape[1])
        self.next_dataset[file] = number + len(sizes)

    def _named(
        self, operation: Operation, key: str, values: Mapping[str, Number], ranks: np.ndarray
    ) -> np.ndarray:
        """Return the number of a file that is named by its path."""
        files = self.expansion.files
        if "index" not in operation.values:
            return files.first[key] + ranks * self.expansion.pattern.files[key].one_a_task
        expression = operation.values["index"]
        index = np.broadcast_to(evaluated(expression, values), len(ranks))
        wrong = (index < 0) | (index >= files.counts[key])
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise EnsioError(
                f'{expression.where}: "{expression.text}" is {index[bad]} for task {ranks[bad]}: '
                f"[files.{key}] has numbers from 0 to {files.counts[key] - 1}"
            )
        return files.first[key] + index

    def _sizes(self, operation: Operation, values: Mapping[str, Number], part: np.ndarray) -> None:
        if "duration_ns" in operation.values:
            expression = operation.values["duration_ns"]
            part[_BYTES] = evaluated(expression, values)
            _refuse_where(part[_BYTES] < 0, part[_BYTES], part, expression, "the duration is below 0")
        if "size" not in operation.values:
            return
        expression, least = operation.values["size"], operation.kind.smallest_size
        part[_BYTES] = evaluated(expression, values)
        problem = f"the size is below {least} byte" + "s" * (least != 1)
        _refuse_where(part[_BYTES] < least, part[_BYTES], part, expression, problem)

    def _lay_pieces(self, operation: Operation, values: Mapping[str, Number], part: np.ndarray) -> None:
        """Check that the pieces of a call are equal, ordered, disjoint and within a file."""
        given, size = operation.values, part[_BYTES]
        for column, key in (
            (_PIECES, "pieces"),
            (_STRIDE, "stride"),
            (_PLANES, "planes"),
            (_PLANE_STRIDE, "plane_stride"),
        ):
            if key in given:
                part[column] = evaluated(given[key], values)
                least = 1 if key in ("pieces", "planes") else 0
                _refuse_where(
                    part[column] < least, part[column], part, given[key], f"it must be at least {least}"
                )
        reach = part[_OFFSET].astype(float) + size
        if given.keys() & {"pieces", "planes"}:
            pieces, planes = part[_PIECES], part[_PLANES]
            _refuse_where(
                (pieces.astype(float) * planes > size) & (size > 0)
                | (size % np.maximum(pieces * planes, 1) != 0),
                size,
                part,
                given["size"],
                "it cannot be divided into this number of equal pieces",
            )
            length = size // np.maximum(pieces * planes, 1)
            apart = np.where(pieces > 1, part[_STRIDE] - length, 0)
            if "stride" in given:
                _refuse_where(
                    (apart < 0) & (size > 0), part[_STRIDE], part, given["stride"], "the pieces overlap"
                )
            plane = (pieces - 1).astype(float) * part[_STRIDE] + length
            if "plane_stride" in given:
                _refuse_where(
                    (planes > 1) & (part[_PLANE_STRIDE] < plane) & (size > 0),
                    part[_PLANE_STRIDE],
                    part,
                    given["plane_stride"],
                    "the planes overlap",
                )
            reach = part[_OFFSET] + (planes - 1).astype(float) * part[_PLANE_STRIDE] + plane
        too_far = (reach >= 2.0**63) | (part[_OFFSET] > LARGEST_INT64 - size)
        _refuse_where(too_far, size, part, given["size"], "the file would have 2**63 bytes or more")

    def _peers(
        self, operation: Operation, values: Mapping[str, Number], ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the receiver and the number of bytes of each sender."""
        to, size = operation.values["to"], operation.values["size"]
        peer = np.broadcast_to(evaluated(to, values), len(ranks))
        sent = np.broadcast_to(evaluated(size, values), len(ranks))
        for wrong, value, expression, what in (
            ((peer < 0) | (peer >= self.expansion.tasks), peer, to, "there is no such task"),
            (sent < 1, sent, size, "the size is below 1 byte"),
        ):
            if wrong.any():
                bad = int(np.argmax(wrong))
                raise EnsioError(
                    f'{expression.where}: "{expression.text}" is {value[bad]} for task {ranks[bad]}: {what}'
                )
        return peer, sent

    def _received(self, operation: Operation, names: Mapping[str, Number], step: int) -> Iterator[np.ndarray]:
        """Yield the calls by which tasks of this block receive from any task."""
        for first in range(0, self.expansion.tasks, ROWS_AT_ONCE):
            values = _callers(operation, names, first, min(first + ROWS_AT_ONCE, self.expansion.tasks))
            senders = values["rank"]
            assert isinstance(senders, np.ndarray)
            if not len(senders):
                continue
            peer, sent = self._peers(operation, values, senders)
            own = np.flatnonzero((peer >= self.first) & (peer < self.end))
            part = np.zeros((11, len(own)), dtype=np.int64)
            part[_RANK], part[_OFFSET], part[_BYTES] = peer[own], senders[own], -sent[own]
            part[_STEP], part[_FILE], part[_PIECES], part[_PLANES] = step, -1, 1, 1
            part[_OPERATION], part[_CALL] = self.expansion.evaluate_numbers(operation)
            yield part


def _taking_turns(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Yield operations whose calls take turns together, others alone."""
    group: list[Operation] = []
    for operation in operations:
        if not operation.alternates and group:
            yield group
            group = []
        group.append(operation)
    yield group


def _turns(group: list[Operation], names: Mapping[str, Number]) -> range | None:
    """Return the numbers of the turns in which these operations make their calls; None: one operation."""
    if len(group) == 1:
        return None
    counts = [evaluate_count(operation.times, names, "times") for operation in group]
    for operation, times in zip(group, counts, strict=True):
        if times != counts[0]:
            raise EnsioError(
                f"{operation.where}: makes {times} calls, and the operation with which it takes turns "
                f"{counts[0]}: give both the same times"
            )
    return range(counts[0])


def _seeks_before_each(group: Sequence[Operation]) -> bool:
    """Whether the operations are seeks and transfers at the position, of the same tasks in the same turns."""
    if len(group) != 2 or group[0].file != group[1].file or group[0].when.text != group[1].when.text:
        return False
    return group[0].kind.sets_position and group[1].kind.moves_position


def _in_turns(made: Sequence[np.ndarray]) -> np.ndarray:
    """Order the calls of several operations: the first of each, then the second of each."""
    part = np.concatenate(made, axis=1)
    number = np.concatenate([_numbers_of_calls(each) for each in made])
    place = np.repeat(np.arange(len(made)), [each.shape[1] for each in made])
    ordered: np.ndarray = part[:, np.lexsort((place, number, part[_RANK]))]
    return ordered


def _depends_on_turn(operation: Operation) -> bool:
    """Whether a call depends on those before it by more than their number, or is not made in each turn."""
    kind = operation.kind
    return kind.moves_position or kind.sets_position or bool(operation.when.parted("call")[1])


def _numbers_of_calls(part: np.ndarray) -> np.ndarray:
    """Number the calls of each task, which are sorted by task; the rows of a call have its number."""
    rank = part[_RANK]
    new = np.concatenate([[True], rank[1:] != rank[:-1]]) if len(rank) else np.zeros(0, bool)
    call = np.cumsum(part[_CALL] != FURTHER_BOX)
    numbers: np.ndarray = call - call[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return numbers


def _for_each_box(boxes: Expression, values: dict[str, Number]) -> dict[str, Number]:
    """Return the values of the names for each box of each call, with `box`."""
    ranks = np.asarray(values["rank"])
    counts = np.broadcast_to(evaluated(boxes, values), len(ranks))
    if (counts < 1).any():
        bad = int(np.argmax(counts < 1))
        raise EnsioError(
            f'{boxes.where}: "{boxes.text}" is {counts[bad]} for task {ranks[bad]}: it must be at least 1'
        )
    box = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    each = {
        name: np.repeat(value, counts) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }
    return {**each, "box": box}


def _with_further_boxes(operation: Operation, values: Mapping[str, Number], part: np.ndarray) -> np.ndarray:
    """Drop empty boxes, except of calls without data, and mark all boxes of a call but its first."""
    box, filled = np.asarray(values["box"]), part[_BYTES] > 0
    call = np.cumsum(box == 0)
    if "offset" not in operation.values:  # the shape of a variable
        part[_OFFSET] = box * part[_BYTES]
    without_data = np.bincount(call, filled)[call] == 0
    kept = filled | (without_data & (box == 0))
    part, call = part[:, kept], call[kept]
    pieces, planes = part[_PIECES], part[_PLANES]
    ends = part[_OFFSET] + (planes - 1) * part[_PLANE_STRIDE] + (pieces - 1) * part[_STRIDE]
    ends += part[_BYTES] // (pieces * planes)
    further = np.concatenate([[False], call[1:] == call[:-1]])
    _refuse_where(
        further & (part[_OFFSET] < np.concatenate([[0], ends[:-1]])),
        part[_OFFSET],
        part,
        operation.values.get("offset", operation.values["boxes"]),
        "the box begins before the end of the one before it",
    )
    part[_CALL, further] = FURTHER_BOX
    return part


def _callers(
    operation: Operation,
    names: Mapping[str, Number],
    first: int,
    end: int,
    only: range | None = None,
) -> dict[str, Number]:
    """Return the values of the names with `rank` and `call` for each call, sorted by rank."""
    numbers = range(evaluate_count(operation.times, names, "times")) if only is None else only
    ranks = np.arange(first, end, dtype=np.int64)
    for_task, for_call = operation.when.parted("call")
    if for_task:
        ranks = ranks[holds(for_task, {**names, "rank": ranks}, len(ranks))]
    call: Number = numbers.start
    if len(numbers) != 1:
        call = np.tile(np.arange(numbers.start, numbers.stop, dtype=np.int64), len(ranks))
        ranks = np.repeat(ranks, len(numbers))
    if for_call and len(ranks):
        makes = holds(for_call, {**names, "rank": ranks, "call": call}, len(ranks))
        ranks = ranks[makes]
        call = call[makes] if isinstance(call, np.ndarray) else call
    return {**names, "rank": ranks, "call": call}


def _before_each(task: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the bytes that a task moved before each of its calls; tasks are sorted."""
    moved = np.cumsum(size) - size
    starts = np.flatnonzero(np.concatenate([[True], task[1:] != task[:-1]]))
    before: np.ndarray = moved - np.repeat(moved[starts], np.diff(np.append(starts, len(task))))
    return before


def _state_told(state: FileState, before: frozenset[FileState]) -> str:
    if state is FileState.CLOSED:
        return "which is not open there"
    if state is FileState.POSTED:
        return "which has requests there that are not complete"
    if state is FileState.INDEPENDENT:
        return "whose transfers are independent there"
    if state is FileState.DATASET and FileState.INDEPENDENT in before:
        return "whose transfers are collective there"
    if state is FileState.DATASET:
        return "whose dataset is still open there"
    if state is FileState.ALONE:
        return "which it opened alone"
    if before == ALONE:
        return "which all tasks opened together"
    opens = FileState.CLOSED in before
    return "which is already open there" if opens else "whose dataset is not open there"


def _refuse_where(
    wrong: np.ndarray, value: np.ndarray, part: np.ndarray, expression: Expression, what: str
) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        raise EnsioError(
            f'{expression.where}: "{expression.text}" is {value[first]} for task {part[_RANK][first]}: {what}'
        )
