"""Writes the frozen answers anew, after a deliberate change, and says what changed.

python -m tests.corpus.freeze                   # all runs
python -m tests.corpus.freeze NAME ...          # these
python -m tests.corpus.freeze --dry-run         # only says what would change
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

from . import frozen
from .answers import ANSWERS, HERE, NotThereError
from .declared import RUNS, SEVERAL

SHOWN = 12
README = HERE / "README.md"
_TABLE = ("<!-- runs: written by freeze.py -->\n", "<!-- end of runs -->\n")


def main(arguments: list[str] | None = None) -> int:
    """Freeze: 0 done, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus.freeze", description=__doc__.splitlines()[0]
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="runs (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--all", action="store_true", help=f"show every difference, not {SHOWN} of each run")
    args = parser.parse_args(arguments)
    declared = {one.name: one for one in (*RUNS, *SEVERAL)}
    if unknown := sorted(set(args.names) - set(declared)):
        parser.error(f"{', '.join(unknown)}: no such run in declared.py")
    whole: Counter[str] = Counter()
    for name in args.names or declared:
        try:
            after = {line: frozen.condensed(answer) for line, answer in ANSWERS.of(declared[name]).items()}
        except NotThereError as error:
            print(f"{name}: left as it is: {error}")
            continue
        before = frozen.read(name)
        found = frozen.differences(name, before, after)
        kinds = Counter(difference.kind for difference in found)
        whole += kinds
        if found and before:
            print(f"{name}: {_counted(kinds)}")
            for difference in found if args.all else found[:SHOWN]:
                print(f"    {difference}")
            if len(found) > SHOWN and not args.all:
                print(f"    and {len(found) - SHOWN} more: see --all")
        elif found:
            print(f"{name}: new, {len(after)} commands")
        if found and not args.dry_run:
            frozen.write(name, after)
    if not args.dry_run:
        for path in frozen.FOLDER.glob("*.json"):
            if path.stem not in declared:
                print(f"{path.stem}: is declared no more, and removed")
                path.unlink()
        write_table()
    print(f"in all: {_counted(whole) or 'nothing changed'}")
    return 0


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def table_text() -> str:
    """The table of README.md, from the declarations."""
    rows = [(one.name, _tags(one), one.stands_for) for one in (*RUNS, *SEVERAL)]
    lines = ["| run | kind and further commands | what it stands for |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {tags} | {text} |" for name, tags, text in rows)]) + "\n"


def _tags(one: Any) -> str:
    return ", ".join(sorted(one.tags)) if hasattr(one, "op") else "commands about several runs"


def write_table() -> None:
    """Put the table into README.md."""
    text = README.read_text()
    begin, end = text.index(_TABLE[0]) + len(_TABLE[0]), text.index(_TABLE[1])
    README.write_text(text[:begin] + table_text() + text[end:])


if __name__ == "__main__":
    sys.exit(main())
