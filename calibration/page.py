"""The tables of a calibration: print them, and write them to docs/reference/calibration."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tabulate import tabulate

from calibration.workers import processor_s

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference" / "calibration"
BEGIN = "<!-- Written by ./dev {name} --write: do not edit below. -->"
END = "<!-- End of what ./dev {name} --write wrote. -->"

PAGES = {"gate": "compare"}
"""Pages of calibrations that share the page of another one; else it has the name of the calibration."""

_shown: list[str] = []


def show(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> None:
    """Print a table, and keep it for the page."""
    cells = [[str(cell) for cell in row] for row in rows]
    print(tabulate(cells, headers, disable_numparse=True), "\n", flush=True)
    _shown.append(tabulate(cells, headers, tablefmt="pipe", disable_numparse=True))


def say(sentence: str) -> None:
    """Print a sentence, and keep it for the page."""
    print(sentence, flush=True)
    _shown.append(sentence)


def version() -> str:
    """Return the commit of the code, with a mark if files of the code differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "ensembles", "calibration", "tests/unit")
    return git("describe", "--always", "--abbrev=10") + (", changed since" if changed else "")


def write(name: str, command: str, commit: str, began: float) -> Path:
    """Write the tables between the marks of the page, with command, date and version."""
    page = FOLDER / f"{PAGES.get(name, name)}.md"
    write_page(page, f"calibrate {name}", command, commit, began)
    return page


def write_page(page: Path, name: str, command: str, commit: str, began: float) -> None:
    """Write the tables between the marks ``./dev NAME --write`` of a page; arguments as for `write`."""
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    spent_s = processor_s() - began
    made = f"Made by `{command}` on {date}, at commit {commit}, in {spent_s:.0f} s of processor time."
    begin, end = BEGIN.format(name=name), END.format(name=name)
    text = page.read_text()
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{page} lacks the line {end}: add both marks, and write again")
    page.write_text(before + "\n\n".join([begin, made, *_shown, end]) + after)
