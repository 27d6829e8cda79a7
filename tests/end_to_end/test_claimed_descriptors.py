"""Whatever descriptors a program claims while its threads do I/O, it meets none of the recorder's."""

import subprocess

import pytest

import ensembles

MODES = ("trace", "profile", "tail")
UNCHANGED = b"0 calls went wrong; 1048576 bytes, unchanged\n"


def claim(recorder, folder, what, rounds, mode="trace"):
    program = recorder.build("claimed_descriptors")
    plain = recorder.untraced(program, what, 5, folder, timeout=600)
    assert (plain.returncode, plain.stdout) == (4, UNCHANGED)
    done = recorder.execute(program, what, rounds, folder, timeout=3000, environment={"ENSIO_MODE": mode})
    assert (done.returncode, done.stdout, done.stderr) == (4, UNCHANGED, b"")
    run = ensembles.open(recorder.run)
    cells = run.summary.cells
    names = [run.summary.calls[number].name for number in cells["call"]]
    assert sum(cells["count"][[name == "pwrite" for name in names]]) == 2 * 2000 * rounds + 1
    assert (run.info.lost_calls, run.notes) == (0, [])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ["replaced", "closed", "last"])
def test_claimed_descriptors_are_never_the_recorders(recorder, tmp_path, what, mode):
    claim(recorder, tmp_path, what, 100, mode)


@pytest.mark.long
@pytest.mark.parametrize("what", ["replaced", "last"])
def test_ten_thousand_rounds_change_no_byte(recorder, tmp_path, what):
    claim(recorder, tmp_path, what, 10_000, "profile")


def test_no_file_is_opened_for_windows(preload, tmp_path):
    """A thread fills window after window without a call of open; the file is opened to double its length."""
    program = preload.build("claimed_descriptors")
    log = tmp_path / "strace"
    traced = subprocess.run(
        ["strace", "-f", "-e", "trace=open,openat,creat", "-o", log, program, "last", "20", tmp_path],
        env=preload.environment(ENSIO_JOBFILE="0"),
        capture_output=True,
    )
    assert traced.returncode == 4, traced.stderr
    after = log.read_text().partition('"precious"')[2]
    assert 1 <= after.count(".spool") <= 3, after
    windows = sum(path.stat().st_size for path in preload.run.glob("*.spool")) // (1 << 16)
    assert windows > 60
