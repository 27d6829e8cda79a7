"""The error that users see."""

from __future__ import annotations

from collections.abc import Sequence


class EnsioError(Exception):
    """An error that a user can act on, described in one sentence.

    The sentence names what is wrong, where (a file, a line, an option) and what to do next. Commands print
    it after ``ensio:`` on standard error and exit with status 2.
    """


class MissingLibrary(EnsioError):
    """An optional library or program is missing or fails by itself, which says nothing about the input."""


class SeveralRuns(EnsioError):
    """A path holds several runs, of which one has to be named."""

    def __init__(self, message: str, paths: Sequence[str]) -> None:
        super().__init__(message)
        self.paths = tuple(paths)

    def __reduce__(self) -> tuple[type[SeveralRuns], tuple[str, tuple[str, ...]]]:
        """Pickle for worker processes."""
        return SeveralRuns, (str(self), self.paths)
