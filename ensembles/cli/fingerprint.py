"""``ensio fingerprint``: which calls a run made, without their times, for a comparison with another run."""

from __future__ import annotations

import argparse
import json
import textwrap
from functools import partial
from pathlib import Path
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
from ensembles.files.untrusted import read_whole
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.fingerprint import Fingerprint
    from ensembles.structure.phases.result import Phases

NAME = "fingerprint"
HELP = "show or compare which calls a run made, with their sizes, offsets and order, without their times"

_MOST_DIFFERENCES = 12
_ROWS = 20
_FORMAT = "ensio fingerprint 1"
_MOST_BYTES = 1 << 26
_WITHOUT_FILE = {"mpisync", "mpimsg"}
"""Layers whose calls have no file; they count if the user selects one of these layers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="compare with another run, or with the output of ensio fingerprint --json; exit status 1 if "
        "they differ",
    )
    parser.add_argument("--whole", action="store_true", help="do not divide the run into phases")
    add_limit(parser, "phases", _ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the fingerprint, or the differences."""
    made = _fingerprint_of(args, args.run)
    if args.against is None:
        print(json.dumps(made, indent=2) if args.json else _text(made, args.limit))
        return 0
    from ensembles.structure.fingerprint import differences

    other = _read(args, args.against)
    found = differences(made, {**other, "phases": []} if args.whole else other)
    if args.json:
        result = {"run": args.run, "against": args.against, "equal": not found, "differences": found}
        print(json.dumps(result, indent=2))
    elif not found:
        print("Equal: each task made the same calls, with the same sizes at the same offsets, in this order.")
    else:
        print(f"Different ({args.run}, and {args.against}):")
        for sentence in found[:_MOST_DIFFERENCES]:
            print(f"  {sentence}")
        if len(found) > _MOST_DIFFERENCES:
            print(f"  {len(found) - _MOST_DIFFERENCES:,} more differences: see --json")
    return 1 if found else 0


def _fingerprint_of(args: argparse.Namespace, path: str) -> dict[str, Any]:
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.structure.phases.detect import detect_phases

    selection = selection_from_args(args)
    run = open_run(args, path)
    phases = None if args.whole else detect_phases(run)
    chosen = selection.for_run(run)
    nested = bool(selection.layers)
    without_file = bool(selection.layers and _WITHOUT_FILE.intersection(selection.layers))
    found = run.summarize(partial(_empty, phases, nested, without_file), selection=chosen)
    refuse_nothing(run, chosen, found.entries[0].calls.total())
    warn_of(run.notes)
    return {"format": _FORMAT, "run": path, "complete": not run.notes, "notes": run.notes, **found.to_json()}


def _empty(phases: Phases | None, nested: bool, without_file: bool, _: Run) -> Fingerprint:
    from ensembles.structure.fingerprint import Fingerprint

    return Fingerprint(phases, nested, without_file)


def _read(args: argparse.Namespace, path: str) -> dict[str, Any]:
    if not (path.endswith(".json") and Path(path).is_file()):
        return _fingerprint_of(args, path)
    try:
        found = json.loads(read_whole(path, _MOST_BYTES))
    except (OSError, ValueError) as error:
        raise EnsioError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise EnsioError(f"{path} is not a fingerprint: make one with ensio fingerprint RUN --json")
    return found


def _text(made: dict[str, Any], limit: int) -> str:
    from ensembles.model.table import table_text
    from ensembles.model.units import bytes_text, count_text

    files = ", ".join(
        f"{count_text(each['files'], 'file')} used by {count_text(each['tasks'], 'task')}"
        for each in made["files"]
    )
    rows = []
    for number, entry in [("all", made["whole"]), *enumerate(made["phases"][:limit], 1)]:
        rows.append(
            (
                str(number),
                f"{entry['tasks']:,}",
                f"{sum(entry['calls'].values()):,}",
                bytes_text(entry["read_bytes"]) if entry["read_bytes"] else "",
                bytes_text(entry["written_bytes"]) if entry["written_bytes"] else "",
                entry["digests"]["ordered"][:8],
                entry["digests"]["bytes"][:8],
            )
        )
    headers = ("phase", "tasks", "calls", "read", "written", "digest: calls", "digest: bytes")
    calls = ", ".join(f"{name} × {count:,}" for name, count in made["whole"]["calls"].items())
    lines = [
        files,
        *textwrap.wrap(f"calls: {calls}", 80, subsequent_indent="  "),
        "",
        table_text(headers, rows),
    ]
    if len(made["phases"]) > limit:
        lines.append(f"{len(made['phases']) - limit:,} more phases are not shown: raise --limit to see them")
    return "\n".join(lines)
