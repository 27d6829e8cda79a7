"""Node prints and leaves the same, recorded or not: streams, compression, promises, workers, a child."""

import subprocess
from pathlib import Path

import pytest
from servers import LIMIT_S, MODES, Service, added, check_recorded, services, tool, written_to

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parent / "scripts" / "node.js"
LEFT_AS_WRITTEN = ("packed", "unpacked", "child", "worker.0", "worker.1")


def play(service: Service) -> tuple[int, str, str, dict[str, bytes]]:
    """Exit status, output, and the files with their content."""
    script, data = service.folder / "node.js", service.folder / "data"
    script.write_bytes(SCRIPT.read_bytes())
    data.mkdir()
    # Without io_uring, which this version would use for some calls: no wrapper sees those.
    environment = service.environment | {"UV_USE_IO_URING": "0"}
    done = subprocess.run(
        [tool("node", "nodejs"), script], cwd=data, env=environment, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    paths = [path for path in sorted(data.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(data)): path.read_bytes() for path in paths}
    return done.returncode, done.stdout, done.stderr, files


@pytest.fixture(scope="module")
def made():
    with services() as make:
        yield make


@pytest.fixture(scope="module")
def plain(made):
    return play(made("plain"))


@pytest.mark.parametrize("mode", MODES)
def test_streams_workers_and_children_of_node(made, plain, mode):
    service = made(mode)
    said = play(service)
    assert (plain[0], plain[2]) == (3, "")
    assert plain[1].splitlines()[-1] == "ENOENT"
    assert said == plain
    check_recorded(service)
    run, data = service.run(), service.folder / "data"
    sizes = {name: (data / name).stat().st_size for name in LEFT_AS_WRITTEN}
    sums = added(run)
    moved = sum(sums[call][1] for call in ("write", "pwrite", "writev", "pwritev") if call in sums)
    assert moved >= sum(sizes.values())
    assert sums["unlink"][0] == 100
    if mode == "trace":
        over = {"worker.0": 200, "worker.1": 200}  # written a second time, in place
        written = {name: written_to(run, data / name) - over.get(name, 0) for name in LEFT_AS_WRITTEN}
        assert written == sizes
        assert len(run.info.processes) >= 2
        assert len(run.select(op="open", file=f"{data}/many/*")) == 300
