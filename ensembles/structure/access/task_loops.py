"""The main loops of a task: how its calls are divided, and which loops are one for a reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from ensembles.model.levels import AGAIN, MOST_KINDS, WORTH_NAMING
from ensembles.structure.access.loops import (
    READ,
    REST,
    SYNC,
    WRITE,
    Loop,
    Part,
    Tokens,
    find_parts,
    nested,
    numbered,
    tokens_of,
    with_syncs,
)
from ensembles.structure.access.streams import follow, main_order
from ensembles.structure.access.uses import LoopUse, use_of

_FEW_STEPS = 4
"""Steps of all loops of a task up to which no simpler division is sought."""

_MANY_STEPS = 20
"""Steps of all loops of a task that no line can name."""

_TIMES_SIMPLER = 4
"""How many times fewer steps a division without sizes must have."""

_NONE = np.empty(0, np.int64)

Shape = tuple[tuple[int, tuple[tuple[int, str, int], ...], int, int], ...]
"""The main loops of a task: how often, their bodies with sizes as they are printed, number of their block and
how often it comes."""


@dataclass
class TaskLoops:
    """The main loops of a task."""

    shape: Shape = ()
    uses: list[LoopUse] = field(default_factory=list)  # One for each main loop
    smaller_bytes: list[int] = field(default_factory=list)  # What other loops move
    # Rows of streams that several steps of a loop, each with an order, make together
    in_mixed_order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


def find_task_loops(rows: dict[str, np.ndarray]) -> TaskLoops:
    """Find the main loops of a task."""
    kept, log_bytes = _without_logs(rows)
    if log_bytes:
        found = _find({name: column[kept] for name, column in rows.items()})
        found.smaller_bytes.append(log_bytes)
        found.in_mixed_order = kept[found.in_mixed_order]
        return found
    return _find(rows)


def _without_logs(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """Find the rows of other files than logs, and the bytes of logs: few, at unknown offsets."""
    moved = np.where(rows["order"] >= 0, np.maximum(rows["moved"], 0), 0)
    _, file = np.unique(rows["file"], return_inverse=True)
    bytes_, placed = np.bincount(file, moved), np.bincount(file, rows["offset"] >= 0)
    is_log = (placed == 0) & (bytes_ > 0) & (bytes_ < WORTH_NAMING * bytes_.sum())
    return np.flatnonzero(~is_log[file]), int(bytes_[is_log].sum())


def _find(rows: dict[str, np.ndarray]) -> TaskLoops:
    best = _division(rows, True, None)
    by_thread = _order_by_thread(rows)
    if by_thread is not None and (best.steps > _FEW_STEPS or _have_a_file_each(rows)):
        other = _division(rows, True, by_thread)
        simple = 2 * other.steps <= best.steps or (other.steps <= _FEW_STEPS and _have_a_file_each(rows))
        best = other if simple else best
    if best.is_accidental():
        for order in (None, by_thread) if by_thread is not None else (None,):
            other = _division(rows, False, order)
            best = other if _TIMES_SIMPLER * other.steps <= best.steps else best
    return _main_loops(best)


def _have_a_file_each(rows: dict[str, np.ndarray]) -> bool:
    """Whether threads move data in other files each."""
    data = rows["order"] >= 0
    file = rows["file"][data]
    return len(numbered([file, rows["thread"][data]])[1]) == len(np.unique(file))


class _Loop(NamedTuple):
    part: Part
    use: LoopUse
    labels: tuple[tuple[int, str, int], ...]
    in_mixed_order: np.ndarray


@dataclass
class _Division:
    """The calls of a task as loops: all of them, and the steps that they have."""

    rows: dict[str, np.ndarray]
    tokens: Tokens
    loops: list[_Loop]
    at: np.ndarray | None

    def is_main(self) -> list[bool]:
        """Return which loops move a considerable part of the bytes."""
        least = WORTH_NAMING * sum(loop.use.bytes for loop in self.loops)
        return [loop.use.bytes > 0 and loop.use.bytes >= least for loop in self.loops]

    @property
    def steps(self) -> int:
        """How many words the main loops take."""
        main = zip(self.loops, self.is_main(), strict=True)
        return sum(len(loop.part.body) or REST for loop, is_main in main if is_main)

    def is_accidental(self) -> bool:
        """Whether main loops repeat nothing, or so little that their sizes may agree by accident."""
        main = [loop.part for loop, is_main in zip(self.loops, self.is_main(), strict=True) if is_main]
        calls = sum(end - begin for part in main for begin, end in part.ranges)
        steps = self.steps  # those of a rest without repetition are many
        return steps > _MANY_STEPS or (steps > _FEW_STEPS and calls < AGAIN * steps)

    def used(self, part: Part) -> _Loop:
        steps = tuple((*self.tokens.steps[each], count) for each, count in part.body)
        labels = tuple((*self.tokens.labels[each], count) for each, count in part.body)
        use, mixed = use_of(self.rows, part, steps)
        return _Loop(part, use, labels, mixed if self.at is None else self.at[mixed])


def _division(rows: dict[str, np.ndarray], by_size: bool, at: np.ndarray | None) -> _Division:
    """Divide the calls of a task into loops; `at` is their order by threads."""
    cuts = [0, len(rows["op"])]
    if at is not None:
        rows = {name: column[at] for name, column in rows.items()}
        cuts = [0, *(np.flatnonzero(np.diff(rows["thread"])) + 1).tolist(), cuts[1]]
        data = np.flatnonzero(rows["order"] >= 0)
        mine = {name: column[data] for name, column in rows.items()}
        stream, _ = numbered([mine[name] for name in ("thread", "file", "op")])
        for name, found in follow(stream, mine["offset"], np.maximum(mine["moved"], 0))._asdict().items():
            rows[name] = rows[name].copy()
            rows[name][data] = found
    tokens = tokens_of(rows["op"], rows["requested"], rows["wanted"], by_size)
    moves = np.array([step[0] in (READ, WRITE) for step in tokens.steps])
    made = _Division(rows, tokens, [], at)
    block = 0
    for low, high in pairwise(cuts):
        here = slice(low, high)
        parts = find_parts(tokens.token[here], rows["file"][here], rows["order"][here], moves)
        if at is not None:
            parts = _with_syncs(parts, moves)
        for part in parts:
            ranges = [(begin + low, end + low) for begin, end in part.ranges]
            made.loops.append(made.used(part._replace(block=part.block + block, ranges=ranges)))
        block += parts[-1].block + 1
    if at is not None:
        made.loops = _joined(made, made.loops)
    return made


def _with_syncs(parts: list[Part], moves: np.ndarray) -> list[Part]:
    """Append single syncs to the loops before them: the calls of a thread are one body then."""
    if any(len(part.ranges) > 1 for part in parts):
        return parts
    loops = with_syncs([Loop(part.times, part.body, *part.ranges[0]) for part in parts], moves)
    return [Part(one.times, one.body, at, 1, [(one.begin, one.end)]) for at, one in enumerate(loops)]


def _order_by_thread(rows: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the order of calls by thread; None: one thread, or very many, move data."""
    threads, first, where = np.unique(rows["thread"], return_index=True, return_inverse=True)
    moving = np.unique(rows["thread"][rows["order"] >= 0])
    if len(moving) < 2 or len(threads) > MOST_KINDS:
        return None
    return np.argsort(first[where], kind="stable")


