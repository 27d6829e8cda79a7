#!/usr/bin/env python3
"""Runs the commands of a page and compares what they print with what the page shows.

    python tools/docs/transcripts.py PAGE            compare; exit code 1 if something differs
    python tools/docs/transcripts.py PAGE --write    put today's output into the page

A transcript is an indented block: lines that begin with "$ " are commands, the lines under each are its
output. All commands of a page run in one shell, in a new folder with a link to docs/. Numbers with units
are masked before they are compared, since times differ from machine to machine; those of a simulated run,
which a seed fixes, are compared digit by digit. Lines that describe the machine are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ensembles.cli.replay_program import ANY_TASKS

ROOT = Path(__file__).resolve().parents[2]
INDENT = "    "
HOME = "/home/you/ensio"
MARK = "<<<< next command >>>>"
MACHINE = re.compile(
    r"^(?:# )?(?:command|program|hosts|job|MPI|processors|files on|start|node I/O|excluded|recorded|slowest|"
    r"Most in phase|It was)\b"
)
PROSE = re.compile(r"^(?:Most in phase|It was|[\d,]+ tasks share)\b")
"""Sentences at the end of a paragraph that a machine may have or not."""
CONTINUED = re.compile(r" {11}\S")
NUMBER = re.compile(
    r"(?<![\w-])[<±×]?\s*[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:%|(?:[KMGTP]i?B/s|[KMGTP]i?B|[KMG]?iB|B/s|min|ns|µs|ms|s)\b)?"
)
LAST_CALL = re.compile(r"^((?:# )+)(?:[a-z]\w*|late start|between calls)$")
"""A row that ends with the call of the last rank, or what else made it late: another one in each run."""
LEFT_OUT = re.compile(r"\bidle share last$")
"""Columns of a table that leaves one of them out where words of the last one are long."""


def blocks(page: str) -> list[list[tuple[str, list[str]]]]:
    """The transcripts of a page: for each block its commands, each with the lines of its output."""
    found: list[list[tuple[str, list[str]]]] = []
    inside = False
    for line in page.splitlines():
        if line.startswith(f"{INDENT}$ "):
            if not inside:
                found.append([])
            inside = True
            found[-1].append((line.removeprefix(f"{INDENT}$ "), []))
        elif inside and (line.startswith(INDENT) or not line.strip()):
            found[-1][-1][1].append(line.removeprefix(INDENT))
        else:
            inside = False
    return found


def printed_by(commands: list[str]) -> list[list[str]]:
    """What each of these commands prints, run one after the other in one shell; a failure ends the run."""
    script = "set -e\n" + "\n".join(f"{command}\necho '{MARK}'" for command in commands)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ENSIO_")}
    with tempfile.TemporaryDirectory(prefix="ensio-transcript-") as folder:
        (Path(folder) / "docs").symlink_to(ROOT / "docs")
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=clean | ANY_TASKS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        text = done.stdout.replace(os.path.realpath(folder), HOME).replace(folder, HOME)
    if done.returncode != 0:
        raise SystemExit(f"a command failed with {done.returncode}:\n{text}")
    parts = text.split(f"{MARK}\n")[:-1]
    return [part.rstrip("\n").splitlines() for part in parts]


def are_simulated(commands: list[str]) -> list[bool]:
    """Whether each command makes a simulated run, or reads one that a command before it made."""
    found: list[bool] = []
    runs: set[str] = set()
    for command in commands:
        words = command.split()
        makes = words[:2] == ["ensio", "simulate"]
        if makes and "-o" in words:
            runs.add(words[words.index("-o") + 1])
        found.append(makes or not runs.isdisjoint(words[2:]))
    return found


def masked(lines: list[str], with_numbers: bool = False) -> list[str]:
    """Lines with numbers; or words without them, for widths and breaks of lines follow numbers."""
    kept = []
    of_machine = in_prose = False
    for line in lines:
        in_prose = bool(line.strip()) and (in_prose or bool(PROSE.match(line)))
        of_machine = bool(MACHINE.match(line)) or (of_machine and bool(CONTINUED.match(line)))
        if not line.strip() or of_machine or in_prose or set(line) <= set("- #"):
            continue
        text = " ".join(line.split())
        row = LAST_CALL.sub(r"\1call", without_numbers(text))
        kept.append(row if row.endswith(" call") and not with_numbers else LEFT_OUT.sub("idle last", text))
    return sorted(kept) if with_numbers else sorted(without_numbers(" ".join(kept)).split())


def without_numbers(text: str) -> str:
    """The text with one sign in place of numbers that follow each other."""
    return " ".join(re.sub(r"(?:# ?)+", "# ", NUMBER.sub("# ", text)).split())


def written(page: str, outputs: list[list[str]]) -> str:
    """The page with these outputs in its transcripts."""
    lines, rest, inside = [], iter(outputs), False
    for line in page.splitlines():
        if line.startswith(f"{INDENT}$ "):
            if inside and lines[-1].strip() and not lines[-1].startswith(f"{INDENT}$ "):
                lines.append("")
            inside = True
            lines.append(line)
            lines += [f"{INDENT}{out}".rstrip() for out in next(rest)]
        elif inside and (line.startswith(INDENT) or not line.strip()):
            continue
        else:
            if inside:
                lines.append("")
            inside = False
            lines.append(line)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare or write one page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--write", action="store_true", help="put today's output into the page")
    options = parser.parse_args()
    page = options.page.read_text()
    every = [step for block in blocks(page) for step in block]
    commands = [command for command, _ in every]
    outputs = printed_by(commands)
    if options.write:
        options.page.write_text(written(page, outputs))
        return 0
    different = 0
    for (command, shown), now, is_exact in zip(every, outputs, are_simulated(commands), strict=True):
        there, here = masked(shown, is_exact), masked(now, is_exact)
        if there != here:
            different += 1
            print("\n".join([f"$ {command}", "-- the page shows", *shown, "-- the command prints", *now]))
    print(f"{len(every)} commands, {different} with another output")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
