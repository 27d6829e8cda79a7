"""Traces are known by what is in them, whatever they are called, and other files are not taken for them."""

import gzip
import struct
from pathlib import Path

import pytest
from made_darshan_logs import traced_log

import ensembles
from ensembles.cli.main import main
from ensembles.readers.foreign.detection import detect_format

TRACES = Path(__file__).parent / "traces"

STRACE = [
    '1700000000.000000 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.000300>\n',
    '[pid  12] 1700000000.000000 read(3, "", 1) = 0 <0.000300>\n',
    "12  1700000000.000000 <... read resumed>) = 0 <0.000300>\n",
    'openat(AT_FDCWD, "f", O_RDONLY) = -1 ENOENT (No such file or directory)\n',
]
FSYNC = "fsync(3</data/f>) = 0 <0.000300>\n"
NOTHING = [
    b"",
    b"\n\n\n",
    b"\x1f\x8b",
    gzip.compress(b"hello\n", mtime=0),
    b"{}\n",
    b'{"name":"x"}\n',
    b'[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]',
    b"int main(void) { return f(3); }\n",
    b"x = f(1)\ny = g(2)\n",
    b"name,call,bytes\nx,read(3),5\n",
    bytes(range(256)) * 16,
]


def name_of(beginning):
    known = detect_format("whatever", beginning)
    return None if known is None else known.name


@pytest.mark.parametrize("trace", sorted(TRACES.glob("dftracer*")), ids=lambda path: path.name)
def test_dftracer_packed_or_not(trace):
    assert name_of(trace.read_bytes()[:4096]) == "DFTracer"
    assert name_of(gzip.compress(trace.read_bytes())[:4096]) == "DFTracer"


@pytest.mark.parametrize("line", STRACE)
def test_strace(line):
    assert name_of(line.encode() * 3) == "strace"


@pytest.mark.parametrize("beginning", NOTHING)
def test_other_files_are_none_of_them(beginning):
    assert name_of(beginning[:4096]) is None


def test_an_older_trace_of_recorder_is_refused_with_a_remedy(tmp_path, capsys):
    functions = "creat\nopen\nfopen\nfclose\nMPI_File_open\nH5Fcreate\n"
    (tmp_path / "recorder.mt").write_bytes(
        struct.pack("=i4xddiii4x", 4, 1.0, 1e-7, 10, 0, 0) + functions.encode()
    )
    (tmp_path / "VERSION").write_text("2.1.0")
    assert main(["info", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is a trace of Recorder 2.1.0" in line
    assert "recorder2text" in line


def test_a_folder_with_something_else_in_such_a_file_is_none(tmp_path):
    (tmp_path / "recorder.mt").write_text("notes of a recorder")
    assert detect_format(str(tmp_path), None) is None


@pytest.mark.parametrize("tool", ["strace", "DFTracer", "Darshan"])
@pytest.mark.parametrize("other", [b"", b"notes\nand more\n", bytes(5000)])
def test_another_file_in_a_folder_is_left_out_by_name(tmp_path, tool, other):
    name = {"strace": "t.7", "DFTracer": "b.pfw", "Darshan": "b.darshan"}[tool]
    if tool == "strace":
        (tmp_path / "t.6").write_text(f"1700000000.000000 {FSYNC}" * 3)
    elif tool == "DFTracer":
        (tmp_path / "a.pfw").write_bytes((TRACES / "dftracer-1.0.5.pfw").read_bytes())
    else:
        traced_log().write(tmp_path / "a.darshan")
    (tmp_path / name).write_bytes(other)
    assert detect_format(str(tmp_path), None).name == tool
    notes = ensembles.open(tmp_path).notes
    assert [note for note in notes if note.startswith(f"left out {name}")] == [
        f"left out {name}: damaged at the beginning, or not of {tool}" for _ in other[:1]
    ]


@pytest.mark.parametrize("share", [0.6, 0.8, 0.99])
def test_damaged_gzip_is_read_up_to_the_damage_and_is_a_part(tmp_path, share):
    text = b"".join(
        b'{"name":"write","cat":"POSIX","pid":1,"tid":1,"ts":%d,"dur":%d,"ph":"X","args":{"ret":8}}\n'
        % (1000 * n, n * n % 997)
        for n in range(5000)
    )
    packed = bytearray(gzip.compress(text, mtime=0))
    packed[int(share * len(packed))] ^= 16
    path = tmp_path / "a.pfw.gz"
    path.write_bytes(packed)
    run = ensembles.open(path)
    assert share / 2 * 5000 < len(run.events) < 5000 or "invalid" in " ".join(run.notes)
    assert "compressed data are damaged" in " ".join(run.notes)
    assert "missing or damaged" in run.reading.lacks


def test_gzip_damaged_at_its_beginning_is_damaged_and_not_empty(tmp_path):
    packed = bytearray(gzip.compress((TRACES / "dftracer-4.3.0.pfw").read_bytes(), mtime=0))
    for place, sentence in ((20, "does not begin as its name says"), (206, "compressed data are damaged")):
        damaged = packed.copy()
        damaged[place] ^= 16
        (tmp_path / "a.pfw.gz").write_bytes(damaged)
        with pytest.raises(ensembles.EnsioError, match=sentence):
            ensembles.open(tmp_path / "a.pfw.gz")


def test_a_folder_of_other_texts_is_none(tmp_path):
    (tmp_path / "a.pfw").write_text("notes")
    assert detect_format(str(tmp_path), None) is None
