"""The folder in which a recorded run is made again: what is there before, and that nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.model.units import BYTES_AT_ONCE, bytes_text
from ensembles.workloads.recorded.files_before import FilesBefore

_LONGEST_PATH = 4095


class Places:
    """Where the files of a run are in a replay: below a folder, without the folder that all have in common.

    No name leads out of the folder.
    """

    def __init__(self, folder: Path, paths: Iterable[str], run: str) -> None:
        self._folder = folder
        folders = set()
        longest = 0
        for path in paths:
            if not (path.startswith("/") and os.path.normpath(path) == path and path.isprintable()):
                raise EnsioError(f"{run} has a file of the name {path!r}, which is not an absolute path")
            folders.add(os.path.dirname(path))
            longest = max(longest, len(os.fsencode(path)))
        self._common = os.path.commonpath(folders).rstrip("/")
        if len(os.fsencode(folder)) + longest > _LONGEST_PATH:
            raise EnsioError(
                f"{folder}: the names of the files would be too long below it: choose a shorter one"
            )

    def of(self, path: str) -> str:
        """Return the place of a path; folders above all files are the folder itself."""
        return (
            f"{self._folder}{path.removeprefix(self._common)}" if path != self._common else str(self._folder)
        )

    def is_inside(self, path: str) -> bool:
        """Whether no other path has the place of a path."""
        return path.startswith(f"{self._common}/")


@contextlib.contextmanager
def empty_folder(wanted: str | None, keep: bool) -> Iterator[Path]:
    """Give a folder that is empty, and is as before in the end unless what is made is kept.

    `wanted`: a folder that is empty or does not exist; None: a new one in the current folder.
    """
    if wanted is None:
        made, folder = True, Path(tempfile.mkdtemp(prefix=".ensio-replay-", dir=Path.cwd()))
    else:
        folder = Path(wanted).absolute()
        made = not os.path.lexists(folder)
        try:
            folder.mkdir(exist_ok=True)
            is_full = any(folder.iterdir())
        except OSError as error:
            raise EnsioError(f"{folder}: not a folder that can be used: {error.strerror}") from None
        if is_full:
            raise EnsioError(f"{folder}: is not empty: a replay writes to an empty folder only")
    if not str(folder).isprintable():
        raise EnsioError(f"{str(folder)!r}: a name with control characters cannot be used")
    try:
        yield folder
    finally:
        if not keep:
            empty(folder)
            if made:
                folder.rmdir()


def empty(folder: Path) -> None:
    """Remove all that is in a folder."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


def check_space(folder: Path, before: FilesBefore) -> None:
    """Refuse a folder that has not the space for the files of a run."""
    needed, free = before.needed_bytes, shutil.disk_usage(folder).free
    if needed > free:
        raise EnsioError(
            f"{folder}: the replay needs up to {bytes_text(needed)}, and {bytes_text(free)} are free: choose "
            "another folder with --directory"
        )


def prepare(before: FilesBefore, places: Places, files: Sequence[str], is_cold: bool) -> None:
    """Make the folders and the files that the run found, written to the disk; cold: not in memory."""
    for path in filter(places.is_inside, before.folders):
        Path(places.of(path)).mkdir(parents=True, exist_ok=True)
    content = random.Random(0).randbytes(
        BYTES_AT_ONCE
    )  # the same in every replay, so that contents can be compared
    for number, size in before.sizes.items():
        path = places.of(files[number])
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            for _ in range(size // BYTES_AT_ONCE):
                os.write(descriptor, content)
            os.write(descriptor, content[: size % BYTES_AT_ONCE])
            os.fsync(descriptor)
            if is_cold:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
