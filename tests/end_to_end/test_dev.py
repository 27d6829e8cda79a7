"""``./dev``: what it installs, builds and asks for. A copy of the tracked tree is set up by an ordinary user
without sudo, on a machine whose package database and pkg-config lack what a test takes away."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from compiling import take_built_objects
from places import ROOT

DATABASE = Path("/var/lib/dpkg")
OTF2 = "libopen-trace-format2-dev"
TOOLS = {
    *("build-essential", "cmake", "libdeflate-dev", "libhdf5-openmpi-dev", OTF2, "libopenmpi-dev"),
    *("openmpi-bin", "pkgconf", "python3", "python3-dev", "python3-venv"),
}
NOBODY = 65534


class Machine:
    """A copy of the tree, and what its user sees of the machine.

    Parameters
    ----------
    folder : Path
        Of the user.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.tree = folder / "tree"
        self.programs = folder / "programs"
        self.told = folder / "pkgconfig"
        index = re.compile("PIP_|.*_(proxy|PROXY)$|SSL_")
        self.environment = {
            "HOME": str(folder),
            "PATH": str(self.programs),
            "LANG": "C.UTF-8",
            "PKG_CONFIG_LIBDIR": str(self.told),
            # The commands are not run: what the package requires needs not be installed.
            "PIP_NO_DEPS": "1",
        } | {name: value for name, value in os.environ.items() if index.match(name)}
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        for name in tracked.stdout.decode().split("\0")[:-1]:
            if (ROOT / name).exists():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.tree / name, follow_symlinks=False)
        self.programs.mkdir()
        for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for program in Path(place).iterdir():
                if program.name != "sudo" and not (self.programs / program.name).is_symlink():
                    (self.programs / program.name).symlink_to(program)
        take_built_objects(self.programs, self.tree)
        self.told.mkdir()
        asked = ["pkg-config", "--variable", "pc_path", "pkg-config"]
        path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        for place in map(Path, path.split(":")):
            for file in place.glob("*.pc"):
                if not (self.told / file.name).is_symlink():
                    (self.told / file.name).symlink_to(file)

    def lack(self, *packages: str) -> None:
        """From now on, the machine's packages without these."""
        database = self.folder / "dpkg"
        text = (DATABASE / "status").read_text()
        entries = [entry for entry in text.split("\n\n") if entry.partition("\n")[0][9:] not in packages]
        database.mkdir(exist_ok=True)
        (database / "info").is_symlink() or (database / "info").symlink_to(DATABASE / "info")
        (database / "status").write_text("\n\n".join(entries))
        self.environment["DPKG_ADMINDIR"] = str(database)

    def give_away(self) -> None:
        """Let all of it belong to the user."""
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "-h", str(NOBODY), self.folder], check=True)

    def start(self, *command: object, **environment: str) -> subprocess.Popen[str]:
        """Start a command as the user."""
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return subprocess.Popen(
            [*(user if os.geteuid() == 0 else []), *map(str, command)],
            cwd=self.folder,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: object, status: int = 0, **environment: str) -> str:
        """Run a command as the user to its end; what it printed."""
        with self.start(*command, **environment) as process:
            printed, _ = process.communicate(timeout=1800)
        assert process.returncode == status, printed
        return printed

    def dev(self, *words: object, status: int = 0, **environment: str) -> str:
        """Run ``./dev`` as the user; what it printed."""
        return self.run(self.tree / "dev", *words, status=status, **environment)

    def kill_when(self, happened, *words: object) -> None:
        """Start ``./dev``, and kill it with all of its children when something has happened."""
        process = self.start(self.tree / "dev", *words)
        while not happened() and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, process.communicate()[0]
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def asked_for(printed: str) -> set[str]:
    """The packages of the one line to give to root."""
    (line,) = re.findall(r"^ +apt-get install --no-install-recommends (.*)$", printed, re.M)
    return set(line.split())


@pytest.fixture(scope="module")
def folder():
    # Not below pytest's own folder, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="ensio-dev-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def bare(folder):
    """A machine on which nothing was set up."""
    machine = Machine(Path(tempfile.mkdtemp(dir=folder)))
    machine.folder.chmod(0o755)
    return machine


@pytest.fixture(scope="module")
def machine(folder):
    """A machine that was set up in two attempts when there was no OTF2, and that has it now."""
    machine = Machine(folder / "set-up")
    machine.lack(OTF2)
    (machine.told / "otf2.pc").unlink()
    machine.give_away()
    machine.kill_when(lambda: (machine.tree / ".venv/bin/python3").exists(), "setup")
    machine.half_made = {path.name for path in (machine.tree / ".venv/bin").iterdir()}
    machine.first = machine.dev("setup", status=1)
    assert not (machine.tree / "build/bin/ensio-otf2").exists()
    machine.lack()
    (machine.told / "otf2.pc").symlink_to(next(Path("/usr").glob("lib/*/pkgconfig/otf2.pc")))
    machine.second = machine.dev("run", "ensio-otf2", status=2)
    return machine


def test_without_sudo_all_is_made_that_can_be_and_the_rest_asked_for(machine):
    assert asked_for(machine.first) == {OTF2}
    assert "sudo" not in machine.first
    assert (machine.tree / "build/bin/ensio-replay").exists()
    assert (machine.tree / ".venv/bin/ensio").exists()
    # Else each process compiles them anew where Python may not write.
    assert list((machine.tree / "viz/report/__pycache__").glob("page.*.pyc"))


