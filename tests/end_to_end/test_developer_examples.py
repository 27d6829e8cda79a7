"""The examples of docs/developer work: their code is applied to a copy of the tree, built and run."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest
from places import BUILD, ROOT

PAGES = ROOT / "docs" / "developer"
FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.M | re.S)
IN_PYTHON = ("summary", "finding", "picture", "command", "reader")
IN_C = ("call", "layer")


class Block(NamedTuple):
    """A block of code of a page: a new file, a change of a file, or commands."""

    language: str
    remark: str
    text: str

    @property
    def file(self) -> str:
        found = re.search(r'title="([^"]+)"', self.remark)
        return found[1] if found else ""


def blocks(name: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall((PAGES / f"adding-a-{name}.md").read_text())]


def changed(text: str, change: str, where: str) -> str:
    """A text after a change whose lines begin with " ", "-" or "+"."""
    lines = change.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
    after = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"{where} has {text.count(before)} places like\n{before}"
    return text.replace(before, after)


def apply(name: str, tree: Path) -> None:
    for block in blocks(name):
        path = tree / block.file
        if block.language == "diff":
            path.write_text(changed(path.read_text(), block.text, block.file))
        elif block.file:
            assert not path.exists(), f"{block.file} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


def copy_of_tree(tree: Path) -> Path:
    """The tracked files, with the compiled modules, as an installed package would find them."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    compiled = [str(path.relative_to(ROOT)) for path in (ROOT / "ensembles").rglob("*.so")]
    assert compiled
    for name in [*tracked.stdout.decode().split("\0")[:-1], *compiled]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    (tree / "ensembles" / "viz").symlink_to("../viz")
    return tree


def environment_of(tree: Path, build: Path) -> dict[str, str]:
    commands = tree / "commands"
    commands.mkdir(exist_ok=True)
    ensio = commands / "ensio"
    ensio.write_text(
        f"#!{sys.executable}\nimport sys\nfrom ensembles.cli.main import main\nsys.exit(main())\n"
    )
    ensio.chmod(0o755)
    return {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")} | {
        "PATH": f"{commands}:{build}/bin:{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
        "PYTHONPATH": str(tree),
        "ENSIO_PRELOAD": str(build / "lib" / "libensio-preload.so"),
    }


def run(name: str, tree: Path, build: Path) -> None:
    scripts = [block for block in blocks(name) if block.language == "sh"]
    assert scripts
    for script in scripts:
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script.text],
            cwd=tree,
            env=environment_of(tree, build),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{script.text}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the tree with all examples in Python, each on top of the one before."""
    copied = copy_of_tree(tmp_path_factory.mktemp("python") / "tree")
    for name in IN_PYTHON:
        apply(name, copied)
    return copied


@pytest.fixture(scope="module")
def built_tree(tmp_path_factory) -> Path:
    """A copy of the tree with all examples in C, built."""
    copied = copy_of_tree(tmp_path_factory.mktemp("c") / "tree")
    for name in IN_C:
        apply(name, copied)
    for words in (
        ["-S", copied, "-B", copied / "build"],
        ["--build", copied / "build", "-j", "2", "-t", "ensio-preload"],
    ):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return copied


@pytest.mark.parametrize("name", IN_PYTHON)
def test_example_in_python_works(tree, name):
    run(name, tree, BUILD)


@pytest.mark.long  # builds the recorder once more
@pytest.mark.parametrize("name", IN_C)
def test_example_in_c_works(built_tree, name):
    run(name, built_tree, built_tree / "build")


def test_examples_keep_the_import_directions(tree):
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/unit/test_architecture.py",
    ]
    done = subprocess.run(words, cwd=tree, env=environment_of(tree, BUILD), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_page_of_this_kind_is_run():
    assert {path.stem.removeprefix("adding-a-") for path in PAGES.glob("adding-*.md")} == {*IN_PYTHON, *IN_C}


def test_a_change_whose_place_is_gone_is_noticed():
    assert changed("a\nb\n", " a\n-b\n+c\n", "x") == "a\nc\n"
    with pytest.raises(AssertionError, match="x has 0 places"):
        changed("a\nb\n", " a\n-d\n+c\n", "x")
