"""A history loses nothing: many writers, kills, full disks, other schemas, foreign files."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from night import night_record

from ensembles.cli.main import main
from ensembles.files.readership import Readership
from ensembles.history.record import RunRecord
from ensembles.history.schema import SqliteFile
from ensembles.history.store import History
from ensembles.model.errors import EnsioError

READER = 3002

ADD = """
import sys
import msgspec
from pathlib import Path
from ensembles.history.record import RunRecord
from ensembles.history.store import History

place, first, count = sys.argv[1], *map(int, sys.argv[3:])
record = RunRecord.decode(Path(sys.argv[2]).read_bytes())
for number in range(first, first + count):
    one = msgspec.structs.replace(record, identity=f"{number:032x}", start_unix_ns=number)
    History(place, make=True).add(one, "nightly", {"number": str(number)})
    print(number, flush=True)
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return night_record(tmp_path_factory.mktemp("night") / "run", 1)


def adder(place: Path, record: RunRecord, first: int, count: int) -> subprocess.Popen[str]:
    encoded = place.with_suffix(".record")
    encoded.write_bytes(record.encode())
    command = [sys.executable, "-c", ADD, str(place), str(encoded), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def asked(place: Path, statement: str) -> list[tuple[object, ...]]:
    """Answer of SQLite itself."""
    with closing(sqlite3.connect(place)) as connection, connection:
        return connection.execute(statement).fetchall()


def test_the_same_run_twice_is_one_run(tmp_path: Path, record: RunRecord) -> None:
    history = History(str(tmp_path / "runs.db"), make=True)
    assert history.add(record, "nightly", {"commit": "a"})
    assert not history.add(record, "nightly", {"commit": "b"})
    assert history.add(record, "weekly")
    assert [(run.experiment, run.labels) for run in history.runs()] == [
        ("nightly", {"commit": "a"}),
        ("weekly", {}),
    ]
    assert history.records([1]) == [record]


def test_runs_are_chosen_by_experiment_label_and_number(tmp_path: Path, record: RunRecord) -> None:
    history = History(str(tmp_path / "runs.db"), make=True)
    for number in range(6):
        one = msgspec.structs.replace(record, identity=str(number), start_unix_ns=10**9 * (10 - number))
        history.add(one, "nightly", {"node": "ab"[number % 2], "number": str(number)})
    # The latest run starts last, whenever it was added.
    assert [run.labels["number"] for run in history.runs("nightly")] == ["5", "4", "3", "2", "1", "0"]
    assert [run.labels["number"] for run in history.runs(labels={"node": "a"}, last=2)] == ["2", "0"]
    assert history.runs("other") == []
    assert history.remove([1, 2]) == 2
    assert [one.runs for one in history.experiments()] == [4]
    assert history.remove([run.id for run in history.runs()]) == 4
    assert history.experiments() == []


def test_writers_at_once_lose_nothing(tmp_path: Path, record: RunRecord) -> None:
    place = tmp_path / "runs.db"
    writers = [adder(place, record, 100 * k, 8) for k in range(6)]
    for writer in writers:
        writer.communicate(timeout=300)
    assert [writer.returncode for writer in writers] == [0] * 6
    assert len(History(str(place)).runs("nightly")) == 48


def test_a_kill_leaves_whole_runs_only(tmp_path: Path, record: RunRecord) -> None:
    place, done, first = tmp_path / "runs.db", 0, 0
    for delay_s in (0.0, 0.004, 0.011):
        with adder(place, record, first, 10_000) as writer:
            assert writer.stdout is not None
            for _ in range(3):
                assert writer.stdout.readline()
            time.sleep(delay_s)
            writer.kill()
            done += 3 + len(writer.stdout.read().splitlines())
        first += 10_000
    runs = History(str(place)).runs("nightly")
    assert done <= len(runs) <= done + 3
    assert all(run.labels for run in runs)
    assert asked(place, "PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_leaves_the_history_as_it_was(tmp_path: Path, record: RunRecord) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly")
    program = ADD + "\n"
    encoded = tmp_path / "record"
    noise = os.urandom(30_000).hex()[:30_000]
    encoded.write_bytes(msgspec.structs.replace(record, job=noise).encode())
    limit = place.stat().st_size + 4096

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", program, str(place), str(encoded), "1", "200"],
        capture_output=True,
        text=True,
        preexec_fn=limited,
    )
    assert done.returncode != 0
    assert "EnsioError" in done.stderr.splitlines()[-1]
    added = len(done.stdout.splitlines())
    assert len(History(str(place)).runs()) == 1 + added


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("'9999'", "has the schema 9999 of a later ensio"),
        ("'0001'", "names the schema 0001, and its tables differ: restore it from a copy"),
        ("'0000'", "names the schema 0000, and its tables differ: restore it from a copy"),
        (None, "names no schema, and its tables differ: restore it from a copy"),
    ],
)
def test_another_schema_is_refused_and_left_alone(
    tmp_path: Path, record: RunRecord, version: str | None, says: str
) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly")
    asked(place, "DELETE FROM alembic_version")
    if version:
        asked(place, f"INSERT INTO alembic_version VALUES ({version})")
    with pytest.raises(EnsioError, match=says):
        History(str(place))
    for setting in ("make", "upgrade"):
        with pytest.raises(EnsioError, match=says):
            History(str(place), **{setting: True})
    assert asked(place, "SELECT count(*) FROM run") == [(1,)]


