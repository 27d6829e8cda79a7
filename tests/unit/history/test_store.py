"""A history loses nothing: many writers, kills, full disks, other schemas, foreign files."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from night import night_record

from ensembles.history.record import RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError

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
    ("version", "says"), [("9999", "has the schema 9999 of a later ensio"), (None, "holds no history")]
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
    if version:
        with pytest.raises(EnsioError, match=says):
            History(str(place), make=True)
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
