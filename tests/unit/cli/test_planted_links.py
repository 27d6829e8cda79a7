"""What another user may do in a run directory of his: plant links, and replace what is being written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bounded import command
from made_spools import made_events, spool

import ensembles
from ensembles.model.errors import EnsioError
from ensembles.run.collect import collect

pytestmark = pytest.mark.slow

ENOUGH, MOST_TRIES = 5, 1000
NOBODY = 65534

SWAPPER = """
import os, sys
folder, victim, kind = sys.argv[1:]
print("ready", flush=True)
number = 0
while True:
    for name in os.listdir(folder):
        if name.startswith(".ensio-") and name.endswith(".part"):
            number += 1
            planted = f"{folder}/planted-{number}"
            if kind == "link":
                os.symlink(victim, planted)
            else:
                with open(planted, "w") as file:
                    file.write("nothing")
            try:
                os.rename(planted, f"{folder}/{name}")
            except OSError:
                pass
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    spool(folder / "a.spool", [made_events(50)], rank=0)
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("the victim's own file\n")
    return path


def is_unchanged(victim: Path) -> bool:
    return victim.read_text() == "the victim's own file\n"


def test_collect_refuses_a_planted_link_and_names_it(run: Path, victim: Path, tmp_path: Path) -> None:
    (run / "trace.h5").symlink_to(victim)
    code, told = command(tmp_path, "collect", str(run))
    assert (code, told.count("\n")) == (2, 1)
    assert f"{run}/trace.h5 is a symbolic link, to {victim}" in told
    assert is_unchanged(victim)
    assert (run / "trace.h5").is_symlink()


def test_collect_makes_no_file_by_a_planted_link(run: Path, tmp_path: Path) -> None:
    (run / "trace.h5").symlink_to(tmp_path / "made")
    assert command(tmp_path, "collect", str(run))[0] == 2
    assert not (tmp_path / "made").exists()


def test_collect_refuses_a_planted_pipe(run: Path, tmp_path: Path) -> None:
    os.mkfifo(run / "trace.h5")
    code, told = command(tmp_path, "collect", str(run))
    assert (code, told.count("\n")) == (2, 1)
    assert f"{run}/trace.h5 is not a regular file" in told


@pytest.mark.parametrize("words", [["info"], ["modes", "--size", "0.."], ["events"], ["report", "-o", "OUT"]])
def test_what_is_written_by_itself_follows_no_link(
    run: Path, victim: Path, tmp_path: Path, words: list[str]
) -> None:
    (run / "trace.h5").symlink_to(victim)
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    assert command(tmp_path, words[0], str(run), *words[1:]) == (0, "")
    assert is_unchanged(victim)