def test_places_that_are_no_history(tmp_path: Path) -> None:
    with pytest.raises(EnsioError, match="there is no history"):
        History(str(tmp_path / "none.db"))
    (tmp_path / "text").write_text("no database, but a text that is longer than the head of one\n" * 50)
    with pytest.raises(EnsioError, match="not a database"):
        History(str(tmp_path / "text"), make=True)
    with pytest.raises(EnsioError, match="not a place for a history"):
        History("nothing://at/all")
    with pytest.raises(EnsioError, match=r"postgresql\+psycopg://me:\*\*\*@localhost:1/runs"):
        History("postgresql+psycopg://me:secret@localhost:1/runs")


def test_histories_merge(tmp_path: Path, record: RunRecord) -> None:
    left, right = (History(str(tmp_path / name), make=True) for name in ("left.db", "right.db"))
    for number in range(3):
        one = msgspec.structs.replace(record, identity=str(number))
        right.add(one, "nightly", {"number": str(number)})
        if not number:
            left.add(one, "nightly", {"number": "0"})
    assert left.merge(right) == (2, 1)
    assert left.merge(right) == (0, 3)
    assert left.merge(left) == (0, 3)
    assert [run.labels for run in left.runs()] == [{"number": str(number)} for number in range(3)]


def test_an_earlier_schema_is_refused_and_upgraded_on_request(tmp_path: Path, record: RunRecord) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly")
    with sqlite3.connect(place) as database:
        database.execute("DROP TABLE acknowledgement")
        database.execute("UPDATE alembic_version SET version_num = '0001'")
    for make in (False, True):
        with pytest.raises(EnsioError, match="of an earlier ensio: ensio history upgrade brings it to"):
            History(str(place), make=make)
    history = History(str(place), upgrade=True)
    (run,) = history.runs("nightly")
    history.acknowledge("nightly", run, "known")
    assert [one.reason for one in History(str(place)).acknowledgements("nightly")] == ["known"]


@pytest.mark.parametrize("table", ["other", "alembic_version"])
def test_a_database_of_others_is_no_history_and_stays_as_it_is(tmp_path: Path, table: str) -> None:
    place = tmp_path / "other.db"
    asked(place, f"CREATE TABLE {table} (version_num)")
    asked(place, f"INSERT INTO {table} VALUES ('1a2b3c4d')")
    before = place.read_bytes()
    for how in ({}, {"make": True}, {"upgrade": True}):
        with pytest.raises(EnsioError, match=r"is the database of another program: name another file$"):
            History(str(place), **how)
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "run SET start_unix_ns = 'text'",
        "run SET start_unix_ns = 9223372036854775807000",  # beyond 64 bits: SQLite makes it a float
        "run SET tasks = 'many'",
        "run SET span_s = 'long'",
        "run SET path = x'ff00'",
        "experiment SET name = x'ff'",
        "label SET value = x'ff'",
    ],
)
def test_a_row_of_other_types_is_one_sentence(tmp_path: Path, record: RunRecord, change: str) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly", {"commit": "a"})
    asked(place, f"UPDATE {change}")
    with pytest.raises(EnsioError, match="a row of the history is damaged"):
        print(History(str(place)).runs(), History(str(place)).labels())


