"""Mask passwords and tokens in command lines, which reports and histories show (docs/reference/formats)."""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "***"

_NAME = (
    r"(?:[\w.-]*?(?:pass(?:word|wd|phrase)|token|secret|credentials?|authorization|"
    r"(?:api|access|secret|private|auth)[-_]?key|(?<![^\W_])(?:pw|pwd|pass|auth))|AWS_\w+)"
)
"""A name of a secret; the short words are parts of a name between ``-``, ``_`` and ``.``."""

_ASSIGNED = re.compile(rf"(-{{0,2}}{_NAME}=).*", re.IGNORECASE | re.DOTALL)
"""A word ``NAME=VALUE`` or ``--NAME=VALUE``."""

_OPTION = re.compile(rf"--?(?!-|no-){_NAME}", re.IGNORECASE)
"""An option; its value is the next word."""

_WITHIN = re.compile(
    rf"""(?P<begin>(?<![\w.-])(?:--?(?!-|no-){_NAME}\s+(?!-)|-{{0,2}}{_NAME}=|"""
    rf"""{_NAME}["']?:\s*(?:(?:Basic|Bearer|Digest|Negotiate|Token)\s+)?)|"""
    r"""(?P<user>\w://(?:[^/\s:@]*:)?|(?<![^\s"'=,;(])[^/\s:@"'=]+:)(?=[^/\s]+@))"""
    r"""(?(user)[^/\s]+(?=@)|(?:"[^"]*"|'[^']*'|[^\s&;"']+))""",
    re.IGNORECASE,
)
"""The same inside of a word, which may be a line of a shell, a header of HTTP, JSON or an address."""


@lru_cache  # the processes of a job have one command, mostly
def mask_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Replace the secrets of a command line by ``***``.

    A value is masked if its name says that it is a secret, or if it stands before the ``@`` of an address.
    Such a name ends in password, passwd, passphrase, token, secret, credential, authorization or api-key
    (access-, secret-, private-, auth-key; with ``-``, ``_`` or nothing between), has pw, pwd, pass or auth as
    its last part, or begins with ``AWS_``; values follow ``=``, ``:`` or the option. Of ``user:password@``
    the user is kept, of ``scheme://token@`` nothing. Short options such as ``-pSECRET`` are not masked.
    """
    masked: list[str] = []
    option = False
    for word in words:
        if option and not word.startswith("-"):
            masked.append(MASK)
        elif whole := _ASSIGNED.fullmatch(word):
            masked.append(whole[1] + MASK)
        else:
            masked.append(_WITHIN.sub(lambda found: found["begin"] + MASK, word))
        option = _OPTION.fullmatch(word) is not None
    return tuple(masked)
