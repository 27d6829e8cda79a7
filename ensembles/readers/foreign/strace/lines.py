"""Read the lines of strace output in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ensembles.files.untrusted import open_regular
from ensembles.model.errors import EnsioError

LONGEST_LINE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 22
_HOPELESS_BYTES = 1 << 28
"""Reading fails on a line of this length: a hole in the file may be terabytes long."""

_ATTACHED = re.compile(r"strace: Process \d+ attached$", re.ASCII)


class TextLines:
    """The lines of a file without line ends, decoded as Latin-1.

    Parameters
    ----------
    path : str

    Attributes
    ----------
    too_long : int
        Number of lines longer than `LONGEST_LINE_BYTES`, which are left out.
    torn : bool
        Whether the last line has no end.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.too_long = 0
        self.torn = False

    def __iter__(self) -> Iterator[str]:
        """Iterate over the lines.

        Raises
        ------
        EnsioError
            The file cannot be read.
        """
        held = ""
        for line in self._raw():
            # On a terminal, strace reports in the middle of a line that it attached to a process.
            if line.endswith(" attached") and (match := _ATTACHED.search(line)):
                held = (held + line[: match.start()])[-LONGEST_LINE_BYTES:]
            else:
                yield held + line
                held = ""

    def _raw(self) -> Iterator[str]:
        try:
            with open_regular(self._path) as file:
                held, skipping, hopeless = b"", False, 0
                while text := file.read(_BLOCK_BYTES):
                    *lines, last = text.split(b"\n")
                    if not lines:
                        held += last
                    else:
                        lines[0] = held + lines[0]
                        if skipping:
                            del lines[0]
                        held, skipping = last, False
                        for line in lines:
                            if len(line) <= LONGEST_LINE_BYTES:
                                yield line.decode("latin-1")
                            else:
                                self.too_long += 1
                    hopeless = 0 if lines else hopeless + len(text)
                    if hopeless > _HOPELESS_BYTES:
                        raise EnsioError(
                            f"{self._path} has hundreds of MB without a line end: it may be damaged, copy it "
                            "again"
                        )
                    if len(held) > LONGEST_LINE_BYTES:
                        self.too_long += not skipping
                        held, skipping = b"", True
                self.torn = skipping or bool(held)
                if held and not skipping:
                    yield held.decode("latin-1")
        except OSError as error:
            raise EnsioError(f"{self._path} cannot be read: {error.strerror or error}") from error
