"""Text from outside (names of files, programs, hosts), made harmless for a terminal."""

from __future__ import annotations

_BYTES = range(0xDC80, 0xDD00)
"""What Python makes of the bytes 0x80 to 0xff in a name that is no UTF-8."""


def sanitize_text(text: str) -> str:
    r"""The text with what cannot be printed escaped: a line end as ``\n``, Escape as ``\x1b``.

    Letters of all languages stay. It is for people: a backslash is not escaped, so there is no way back.
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else character.encode("unicode_escape").decode("ascii")
