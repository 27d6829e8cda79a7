"""DFTracer's traces, written by hand in the words of its versions."""

import gzip
import json
import random
import re
from pathlib import Path

import pytest

import ensembles
from ensembles.cli.main import main
from ensembles.model.events import OPS

TRACES = Path(__file__).parent / "traces"
ORIGIN_US = 1_700_000_000_000_000

OLD = (TRACES / "dftracer-1.0.0.pfw").read_text()

MIDDLE = (TRACES / "dftracer-1.0.5.pfw").read_text()

NEW = (TRACES / "dftracer-4.3.0.pfw").read_text()


def written(folder, text, name="t.pfw"):
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def table(run):
    events = run.events
    return [
        (
            int(events.rank[i]),
            events.calls[events.call[i]].name,
            OPS[events.op[i]],
            events.files[events.file[i]],
            int(events.offset[i]),
            int(events.requested[i]),
            int(events.moved[i]),
            int(events.start[i]),
            int(events.duration[i]),
        )
        for i in range(len(events))
    ]


@pytest.mark.parametrize("name", ["t.pfw", "t.pfw.gz", "no name at all"])
def test_texts_for_numbers_of_the_first_versions(tmp_path, name):
    run = ensembles.open(written(tmp_path, OLD, name))
    assert table(run) == [
        (0, "stat", "meta", "/d", -1, 0, 0, 0, 141_000),
        (0, "open", "open", "/d/f", -1, 0, 0, 200_000, 30_000),
        (0, "write", "write", "/d/f", -1, 3276801, 3276800, 300_000, 106_000),
        (0, "close", "close", "/d/f", -1, 0, 0, 500_000, 7_000),
    ]
    assert run.info.origin_unix_ns == ORIGIN_US * 1000
    assert run.info.hosts == ["n1"]
    assert any("resolution 1 µs" in note for note in run.notes)
    assert run.info.clock_step_s == pytest.approx(1e-6)


def test_numbers_for_hashes_of_version_one(tmp_path):
    run = ensembles.open(written(tmp_path, MIDDLE))
    assert table(run) == [
        (2, "fopen", "open", "/d/f", -1, 0, 0, 10_000, 191_000),
        (2, "fread", "read", "/d/f", -1, 6400, 3100, 210_000, 10_000),
        (2, "read", "read", "/d/f", -1, 8192, -1, 400_000, 1_000),
        (2, "pread", "read", "/d/f", 1000, 60, 50, 500_000, 1_000),
        (2, "lseek", "seek", "/d/f", 77, 0, 0, 510_000, 1_000),
    ]
    assert run.events.thread.tolist() == [0, 1, 0, 0, 0]
    (process,) = run.info.processes
    assert (process.rank, process.host, process.pid, process.parent_pid) == (2, "n1", 7, 6)
    assert process.command == ("./app", "-x")
    assert process.ended
    assert run.tasks == 3
    regions = run.regions
    assert [regions.names[name] for name in regions.name] == ["C_APP: train"]
    assert regions.start.tolist() == [600_000]
    assert regions.duration.tolist() == [100_000]


def test_texts_for_hashes_and_numbers_for_phases_of_version_four(tmp_path):
    run = ensembles.open(written(tmp_path, NEW, "t.pfw.gz"))
    assert table(run) == [
        (0, "open", "open", "/home/me/f", -1, 0, 0, 100_000, 24_000),
        (0, "pwrite", "write", "/home/me/f", 8192, 4096, 4096, 200_000, 12_000),
        (0, "fsync", "sync", "file with the hash ffff5a20ae0d13f6", -1, 0, 0, 300_000, 31_760_000),
        (0, "close", "close", "/home/me/f", -1, 0, 0, 40_000_000, 6_000),
    ]
    assert run.info.processes[0].cwd == "/home/me"
    assert not run.info.processes[0].ended
    notes = " ".join(run.notes)
    assert "skipped 1 record of counters" in notes
    assert "left out 1 call other than I/O" in notes
    assert "names of 1 file" in notes
    assert "has no ranks" in notes


def test_the_unit_of_time_is_the_one_that_the_trace_states(tmp_path):
    text = NEW.replace('"US"', '"NS"')
    run = ensembles.open(written(tmp_path, text))
    assert run.events.duration.tolist() == [24, 12, 31_760, 6]
    assert run.info.origin_unix_ns == ORIGIN_US


def test_all_files_of_a_folder_are_one_run_and_processes_on_two_hosts_are_two_tasks(tmp_path):
    written(tmp_path, NEW, "a.pfw.gz")
    other = NEW.replace("0882804a826580cd", "1882804a826580cd").replace('"name":"n1"', '"name":"n2"')
    written(tmp_path, other.replace("0000000000", "0000001000"), "b.pfw")
    (tmp_path / "c.pfw").write_text("")
    run = ensembles.open(tmp_path)
    assert run.info.hosts == ["n1", "n2"]
    assert run.tasks == 2
    assert run.events.rank.tolist() == [0] * 4 + [1] * 4
    assert run.info.clock_error_s is None
    assert run.files.count("/home/me/f") == 1


def test_a_killed_program_leaves_a_torn_line(tmp_path):
    whole = ensembles.open(written(tmp_path, NEW))
    torn = ensembles.open(written(tmp_path, NEW[:-60], "torn.pfw"))
    assert table(torn) == table(whole)[:-1]
    assert any("torn.pfw: the end is missing" in note for note in torn.notes)
    assert not any("invalid line" in note for note in torn.notes)


