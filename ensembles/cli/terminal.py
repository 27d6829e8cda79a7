"""What a terminal gets and a file does not: colours of verdicts, and the progress of long passes.

The package rich decides what the terminal can do; NO_COLOR and TERM=dumb switch colours off.
"""

from __future__ import annotations

import os
import sys
import threading
import time
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
"""Shorter passes show nothing."""


def print_coloured(text: str) -> None:
    """Print a text, with colours on its severities and verdicts if standard output is a terminal."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    marked = Text(text)
    for pattern, style in _STYLES.items():
        marked.highlight_regex(pattern, style)
    Console(highlight=False).print(marked, soft_wrap=True)


def show_progress() -> None:
    """Show on standard error how far long passes are, if it is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return
    from ensembles.passes.progress import listen

    listen(_Bar())


class _Bar:
    """A bar that appears when a pass takes more than a second, and vanishes when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None

    def begin(self, path: str, events: int) -> None:
        self._path, self._events, self._read = path, events, 0
        self._shown_from = time.monotonic() + _QUIET_S

    def advance(self, events: int) -> None:
        with self._lock:
            self._read += events
            if self._progress is None and time.monotonic() > self._shown_from:
                self._progress = self._made()
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], completed=self._read)

    def end(self) -> None:
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
            self._progress = None

    def _made(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        name = sanitize_text(os.path.basename(os.path.normpath(self._path)))
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} events"),
            TimeRemainingColumn(),
        )
        made = Progress(*columns, console=Console(stderr=True), transient=True)
        made.add_task(f"reading {name}", total=self._events)
        made.start()
        return made
