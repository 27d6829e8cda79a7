"""The error that users see."""

from __future__ import annotations


class EnsioError(Exception):
    """An error that a user can act on, described in one sentence.

    The sentence names what is wrong, where (a file, a line, an option) and what to do next. Commands print
    it after ``ensio:`` on standard error and exit with status 2.
    """