def test_packages_that_come_later_are_built_with(machine):
    assert "== configuring build/" in machine.second
    assert (machine.tree / "build/bin/ensio-otf2").exists()


def test_tests_and_benchmarks_are_left_to_those_who_test(machine):
    made = {path.name for path in (machine.tree / "build").rglob("*") if path.is_file()}
    assert "ensio-simulate" in made
    assert "test_text.c.o" not in made
    assert not [name for name in made if name.startswith(("ensio-bench", "fuzz_", "libensio-coding"))]


def test_run_starts_nothing_else_in_a_tree_that_is_up_to_date(machine):
    log = machine.folder / "strace"
    watched = ["strace", "-f", "-qq", "-e", "trace=execve", "-e", "status=successful", "-o", log]
    machine.run(*watched, machine.tree / "dev", "run", "true")
    started = re.findall(r'execve\("(?:[^"]*/)?([^"/]+)"', log.read_text())
    assert started[-1] == "true"
    assert not set(started) & {"cmake", "make", "gmake", "dpkg-query", "apt-get", "pip", "python", "python3"}


@pytest.mark.parametrize(
    ("name", "configures"), [("libtrace/CMakeLists.txt", True), ("libtrace/core/bounded_string.c", False)]
)
def test_run_builds_what_was_changed(machine, name, configures):
    library = machine.tree / "build/lib/libensio-recorder.so"
    before = library.stat().st_mtime_ns
    changed = (machine.tree / name).read_text() + ("\n# a word\n" if configures else "\nint ensio_changed;\n")
    machine.run("sh", "-c", f'printf %s "$0" >{machine.tree / name}', changed)
    printed = machine.dev("run", "true")
    assert ("== configuring build/" in printed) == configures
    assert "== building into build/" in printed
    assert configures or library.stat().st_mtime_ns > before
    assert machine.dev("run", "true") == ""


def test_a_killed_configuration_is_done_again(machine):
    machine.run("sh", "-c", f"echo '# again' >>{machine.tree / 'CMakeLists.txt'}")
    configured, cache = (machine.tree / "build" / name for name in (".configured", "CMakeFiles"))
    machine.kill_when(lambda: not configured.exists() and cache.exists(), "setup")
    assert "== configuring build/" in machine.dev("run", "ensio-otf2", status=2)


def test_a_killed_build_leaves_no_half_made_file(machine):
    source = machine.tree / "libtrace/core/bounded_string.c"
    made = machine.tree / "build/libtrace/CMakeFiles/ensio-common.dir/core/bounded_string.c.o"
    before = made.stat().st_mtime_ns
    machine.run("sh", "-c", f"echo 'int ensio_again;' >>{source}")
    machine.kill_when(lambda: made.exists() and made.stat().st_mtime_ns > before, "setup")
    machine.run("truncate", "--size", "64", made)  # as a compiler may be cut off
    machine.dev("run", "true")
    assert "ensio_again" in machine.run("nm", machine.tree / "build/lib/libensio.a")


def test_a_half_made_environment_is_made_anew(machine):
    assert "python3" in machine.half_made
    assert "pip" not in machine.half_made
    assert "== making .venv/" in machine.first
    machine.run(machine.tree / ".venv/bin/pip", "--version")


def test_one_sentence_where_no_index_of_packages_is_reached(bare):
    for program in ("cc", "cmake", "fio"):
        (bare.programs / program).unlink()
    bare.lack(*TOOLS, "fio")
    bare.give_away()
    printed = bare.dev("demo", status=1, PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert asked_for(printed) == TOOLS | {"fio"}
    assert "build/ is left out: it needs a C compiler, make and CMake" in printed
    (sentence,) = re.findall("^dev: pip .*", printed, re.M)
    assert "perhaps because there is no network" in sentence
    assert sentence.endswith("in build/log/pip.log")


@pytest.mark.parametrize(
    ("words", "packages"),
    [
        (["test", "tests/unit/viz", "-x"], {"chromium"}),
        (["test", "tests/end_to_end"], {"chromium", "clang"}),
        (["test"], {"chromium", "clang"}),
        (["test", "tests/unit/statistics"], set()),
        (["run", "true"], set()),
    ],
)
def test_each_command_asks_for_what_it_uses(machine, words, packages):
    """No index of packages: those that are not refused end there, or need nothing of it."""
    machine.lack("chromium", "clang", "fio") if "run" in words else machine.lack("chromium", "clang")
    lonely = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0"}
    printed = machine.dev(*words, status=0 if "run" in words else 1, **lonely)
    if packages:
        # Of the other packages for tests, the machine may lack some.
        assert asked_for(printed) & {"chromium", "clang"} == packages
    else:
        assert "apt-get" not in printed


def test_long_tests_ask_for_a_second_browser_and_the_proxy_of_a_hub(machine):
    machine.lack("firefox-esr", "node-configurable-http-proxy")
    printed = machine.dev("test-long", status=1, PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert {"firefox-esr", "node-configurable-http-proxy"} <= set(asked_for(printed))


def test_the_table_of_tests_names_what_is_there():
    text = (ROOT / "tools/dev/tests.sh").read_text()
    named = re.findall(r"^    \[(tests/\S+)\]=", text, re.M)
    assert len(named) > 9
    assert not [name for name in named if not (ROOT / name).exists()]
