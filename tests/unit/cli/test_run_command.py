"""``ensio run`` stays out of its program's way."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import BUILD

from ensembles.cli.run import program_name

LIBRARY = BUILD / "lib" / "libensio-preload.so"
ENSIO = Path(sys.executable).with_name("ensio")


@pytest.fixture
def ensio(tmp_path, monkeypatch):
    """Starts ``ensio`` in an empty folder; returns what came of it."""
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built; run ./dev setup")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENSIO_PRELOAD", str(LIBRARY))

    def start(*arguments, **options):
        return subprocess.run([ENSIO, *map(str, arguments)], capture_output=True, timeout=600, **options)

    return start


@pytest.fixture
def ensio_running(ensio, tmp_path):
    """Starts ``ensio run -- sh -c SCRIPT``, and waits until the script says that it is ready."""
    started = []

    def start(script):
        command = [ENSIO, "run", "-o", "run", "--", "sh", "-c", script]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def sentence(result):
    """What was told, which must be one line."""
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("ensio: ")
    return lines[0]


class TestTransparency:
    @pytest.mark.parametrize("status", [0, 1, 7, 255])
    def test_exit_status_is_the_programs(self, ensio, status):
        assert ensio("run", "--", "bash", "-c", f"exit {status}").returncode == status

    @pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "RTMAX"])
    def test_death_by_a_signal_is_told_as_a_shell_tells_it(self, ensio, name):
        number = getattr(signal, f"SIG{name}")
        result = ensio("run", "--", "bash", "-c", f"ulimit -c 0; kill -{name} $$")
        assert result.returncode == 128 + number
        line = f"ensio: bash was ended by signal {int(number)} ({signal.strsignal(number)})\n"
        assert result.stderr.decode().count(line) == 1

    @pytest.mark.parametrize("script", ["kill -INT $$", "kill -PIPE $$", "exit 139"])
    def test_interrupts_closed_pipes_and_statuses_are_no_such_end(self, ensio, script):
        assert b"ended by" not in ensio("run", "--", "bash", "-c", script).stderr

    def test_streams_are_the_programs(self, ensio):
        data = bytes(range(256)) * 1000
        result = ensio("run", "--", "bash", "-c", "cat; printf 'to\\xffstderr\\n' >&2", input=data)
        assert result.stdout == data
        first, last = result.stderr.splitlines()
        assert first == b"to\xffstderr"
        assert last.startswith(b"ensio: ")

    def test_arguments_and_folder_are_the_programs(self, ensio, tmp_path):
        result = ensio(
            "run", "--", "bash", "-c", 'pwd; printf "%s|" "$@"', "name", "--", "-o", "a b", "", "--mode=x"
        )
        assert result.stdout == f"{tmp_path}\n--|-o|a b||--mode=x|".encode()

    @pytest.mark.parametrize("more", [{}, {"LANG": "C"}, {"LC_ALL": "C"}, {"ODD": "a=b\nc\udcff"}])
    def test_environment_is_the_programs_apart_from_ours(self, ensio, more):
        given = {"PATH": os.environ["PATH"], "ENSIO_PRELOAD": str(LIBRARY), **more}
        environment = dict(
            entry.split(b"=", 1)
            for entry in ensio("run", "-o", "run", "--", "env", "-0", env=given).stdout.split(b"\0")
            if entry
        )
        assert environment.pop(b"LD_PRELOAD") == os.fsencode(LIBRARY)
        assert environment.pop(b"ENSIO_DIR") == os.fsencode(Path.cwd() / "run")
        assert environment.pop(b"ENSIO_LAUNCH")
        assert environment.pop(b"ENSIO_STARTED")
        assert environment.pop(b"ENSIO_COMMAND") == b"env\x1f-0"
        assert environment == {os.fsencode(key): os.fsencode(value) for key, value in given.items()}

    def test_other_preloaded_libraries_stay(self, ensio):
        result = ensio(
            "run", "--", "bash", "-c", 'echo "$LD_PRELOAD"', env={**os.environ, "LD_PRELOAD": "libm.so.6"}
        )
        assert result.stdout.decode() == f"{LIBRARY}:libm.so.6\n"

    def test_open_descriptors_are_passed_on(self, ensio):
        reading, writing = os.pipe()
        ensio("run", "--", "bash", "-c", f"echo through >&{writing}", pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert pipe.read() == "through\n"

    def test_ignored_signals_stay_ignored_and_blocked_ones_are_not_added(self, ensio):
        script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        plain = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        assert ensio("run", "--", "bash", "-c", script).stdout == plain

    @pytest.mark.parametrize("shell", ["bash", "sh"])
    @pytest.mark.parametrize(("trap", "status"), [("trap '' PIPE; ", 1), ("", 141)])
    def test_broken_pipe_is_what_it_is_without_us(self, ensio, shell, trap, status):
        with subprocess.Popen(
            [shell, "-c", f"{trap}({ENSIO} run -o run -- yes; echo $? >&2) | head -1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            out, told = process.communicate(timeout=600)
        assert out == "y\n"
        assert told.splitlines()[-1] == str(status)

    @pytest.mark.parametrize("name", ["PIPE", "XFSZ", "CHLD", "TERM", "INT"])
    def test_signal_that_a_shell_ignores_is_ignored_by_the_program(self, ensio, name):
        show = "grep ^SigIgn /proc/self/status"
        out = subprocess.run(
            ["bash", "-c", f"trap '' {name}; {show}; {ENSIO} run -o run -- {show}; true"],
            capture_output=True,
            text=True,
            timeout=600,
        ).stdout
        plain, traced = out.splitlines()
        assert traced == plain

    def test_ignored_ends_of_children_stay_ignored_for_the_program_and_do_not_stop_us(self, ensio):
        inherit = (
            "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
            "os.execvp(sys.argv[1], sys.argv[1:])"
        )
        result = subprocess.run(
            [
                sys.executable,
                "-c",
                inherit,
                ENSIO,
                "run",
                "-o",
                "run",
                "--",
                "grep",
                "SigIgn",
                "/proc/self/status",
            ],
            capture_output=True,
            timeout=600,
        )
        assert result.returncode == 0
        ignored = int(result.stdout.split()[1], 16)
        assert ignored >> (signal.SIGCHLD - 1) & 1

    def test_status_stays_when_nothing_can_be_told(self, ensio):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([ENSIO, "run", "--", "sh", "-c", "exit 7"], stderr=full, timeout=600)
        assert result.returncode == 7

    def test_status_stays_when_the_program_removes_the_run_directory(self, ensio, tmp_path):
        result = ensio("run", "-o", "run", "--", "rm", "-rf", tmp_path / "run")
        assert result.returncode == 0
        assert "can no longer be read" in sentence(result)

    def test_nothing_is_added_to_the_output_where_there_is_no_standard_error(self, ensio):
        command = ["sh", "-c", f"exec {ENSIO} run -o run -- sh -c 'echo mine; exit 3' 2>&-"]
        result = subprocess.run(command, capture_output=True, timeout=600)
        assert (result.returncode, result.stdout, result.stderr) == (3, b"mine\n", b"")


class TestSignals:
    @pytest.fixture(autouse=True)
    def _nothing_is_ignored(self):
        """What runs the tests may have started them with signals ignored, which programs inherit."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        yield
        for number, handler in before.items():
            signal.signal(number, handler)

    @pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1"])
    def test_signal_reaches_the_program_once(self, ensio_running, name):
        process = ensio_running(
            f"trap 'echo got; n=$((n+1))' {name}; echo ready; "
            "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; exit $((n))"
        )
        process.send_signal(getattr(signal, f"SIG{name}"))
        out, _ = process.communicate(timeout=600)
        assert out == "got\n"
        assert process.returncode == 1

    def test_interrupt_of_the_terminal_reaches_the_program_once(self, tmp_path, monkeypatch):
        """A terminal interrupts its whole foreground group, so there is nothing to pass on."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ENSIO_PRELOAD", str(LIBRARY))
        script = "trap 'echo got' INT; echo ready; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; exit 5"
        pid, terminal = os.forkpty()
        if pid == 0:
            os.execv(ENSIO, [ENSIO, "run", "-o", "run", "--", "sh", "-c", script])
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 1000)
        time.sleep(0.1)
        os.write(terminal, b"\x03")
        while True:
            try:
                more = os.read(terminal, 1000)
            except OSError:  # how a terminal on Linux says that no process has it open any more
                break
            seen += more
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        assert seen.count(b"got") == 1
        assert os.waitstatus_to_exitcode(status) == 5


class TestRunDirectory:
    def test_is_new_private_and_named_after_the_program(self, ensio, tmp_path):
        told = sentence(ensio("run", "--", "env", "FOO=1", "cat", "/dev/null"))
        [folder] = tmp_path.iterdir()
        assert folder.name.startswith("ensio-cat-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name in told

    def test_is_the_one_asked_for(self, ensio, tmp_path):
        assert "ensio info a/b" in sentence(
            ensio("run", "-o", "a/b", "--", "dd", "if=/dev/zero", "of=data", "count=1", "status=none")
        )
        assert any((tmp_path / "a" / "b").iterdir())

    def test_that_holds_something_is_refused_before_the_program_starts(self, ensio, tmp_path):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "old").touch()
        result = ensio("run", "-o", "run", "--", "touch", "started")
        assert result.returncode == 2
        assert "is not empty" in sentence(result)
        assert not (tmp_path / "started").exists()

    def test_that_cannot_be_made_is_refused(self, ensio):
        result = ensio("run", "-o", "/proc/none/run", "--", "true")
        assert result.returncode == 2
        assert "/proc/none/run: the run directory cannot be made" in sentence(result)


@pytest.mark.parametrize(
    ("command", "status", "problem"),
    [
        (["no-such-program"], 127, "no-such-program: not found on PATH"),
        (["./no-such-program"], 127, "./no-such-program: does not exist"),
        (["./plain-file"], 126, "./plain-file: cannot be started: Permission denied"),
    ],
)
def test_program_that_cannot_be_started(ensio, tmp_path, command, status, problem):
    (tmp_path / "plain-file").touch()
    result = ensio("run", "--", *command)
    assert result.returncode == status
    assert problem in sentence(result)
    assert [path.name for path in tmp_path.iterdir()] == ["plain-file"]


def test_folder_that_was_there_stays_when_the_program_cannot_be_started(ensio, tmp_path):
    (tmp_path / "mine").mkdir()
    assert ensio("run", "-o", "mine", "--", "./no-such-program").returncode == 127
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_shells_are_named_where_nothing_was_recorded(ensio):
    assert "a shell or a launcher, which are not recorded" in sentence(ensio("run", "--", "sh", "-c", "exit"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--"], "there is no command to run"),
        (["--mode", "profiles", "--", "true"], 'there is no mode "profiles"'),
        (["--layers", "tape", "--", "true"], 'there is no layer "tape"'),
    ],
)
def test_wrong_usage(ensio, tmp_path, arguments, problem):
    result = ensio("run", *arguments)
    assert result.returncode == 2
    assert problem in sentence(result)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("layers", ["posix", "stdio", "mpiio,mpisync", "hdf5", "posix,stdio"])
def test_layers_reach_the_recorder(ensio, layers):
    result = ensio("run", "--layers", layers, "--", "env")
    assert f"ENSIO_LAYERS={layers}" in result.stdout.decode().splitlines()


def test_missing_library_is_told_with_the_remedy(ensio):
    result = ensio("run", "--", "true", env={**os.environ, "ENSIO_PRELOAD": "/no/such/library.so"})
    assert result.returncode == 2
    assert "/no/such/library.so: there is no such file: set ENSIO_PRELOAD" in sentence(result)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cat file", "cat"),
        ("/bin/cat file", "cat"),
        ("env A=b cat file", "cat"),
        ("timeout -k 5 60 cat file", "cat"),
        ("mpiexec -n 4 --bind-to none cat file", "cat"),
        ("nice -n 5 env cat", "cat"),
        ("mpiexec", "mpiexec"),
        ("./not-there", "not-there"),
    ],
)
def test_run_is_named_after_the_program_and_not_its_launchers(command, name):
    assert program_name(command.split()) == name


def test_what_lay_in_the_directory_before_was_not_recorded_now(ensio) -> None:
    assert "recorded in run" in sentence(ensio("run", "-o", "run", "--", "ls", "/"))
    again = ("run", "-o", "run", "--extend", "--", "env")
    names = sorted(os.listdir("run"))
    assert "nothing was recorded in run" in sentence(ensio(*again, "ENSIO_DISABLE=1", "ls", "/"))
    assert sorted(os.listdir("run")) == names
    assert "recorded in run" in sentence(ensio(*again, "ls", "/"))
