"""Escape text from outside (names of files, programs, hosts) for output on a terminal."""

from __future__ import annotations

import re

_BYTES = range(0xDC80, 0xDD00)
"""Code points to which Python decodes the bytes 0x80 to 0xff of a name that is not UTF-8."""

_STORED_BYTE = re.compile(r"\\udc([89a-f][0-9a-f])")


def sanitize_text(text: str) -> str:
    r"""Escape the unprintable characters of a text.

    Letters of all languages are kept. Backslashes are not escaped, so that the result cannot be decoded.

    The text with a line end as ``\n``, Escape as ``\x1b``, and so on.
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else character.encode("unicode_escape").decode("ascii")


def storable_text(text: str) -> str:
    r"""Return a text in which ``\udcff`` stands for the byte 0xff of a name that is not UTF-8, and so on.

    Examples
    --------
    >>> from ensembles.model.sanitize_text import original_text, storable_text
    >>> storable_text("run\udcff"), original_text(storable_text("run\udcff")) == "run\udcff"
    ('run\\udcff', True)
    """
    return text.encode(errors="backslashreplace").decode()


def original_text(stored: str) -> str:
    """Return the text of which `storable_text` made another."""
    return _STORED_BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), stored)
