"""nginx serves the same, recorded or not: workers of another user, a reload under load, an end in order."""

import hashlib
import os
import signal
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from places import PATIENCE_S
from servers import MODES, Service, added, check_recorded, services, tool, wait_until

pytestmark = pytest.mark.long

REQUESTS = 300  # in each of three rounds
PAGES = 20
CLIENTS = 4
CONFIGURATION = """
daemon off;
user nobody nogroup;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log notice;
events {{ worker_connections 128; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    sendfile off;
    server {{
        listen unix:{folder}/socket;
        root {folder}/pages;
    }}
}}
"""


def get(service: Service, number: int) -> tuple[bytes, bytes]:
    """Status line and digest of the body of a page; those from `PAGES` on are not there."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(service.folder / "socket"))
        connection.sendall(f"GET /{number}.html HTTP/1.0\r\nHost: here\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], hashlib.sha256(body).hexdigest().encode()


def wanted(request: int) -> int:
    return request % (PAGES + 1)


def workers(service: Service) -> set[int]:
    """The workers that are there now."""
    master = int((service.folder / "nginx.pid").read_text())
    with open(f"/proc/{master}/task/{master}/children") as children:
        return {int(pid) for pid in children.read().split()}


def play(service: Service) -> tuple[list, set[int]]:
    """What clients got in three rounds, the second of them during a reload, and nginx's end; its workers."""
    folder = service.folder
    (folder / "pages").mkdir(mode=0o755)
    for page in range(PAGES):
        (folder / "pages" / f"{page}.html").write_bytes(b"%d " % page * (page**3 * 20 + 1))
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder))
    started = []
    said: list = []
    nginx = [tool("nginx", "nginx-light"), "-e", folder / "error.log", "-p", folder, "-c", configuration]
    with service.server(*nginx, as_root=True) as process, ThreadPoolExecutor(CLIENTS) as clients:

        def is_there() -> bool:
            assert process.poll() is None, service.log()
            is_listening = (folder / "socket").exists() and (folder / "nginx.pid").exists()
            return is_listening and len(workers(service)) == 2

        wait_until(is_there, "nginx")
        for round_ in range(3):
            started.append(workers(service))
            answers = clients.map(lambda request: get(service, wanted(request)), range(REQUESTS))
            if round_ == 1:
                process.send_signal(signal.SIGHUP)
            said.append(list(answers))
            if round_ == 1:
                wait_until(lambda: len(now := workers(service)) == 2 and not now & started[0], "new workers")
        process.send_signal(signal.SIGQUIT)
        said.append(process.wait(timeout=PATIENCE_S))
    lines = (folder / "access.log").read_text().splitlines()
    said.append(Counter(line.split('"')[1] + line.split('"')[2] for line in lines))
    return said, started[0] | started[2]


@pytest.fixture(scope="module")
def made():
    if os.geteuid() != 0:
        pytest.skip("only root's nginx has workers of another user")
    with services() as make:
        yield make


@pytest.fixture(scope="module")
def plain(made):
    return play(made("plain"))[0]


@pytest.fixture(scope="module", params=MODES)
def played(made, request):
    """A service in each mode, and what became of it."""
    service = made(request.param)
    return service, *play(service)


def test_every_request_is_served_through_a_reload(plain, played):
    service, said, _ = played
    assert [len(answers) for answers in said[:3]] == 3 * [REQUESTS]
    assert Counter(status for status, _ in said[0])[b"HTTP/1.1 200 OK"] == REQUESTS - REQUESTS // (PAGES + 1)
    assert said[3] == 0
    assert said[4].total() == 3 * REQUESTS
    assert said == plain
    assert len(service.run().info.processes) >= 1


def test_workers_are_recorded_though_they_have_no_rights_to_the_run(played):
    service, said, pids = played
    check_recorded(service)
    run = service.run()
    assert len(pids) == 4
    assert pids <= {process.pid for process in run.info.processes}
    # Each request is a line in the access log, and each page that is there is opened and read once.
    served = sum(status.endswith(b"200 OK") for answers in said[:3] for status, _ in answers)
    sums = added(run)
    pages = [service.folder / "pages" / f"{wanted(request)}.html" for request in range(REQUESTS)]
    size = sum(page.stat().st_size for page in pages if page.exists())
    assert sums["pread"][0] >= served
    assert sums["pread"][1] >= 3 * size
    if service.mode == "trace":
        assert len(run.select(op="write", file="*/access.log")) == 3 * REQUESTS
        opens = run.select(op="open", file="*/pages/*")
        assert len(opens) == 3 * REQUESTS
        assert int((opens.error == 0).sum()) == served
        reads = run.select(op="read", file="*/pages/*")
        assert int(reads.moved.sum()) == 3 * size
