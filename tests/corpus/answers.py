"""The answers of the program on the corpus: each command line once a session.

    from .answers import ANSWERS
    for run in RUNS:
        opened = ANSWERS.opened(run.name)          # ensembles.Run
        answers = ANSWERS.of(run)                  # {command line: Answer}

Commands run by ``ensembles.cli.main`` in a folder into which the runs are unpacked under their names. So no
answer depends on where the tree is, and nothing is written into it.

The processes of one session of tests share their answers by files in its temporary folder (conftest.py). No
answer is older than the session, so none is of other code.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import importlib.util
import io
import json
import os
import pickle
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .commands import lines_of
from .declared import HELPER_TABLES, HELPERS, RUNS, Declared, Several
from .making.pack import HELD, contents_of

if TYPE_CHECKING:
    from ensembles import Run

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
ROOT = TESTS.parent
BUILD = Path(os.environ.get("ENSIO_BUILD", ROOT / "build"))
DATA = Path(os.environ.get("ENSIO_DATA") or ROOT.parent / "shared" / "data")
"""Real tables, which are not part of the repository."""
_UNSEEN = re.compile(r"(?s)<(script|style)\b.*?</\1>")
_TABLE, _ROW = re.compile(r"(?s)<table\b.*?</table>"), re.compile(r"(?s)<tr\b.*?</tr>")
_CELL, _TAG = re.compile(r"(?s)<t[dh]\b.*?</t[dh]>"), re.compile(r"<[^>]*>")
_SIZE = re.compile(r"\([0-9.]+ [KM]?i?B\)")


class NotThereError(Exception):
    """A table of real data is not on this machine."""


@dataclass
class Answer:
    """What a command line gave.

    Attributes
    ----------
    exit : int or str
        The exit code; the name of an exception where one ended the program, which is a defect.
    out : object
        The JSON on standard output, JSON lines as a list, or else the text.
    messages : list of str
        Lines of standard error, and Python's warnings.
    made : object
        What the file that it wrote holds; None: it wrote none.
    passes : list of list of str
        The names of the summaries of each pass over events.
    seconds : float
        Of processor time.
    """

    exit: int | str
    out: Any
    messages: list[str] = field(default_factory=list)
    made: Any = None
    passes: list[list[str]] = field(default_factory=list, compare=False)
    seconds: float = field(default=0.0, compare=False)


class Answers:
    """Answers of one session, each computed when it is first asked for, and by passes over events.

    Attributes
    ----------
    shared : Path or None
        Folder of the answers that other processes of the session computed.
    """

    def __init__(self) -> None:
        self.shared: Path | None = None
        self._sources = {run.name: run.source for run in RUNS} | dict.fromkeys(HELPERS, "") | HELPER_TABLES
        self._known: dict[str, Answer] = {}

    @property
    def folder(self) -> Path:
        """Where the runs are unpacked."""
        return _folder()

    def place(self, name: str) -> Path:
        """Unpack a run; returns its path.

        Raises
        ------
        NotThereError
            It is a table of real data, and these are not on this machine.
        """
        path = self.folder / name
        if not path.exists():
            kind, _, where = self._sources[name].partition(":")
            _PLACES[kind](where or name, path)
        return path

    def opened(self, name: str) -> Run:
        """The run as Python opens it."""
        import ensembles

        return ensembles.open(self.place(name))

    def of(self, asked: Declared | Several) -> dict[str, Answer]:
        """All answers on a run, by command lines."""
        lines = asked.lines if isinstance(asked, Several) else lines_of(asked)
        return {line: self.answer(line) for line in lines}

    def answer(self, line: str) -> Answer:
        """What a command line gives, without the name of the program."""
        if line not in self._known:
            words = line.split()
            for word in words:
                if word in self._sources:
                    self.place(word)
            self._known[line] = self._of_another_process(line) or self._computed(line)
        return self._known[line]

    def _computed(self, line: str) -> Answer:
        with _setting("ENSIO_CACHE", "0"):
            answer = executed(line.split(), self.folder)
        if path := self._path(line):
            path.parent.mkdir(exist_ok=True)
            half = path.with_suffix(f".{os.getpid()}")
            half.write_bytes(pickle.dumps(answer))
            half.rename(path)
        return answer

    def _of_another_process(self, line: str) -> Answer | None:
        path = self._path(line)
        return pickle.loads(path.read_bytes()) if path and path.exists() else None

    def _path(self, line: str) -> Path | None:
        """The shared file of an answer: none where the answer is about files that a command wrote."""
        if self.shared is None or "made-" in line:
            return None
        return self.shared / sha256(line.encode()).hexdigest()


@contextlib.contextmanager
def _setting(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def executed(words: list[str], folder: Path) -> Answer:
    """Run the program in a folder, and watch its passes over events."""
    from ensembles.cli.main import main

    out, told = io.StringIO(), io.StringIO()
    code: int | str
    began = time.process_time()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
        warnings.catch_warnings(record=True) as warned,
        _passes() as passes,
    ):
        warnings.simplefilter("always")
        for unseen in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", unseen)  # as Python does for a user
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else str(end.code)
        except Exception as error:  # a defect, kept as one
            code = type(error).__name__
            told.write(f"{code}: {error}\n")
    seconds = time.process_time() - began
    messages = [*told.getvalue().splitlines(), *(f"{w.category.__name__}: {w.message}" for w in warned)]
    neutral = [_neutral(message, words, folder) for message in dict.fromkeys(messages)]
    result = _parsed(out.getvalue().replace(str(folder), "FOLDER"), words)
    if words[0] == "report" and isinstance(result, dict):
        result.pop("bytes")  # most of them are Bokeh's
    return Answer(code, result, neutral, _made(words, folder), passes, seconds)


@contextlib.contextmanager
def _passes() -> Iterator[list[list[str]]]:
    """The names of the summaries of each pass over events that is made meanwhile."""
    from ensembles.run.reading import RunReading

    made: list[list[str]] = []
    whole = RunReading._pass

    def counted(reading: RunReading, requests: Any, selection: Any) -> Any:
        made.append(sorted(requests))
        return whole(reading, requests, selection)

    RunReading._pass = counted  # type: ignore[method-assign]
    try:
        yield made
    finally:
        RunReading._pass = whole  # type: ignore[method-assign]


def _neutral(message: str, words: list[str], folder: Path) -> str:
    """A message without what depends on the machine, on Python's version or on that of a library."""
    for place, name in ((folder, "FOLDER"), (BUILD, "BUILD"), (ROOT, "TREE")):
        message = message.replace(str(place), name)
    if words[0] in ("export", "collect"):
        message = _SIZE.sub("(SIZE)", message)
    head, choose, choices = message.partition(
        "(choose from"
    )  # whose names Python 3.11 quotes, and 3.12 does not
    return head + choose + choices.replace("'", "")


