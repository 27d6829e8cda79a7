"""The one error that is meant to be read by a person."""

from __future__ import annotations


class EnsioError(Exception):
    """Something a user can act on, told in one plain sentence.

    The sentence names what is wrong, where (a file, a line, an option) and what to do. Commands print it
    after ``ensio:`` on standard error and exit with 2.
    """
