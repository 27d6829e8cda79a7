"""Mask passwords and tokens in command lines: reports and histories are passed on (docs/user/history.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_NAME = (
    r"(?:[\w.-]*?(?:pass(?:word|wd|phrase)|token|secret|credentials?|(?:api|access|secret|private|auth)"
    r"[-_]?key)|AWS_\w+)"
)
_ASSIGNED = re.compile(rf"(-{{0,2}}{_NAME}=).*", re.IGNORECASE | re.DOTALL)
"""A word ``NAME=VALUE`` or ``--NAME=VALUE``."""

_OPTION = re.compile(rf"--?(?!-|no-){_NAME}", re.IGNORECASE)
"""An option; its value is the next word."""

_WITHIN = re.compile(
    rf"""(?P<begin>(?<![\w.-])(?:--?(?!-|no-){_NAME}\s+(?!-)|-{{0,2}}{_NAME}="""
    r"""|Authorization:\s*(?:\w+\s+)?))"""
    r"""(?:"[^"]*"|'[^']*'|[^\s&;"']+)|(?P<user>\w://[^/\s:@]*:)[^/\s]*(?=@)""",
    re.IGNORECASE,
)
"""The same inside of a word, which may be a line of a shell or a URL."""


def mask_command(words: Iterable[str]) -> tuple[str, ...]:
    """Replace the secrets of a command line by ``***``.

    Masked are the values of options and assignments whose name ends in password, passwd, passphrase,
    token, secret, credential or api-key (access-, secret-, private-, auth-key; with ``-``, ``_`` or
    nothing between), or begins with ``AWS_``; the password in ``scheme://user:password@host``; and what
    follows ``Authorization:``. Short options such as ``-pSECRET`` are not: the letter means something else in
    most programs.

    Examples
    --------
    >>> from ensembles.model.masked_command import mask_command
    >>> mask_command(["./load", "--password=a b", "--api-key", "k3y", "s3://me:pw@host/x?token=1"])
    ('./load', '--password=***', '--api-key', '***', 's3://me:***@host/x?token=***')
    """
    masked: list[str] = []
    option = False
    for word in words:
        if option and not word.startswith("-"):
            masked.append(MASK)
        elif whole := _ASSIGNED.fullmatch(word):
            masked.append(whole[1] + MASK)
        else:
            masked.append(_WITHIN.sub(lambda found: (found["begin"] or found["user"]) + MASK, word))
        option = _OPTION.fullmatch(word) is not None
    return tuple(masked)
