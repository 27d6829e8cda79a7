"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def whole_file(path: str) -> Iterator[str]:
    """A temporary name beside `path`, which is renamed to it at the end, or removed if anything goes wrong.

    Raises
    ------
    OSError
        The directory cannot be written to.
    """
    folder, name = os.path.split(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}-", suffix=".part", dir=folder or ".")
    os.close(descriptor)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
