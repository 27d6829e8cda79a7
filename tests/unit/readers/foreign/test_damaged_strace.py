"""Damaged texts of strace: numbers without bounds, lines that are not text, and what was left out."""

import pytest

import ensembles


@pytest.mark.parametrize(
    "line",
    [
        "7 1700000001.000000 write(3, \"x\", {n}) = {n} <0.000010>",
        "{n} 1700000001.000000 write(3, \"x\", 1) = 1 <0.000010>",
        "7 {n}.000000 write(3, \"x\", 1) = 1 <0.000010>",
        "7 1700000001.000000 write(3, \"x\", 1) = 1 <{n}.000010>",
        "7 1700000001.000000 write({n}, \"x\", 1) = 1 <0.000010>",
        "7 1700000001.000000 dup2(3, {n}) = {n} <0.000010>",
        "7 1700000001.000000 pipe([{n}, {n}]) = 0 <0.000010>",
        "7 1700000001.000000 close_range({n}, {n}, 0) = 0 <0.000010>",
        "7 1700000001.000000 lseek(3, {n}, SEEK_SET) = {n} <0.000010>",
        "7 1700000001.000000 pwrite64(3, \"x\", {n}, {n}) = {n} <0.000010>",
        "7 1700000001.000000 mmap(NULL, {n}, PROT_READ, MAP_SHARED, 3, {n}) = {n} <0.000010>",
        "7 1700000001.000000 openat({n}, \"f\", O_RDONLY) = 4 <0.000010>",
        "7 1700000001.000000 clone(child_stack=NULL, flags=SIGCHLD) = {n} <0.000010>",
        "7 1700000001.000000 fcntl(3, F_DUPFD, {n}) = {n} <0.000010>",
    ],
)  # fmt: skip
def test_numbers_of_thousands_of_digits_are_bounded(tmp_path, line):
    """Python's int refuses them; where a sign is, they are negative."""
    path = tmp_path / "text"
    first = '7 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.000010>\n'
    for number in ("9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "0" * 5000):
        path.write_text(first * 3 + line.replace("{n}", number) + "\n" + first.replace("= 3", "= 5"))
        run = ensembles.open(path)
        assert run.summary.count >= 4


WHOLE = """\
7 1700000000.000000 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f <0.000010>
7 1700000000.100000 openat(AT_FDCWD, "/data/a", O_WRONLY|O_CREAT, 0600) = 3 <0.000010>
7 1700000000.200000 write(3, "x", 1) = 1 <0.000010>
7 1700000000.300000 openat(AT_FDCWD, "/data/b", O_RDWR) = 4 <0.000010>
7 1700000000.400000 openat(AT_FDCWD, "/data/c", O_RDONLY) = 5 <0.000010>
7 1700000000.500000 close(3) = 0 <0.000010>
7 1700000000.600000 +++ exited with 0 +++
"""


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (("", ""), ""),
        (('"/data/a"', '"/data/a'), "invalid lines skipped: 1"),
        (('"/data/a"', '"/data\\\\"/a"'), "invalid lines skipped: 1"),
        (("<0.000010>\n7 1700000000.2", "<0.\0\0\0 1700000000.2"), "invalid lines skipped: 1"),
        (('"x", 1) = 1 <0.0', '"x", 1) = 1 <5.0'), "lines with a time before the end"),
        (("7 1700000000.3", "7 1700000900.3"), "lines with a time before the end"),
        (("7 1700000000.3", "7 1600000000.3"), "lines with a time before the end"),
        (
            ("7 1700000000.000000 mmap", "7 1700000000.000000 brk"),
            "the trace has no call of mmap: I/O by calls",
        ),
    ],
)
def test_damaged_lines_and_calls_that_were_left_out_are_noted(tmp_path, change, note):
    """Strace escapes control characters, ends its texts, and writes lines in the order of their times."""
    (tmp_path / "log").write_text(WHOLE.replace(*change))
    notes = [each for each in ensembles.open(tmp_path / "log").notes if "timer resolution" not in each]
    assert any(each.startswith(note) for each in notes) if note else not notes


def test_opens_have_the_access_in_their_flags(tmp_path):
    (tmp_path / "log").write_text(WHOLE)
    assert ensembles.open(tmp_path / "log").select(op="open").carried.tolist() == [32, 48, 16]


def test_lost_lines_are_counted_whatever_took_their_place(tmp_path):
    """Zeros of a file system, bytes other than text, and a beginning or an end without the other."""
    begun, resumed = "write(3</d/a>, ..., 9 <unfinished ...>", "<... write resumed>) = 9 <0.000005>"
    times = [f"7 1700000000.{at:06}" for at in range(0, 18_000, 10)]
    parts = [[f"{times[at]} {begun}", f"{times[at + 1]} {resumed}"] for at in range(0, 1800, 2)]
    lost_ends = [lines[: 2 - (at % 9 == 0)] for at, lines in enumerate(parts)]
    lost_beginnings = [lines[at % 9 == 0 :] for at, lines in enumerate(parts)]
    for name, some, what in ("ends", lost_ends, "end"), ("beginnings", lost_beginnings, "beginning"):
        log = "\n".join(line for lines in some for line in lines) + "\n"
        (tmp_path / name).write_text(log)
        assert ensembles.open(tmp_path / name).info.missing_calls == -1  # the end of the process is missing
        (tmp_path / name).write_text(f"{log}7 1700000001.000000 +++ exited with 0 +++\n")
        run = ensembles.open(tmp_path / name)
        assert len(run.events) == 800
        assert f"calls skipped, because their {what} is missing: 100" in run.notes
        assert run.reading.lacks.startswith("11 % of the calls are missing")
    whole = "".join(f"{line}\n" for lines in parts for line in lines).encode()
    for name, bytes_ in ("zeros", bytes(4000)), ("noise", b"\xff\xfe" * 2000):
        (tmp_path / name).write_bytes(whole[:30_000] + bytes_ + whole[34_000:])
        run = ensembles.open(tmp_path / name)
        assert 850 < len(run.events) < 880
        assert any(note.startswith("invalid lines skipped: 1") for note in run.notes)
        assert (name == "zeros") == ("bytes of zeros in place of lines, which are lost: 4,000" in run.notes)
