"""Work of the explorer that takes long: in a thread, step by step, the newest first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary


class Postponed(Exception):
    """A newer work has to be done before the present one, which begins again later."""


class Answers:
    """Whether the server answers a page; works rest in the meantime, since they need the same processors."""

    def __init__(self) -> None:
        self._until = 0.0

    @contextmanager
    def answering(self, quiet_s: float) -> Iterator[None]:
        """Let works rest during an answer, and so many seconds after it."""
        before = self._until
        self._until = time.monotonic() + 3.0  # works go on beside a longer answer
        try:
            yield
        finally:
            self._until = max(before, time.monotonic() + quiet_s)

    def wait(self) -> None:
        """Wait until no page is being answered."""
        while (left_s := self._until - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.02))


class Background:
    """Works that are done in steps."""

    def __init__(
        self,
        failed: Callable[[Hashable, Exception], None],
        is_threaded: bool = True,
        answers: Answers | None = None,
        before: Background | None = None,
    ) -> None:
        self._failed, self.is_threaded = failed, is_threaded
        self._answers, self._before = answers, before
        # How each work begins, and its steps once it has begun.
        self._waiting: dict[Hashable, tuple[Callable[[], Iterator[None]], Iterator[None] | None]] = {}
        self._working: Hashable = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def ask(self, key: Hashable, steps: Callable[[], Iterator[None]]) -> None:
        """Do a work before all others; if it has begun, go on with it.

        Of more than six that wait, the oldest are dropped, and asked for again if they are needed.
        """
        with self._changed:
            self._waiting[key] = self._waiting.pop(key, (steps, None))
            while len(self._waiting) > 6:
                del self._waiting[next(iter(self._waiting))]
            self._changed.notify_all()
        if not self.is_threaded:
            while self._step():
                pass
        elif self._thread is None:
            self._thread = threading.Thread(target=self._work, name="explorer", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until all works are done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)

    def turn(self) -> Turn:
        """Return what the passes of the works ask between two chunks."""
        return Turn(self if self.is_threaded else None)

    def take_turn(self) -> None:
        """Wait while something else comes first."""
        if self._answers is not None:
            self._answers.wait()
        if self._before is not None:
            self._before.wait()
        newest = next(reversed(self._waiting.copy()), self._working)
        if newest != self._working:
            raise Postponed

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
            self._step()

    def _step(self) -> bool:
        """Do a step of the newest work; return False if there is none."""
        with self._changed:
            if not self._waiting:
                return False
            key = self._working = next(reversed(self._waiting))
            make, begun = self._waiting[key]
            steps = make() if begun is None else begun
            self._waiting[key] = make, steps
        again: Iterator[None] | None = steps
        try:
            ended = next(steps, _ENDED) is _ENDED
        except Postponed:
            ended, again = False, None
        except Exception as error:
            if not self.is_threaded:
                self._waiting.pop(key, None)
                raise
            self._failed(key, error)  # the page says what happened
            ended = True
        with self._changed:
            if self._waiting.get(key) == (make, steps):
                if ended:
                    del self._waiting[key]
                else:
                    self._waiting[key] = make, again
            self._changed.notify_all()
        return True


class Turn:
    """Asked between two chunks of a pass whether to go on; in another process there is always time."""

    def __init__(self, background: Background | None = None) -> None:
        self._background = background

    def __reduce__(self) -> tuple[Any, ...]:
        return Turn, ()

    def __deepcopy__(self, memo: Any) -> Turn:
        return self

    def take(self) -> None:
        """Wait for the turn of the pass (`Background.take_turn`)."""
        if self._background is not None:
            self._background.take_turn()


class InTurn(Summary):
    """A summary of nothing: its pass rests while something else comes first."""

    columns = ("rank",)
    requires = ANY_ORDER

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def add(self, chunk: Events) -> None:
        """Wait for the turn of the pass."""
        self._turn.take()

    def merge(self, other: InTurn) -> None:
        """Add nothing."""


_ENDED = object()
