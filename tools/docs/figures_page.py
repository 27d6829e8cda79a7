#!/usr/bin/env python3
"""Draws the pictures of docs/reference/figures.md by the code that the page shows above each of them.

`./dev figures` runs it, in the environment in which ensio is installed; names of pictures draw only these. It
draws the reference images of `reference_pages` too.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import reference_pages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "figures.md"
WIDTH = 700
COLOURS = 64
"""A picture has few colours; with a palette its file is half as large."""


class Shown(NamedTuple):
    """A picture of the page."""

    code: str  # The expression that draws it
    image: str  # Path of the image, relative to the page


def blocks(text: str) -> list[str]:
    """The indented blocks of a page."""
    found = re.findall(r"(?:^|\n\n)((?:    .*\n)+)", text)
    return ["\n".join(line[4:] for line in block.splitlines()) for block in found]


def commands(text: str) -> list[str]:
    """The commands that make the runs of the page."""
    return blocks(text)[0].splitlines()


def preparation(text: str) -> str:
    """The code that opens the runs."""
    return blocks(text)[1]


def shown(text: str) -> Iterator[Shown]:
    """The pictures of the page, in its order."""
    for code, image in re.findall(r"\n\n    (viz\..*)\n\n!\[[^\]]+\]\(([^)]+)\)(?=\n)", text):
        yield Shown(code, image)


def draw(one: Shown, names: dict[str, Any], target: Path) -> int:
    """Draw a picture into a PNG file of few colours, and return its size in bytes."""
    from PIL import Image

    from ensembles import viz

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.png"
        viz.save(eval(one.code, names), file, width=WIDTH)  # the page is part of the project
        image = Image.open(io.BytesIO(file.read_bytes())).convert("RGB")
    target.parent.mkdir(exist_ok=True)
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    return target.stat().st_size


def main() -> int:
    """Simulate the runs in a temporary folder, and draw."""
    import os

    text = PAGE.read_text(encoding="utf-8")
    wanted = set(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="ensio-figures-") as folder:
        for command in commands(text):
            subprocess.run(command.split(), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        os.chdir(folder)
        names: dict[str, Any] = {}
        exec(preparation(text), names)  # the page is part of the project
        for one in shown(text):
            if not wanted or Path(one.image).stem in wanted:
                size = draw(one, names, PAGE.parent / one.image)
                print(f"{one.image}: {size:,} bytes", flush=True)
        for name in reference_pages.PAGES:
            if not wanted or name in wanted:
                target = reference_pages.FOLDER / f"{name}.png"
                target.parent.mkdir(exist_ok=True)
                print(
                    f"{name}: {reference_pages.draw(name, reference_pages.RUN, target):,} bytes", flush=True
                )
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
