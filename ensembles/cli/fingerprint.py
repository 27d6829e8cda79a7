"""``ensio fingerprint``: which calls a run made, without their times, for a comparison with another run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ensembles.cli.options import OldName, open_run, selection_from_args, warn_of
from ensembles.cli.questions import add_question, selected_run, show
from ensembles.files.untrusted import read_whole
from ensembles.model.errors import EnsioError

_AGAINST = {
    "metavar": "RUN",
    "help": "compare with another run, or with the output of ensio fingerprint --json; exit status 1 if they "
    "differ",
}
_BY = {
    "choices": ("phase", "run"),
    "default": "phase",
    "help": "divide the run into phases, or not (default: phase)",
}
_WHOLE = {"action": OldName, "new": "--by run", "nargs": 0}
_MOST_DIFFERENCES = 12
_MOST_BYTES = 1 << 26


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, {"--against": _AGAINST, "--by": _BY, "--whole": _WHOLE}, ("phases", 20))


def execute(args: argparse.Namespace) -> int:
    """Print the fingerprint, or the differences."""
    from ensembles.answers.fingerprint import answer_fingerprint
    from ensembles.structure.fingerprint import differences

    answer = answer_fingerprint(*selected_run(args), args.by == "run")
    if args.against is None:
        return show(args, answer, args.limit)
    warn_of(answer.notes)
    made = answer.to_json()
    other = _read(args, args.against)
    found = differences(made, {**other, "phases": []} if args.by == "run" else other)
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


def _read(args: argparse.Namespace, path: str) -> dict[str, Any]:
    from ensembles.answers.fingerprint import FORMAT, answer_fingerprint

    if not (path.endswith(".json") and Path(path).is_file()):
        found = answer_fingerprint(open_run(args, path), selection_from_args(args), args.by == "run")
        warn_of(found.notes)
        return found.to_json()
    try:
        found = json.loads(read_whole(path, _MOST_BYTES))
    except (OSError, ValueError) as error:
        raise EnsioError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise EnsioError(f"{path} is not a fingerprint: make one with ensio fingerprint RUN --json")
    return found