def test_a_link_that_a_user_names_is_followed(run: Path, victim: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    assert command(tmp_path, "collect", str(run), "-o", str(tmp_path / "link"))[0] == 0
    assert len(ensembles.open(victim).events) == 50


@contextmanager
def swapping(run: Path, victim: Path, kind: str) -> Iterator[None]:
    """A process that replaces each unfinished file in a folder as soon as it sees it."""
    words = [sys.executable, "-c", SWAPPER, str(run), str(victim), kind]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_replaced_unfinished_file_is_no_success(run: Path, victim: Path, kind: str) -> None:
    ends: Counter[str] = Counter()
    with swapping(run, victim, kind):
        while ends["refused"] < ENOUGH and ends.total() < MOST_TRIES:
            (run / "trace.h5").unlink(missing_ok=True)
            try:
                path, count = collect(str(run))
            except EnsioError as error:
                assert "another process replaced" in str(error) or "No such file" in str(error)  # noqa: PT017
                ends["refused"] += 1
            else:
                assert count == 50
                assert not os.path.islink(path)
                assert len(ensembles.open(path).events) == 50
                ends["written"] += 1
            assert is_unchanged(victim)
    assert ends["refused"] == ENOUGH  # else the other process was hardly at work


@pytest.mark.parametrize("kind", ["link", "file"])
def test_the_same_of_every_other_output(run: Path, victim: Path, tmp_path: Path, kind: str) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    with swapping(outputs, victim, kind):
        for number in range(2 * ENOUGH):
            path = outputs / f"{number}.csv"
            code, told = command(tmp_path, "export", str(run), "--to", "csv", str(path))
            assert is_unchanged(victim)
            if code == 0:
                assert not path.is_symlink()
                assert path.read_text().count("\n") == 51
            else:
                assert (code, told.count("\n")) == (2, 1)


def test_root_puts_nothing_by_itself_into_a_run_of_another_user(run: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a run to another user")
    for path in (run, *run.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    assert command(tmp_path, "info", str(run)) == (0, "")
    assert [path.name for path in run.iterdir()] == ["a.spool"]
    assert command(tmp_path, "collect", str(run))[0] == 0
    assert (run / "trace.h5").exists()


@pytest.fixture
def anyones(tmp_path: Path) -> Path:
    """A folder like /tmp."""
    folder = tmp_path / "anyones"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


OUTPUTS = [
    ["collect", "RUN", "-o", "OUT"],
    ["report", "RUN", "-o", "OUT"],
    ["events", "RUN", "-o", "OUT"],
    ["export", "RUN", "--to", "csv", "OUT"],
    ["history", "add", "RUN", "--db", "OUT", "--experiment", "x"],
    ["history", "site", "OUT.folder", "--db", "OUT"],
    ["history", "upgrade", "--db", "OUT"],
    ["history", "merge", "OUT", "--db", "OUT.folder"],
]


FOLDERS = [
    ["history", "site", "OUT", "--db", "DB"],
    ["run", "-o", "OUT", "--", "true"],
    ["simulate", "ior", "--fs", "healthy", "--tasks", "2", "-o", "OUT"],
    ["scenarios", "run", "--scenario", "imbalance", "-o", "OUT"],
    ["export", "RUN", "--to", "otf2", "OUT/new"],
]


@pytest.mark.parametrize(
    ("words", "inside"),
    [(words, inside) for words in FOLDERS for inside in ("", "/", "/../folder/name")]
    + [(words, "/name") for words in OUTPUTS[:5]],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_nor_is_such_a_link_to_a_folder(
    run: Path, anyones: Path, tmp_path: Path, words: list[str], inside: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a link of another user")
    folder, planted = tmp_path / "folder", anyones / "planted"
    folder.mkdir()
    planted.symlink_to(folder)
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    given = {"RUN": str(run), "DB": str(tmp_path / "runs.db")}
    if "DB" in words:
        assert command(tmp_path, "history", "add", str(run), "--db", given["DB"], "--experiment", "x")[0] == 0
    out = f"{planted}{inside}"
    code, told = command(tmp_path, *(given.get(word, word.replace("OUT", out)) for word in words))
    assert code == 2
    assert f"{planted} was made by another user" in told.splitlines()[-1]
    assert not list(folder.iterdir())


@pytest.mark.parametrize("words", OUTPUTS[:5], ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_file_of_another_user_in_a_folder_of_everybody_is_not_written(
    run: Path, anyones: Path, tmp_path: Path, words: list[str], kind: str
) -> None:
    """Who made it could read what is written, as the kernel knows with ``fs.protected_regular``."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    planted = anyones / "planted"
    planted.touch() if kind == "file" else os.mkfifo(planted)
    planted.chmod(0o666)
    os.chown(planted, NOBODY, NOBODY)
    given = {"RUN": str(run), "OUT": str(planted)}
    code, told = command(tmp_path, *(given.get(word, word) for word in words))
    assert (code, told.count("\n")) == (2, 1)
    assert planted.lstat().st_size == 0
    assert [path.name for path in anyones.iterdir()] == ["planted"]


@pytest.mark.parametrize("words", OUTPUTS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("steps", [1, 2])
def test_a_link_of_another_user_in_a_folder_of_everybody_is_not_followed(
    run: Path, victim: Path, anyones: Path, tmp_path: Path, words: list[str], steps: int
) -> None:
    """As the kernel does where ``fs.protected_symlinks`` is set; also behind a link of the user."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a link of another user")
    planted = anyones / "planted"
    planted.symlink_to(victim)
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    out = planted
    if steps == 2:
        out = tmp_path / "mine"
        out.symlink_to(planted)
    given = {"RUN": str(run), "OUT": str(out), "OUT.folder": str(tmp_path / "site")}
    code, told = command(tmp_path, *(given.get(word, word) for word in words))
    assert (code, told.count("\n")) == (2, 1)
    assert f"{planted} was made by another user, in a folder that all users can write to" in told
    assert is_unchanged(victim)


def test_links_of_the_user_and_of_the_owner_of_the_folder_are_followed(
    run: Path, victim: Path, anyones: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a link of another user")
    (anyones / "mine").symlink_to(victim)
    assert command(tmp_path, "export", str(run), "--to", "csv", str(anyones / "mine"))[0] == 0
    assert victim.read_text().count("\n") == 51
    (anyones / "theirs").symlink_to(victim)
    for path in (anyones, anyones / "theirs"):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    assert command(tmp_path, "export", str(run), "--to", "csv", str(anyones / "theirs"))[0] == 0


def test_links_in_a_circle_are_one_sentence(run: Path, anyones: Path, tmp_path: Path) -> None:
    (anyones / "one").symlink_to("two")
    (anyones / "two").symlink_to("one")
    for words in (["export", str(run), "--to", "csv"], ["history", "list", "--db"]):
        code, told = command(tmp_path, *words, str(anyones / "one"))
        assert (code, told.count("\n")) == (2, 1)
