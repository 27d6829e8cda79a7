"""Escape text from outside (names of files, programs, hosts) for output on a terminal."""

from __future__ import annotations

_BYTES = range(0xDC80, 0xDD00)
"""Code points to which Python decodes the bytes 0x80 to 0xff of a name that is not UTF-8."""


def sanitize_text(text: str) -> str:
    r"""Escape the unprintable characters of a text.

    Letters of all languages are kept. Backslashes are not escaped, so that the result cannot be decoded.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        The text with a line end as ``\n``, Escape as ``\x1b``, and so on.

    Examples
    --------
    >>> from ensembles.model.sanitize_text import sanitize_text
    >>> print(sanitize_text("run\x1b[2J of Müller"))
    run\x1b[2J of Müller
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else character.encode("unicode_escape").decode("ascii")