@pytest.mark.parametrize("damage", ["'text'", "7", "x'00'", "substr(record, 1, 100)"])
def test_a_damaged_record_is_named_with_the_command_that_removes_it(
    tmp_path: Path, record: RunRecord, damage: str
) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly")
    asked(place, f"UPDATE run SET record = {damage}")
    when = datetime.fromtimestamp(record.start_unix_ns / 1e9, UTC)
    says = (
        f"run 1 of nightly, started {when:%Y-%m-%d %H:%M:%S} UTC: the record is damaged: ensio history "
        f"remove 1 --db {place} removes it"
    )
    with pytest.raises(EnsioError, match=re.escape(says)):
        History(str(place)).records([1])
    assert not History(str(place)).readable(History(str(place)).runs())


def test_one_damaged_record_blocks_no_other(
    tmp_path: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, site = tmp_path / "runs.db", tmp_path / "site"
    monkeypatch.setenv("ENSIO_HISTORY", str(place))
    history = History(str(place), make=True)
    for name in ("alone", "nightly", "whole"):
        for number in range(1 if name == "alone" else 5):
            one = msgspec.structs.replace(record, identity=str(number), start_unix_ns=(number + 1) * 10**9)
            history.add(one, name)
    whole, left_out = {7, 8, 9, 10, 11}, "the record is damaged: ensio history remove"
    # The only one of an experiment, one of a baseline, the latest.
    for damaged, verdict in ((1, "ok"), (3, "ok"), (6, "too-few-runs")):
        asked(place, f"UPDATE run SET record = 'x' WHERE id = {damaged}")
        assert main(["history", "check", "--json"]) == 0
        told = capsys.readouterr()
        assert told.err.count(left_out) == told.err.count("\n") == told.err.count("left out: run ")
        checks = {one["experiment"]: one for one in json.loads(told.out)["experiments"]}
        assert (checks["nightly"]["verdict"], checks["whole"]["verdict"]) == (verdict, "ok")
        assert not checks["whole"]["unread"]
    assert checks["alone"]["verdict"] == "too-few-runs"
    assert [run["id"] for run in checks["nightly"]["unread"]] == [3, 6]
    assert checks["nightly"]["reason"].endswith("the record cannot be read: run 3, run 6 (the latest)")
    assert main(["history", "export"]) == 0
    exported = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(exported) == [2, 4, 5, *sorted(whole)]
    assert main(["history", "metrics"]) == 0
    metrics = capsys.readouterr().out
    assert 'ensio_verdict{experiment="nightly",verdict="ok"} 0.0' in metrics
    assert 'ensio_calls{experiment="whole"' in metrics
    assert main(["history", "site", str(site)]) == 0
    assert len(list(site.glob("experiment-*.html"))) == 3
    assert main(["history", "context", "5", "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["others"] == 2
    assert main(["history", "merge", str(place), "--db", str(tmp_path / "other.db")]) == 2


def test_a_damaged_file_is_one_sentence(tmp_path: Path, record: RunRecord) -> None:
    place = tmp_path / "runs.db"
    History(str(place), make=True).add(record, "nightly")
    whole = place.read_bytes()
    # The name of a table in the first page, as bytes outside of UTF-8: SQLite's own message has them.
    place.write_bytes(whole[:100] + whole[100:4096].replace(b"experiment", b"exp\xfa\xfament") + whole[4096:])
    with pytest.raises(EnsioError, match=r"(?s)damaged.*: restore it from a copy$"):
        History(str(place))
    place.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(EnsioError, match=r"(?s)damaged.*: restore it from a copy$"):
        History(str(place))


def test_names_hold_any_bytes_and_1_to_256_characters(tmp_path: Path, record: RunRecord) -> None:
    history = History(str(tmp_path / os.fsdecode(b"r\xff?#%20.db")), make=True)
    path, name = os.fsdecode(b"/runs/\xc3\xa9\xff"), os.fsdecode(b"night\xfe")
    named = msgspec.structs.replace(record, path=path, command=["prog", name])
    assert history.add(named, name, {name: name})
    (run,) = history.runs(name, {name: name})
    assert (run.path, run.experiment, run.labels) == (path, name, {name: name})
    assert history.records([run.id])[0].command == ["prog", r"night\udcfe"]
    assert history.paths() == {path}
    assert history.add(record, "é" * 256)
    for bad in ("", "é" * 257):
        with pytest.raises(EnsioError, match=r"the experiment has .* a name of 1 to 256 characters"):
            history.add(record, bad)
        with pytest.raises(EnsioError, match=r"a label has .* a name of 1 to 256 characters"):
            history.add(record, "other", {bad: "value"})
    assert len(history.experiments()) == 2


@pytest.mark.parametrize(
    ("readers", "mode"),
    [(Readership(), 0o600), (Readership(os.getegid()), 0o640), (Readership(None, True), 0o644)],
)
def test_a_new_history_and_its_journal_are_readable_by_the_readers_of_its_first_run(
    tmp_path: Path, record: RunRecord, readers: Readership, mode: int
) -> None:
    place = tmp_path / "runs.db"
    before = os.umask(0o022)
    try:
        history = History(str(place), make=True, readers=readers)
        with closing(sqlite3.connect(place)) as other:  # the last to close would remove the journal
            other.execute("SELECT count(*) FROM run").fetchall()
            assert history.add(record, "nightly")
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        place.chmod(0o640)  # the owner shares it
        History(str(place), make=True, readers=readers).add(record, "weekly")
    finally:
        os.umask(before)
    assert found == dict.fromkeys(("runs.db", "runs.db-wal", "runs.db-shm"), mode)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


@pytest.fixture
def shared() -> Iterator[Path]:
    """A history in a folder that other users can enter, which pytest's own cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "runs.db"


@contextmanager
def only_reading(place: Path) -> Iterator[None]:
    """Become a user who may read a history and not write it: as root another one, else without the rights."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(READER)
    else:
        place.chmod(0o444)
        place.parent.chmod(0o555)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        else:
            place.parent.chmod(0o755)
            place.chmod(0o644)


def test_who_may_only_read_a_history_reads_it_and_makes_nothing(shared: Path, record: RunRecord) -> None:
    owner = History(str(shared), make=True, readers=Readership(everyone=True))
    owner.add(record, "nightly", {"commit": "a"})
    with only_reading(shared):
        history = History(str(shared))
        assert [run.labels for run in history.runs("nightly")] == [{"commit": "a"}]
        assert history.records([1]) == [record]
        with pytest.raises(EnsioError, match="cannot be changed by this user"):
            history.add(record, "weekly")
    assert [path.name for path in shared.parent.iterdir()] == [shared.name]
    owner.add(record, "weekly")
    with only_reading(shared):
        assert [one.name for one in history.experiments()] == ["nightly", "weekly"]


def test_who_may_only_read_sees_what_a_killed_program_has_added(shared: Path, record: RunRecord) -> None:
    History(str(shared), make=True, readers=Readership(everyone=True)).add(record, "nightly")
    program = f"""
import os, sqlite3
from ensembles.history.store import History
kept = sqlite3.connect({str(shared)!r})
kept.execute("SELECT count(*) FROM run").fetchall()
history = History({str(shared)!r})
history.add(history.records([1])[0], "weekly")
os._exit(0)  # before the last connection closes, which moves the journal into the file
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    beside = sorted(path.name for path in shared.parent.iterdir())
    assert "runs.db-wal" in beside
    with only_reading(shared):
        assert [one.name for one in History(str(shared)).experiments()] == ["nightly", "weekly"]
    assert sorted(path.name for path in shared.parent.iterdir()) == beside


def test_what_changes_while_it_is_read_without_locks_is_read_again(shared: Path, record: RunRecord) -> None:
    owner = History(str(shared), make=True, readers=Readership(everyone=True))
    owner.add(record, "nightly")
    asked_for: list[int] = []

    def answer(connection: object) -> int:
        asked_for.append(len(asked_for))
        if len(asked_for) < 3:
            os.utime(shared, ns=(0, len(asked_for)))
        return len(asked_for)

    owner._file = ReadOnly(str(shared))
    assert owner._read(answer) == 3


class ReadOnly(SqliteFile):
    """A file that this user could write."""

    is_writable = False  # type: ignore[assignment]
