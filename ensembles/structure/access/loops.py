"""Loops in the calls of a task, and blocks of loops that come again and again."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from ensembles.model.events import OPS
from ensembles.model.levels import MOST_PIECES
from ensembles.model.units import bytes_text
from ensembles.structure.access.streams import FIRST, ORDERS
from ensembles.summaries.keyed_sums import groups_of_rows

MOST_RUNS = 16
"""Longest body of a loop: runs of equal calls."""

MOST_LOOPS = 24
"""Loops of a task that are distinguished; what follows is one more."""


class Loop(NamedTuple):
    """A part of a sequence."""

    times: int  # How often the body comes
    # Token, and how often it comes in a row. Empty: no repetition was found in the rest of the sequence.
    body: tuple[tuple[int, int], ...]
    # begin, end: Positions in the sequence, the end excluded
    begin: int
    end: int


def find_loops(tokens: np.ndarray, most: int = MOST_LOOPS) -> list[Loop]:
    """Divide a sequence into loops, greedily from its start."""
    if not len(tokens):
        return []
    begin = np.flatnonzero(np.r_[True, np.diff(tokens) != 0])
    count = np.diff(np.r_[begin, len(tokens)])
    token = tokens[begin]
    ends = np.r_[begin, len(tokens)]
    runs = len(begin)
    all_times, periods = _longest(token, count)
    loops: list[Loop] = []
    at = 0
    while at < runs and len(loops) < most:
        times, period = int(all_times[at]), int(periods[at])
        if times == 1:
            loops.append(Loop(int(count[at]), ((int(token[at]), 1),), int(begin[at]), int(ends[at + 1])))
            at += 1
            continue
        body = tuple(zip(token[at : at + period].tolist(), count[at : at + period].tolist(), strict=True))
        after = at + times * period
        loops.append(Loop(times, body, int(begin[at]), int(ends[after])))
        at = after
    if at < runs:
        loops.append(Loop(1, (), int(begin[at]), len(tokens)))
    return loops


def _longest(token: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how often a body comes from each run on, and how many runs it has."""
    runs = len(token)
    times, period = np.ones(runs, np.int32), np.ones(runs, np.int32)
    covered = np.ones(runs, np.int32)
    number = np.unique(token * (int(count.max()) + 1) + count, return_inverse=True)[1].astype(np.int32)
    for each in range(2, min(MOST_RUNS, runs // 2) + 1):
        reach = _reach(number, each)
        at = np.flatnonzero(reach >= each)
        repeats = reach[at] // each + 1
        # A loop covers more than the one before it, or as much with a shorter body; and its body is not that
        # of a loop with other calls before or after it.
        inner = np.cumsum(np.r_[0, (times > 1) & (covered >= 4) & (3 * covered >= each)])
        longer = (repeats * each > covered[at]) & (inner[at + each] == inner[at])
        at, repeats = at[longer], repeats[longer]
        times[at], period[at], covered[at] = repeats, each, repeats * each
    return times, period


def _reach(number: np.ndarray, period: int) -> np.ndarray:
    """Return from each run on how many runs in a row equal those a period later."""
    differs = number[:-period] != number[period:]
    stops = np.r_[np.flatnonzero(differs), len(differs)]
    found: np.ndarray = stops[np.cumsum(differs) - differs] - np.arange(len(differs))
    return found


READ, WRITE, SEEK, SYNC = (OPS.index(op) for op in ("read", "write", "seek", "sync"))
"""Operations of which patterns are made."""

MOST_SIZES = 16
"""Sizes of an operation of a task that are distinguished; of more, octaves are."""

VARIED = "varied"


class Tokens(NamedTuple):
    """The calls of a task as numbers."""

    token: np.ndarray
    steps: list[tuple[int, int, int]]  # Of each token: operation, smallest and largest size in bytes
    labels: list[tuple[int, str]]  # Of each token: operation, and its size as tasks are compared by it


def tokens_of(op: np.ndarray, asked: np.ndarray, size: np.ndarray, by_size: bool = True) -> Tokens:
    """Number the calls of a task by operation and what they ask for; seeks and syncs have no size.

    Examples
    --------
    >>> from ensembles.structure.access.loops import WRITE, tokens_of
    >>> sizes = np.array([2413, 64, 2414, 64])
    >>> found = tokens_of(np.full(4, WRITE), sizes, sizes)
    >>> found.token, found.labels
    (array([1, 0, 1, 0]), [(1, '64 B'), (1, '2.36 KiB')])
    """
    size = np.where((op == READ) | (op == WRITE), size, 0)
    kind = np.zeros(len(op), np.int64)
    octaves: set[int] = set()
    for each in (READ, WRITE):
        mine = op == each
        if not mine.any() or not by_size:
            continue
        kind[mine], is_octave = _kinds(asked[mine], size[mine])
        if is_octave:
            octaves.add(each)
    token, first = numbered([op, kind])
    low, high = np.full(len(first), 1 << 62), np.zeros(len(first), np.int64)
    np.minimum.at(low, token, size)
    np.maximum.at(high, token, size)
    steps, labels = [], []
    for at, (which, least, most) in enumerate(
        zip(op[first].tolist(), low.tolist(), high.tolist(), strict=True)
    ):
        if which in octaves:
            exponent = int(kind[first[at]])
            least, most = (1 << exponent - 1 if exponent else 0), (1 << exponent) - 1
        alike = bytes_text(least) == bytes_text(most)
        octave = f"{least} to {most}" if which in octaves else VARIED
        steps.append((which, least, most))
        labels.append((which, bytes_text(least) if alike else octave))
    return Tokens(token, steps, labels)


def _kinds(asked: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, bool]:
    """Number sizes asked for by their text; sizes by octaves, and True, if there are too many."""
    sizes, where = np.unique(asked, return_inverse=True)
    if len(sizes) <= MOST_PIECES:
        texts: dict[str, int] = {}
        kinds = np.array([texts.setdefault(bytes_text(each), len(texts)) for each in sizes.tolist()])
        if len(texts) <= MOST_SIZES:
            return kinds[where], False
    return np.frexp(size.astype(np.float64))[1].astype(np.int64), True


def numbered(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number rows by their keys, in the order of the keys; return the first row of each number too."""
    if not len(keys[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = groups_of_rows([np.asarray(key, np.int64) for key in keys])
    order = np.lexsort([key[first] for key in reversed(keys)])
    return np.argsort(order)[group], first[order]


MOST_INNER = 1 << 13
"""Loops of a task in which loops of loops are sought."""

REST = 50
"""What a rest without repetition counts, in steps of a loop."""


class Part(NamedTuple):
    """A loop of a task, in a block of loops that comes several times."""

    times: int  # How often the body comes each time
    body: tuple[tuple[int, int], ...]  # As of `ensembles.structure.access.loops.Loop`
    # block, block_times: Number of the block, in the order of time, and how often it comes
    block: int
    block_times: int
    ranges: list[tuple[int, int]]  # Positions in the sequence, the ends excluded


def find_parts(token: np.ndarray, file: np.ndarray, order: np.ndarray, moves: np.ndarray) -> list[Part]:
    """Divide the calls of a task into loops, each in one file at a time where that takes few more words.

    `token`, `file`, `order`: of each call, in the order of time: its token, its file, and how it follows the
    one before, an index into `ORDERS` or -1.
    """
    loops = find_loops(token, MOST_INNER)
    plain = _in_blocks(loops)
    if not np.diff(file).any() or all(_keeps_its_files(loop, file, order) for loop in loops):
        return plain
    cut = _between_files(token, file, order, moves)
    fewest = _steps(plain)
    if cut is not None and _steps(cut) <= max(2 * fewest, fewest + 3):
        return cut
    return [each for part in plain for each in _by_place(part, file)]


def _in_blocks(loops: list[Loop]) -> list[Part]:
    """Return loops as parts; successive loops that come again and again are a block."""
    if not loops:
        return []
    numbers: dict[object, int] = {}
    kinds = [(loop.times, loop.body) if loop.body else loop.begin for loop in loops]
    sequence = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds])
    parts: list[Part] = []
    block = at = 0
    for outer in find_loops(sequence):
        if not outer.body:
            parts.append(Part(1, (), block, 1, [(loops[at].begin, loops[-1].end)]))
            break
        period = sum(count for _, count in outer.body)
        times = outer.times
        is_block = period > 1
        for place in range(period if is_block else times):
            turns = [loops[at + place + turn * period] for turn in range(times if is_block else 1)]
            ranges = [(loop.begin, loop.end) for loop in turns]
            parts.append(Part(turns[0].times, turns[0].body, block, len(turns), ranges))
            block += not is_block
        block += is_block
        at = outer.end
    return parts


def _by_place(part: Part, file: np.ndarray) -> list[Part]:
    """Make a block of a loop over several files of which some calls go to other files each time."""
    if part.block_times > 1 or len(part.body) < 2 or part.times < 2 or len(part.ranges) > 1:
        return [part]
    ((low, high),) = part.ranges
    files = file[low:high].reshape(part.times, -1)
    moves = (files[1:] != files[:-1]).any(axis=0)
    if not moves.any():
        return [part]
    ends = np.cumsum([count for _, count in part.body]).tolist()
    runs = [(number, begin, end) for number, (begin, end) in enumerate(pairwise([0, *ends]))]

    def place(run: tuple[int, int, int]) -> tuple[bool, int]:
        return bool(moves[run[1] : run[2]].any()), int(files[0, run[1]])

    stretches = [list(group) for _, group in groupby(runs, key=place)]
    if len(stretches) < 2:
        return [part]
    found = []
    for stretch in stretches:
        body = tuple(part.body[number] for number, _, _ in stretch)
        times, body = (body[0][1], ((body[0][0], 1),)) if len(body) == 1 else (1, body)
        starts = [low + turn * files.shape[1] for turn in range(part.times)]
        ranges = [(start + stretch[0][1], start + stretch[-1][2]) for start in starts]
        found.append(Part(times, body, part.block, part.times, ranges))
    return found


def _keeps_its_files(loop: Loop, file: np.ndarray, order: np.ndarray) -> bool:
    """Whether the file changes at the same calls of the body each time, or never, and all have one order."""
    period = sum(count for _, count in loop.body)
    if not period:
        return True
    here = slice(loop.begin, loop.end)
    changes = np.diff(file[here]) != 0
    if (changes != np.resize(changes[:period], len(changes))).any():
        return False
    files = file[here].reshape(-1, period)
    if (files[1:] != files[:-1]).any() and (files[0] != files[0, 0]).any():
        return False
    stay = np.r_[0, np.cumsum(changes)] % max(int(changes[:period].sum()), 1)
    main = {_main_order(order[here][stay == number]) for number in np.unique(stay).tolist()}
    return len(main - {-1}) <= 1


def _steps(parts: list[Part]) -> int:
    return sum(len(part.body) or REST for part in parts)


def _between_files(
    token: np.ndarray, file: np.ndarray, order: np.ndarray, moves: np.ndarray
) -> list[Part] | None:
    """Return the parts where no loop runs over a change of file; None: these are too many."""
    begin = np.flatnonzero(np.r_[True, np.diff(file) != 0])
    if not 1 < len(begin) <= MOST_PIECES:
        return None
    ends = np.r_[begin, len(token)].tolist()
    numbers: dict[tuple[bytes, int], int] = {}
    inner: list[list[Loop]] = []
    sequence = np.zeros(len(begin), np.int64)
    keys = [(token[low:high].tobytes(), _main_order(order[low:high])) for low, high in pairwise(ends)]
    # A segment without an order, such as the first transfer of a file, is like the next of the same calls.
    following: dict[bytes, int] = {}
    for at in reversed(range(len(keys))):
        calls, main = keys[at]
        keys[at] = calls, following.get(calls, -1) if main < 0 else main
        following[calls] = keys[at][1]
    for at, key in enumerate(keys):
        here = slice(ends[at], ends[at + 1])
        if key not in numbers:
            numbers[key] = len(inner)
            inner.append(with_syncs(find_loops(token[here]), moves))
        sequence[at] = numbers[key]
    parts: list[Part] = []
    for block, loop in enumerate(find_loops(sequence)):
        if not loop.body:
            parts.append(Part(1, (), block, 1, [(ends[loop.begin], len(token))]))
            continue
        found = _parts_of_block(block, loop, inner, ends)
        if found is None:
            return None
        parts += found
    return parts


def _main_order(order: np.ndarray) -> int:
    """Return the order of most transfers that follow others; -1: there are none."""
    count = np.bincount(order[order >= 0], minlength=len(ORDERS))
    count[FIRST] = 0
    return int(np.argmax(count)) if count.any() else -1


def with_syncs(loops: list[Loop], moves: np.ndarray) -> list[Loop]:
    """Append single syncs and seeks to the loop before them: the calls of a file are one body then."""
    found: list[Loop] = []
    for loop in loops:
        before = found[-1] if found else None
        if (
            before is not None
            and len(loop.body) == 1
            and not moves[loop.body[0][0]]
            and len(before.body) >= 1
            and (before.times == 1 or (len(before.body) == 1 and before.body[0][1] == 1))
        ):
            body = before.body if before.times == 1 else ((before.body[0][0], before.times),)
            found[-1] = Loop(1, (*body, (loop.body[0][0], loop.times)), before.begin, loop.end)
        else:
            found.append(loop)
    return found


def _parts_of_block(block: int, outer: Loop, inner: list[list[Loop]], ends: list[int]) -> list[Part] | None:
    period = sum(count for _, count in outer.body)
    alone = len(outer.body) == 1 and len(inner[outer.body[0][0]]) == 1
    parts = []
    at = outer.begin
    for number, count in outer.body:
        loops = inner[number]
        if count > 1 and len(loops) > 1:
            return None
        for loop in loops:
            times, body = loop.times, loop.body
            segments = [at + turn * period + n for turn in range(outer.times) for n in range(count)]
            ranges = [(ends[each] + loop.begin, ends[each] + loop.end) for each in segments]
            block_times = outer.times
            if count > 1 or (alone and block_times > 1):
                joined = nested(count if count > 1 else block_times, times, body)
                if joined is None and count > 1:
                    return None
                if joined is not None:
                    times, body = joined
                    block_times = outer.times if count > 1 else 1
            parts.append(Part(times, body, block, block_times, ranges))
        at += count
    return parts


def nested(
    outer: int, times: int, body: tuple[tuple[int, int], ...]
) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """Return a loop of loops as one loop with a longer body; None: it has no such form.

    Examples
    --------
    >>> from ensembles.structure.access.loops import nested
    >>> nested(4, 5, ((0, 1),)), nested(4, 5, ((0, 1), (1, 1)))
    ((4, ((0, 5),)), None)
    """
    if times == 1:
        return outer, body
    if len(body) == 1 and body[0][1] == 1:
        return outer, ((body[0][0], times),)
    return None
