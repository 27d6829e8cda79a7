"""Measure what a report costs the browser: processor time of the page's process until the first picture, and sizes.

Runs of several numbers of tasks; the page is opened in Chromium, in a window of 1,400 × 900 pixels. With
``--beside ENSIO`` (the command of another version) both versions take turns. The processor time is that of the
process that draws the page (its renderer), from its start; compiled scripts are not kept between two runs.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "viz"))
from browser import FLAGS, chromium

from ensembles.workloads.synthetic import synthetic_run

OURS = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "ensio"
SHAPES = {4: 10, 64: 2000, 1024: 200, 10_240: 40}
"""Calls of each task by number of tasks."""

# Called in each frame: the first one in which a picture is there ends the wait.
FIRST = "() => document.querySelector('[id^=picture-]:not(.undrawn)') !== null"
DATA = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


def renderers() -> list[int]:
    """Return the processes that draw pages."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"--type=renderer" in command and b"--extension" not in command:
                found.append(int(entry.name))
    return found


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_picture_s(page: Path) -> float:
    """Open a page in a new browser, and return the processor time of its renderer until the first picture."""
    before = set(renderers())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        opened = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True).new_page()
        opened.goto(page.as_uri(), wait_until="commit")
        opened.wait_for_function(FIRST, polling="raf", timeout=120_000)
        used = max(processor_s(pid) for pid in set(renderers()) - before)
        browser.close()
    return used


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beside", type=Path, metavar="ENSIO", help="command of another version")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    versions = [OURS] + ([args.beside.resolve()] if args.beside else [])
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as name:
        folder = Path(name)
        for tasks, calls in SHAPES.items():
            synthetic_run(folder / str(tasks), tasks, calls, phases=10)
            pages = [folder / f"{number}.html" for number in range(len(versions))]
            for ensio, page in zip(versions, pages, strict=True):
                command = [str(ensio), "report", str(folder / str(tasks)), "-o", str(page)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            turns = [[first_picture_s(page) for page in pages] for _ in range(args.repeats)]
            for page, taken in zip(pages, zip(*turns, strict=True), strict=True):
                text = page.read_text()
                data = sum(len(part) for part in DATA.findall(text))
                which = "this version" if page == pages[0] else "the other"
                rows.append([f"{tasks:,}", which, f"{statistics.median(taken):.2f}"])
                rows[-1] += [f"{len(text.encode()) / 1e6:.2f}", f"{data / 1e6:.2f}"]
    headers = ["tasks", "", "first picture (s)", "page (MB)", "of which data (MB)"]
    print(f"\nA report in Chromium, medians of {args.repeats}\n")
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
