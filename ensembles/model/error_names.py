"""Names of the errors of failed calls."""

from __future__ import annotations

import errno

from ensembles.model.errors import EnsioError
from ensembles.model.nearest_names import nearest_names, suggestion

_LARGEST = (1 << 16) - 1


def error_name(number: int) -> str:
    """Return the name of an errno, such as ``ENOSPC``.

    `number`: of Linux; 0: the trace does not say which error it was.

    A number without a name is ``errno 4000``, and 0 is ``errno unknown``.
    """
    return errno.errorcode.get(number, f"errno {number}") if number else "errno unknown"


def parse_error(text: str) -> int:
    """Return the errno of a name or of a number.

    Examples
    --------
    >>> from ensembles.model.error_names import parse_error
    >>> parse_error("ENOSPC"), parse_error("enoent"), parse_error("4000")
    (28, 2, 4000)
    """
    name = text.strip().upper()
    if name.isascii() and name.isdigit() and len(name) <= len(str(_LARGEST)) and 0 < int(name) <= _LARGEST:
        return int(name)
    number = getattr(errno, name, None) if name.startswith("E") else None
    if isinstance(number, int):
        return number
    near = suggestion(name, nearest_names(name, errno.errorcode.values()) or ("ENOSPC", "EIO", "ENOENT"))
    raise EnsioError(f'there is no error "{text[:40]}": {near if "?" in near else "names are like " + near}')