def test_a_torn_gzip_is_read_as_far_as_it_goes(tmp_path):
    lines = [NEW]
    draw = random.Random(4)
    for number in range(3000):
        lines.append(
            f'{{"id":9,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":{ORIGIN_US + 50_000 + number},'
            f'"dur":{draw.random() * 1e6:.0f},'
            f'"ph":1,"args":{{"ret":{draw.randrange(1 << 40)},"count":{1 << 40}}}}}\n'
        )
    path = written(tmp_path, "".join(lines), "t.pfw.gz")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    run = ensembles.open(path)
    assert 500 < len(run.events) < 3000
    assert any("the end is missing" in note for note in run.notes)


def test_gzip_in_many_members_is_one_text(tmp_path):
    # As the tool packs blocks of lines, and as cat puts files together.
    lines = NEW.splitlines(keepends=True)
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(
        b"".join(gzip.compress("".join(lines[i : i + 2]).encode()) for i in range(0, len(lines), 2))
    )
    assert table(ensembles.open(path)) == table(ensembles.open(written(tmp_path, NEW, "b.pfw")))


def test_lines_that_make_no_sense_are_counted_and_the_others_read(tmp_path):
    lines = NEW.splitlines()
    lines[4:4] = ["{", '{"name":3}', "\0\0\0", '{"a":' + "[" * 5000, "x" * 300_000]
    lines.append(NEW.splitlines()[-1].replace('"dur":6', f'"dur":{1 << 60}'))
    lines.append(NEW.splitlines()[-1].replace('"dur":6', f'"dur":{1 << 80}'))
    lines.append(NEW.splitlines()[-1].replace('"dur":6', '"dur":-6'))
    run = ensembles.open(written(tmp_path, "\n".join(lines) + "\n"))
    assert table(run) == table(ensembles.open(written(tmp_path, NEW, "whole.pfw")))
    assert any("skipped 8 invalid lines" in note for note in run.notes)


def test_commas_and_brackets_of_the_chrome_format(tmp_path):
    text = "[\n" + NEW.strip().replace("}\n", "},\n") + "]\n"
    assert table(ensembles.open(written(tmp_path, text))) == table(
        ensembles.open(written(tmp_path, NEW, "b.pfw"))
    )


@pytest.mark.parametrize("text", [OLD, MIDDLE, NEW])
@pytest.mark.parametrize(
    ("write", "between"),
    [
        (json.dumps, "\n"),
        (lambda record: json.dumps(record, sort_keys=True), ",\n"),
        (lambda record: json.dumps(dict(reversed(record.items())), separators=(" ,", " : ")), " , \n"),
        (lambda record: json.dumps(record).replace("/", r"\u002f"), "\n\n"),
    ],
)
def test_any_writing_of_the_same_json_is_the_same_trace(tmp_path, text, write, between):
    records = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith("{")]
    again = between.join(map(write, records))
    for number, whole in enumerate((again, f"[{again}]", f"[\n{again}\n]\n")):
        run = ensembles.open(written(tmp_path, whole, f"{number}.pfw"))
        assert table(run) == table(ensembles.open(written(tmp_path, text, "first.pfw")))
        assert not any("invalid" in note for note in run.notes)


def test_what_a_forked_process_writes_again_counts_once(tmp_path):
    line = '{{"id":{},"name":"{}","cat":"POSIX","pid":7,"tid":{},"ts":{},"dur":{},"ph":"X"}}\n'
    calls = [
        (0, "open64", 7, 1000, 5),
        (1, "lseek", 7, 1010, 0),
        (2, "lseek", 7, 1010, 0),
        (3, "read", 7, 1011, 9),
    ]
    first = "".join(line.format(*call) for call in calls)
    folder = tmp_path / "run"
    folder.mkdir()
    written(folder, first + line.format(4, "read", 8, 1011, 9), "a.pfw")
    # The same ids are not copies where time or thread differs.
    written(folder, first + line.format(4, "read", 7, 1030, 9) + first, "b.pfw")
    run = ensembles.open(folder)
    names = [row[1] for row in table(run)]
    assert names == ["open", "lseek", "lseek", "read", "read", "read"]
    assert "left out 8 records that forked processes wrote again" in " ".join(run.notes)


def test_names_that_are_no_text_and_hostile_numbers_do_no_harm(tmp_path, capsys):
    text = NEW.replace("data/../f", "evil\x1b[31m\x07").encode().replace(b'"name":"n1"', b'"name":"n\xff1"')
    text = text.replace(b'"ret":4096,', b'"ret":%d,' % (1 << 62)).replace(
        b'"count":4096', b'"count":%d' % (1 << 70)
    )
    path = written(tmp_path, text)
    run = ensembles.open(path)
    assert "/home/me/evil\x1b[31m\x07" in run.files
    assert run.events.moved.max() < 1 << 50
    assert any("left out 1 call with impossible times or numbers" in note for note in run.notes)
    assert main(["info", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.slow
def test_an_opened_descriptor_of_a_gzip_bomb_stays_small(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "bomb.pfw.gz"
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(NEW.encode())
        for _ in range(280):
            file.write(bytes(1 << 20))
    program = (
        "import sys, ensembles\n"
        "try: ensembles.open(sys.argv[1])\n"
        "except ensembles.EnsioError as error: print(error)\n"
        "print(int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]) // 1024)\n"
    )
    told = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(told.stdout.split()[-1]) < 250


def test_a_trace_without_a_call_is_refused_in_one_sentence(tmp_path, capsys):
    path = written(tmp_path, NEW.splitlines()[0] + "\n")
    assert main(["info", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"ensio: .*t\.pfw has no call of DFTracer", line)


def test_json_of_info_is_whole(tmp_path, capsys):
    assert main(["info", str(written(tmp_path, MIDDLE)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["calls"]["fread"]["bytes"] == 3100
    assert told["calls"]["read"]["errors"] == 1