def _main_loops(made: _Division) -> TaskLoops:
    """Return the loops with most bytes; those that a reader could not distinguish are one."""
    pairs = list(zip(made.loops, made.is_main(), strict=True))
    blocks = {loop.part.block for loop, main in pairs if main and loop.part.block_times > 1}
    kept = [loop for loop, main in pairs if main or (loop.part.block in blocks and _only_syncs(loop.use))]
    kept = _joined(made, _without_blocks_of_one(made, kept))
    # Numbered without smaller loops, of which tasks with the same main loops may have others.
    places = [loop.part.block if loop.part.block_times > 1 else -1 - at for at, loop in enumerate(kept)]
    block = {number: at for at, number in enumerate(dict.fromkeys(places))}
    shape = tuple(
        (loop.part.times, loop.labels, block[place], loop.part.block_times)
        for loop, place in zip(kept, places, strict=True)
    )
    small = [loop.use.bytes for loop, main in pairs if not main and loop.use.bytes]
    mixed = [loop.in_mixed_order for loop in made.loops]
    return TaskLoops(shape, [loop.use for loop in kept], small, np.concatenate([*mixed, _NONE]))


def _only_syncs(use: LoopUse) -> bool:
    return bool(use.steps) and all(op == SYNC for op, *_ in use.steps)


def _without_blocks_of_one(made: _Division, loops: list[_Loop]) -> list[_Loop]:
    """Write a block of a single loop as a loop, where that has such a form."""
    found: list[_Loop] = []
    for _, block in groupby(loops, key=lambda loop: loop.part.block):
        members = list(block)
        part = members[0].part
        joined = nested(part.block_times, part.times, part.body) if len(members) == 1 else None
        if joined is not None and part.block_times > 1:
            members = [made.used(Part(*joined, part.block, 1, part.ranges))]
        found += members
    return found


def _joined(made: _Division, loops: list[_Loop]) -> list[_Loop]:
    """Join successive loops of equal text: a longer one in the same files, or one of several files."""
    found: list[_Loop] = []
    for _, group in groupby(loops, key=_text_key):
        members = list(group)
        parts = [loop.part for loop in members]
        ranges = [each for part in parts for each in part.ranges]
        times, body = parts[0].times, parts[0].body
        joined: tuple[int, tuple[tuple[int, int], ...]] | None = None
        if len(parts) > 1 and body and parts[0].block_times == 1:
            same = all(loop.use.files == members[0].use.files for loop in members)
            joined = (len(parts) * times, body) if same else nested(len(parts), times, body)
        if joined is None:
            found += members
        else:
            found.append(made.used(Part(*joined, parts[0].block, 1, ranges)))
    return found


def _text_key(loop: _Loop) -> tuple[object, ...]:
    part, use = loop.part, loop.use
    # Loops of a block are not joined: they come one after the other each time.
    alone = part.block if part.block_times > 1 else -1
    return part.times, loop.labels, main_order(use.orders), tuple(use.strides), use.passes, alone
