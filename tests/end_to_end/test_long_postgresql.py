"""PostgreSQL does the same, recorded or not: it is set up, used by several clients, killed, and recovers."""

import re
import signal

import pytest
from places import PATIENCE_S
from servers import MODES, Service, added, check_recorded, kill_all, services, tool, wait_until

pytestmark = pytest.mark.long

ROWS = 200_000
CLIENTS, TRANSACTIONS = 4, 300
FILL = f"""
create table facts as select g as id, md5(g::text) as word, g % 97 as part from generate_series(1, {ROWS}) g;
create unique index on facts (id);
update facts set word = upper(word) where part = 5;
delete from facts where part = 7;
checkpoint;
"""
ASK = """
select count(*), sum(id), md5(string_agg(word, ',' order by id)) from facts;
select part, count(*) from facts group by part order by part limit 9;
select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts) from pgbench_history;
select (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches);
"""


def database(service: Service):
    """Its server, without a port: clients come by a socket in its folder."""
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={service.folder}"]
    options += ["-c", "stats_fetch_consistency=none", "-c", "max_connections=20"]
    options += ["-c", "dynamic_shared_memory_type=mmap", "-c", "shared_buffers=16MB"]
    return service.server(tool("postgres", "postgresql"), "-D", service.folder / "data", *options)


def ask(service: Service, text: str) -> str:
    return service.client(
        tool("psql", "postgresql"), "-X", "-At", "-v", "ON_ERROR_STOP=1",
        "-h", service.folder, "-U", "owner", "-d", "postgres", input=text,
    )  # fmt: skip


def wait_for(service: Service, process) -> None:
    ready = [tool("pg_isready", "postgresql"), "-q", "-h", service.folder, "-U", "owner", "-d", "postgres"]

    def answers() -> bool:
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}: {service.log()}")
        return service.client("sh", "-c", '"$@" && echo yes || true', "sh", *ready) == "yes\n"

    wait_until(answers, "the database")


def bench(service: Service, *options: object) -> str:
    said = service.client(
        tool("pgbench", "postgresql"), "-h", service.folder, "-U", "owner", *options, "postgres"
    )
    return "\n".join(re.findall(r"^number of .*(?:processed|failed).*$", said, re.M))


def play(service: Service) -> tuple[list, tuple[int, int]]:
    """What clients saw before and after the kill; how often the server wrote and synced its log by then."""
    options = ["-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C"]
    made = service.client(tool("initdb", "postgresql"), "-D", service.folder / "data", *options)
    said: list = [made.replace(str(service.folder), "")]
    with database(service) as process:
        wait_for(service, process)
        ask(service, FILL)
        bench(service, "-i", "-q", "-s", 1)
        said.append(bench(service, "-c", CLIENTS, "-j", 2, "-t", TRANSACTIONS, "--random-seed=7"))
        said.append(ask(service, ASK))
        counted = ask(service, "select wal_write, wal_sync from pg_stat_wal").strip().split("|")
        kill_all(process)
        said.append(process.returncode)
    with database(service) as process:
        wait_for(service, process)
        said.append(ask(service, ASK))
        process.send_signal(signal.SIGINT)
        said.append(process.wait(timeout=PATIENCE_S))
    assert "automatic recovery in progress" in (service.folder / "server.log").read_text()
    return said, (int(counted[0]), int(counted[1]))


@pytest.fixture(scope="module")
def made():
    with services() as make:
        yield make


@pytest.fixture(scope="module")
def plain(made):
    return play(made("plain"))[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_database_that_is_killed_recovers_to_the_same(made, plain, mode):
    service = made(mode)
    said, (wal_writes, wal_syncs) = play(service)
    assert f"{CLIENTS * TRANSACTIONS}/{CLIENTS * TRANSACTIONS}" in plain[1]
    assert plain[3:] == [-signal.SIGKILL, plain[2], 0]
    assert said == plain
    # Its processes share memory by mapped files here, whose pages the kernel may write at any time.
    check_recorded(service, r"did not end (its|their) recording|through mapped files \(")
    # The server's own counters are a lower bound: what it does while it starts and ends comes on top.
    sums = added(service.run())
    assert wal_syncs >= 100
    assert sums["fdatasync"][0] >= wal_syncs
    assert sums["pwrite"][0] >= wal_writes
    if mode == "trace":
        log = service.run().select(call="pwrite", file="*/pg_wal/*")
        assert len(log) >= wal_writes
        assert len(service.run().info.processes) >= 10