def _parsed(text: str, words: list[str]) -> Any:
    if "jsonl" in words:
        return [json.loads(row) for row in text.splitlines()]
    if "csv" in words:
        return list(csv.DictReader(io.StringIO(text)))
    try:
        return json.loads(text)
    except ValueError:
        return text


def _made(words: list[str], folder: Path) -> Any:
    """The content of a file that a command wrote, where that is text or a table."""
    for word in words[1:]:
        path = folder / word
        if word.startswith("made") and path.is_file() and words[0] in ("export", "report"):
            if path.suffix == ".html":
                return _texts_of(path.read_text())
            if path.suffix == ".csv":
                return list(csv.DictReader(path.read_text().splitlines()))
            if path.suffix == ".json":
                return json.loads(path.read_text())
            if path.suffix == ".parquet":
                from pyarrow import parquet

                return parquet.read_table(path).to_pylist()
    return None


def _texts_of(page: str) -> dict[str, Any]:
    """What a report says in words and tables, without its pictures."""
    page = _UNSEEN.sub(" ", page)
    tables = [
        {row[0]: row[1:] for row in map(_cells, _ROW.findall(table)) if row} for table in _TABLE.findall(page)
    ]
    rest = " · ".join(filter(None, (text.strip() for text in _TAG.split(_TABLE.sub(" ", page)))))
    return {"tables": tables, "rest": rest}


def _cells(row: str) -> list[str]:
    return [_TAG.sub(" ", cell).strip() for cell in _CELL.findall(row)]


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ensio-corpus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"  # OTF2 is read by the tree's own program
    return folder


def _unpack(name: str, path: Path) -> None:
    for member, content in contents_of(HELD / f"{name}.tar.xz").items():
        target = path.parent / member
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        os.utime(target, (1_700_000_000, 1_700_000_000))


def _copy(source: Path, path: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, path)
        for below in [path, *path.rglob("*")]:
            below.chmod(0o755 if below.is_dir() else 0o644)
    else:
        shutil.copyfile(source, path)


def _copy_of_tests(where: str, path: Path) -> None:
    _copy(TESTS / where, path)


def _copy_of_darshan(where: str, path: Path) -> None:
    package = importlib.util.find_spec("darshan")
    assert package is not None, "the package darshan is not installed: pip install ensio[test]"
    _copy(Path(str(package.origin)).parent / where, path)


def _copy_of_data(where: str, path: Path) -> None:
    if not (DATA / where).exists():
        raise NotThereError(f"there is no {DATA / where}: set ENSIO_DATA to the folder of the real tables")
    _copy(DATA / where, path)


def _made_from_table(where: str, path: Path) -> None:
    from .tables import write_table_as_run

    name, _, number = where.partition(":")
    table = DATA / "tables" / f"{name}.npz"
    if not table.exists():
        raise NotThereError(f"there is no {table}: set ENSIO_DATA to the folder of the real tables")
    write_table_as_run(table, path, int(number) if number else None)


_PLACES = {
    "": _unpack,
    "tests": _copy_of_tests,
    "darshan": _copy_of_darshan,
    "data": _copy_of_data,
    "table": _made_from_table,
}

ANSWERS = Answers()
"""Those of this process."""
