"""Third-party programs print, leave and return the same, recorded and not."""

import hashlib
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from places import PATIENCE_S

import ensembles

SCRIPTS = Path(__file__).parent / "scripts"
PROGRAMS = {
    "coreutils": ["bash", SCRIPTS / "coreutils.sh"],
    "git": ["bash", SCRIPTS / "git.sh"],
    "tar": ["bash", SCRIPTS / "tar.sh"],
    "sqlite3": ["sqlite3", "data.db", f".read {SCRIPTS / 'sqlite.sql'}"],
}

# What differs from run to run without us too: times, inode numbers, random numbers.
VARYING = ("*/.git/index", "*.db-journal", "pax.tar")


def contents(folder: Path) -> dict[str, tuple]:
    """Kind, permissions and content of everything in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if any(path.match(pattern) for pattern in VARYING):
            continue
        status = path.lstat()
        content = ""
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        found[str(path.relative_to(folder))] = (stat.filemode(status.st_mode), status.st_nlink, content)
    return found


@pytest.mark.parametrize("command", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_print_and_leave_the_same(preload, tmp_path, command):
    left, printed = [], []
    for number, execute in enumerate((preload.untraced, preload.execute)):
        folder = tmp_path / "here"  # the same name for both: some leave it in their files
        folder.mkdir()
        try:
            one_run = {"ENSIO_LAUNCH": "script"}
            done = execute(
                *command, cwd=folder, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, environment=one_run
            )
        except subprocess.TimeoutExpired as late:
            so_far = (late.stdout or b"").decode()[-500:]
            pytest.fail(f"{execute.__name__}: not at its end after {late.timeout} s; last output: {so_far}")
        printed.append((done.returncode, done.stdout.decode(), done.stderr.decode()))
        left.append(contents(folder))
        folder.rename(tmp_path / str(number))
    assert printed[0][1].count("\n") > 5
    assert printed[0] == printed[1]
    assert len(left[0]) > 2
    assert left[0] == left[1]
    run = ensembles.open(preload.run)
    assert run.info.dropped_events == 0
    assert len(run.select(op="write", file=f"{tmp_path}/*")) > 20


SUITES = ("test_os", "test_io", "test_posix", "test_fileio", "test_mmap", "test_subprocess", "test_tempfile")
SUITES += ("test_shutil",)


PYTHON = "/usr/bin/python3"  # the system's, to which Debian's package of tests belongs


def outcomes(execute, suite, folder, **environment) -> dict[str, str]:
    """Of each of CPython's own tests whether it passed, failed or was skipped."""
    folder.mkdir()
    known = subprocess.run([PYTHON, "-c", f"import test.{suite}"], capture_output=True)
    if known.returncode:
        pytest.fail(f"{PYTHON} has no test.{suite}; ./dev test-long installs the package that holds it")
    # Results go to a file, where nothing that the tests print gets between a name and its outcome.
    report = folder / "report.xml"
    done = execute(
        PYTHON, "-m", "test", "--junit-xml", report, suite, cwd=folder, stdin=subprocess.DEVNULL, timeout=900,
        environment={"TMPDIR": str(folder)} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    cases = re.findall(r'<testcase name="([^"]+)"[^>]*?(/>|>.*?</testcase>)', report.read_text(), re.S)
    result = {}
    for name, rest in cases:
        kinds = [kind for kind in ("failure", "error", "skipped") if f"<{kind}" in rest]
        result[name] = kinds[0] if kinds else "passed"
    return result


@pytest.mark.long
@pytest.mark.parametrize("suite", SUITES)
def test_cpythons_own_tests_end_the_same(preload, tmp_path, suite):
    plain = outcomes(preload.untraced, suite, tmp_path / "plain")
    assert len(plain) > 30
    for mode in ("trace", "profile", "tail"):
        preload.run = tmp_path / f"run-{mode}"
        recorded = outcomes(preload.execute, suite, tmp_path / mode, ENSIO_MODE=mode)
        assert recorded == plain, mode
        run = ensembles.open(preload.run)
        assert run.mode == mode
        assert run.summary.count > 50
        assert len(run.events) > 50 or mode != "trace"
