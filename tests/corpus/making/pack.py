"""Puts what was recorded or made into the folder of held runs, and refuses what names the machine.

    python -m tests.corpus.making.pack FOLDER [NAME ...]

Each entry of FOLDER (default: all) becomes ``runs/NAME.tar.xz``, which holds it as NAME, without suffix.
"""

from __future__ import annotations

import io
import re
import sys
import tarfile
from pathlib import Path

HELD = Path(__file__).resolve().parent.parent / "runs"
MACHINE = re.compile(rb"(?<!\w)/(?:work|root|home(?!/(?:me|luettgau)/)|tmp|builds|workspace)/[\w.]")
"""Paths that are those of a machine on which something was recorded; neutral ones, and those in the logs that
PyDarshan brings along, are not."""


def contents_of(archive: Path) -> dict[str, bytes]:
    """The files of a held run by their names."""
    with tarfile.open(archive) as tar:
        opened = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        return {name: file.read() for name, file in opened.items() if file}


def pack(entry: Path, archive: Path) -> int:
    """Write one archive, the same bytes each time; returns their number."""
    names = sorted(path for path in [entry, *entry.rglob("*")] if path.is_file())
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:xz", preset=9, format=tarfile.PAX_FORMAT) as tar:
        for path in names:
            content = path.read_bytes()
            if found := MACHINE.search(content):
                raise SystemExit(f"{path}: names {found.group().decode()}…: record it in a neutral folder")
            member = tarfile.TarInfo(str(Path(entry.stem, path.relative_to(entry))))
            member.size, member.mode, member.mtime = len(content), 0o644, 1_700_000_000
            tar.addfile(member, io.BytesIO(content))
    archive.write_bytes(held.getvalue())
    return len(held.getvalue())


def main(folder: str, *names: str) -> None:
    """Pack the entries of a folder, or those that are named."""
    HELD.mkdir(exist_ok=True)
    whole = 0
    for entry in sorted(Path(folder).iterdir()):
        if not names or entry.stem in names:
            size = pack(entry, HELD / f"{entry.stem}.tar.xz")
            whole += size
            print(f"{size:>9,}  {entry.stem}")
    print(f"{whole:>9,}  in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
