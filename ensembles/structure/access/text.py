"""An access pattern in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ensembles.model.units import bytes_text, count_text, size_text
from ensembles.structure.access.pattern import LoopPattern, Pattern, TaskGroup

_MOST_IN_LINE = 4


def line_of(pattern: Pattern) -> str:
    """Return the pattern in one sentence, without an end.

    The main loops of the group of tasks that moves most bytes; and, if these only read or only write, what is
    done of the other kind.
    """
    moving = [group for group in pattern.groups if group.loops]
    if not moving:
        return "no reads or writes"
    group = max(moving, key=lambda each: sum(loop.bytes for loop in each.loops))
    loops, users = group.loops, len(group.ranks)
    whole = sum(len(each.ranks) for each in pattern.groups) + pattern.other_tasks
    places = {files_text(loop, whole, users) for loop in loops if loop.bytes}
    shown = min(_MOST_IN_LINE, len(loops))
    while shown < min(2 * _MOST_IN_LINE, len(loops)) and loops[shown].block == loops[shown - 1].block:
        shown += 1  # blocks are whole
    parts = _block_texts(loops[:shown], whole, users, len(places) > 1)
    if len(loops) > shown:
        parts.append(f"and {count_text(len(loops) - shown, 'more loop')}")
    if len(places) == 1:
        place = places.pop()
        each = " and loop" if place.endswith("each task") else " for each loop"
        parts.append(f"{place}{each if group.in_other_files else ''}")
    parts += _besides(pattern, loops)
    head = f"{users:,} of {whole:,} tasks: " if users < whole else ""
    return head + "; ".join(parts)


def group_texts(group: TaskGroup, tasks: int) -> list[str]:
    """Return the loops of a group with the files that they use, a text for each block of loops.

    `tasks` is the number of all tasks.
    """
    return _block_texts(group.loops, tasks, len(group.ranks), True)


def _block_texts(loops: Sequence[LoopPattern], tasks: int, users: int, with_files: bool) -> list[str]:
    texts = []
    for (_, times), block in groupby(loops, key=lambda loop: (loop.block, loop.block_times)):
        each = []
        for loop in block:
            again = _each_pass(loop, "each time ") if times > 1 else ""
            place = f", {files_text(loop, tasks, users)}" if with_files and loop.bytes else ""
            each.append(f"{loop_text(loop)}{again}{place}")
        texts += [f"{times:,} x ({'; '.join(each)})"] if times > 1 else each
    return texts


def _besides(pattern: Pattern, loops: Sequence[LoopPattern]) -> list[str]:
    """Name the reads or the writes of a pattern if main loops have none of them."""
    if not all(loop.steps for loop in loops):
        return []
    named = {op for loop in loops for op, *_ in loop.steps}
    found = []
    for op in ("read", "write"):
        files = [group for group in pattern.files if group.op == op]
        if files and op not in named:
            calls, moved = (sum(getattr(group, name) for group in files) for name in ("calls", "bytes"))
            found.append(f"besides {count_text(calls, op)} of {bytes_text(moved)} in all")
    return found


def loop_text(loop: LoopPattern) -> str:
    """Return a loop in words, such as ``8 x (seek, read 300 MiB), strided by 301 MiB``.

    A loop that jumps to another place at regular intervals is a loop in a loop:
    ``8 x (64 x write 8 KiB, strided by 64 KiB), each 8 KiB further``.
    """
    passes = loop.passes if loop.block_times == 1 else 1
    times = loop.times // passes
    parts = [_step(*step) for step in loop.steps]
    ends: list[str] = [""] * len(parts)
    whole = _order(loop)
    if loop.step_orders:
        pairs = zip(loop.step_orders, loop.step_strides_bytes, strict=True)
        ends, whole = [_STEPS.get(order, f", {order}") + _stride(strides) for order, strides in pairs], ""
    elif loop.order == "repeated":
        ends = [", sequential" if sequential else "" for sequential in loop.in_sequence] or ends
    if not parts:
        return f"{bytes_text(loop.bytes)} in calls without repetition{whole}"
    joint = "; " if any(ends) else ", "
    body = joint.join(part + end for part, end in zip(parts, ends, strict=True))
    if len(parts) > 1 or (loop.steps[0][3] > 1 and times > 1):
        body = f"({body})"
    text = f"{times:,} x {body}{whole}" if times > 1 else f"{body}{whole}"
    return f"{passes:,} x ({text}){_each_pass(loop, 'each ')}" if passes > 1 else text


def _each_pass(loop: LoopPattern, each: str) -> str:
    """Say where the passes of a loop begin; "": there are none."""
    strides = loop.pass_strides_bytes
    if not any(strides):
        return ", the same bytes again" if strides else ""
    if min(strides) < 0 < max(strides):
        return f", {each}elsewhere"
    return f", {each}{_strides(strides).lstrip('-')} {'further' if max(strides) > 0 else 'back'}"


def files_text(loop: LoopPattern, tasks: int, users: int) -> str:
    """Return which files a loop uses, such as ``one shared file``.

    `tasks` is the number of all tasks, and `users` that of the tasks that make the loop.
    """
    many = loop.most_files
    if tasks == 1 or (loop.access == "private" and users == 1):
        return "one file" if many == 1 else f"{many:,} files"
    if loop.access == "mixed":
        return "shared and private files"
    if loop.access == "private":
        return "a file for each task" if many == 1 else f"{many:,} files for each task"
    return "one shared file" if many == 1 else f"{many:,} shared files"


_LEAST_PIECE = 1.5
_STEPS = {"": "", "single": "", "repeated": ", the same bytes again"}


def _step(op: str, low: int, high: int, count: int) -> str:
    size = "" if op not in ("read", "write") else f" {_range(low, high)}"
    return f"{count:,} x {op}{size}" if count > 1 else f"{op}{size}"


def _size(size: int) -> str:
    exact = size_text(size)
    return exact if int(exact.split()[0].replace(",", "")) < 1024 else bytes_text(size)


def _range(low: int, high: int) -> str:
    if _size(low) == _size(high) or bytes_text(low) == bytes_text(high):
        return bytes_text(low) if low < high else _size(low)
    is_octave = not (high & high + 1 or low & low - 1)  # of which the end is excluded
    return f"{_size(low)} to {_size(high + is_octave)}"


def _stride(strides: Sequence[int]) -> str:
    return f" by {_strides(strides)}" if strides else ""


def _order(loop: LoopPattern) -> str:
    if loop.order in ("", "single"):
        return ""
    if loop.order == "unknown":
        return ", at unknown offsets"
    if loop.order == "repeated":
        return ", the same bytes again"
    if loop.order != "strided":
        return f", {loop.order}" if loop.order != "mixed" else ", in mixed order"
    if _is_backwards(loop):
        return ", backwards"
    strides = _strides(loop.strides_bytes)
    pieces = loop.piece_calls
    if pieces is not None and pieces > _LEAST_PIECE and loop.most_files > 1 and len(loop.steps) > 1:
        return f", in part strided by {strides}"  # pieces differ from file to file
    # Where steps differ, so do their pieces: the steps say how many calls follow each other.
    counts = {count for op, _, _, count in loop.steps if op in ("read", "write")}
    if pieces is None or pieces < _LEAST_PIECE or len(counts) > 1:
        return f", strided by {strides}"
    about = "" if abs(pieces - round(pieces)) < 1 / 8 else "about "
    return f", in pieces of {about}{round(pieces):,} calls strided by {strides}"


def _is_backwards(loop: LoopPattern) -> bool:
    """Whether each transfer of a loop ends where the one before it began."""
    sizes = {size for op, *ends, _ in loop.steps if op in ("read", "write") for size in ends}
    return (
        sizes == {-stride for stride in loop.strides_bytes} and len(sizes) == 1 and loop.piece_calls is None
    )


def _strides(strides: Sequence[int]) -> str:
    low, high = min(map(abs, strides)), max(map(abs, strides))
    back = "-" if all(stride < 0 for stride in strides) else ""
    return f"{back}{_size(low)}" if low == high else f"{_size(low)} to {_size(high)}"
