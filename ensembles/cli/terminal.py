"""What a terminal gets and a file does not: colours of verdicts, and the progress of long work.

The package rich decides what the terminal can do; NO_COLOR and TERM=dumb switch colours off.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ensembles.model.sanitize_text import sanitize_text

if TYPE_CHECKING:
    from rich.progress import Progress

_STYLES = {
    r"(?m)^critical\b|\bregression\b|\bdifferent\b": "bold red",
    r"(?m)^warning\b|\binconclusive\b|\btoo-few-runs\b": "yellow",
    r"(?m)^note\b": "cyan",
    r"\bimprovement\b": "green",
}
"""Severities and verdicts."""

_QUIET_S = 1.0
"""Shorter work shows nothing."""


def print_coloured(text: str) -> None:
    """Print a text, with colours on its severities and verdicts if standard output is a terminal."""
    if not sys.stdout.isatty() or not find_spec("rich"):
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    marked = Text(text)
    for pattern, style in _STYLES.items():
        marked.highlight_regex(pattern, style)
    Console(highlight=False).print(marked, soft_wrap=True)


def show_progress() -> None:
    """Show on standard error how far long work is, if it is a terminal."""
    is_plain = sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb"
    if is_plain or not find_spec("rich"):
        return
    from ensembles.passes.progress import listen

    listen(_Bar())


@dataclass
class _Work:
    what: str
    total: int
    unit: str
    shown_from: float
    done: int = 0


class _Bar:
    """A bar that appears when work takes more than a second, and vanishes when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._was_shown = -math.inf
        self._works = [_Work("reading", 0, "events", math.inf)]

    def begin(self, work: str, path: str, total: int, unit: str) -> None:
        name = sanitize_text(os.path.basename(os.path.normpath(path)))
        with self._lock:
            self._stop()
            now = time.monotonic()
            follows = now - self._was_shown < _QUIET_S
            self._works.append(_Work(f"{work} {name}", total, unit, now + (0 if follows else _QUIET_S)))
            self._update(now)

    def advance(self, steps: int) -> None:
        with self._lock:
            self._works[-1].done += steps
            self._update(time.monotonic())

    def clear(self) -> None:
        with self._lock:
            self._stop()

    def end(self) -> None:
        with self._lock:
            self._stop()
            if len(self._works) > 1:
                self._works.pop()

    def _update(self, now: float) -> None:
        work = self._works[-1]
        if work.done >= work.total:
            self._stop()
        elif self._progress is None and now >= work.shown_from:
            self._progress = self._made(work)
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=work.done)

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._was_shown = time.monotonic()
        self._progress = None

    def _made(self, work: _Work) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + work.unit),
            TimeRemainingColumn(),
        )
        made = Progress(*columns, console=Console(stderr=True), transient=True)
        made.add_task(work.what, total=work.total)
        made.start()
        return made
