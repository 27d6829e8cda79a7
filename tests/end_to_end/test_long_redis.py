"""redis keeps the same keys, recorded or not: commands synced, the log rewritten, killed, started again."""

import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from places import PATIENCE_S
from servers import MODES, Service, added, check_recorded, kill_all, services, tool, wait_until, written_to

pytestmark = pytest.mark.long

KEYS = 1500
OPTIONS = """
port 0
unixsocket {folder}/socket
dir {folder}
save ""
appendonly yes
appendfsync always
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 0
io-threads 2
enable-debug-command local
"""


class Client:
    """A connection, by redis' own protocol."""

    def __init__(self, path: Path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.answers = self.socket.makefile("rb")

    def __call__(self, *words: object) -> str:
        parts = [str(word).encode() for word in words]
        command = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        self.socket.sendall(b"*%d\r\n%b" % (len(parts), command))
        kind, rest = self.answers.read(1), self.answers.readline().strip()
        if kind == b"$" and int(rest) >= 0:
            rest = self.answers.read(int(rest) + 2)[:-2]
        return (kind + rest).decode()

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.answers.close()
        self.socket.close()


def connected(service: Service, process) -> Client:
    """A client of a server that has loaded its keys."""
    clients: list[Client] = []

    def answers() -> bool:
        assert process.poll() is None, service.log()
        if not clients:
            with suppress(ConnectionError, FileNotFoundError):
                clients.append(Client(service.folder / "socket"))
        return bool(clients) and clients[0]("PING") == "+PONG"

    wait_until(answers, "redis")
    return clients[0]


def fill(client: Client, first: int) -> int:
    """Change keys; how many commands did."""
    for number in range(first, first + KEYS):
        assert client("SET", f"key:{number}", f"{number * number}" * (number % 40 + 1)) == "+OK"
    for number in range(200):
        client("RPUSH", f"list:{number % 7}", number)
        client("INCRBY", "sum", number)
    assert client("DEL", *(f"key:{number}" for number in range(first, first + KEYS, 3))) == f":{KEYS // 3}"
    return KEYS + 400 + 1


def content(client: Client) -> list[str]:
    """What the keys and their values add up to."""
    return [client("DBSIZE"), client("GET", "sum"), client("LLEN", "list:3"), client("DEBUG", "DIGEST")]


def play(service: Service) -> tuple[list, int]:
    """The keys before the kill, after it, and after an end in order; the commands that were synced."""
    configuration = service.folder / "redis.conf"
    configuration.write_text(OPTIONS.format(folder=service.folder))
    redis = [tool("redis-server", "redis-server"), configuration]
    with service.server(*redis) as process, connected(service, process) as client:
        commands = fill(client, 0)
        assert client("BGREWRITEAOF").startswith("+Background")
        commands += fill(client, KEYS)  # while the log is rewritten
        wait_until(lambda: "aof_rewrite_in_progress:0" in client("INFO", "persistence"), "the rewrite")
        assert "aof_last_bgrewrite_status:ok" in client("INFO", "persistence")
        commands += fill(client, 2 * KEYS)
        said: list = [content(client)]
        kill_all(process)
        said.append(process.returncode)
    (service.folder / "socket").unlink()
    with service.server(*redis) as process, connected(service, process) as client:
        said.append(content(client))
        commands += fill(client, 0)
        said.append(content(client))
        client.socket.sendall(b"SHUTDOWN\r\n")
        said.append(process.wait(timeout=PATIENCE_S))
    return said, commands


@pytest.fixture(scope="module")
def made():
    with services() as make:
        yield make


@pytest.fixture(scope="module")
def plain(made):
    return play(made("plain"))[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_store_that_is_killed_has_the_same_keys_again(made, plain, mode):
    service = made(mode)
    said, commands = play(service)
    assert plain[1] == -signal.SIGKILL
    assert plain[0] == plain[2]
    assert plain[4] == 0
    assert said == plain
    check_recorded(service)
    run = service.run()
    # One client that waits for each answer: each command was written and synced by itself.
    sums = added(run)
    assert sums["fdatasync"][0] >= commands
    assert sums["write"][0] >= commands
    if mode == "trace":
        logs = sorted(service.folder.glob("appendonlydir/*.incr.aof"))
        assert logs
        assert [written_to(run, log) for log in logs] == [log.stat().st_size for log in logs]
        assert len(run.info.processes) >= 3  # the server twice, and the child that rewrote the log
