"""``ensio pattern``: what the tasks of a run do again and again, and how they share their files."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn_of,
)
from ensembles.model.holds import Holds

if TYPE_CHECKING:
    from ensembles.structure.access.other_calls import Coverage
    from ensembles.structure.access.pattern import FileGroup, Pattern, TaskGroup

HELP = (
    "show the access pattern: loops of reads and writes, their order in the files, shared and private files"
)

ROWS = 10
_WIDTH = 80
_UNIT = re.compile(r"(?<=\d) (?=[KMGTPE]?i?B\b|x )|(?<=\d x) ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_limit(parser, "groups of tasks, and of files", ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the pattern."""
    from ensembles.passes.group import SummaryRequest
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.access.other_calls import IoCalls
    from ensembles.structure.access.pattern import pattern_of
    from ensembles.structure.access.summary import AccessSummary
    from ensembles.structure.access.text import line_of

    run = open_run(args, args.run)
    run.reading.need(Holds.SOME_CALLS, "sums do not know the order of calls")
    given = selection_from_args(args)
    selection = given.for_run(run)
    nested = bool(given.layers)
    wanted = {"access": AccessSummary, "others": IoCalls}
    requests = {name: SummaryRequest(ignoring_run(partial(kind, nested))) for name, kind in wanted.items()}
    summaries = run.summarize(requests, selection=selection).summaries
    found = pattern_of(summaries["access"], run.files)
    covered = summaries["others"].coverage()
    refuse_nothing(run, given, len(found.groups) + found.other_tasks)
    notes = [*run.notes, *run.info.notes_on_calls]
    if args.json:
        told = asdict(covered) | {"time_share": covered.time_share}
        result = {"run": run.path, "pattern": line_of(found), **_json(found), "covered": told}
        print(json.dumps(result | {"complete": not notes, "notes": notes}, indent=2))
    else:
        print(_text(found, covered, args.limit))
    warn_of(notes)
    return 0


def _json(found: Pattern) -> dict[str, Any]:
    from ensembles.model.spans import find_spans, spans_text

    return {
        "groups": [
            {
                "tasks": len(group.ranks),
                "ranks": spans_text(find_spans(group.ranks)),
                "loops": [
                    {
                        **asdict(loop),
                        "steps": [
                            {"op": op, "low_bytes": low, "high_bytes": high, "count": count}
                            for op, low, high, count in loop.steps
                        ],
                    }
                    for loop in group.loops
                ],
                "smaller_loops": group.smaller_loops,
                "smaller_loops_bytes": group.smaller_bytes,
            }
            for group in found.groups
        ],
        "other_tasks": found.other_tasks,
        "files": [asdict(group) for group in found.files],
    }


def _text(found: Pattern, covered: Coverage, limit: int) -> str:
    from ensembles.model.units import count_text
    from ensembles.structure.access.other_calls import coverage_text
    from ensembles.structure.access.text import line_of

    parts = [_wrapped(line_of(found))]
    if others := coverage_text(covered):
        parts.append(_wrapped(others))
    shown = found.groups[:limit]
    tasks = sum(len(group.ranks) for group in found.groups) + found.other_tasks
    if len(found.groups) + found.other_tasks > 1 or any(len(group.loops) > 4 for group in shown):
        parts += [_group_text(group, tasks) for group in shown]
    if (more := len(found.groups) - len(shown)) > 0:
        parts.append(f"{count_text(more, 'more group')} of tasks: raise --limit to see them")
    if found.other_tasks:
        parts.append(f"{count_text(found.other_tasks, 'task')} with loops of other shapes")
    if found.files:
        parts.append(_files_text(found.files, limit))
    if any(not loop.steps and loop.most_files > 1 for group in shown for loop in group.loops):
        parts.append(
            _wrapped(
                "Calls of several files do not repeat together. Those of one file may: --file NAME selects "
                "it (ensio files lists the names)."
            )
        )
    return "\n\n".join(parts)


def _group_text(group: TaskGroup, tasks: int) -> str:
    from ensembles.model.spans import find_spans, some_spans_text
    from ensembles.model.units import bytes_text, count_text
    from ensembles.structure.access.text import group_texts

    ranks = some_spans_text(find_spans(group.ranks))
    lines = [_wrapped(f"{count_text(len(group.ranks), 'task')} ({ranks}):")]
    lines += [_wrapped(text, "  ") for text in group_texts(group, tasks)]
    if group.smaller_loops:
        moved = bytes_text(group.smaller_bytes)
        lines.append(f"  and {moved} in {count_text(group.smaller_loops, 'smaller loop')}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "  no reads or writes"])


def _files_text(files: tuple[FileGroup, ...], limit: int) -> str:
    from ensembles.model.table import table_text
    from ensembles.model.units import bytes_text, count_text

    rows = [
        (
            group.op,
            group.order or "-",
            f"{group.files:,}",
            f"{group.tasks:,}",
            f"{group.calls:,}",
            bytes_text(group.bytes),
            _alignment_text(group.alignment_bytes),
            "?" if group.repeated_by_task_bytes is None else bytes_text(group.repeated_by_task_bytes),
            "?" if group.overlap_bytes is None else bytes_text(group.overlap_bytes),
        )
        for group in files[:limit]
    ]
    headers = ("op", "order", "files", "tasks", "calls", "bytes", "aligned", "again", "overlap")
    text = table_text(headers, rows, left=2)
    if (more := len(files) - limit) > 0:
        text += f"\n\n{count_text(more, 'more group')} of files: raise --limit to see them"
    return text


def _alignment_text(alignment_bytes: int | None) -> str:
    from ensembles.model.units import size_text

    if alignment_bytes is None:
        return "?"
    return size_text(alignment_bytes) if alignment_bytes else "any"  # all at 0


def _wrapped(text: str, head: str = "") -> str:
    """Break lines, but not between a number and its unit."""
    joined = _UNIT.sub("\u00a0", text)
    lines = textwrap.fill(
        joined, _WIDTH, initial_indent=head, subsequent_indent=f"{head}  ", break_long_words=False
    )
    return lines.replace("\u00a0", " ")
