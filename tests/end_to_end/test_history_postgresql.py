"""A history in a real PostgreSQL server: many writers, the same run twice, a lost connection."""

import subprocess
import sys

import msgspec
import pytest
from places import PATIENCE_S
from servers import Service, kill_all, services, tool
from synthetic_runs import synthetic_run
from test_long_postgresql import database, wait_for

import ensembles
from ensembles.history.record import RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError

ADD = """
import sys
import msgspec
from ensembles.history.record import RunRecord
from ensembles.history.store import History

place, record, first = sys.argv[1], RunRecord.decode(open(sys.argv[2], "rb").read()), int(sys.argv[3])
for number in range(first, first + 8):
    one = msgspec.structs.replace(record, identity=str(number))
    History(place, make=True).add(one, "nightly", {"n": str(number)})
"""


@pytest.fixture(scope="module")
def service():
    with services() as make:
        service = make("plain")
        options = ["-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C"]
        service.client(tool("initdb", "postgresql"), "-D", service.folder / "data", *options)
        yield service


def test_a_history_in_postgresql(service: Service, tmp_path):
    synthetic_run(tmp_path / "run", 4, 500)
    record = RunRecord.of_run(ensembles.open(tmp_path / "run"))
    (tmp_path / "record").write_bytes(record.encode())
    place = f"postgresql+psycopg://owner@/postgres?host={service.folder}"
    with database(service) as process:
        wait_for(service, process)
        with pytest.raises(EnsioError, match="holds no history"):
            History(place)
        writers = [
            subprocess.Popen([sys.executable, "-c", ADD, place, str(tmp_path / "record"), str(100 * k)])
            for k in range(3)
        ]
        assert [writer.wait(timeout=PATIENCE_S) for writer in writers] == [0] * 3
        history = History(place)
        assert len(history.runs("nightly")) == 24
        assert not history.add(msgspec.structs.replace(record, identity="0"), "nightly")
        assert len(history.runs(labels={"n": "100"})) == 1
        assert history.records([history.runs(labels={"n": "7"})[0].id])[0].kinds == record.kinds
        here = History(str(tmp_path / "runs.db"), make=True)
        assert here.merge(history) == (24, 0)
        assert history.remove([run.id for run in history.runs()][:8]) == 8
        kill_all(process)
        with pytest.raises(EnsioError, match="the database says"):
            history.add(msgspec.structs.replace(record, identity="lost"), "nightly")
    with database(service) as process:
        wait_for(service, process)
        assert len(history.runs()) == 16
