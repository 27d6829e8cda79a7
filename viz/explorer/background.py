"""Work of the explorer that takes long: in a thread, step by step, the newest first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator

MOST_WAITING = 6
"""Works that wait; with more of them, the oldest ones are dropped, and asked for again if they are needed."""


class Background:
    """Works that are done in steps.

    Parameters
    ----------
    failed : callable
        Is given the key of a work and the exception that ended it.
    is_threaded : bool
        Work in a thread. Else each work is done when it is asked for.
    """

    def __init__(self, failed: Callable[[Hashable, Exception], None], is_threaded: bool = True) -> None:
        self._failed, self._is_threaded = failed, is_threaded
        self._waiting: dict[Hashable, Iterator[None]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def ask(self, key: Hashable, steps: Callable[[], Iterator[None]]) -> None:
        """Do a work before all others; if it has begun, go on with it.

        Parameters
        ----------
        key : hashable
            Of the work.
        steps : callable
            Begins the work: an iterator that does a step each time.
        """
        with self._changed:
            begun = self._waiting.pop(key) if key in self._waiting else steps()
            self._waiting[key] = begun
            while len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._changed.notify_all()
        if not self._is_threaded:
            while self._step():
                pass
        elif self._thread is None:
            self._thread = threading.Thread(target=self._work, name="explorer", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until all works are done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)

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
            key = next(reversed(self._waiting))
            steps = self._waiting[key]
        try:
            ended = next(steps, _ENDED) is _ENDED
        except Exception as error:  # the page says what happened
            self._failed(key, error)
            ended = True
        if ended:
            with self._changed:
                if self._waiting.get(key) is steps:
                    del self._waiting[key]
                self._changed.notify_all()
        return True


_ENDED = object()
