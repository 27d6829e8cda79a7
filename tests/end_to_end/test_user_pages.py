"""The commands, the code and the settings on the pages of docs/user are those that work."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import commands_here
import darshan
import pytest
from places import BUILD, PATIENCE_S, PROGRAMS, ROOT
from slurm import NotPossible, Slurm

import ensembles

sys.path.insert(0, str(ROOT / "tests" / "unit" / "readers" / "foreign"))

from made_recorder_traces import MadeCall, MadeTrace

from ensembles.cli.replay_program import ANY_TASKS
from ensembles.diagnosis.principles import CAUSES

USER = ROOT / "docs" / "user"
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")},
    **ANY_TASKS,
    "PATH": f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
    "PKG_CONFIG_PATH": f"{BUILD}/lib/pkgconfig",
    "CMAKE_PREFIX_PATH": str(BUILD),
}


def page(name: str) -> str:
    return (USER / name).read_text()


def blocks(name: str) -> list[list[str]]:
    """The indented blocks of a page, without transcripts."""
    found = re.findall(r"(?:^|\n\n)((?:    .*\n|\n(?=    ))+)", page(name))
    every = [[line[4:] for line in block.splitlines() if line.strip()] for block in found]
    return [block for block in every if block and not block[0].startswith("$ ")]


def commands(name: str) -> list[str]:
    """The command lines of a page, without remarks."""
    starts = re.compile(r"(?:ENSIO_\w+=\S+ )?(?:ensio|ensio-cc|mpicc|mpiexec) ")
    lines = [line for block in blocks(name) for line in block if starts.match(line)]
    return [re.sub(r"\s{2,}#.*", "", line) for line in lines]


def shell(command: str, folder: Path, **settings: str) -> str:
    done = commands_here.shell(command, folder, ENVIRONMENT | settings)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder with a program, its object file and a run of it, called run."""
    folder = tmp_path_factory.mktemp("recorded")
    subprocess.run(["mpicc", "-c", PROGRAMS / "mpi_writes.c", "-o", folder / "app.o"], check=True)
    subprocess.run(["mpicc", folder / "app.o", "-o", folder / "app"], check=True)
    shell("ensio run -o run -- mpiexec -n 8 ./app", folder)
    return folder


@pytest.fixture
def folder(recorded, tmp_path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "folder"))


def block(name: str, first: str) -> str:
    """The block of a page that begins so."""
    (found,) = (lines for lines in blocks(name) if lines[0].startswith(first))
    return "\n".join(found) + "\n"


def test_ways_to_record(recorded, tmp_path):
    every = commands("recording.md")
    assert len(every) == 10
    for name in ("app", "app.o"):
        shutil.copy(recorded / name, tmp_path)
    preload, relink, start, flags, pkgconfig, check, extend, second, profile, messages = every
    shell(preload, tmp_path)
    assert calls_of(tmp_path / "run")["write"] == 108
    shell(extend, tmp_path)
    assert "8 tasks" in shell(second, tmp_path)
    shell(messages, tmp_path)
    for number, link in enumerate((relink, flags, pkgconfig)):
        shell(link, tmp_path)
        shell(start.replace("/run", f"/relinked{number}"), tmp_path)
        assert calls_of(tmp_path / f"relinked{number}")["write"] == 108
    shell(check, tmp_path)
    subprocess.run(["mpicc", tmp_path / "app.o", "-o", tmp_path / "app"], check=True)
    shell(profile, tmp_path)
    assert ensembles.open(tmp_path / "profile-run").mode == "profile"


def calls_of(run: Path) -> dict[str, int]:
    info = json.loads(shell(f"ensio info --json {run}", run.parent))
    return {name: call["count"] for name, call in info["calls"].items()}


def test_programs_name_their_phases_and_regions(tmp_path):
    head, *body = block("recording.md", "#include").splitlines()
    statements = [*body[:-1], 'open("f", O_CREAT, 0600);', body[-1], "return 0; }"]
    (tmp_path / "main.c").write_text(
        "\n".join([head, "#include <fcntl.h>", "int main(void) {", *statements, ""])
    )
    project = "cmake_minimum_required(VERSION 3.20)\nproject(user C)\nadd_executable(app main.c)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + block("recording.md", "find_package"))
    shell("cmake -S . -B build && cmake --build build && ENSIO_DIR=in-c build/app", tmp_path)
    (tmp_path / "app.py").write_text(block("recording.md", "from ensembles.recorder"))
    shell("ensio run -o in-python -- python app.py", tmp_path)
    for run in ("in-c", "in-python"):
        chosen = shell(f"ensio events {run} --where region=checkpoint --op open --format csv", tmp_path)
        assert len(chosen.splitlines()) == 2
        assert "phase solve" in shell(f"ensio info {run}", tmp_path)


def test_batch_script_records_the_tasks_of_a_job(tmp_path):
    script = ROOT / "docs" / "examples" / "record.slurm"
    try:
        with Slurm() as slurm:
            words = ["dd", "if=/dev/zero", "of=/dev/shm/ensio-record-test", "bs=1", "count=7"]
            done = slurm.run(
                "sbatch", "--wait", "--parsable", "-n", "3", script, *words, env=ENVIRONMENT, cwd=tmp_path
            )
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")
    finally:
        Path("/dev/shm/ensio-record-test").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    run = tmp_path / f"run-{done.stdout.strip()}"
    assert calls_of(run)["write"] == 3 * 7
    assert ensembles.open(run).tasks == 3


def test_questions_are_answered_by_the_commands_beside_them(folder):
    shutil.copytree(folder / "run", folder / "other-run")
    named = re.findall(r"\| `(ensio [^`]+)` \|", page("reading.md"))
    assert len(named) == 14
    for command in commands("reading.md") + named:
        assert shell(command, folder)
    assert (folder / "report.html").stat().st_size > 1e5


@pytest.mark.parametrize("name", ["start.md", "diagnosis.md", "findings.md", "pictures.md", "scripts.md"])
def test_commands_of_short_pages_answer(folder, name):
    every = [command for command in commands(name) if not command.startswith(("ensio serve", "ensio mcp"))]
    assert len(every) >= 1
    (folder / "run").rename(folder / ("old" if name == "start.md" else "other-run"))
    if name != "start.md":
        shutil.copytree(folder / "other-run", folder / "run")
    for command in every:
        shell(command.replace("--fail-on critical", ""), folder)


def test_python_of_the_page_on_scripts_prints_findings(folder):
    shell("ensio scenarios run --scenario sync-per-write --seed 1 -o example", folder)
    code = block("scripts.md", "import ensembles").replace('"run"', '"example/sync-per-write"')
    printed = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert printed.stdout.startswith("sync-per-write critical"), printed.stderr


def test_commands_that_check_a_finding_are_understood(folder):
    every = set(re.findall(r"`(ensio [a-z][^`]*)`", page("findings.md")))
    chosen = {command for command in every if re.search(r" (run|half|after)\b", command)}
    assert len(chosen) > 15
    for other in ("half", "before", "after"):
        shutil.copytree(folder / "run", folder / other)
    for command in chosen:
        done = commands_here.shell(command, folder, ENVIRONMENT)
        assert "--help" not in done.stderr, (command, done.stderr)
        assert done.returncode == 0 or "matches" in done.stderr, (command, done.stderr)


def test_every_finding_is_explained_once():
    explained = re.findall(r"^### (\S+)$", page("findings.md"), re.M)
    entries = {"outside", "communication", "recorder", "library", "rate", "calls", "bytes", "above-storage"}
    entries |= {"untraced", "unseen", "others", "recorder-in-calls"}
    assert sorted(explained) == sorted(set(CAUSES) - entries)


def test_user_pages_have_twenty_thousand_words_at_most_and_need_no_clone():
    texts = {path.name: path.read_text() for path in USER.glob("*.md")}
    words = [text.split() for text in (*texts.values(), (ROOT / "README.md").read_text())]
    assert sum(map(len, words)) <= 20_000
    assert {
        name for name, text in texts.items() if re.search(r"(?m)^    (\$ )?\./dev|need a clone", text)
    } == set()


def test_start_page_shows_what_its_commands_print(tmp_path):
    script = ROOT / "tools" / "docs" / "transcripts.py"
    done = subprocess.run(
        [sys.executable, script, USER / "start.md"], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert "2 commands, 0 with another output" in done.stdout, done.stdout + done.stderr


def test_report_has_the_pictures_that_are_explained(folder):
    shell("ensio report run -o report.html", folder)
    text = (folder / "report.html").read_text()
    sections = set(re.findall(r'<section id="([a-z]+)', text))
    assert sections >= {"trace", "rate", "histogram", "ensemble", "moments", "calls", "sizes"}
    explained = set(re.findall(r"^\| ([a-z][^|]*?) \| [A-Z]", page("pictures.md"), re.M))
    assert explained == {
        "trace diagram",
        "rates",
        "kernel's counters",
        "non-blocking requests",
        "histogram",
        "ensemble of …",
        "phases, call index, requests, files, ranks",
        "moments",
        "call sites",
        "tables of calls and sizes",
    }


def test_code_for_notebooks_runs_in_one(folder):
    import nbformat  # which takes seconds: not in every process that collects tests
    from nbclient import NotebookClient

    arrays = "import numpy as np\nphase = np.repeat(np.arange(9), 40); rank = np.tile(np.arange(40), 9)\n"
    arrays += "durations_s = np.random.default_rng(7).lognormal(-5, 0.3, 360)"
    cells = ["\n".join(lines) for lines in blocks("notebooks.md")]
    assert [cell.split()[0] for cell in cells] == ["import", "from", "e", "from"]
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in (cells[0], arrays, *cells[1:])]
    )
    NotebookClient(book, timeout=PATIENCE_S, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for output in book.cells[-1].outputs if output.output_type == "display_data"]
    assert len(shown) >= 5


def test_expressions_about_a_run_are_there(folder):
    run = ensembles.open(folder / "run")
    names = set(re.findall(r"`run\.(\w+)", page("notebooks.md")))
    assert len(names) >= 14
    assert [name for name in names if not hasattr(run, name)] == []


def test_traces_of_other_tools_are_opened(folder):
    every = commands("importing.md")
    assert len(every) == 5
    log = Path(darshan.__file__).parent / "tests" / "input" / "sample-dxt-simple.darshan"
    shutil.copy(log, folder / "program.darshan")
    trace = ROOT / "tests" / "unit" / "readers" / "foreign" / "traces" / "dftracer-4.3.0.pfw"
    (folder / "trace.pfw.gz").write_bytes(gzip.compress(trace.read_bytes()))
    shell("ensio export run --to otf2 archive", folder)
    shell("strace -f -ttt -T -y -o program.strace dd if=/dev/zero of=data bs=1k count=5", folder)
    calls = [MadeCall("pwrite", ("/scratch/a", "%p", "4096", "0"), 10 * i, 10 * i + 5) for i in range(1, 9)]
    MadeTrace("3.0.0", ranks=[calls]).write(folder / "recorder-trace")
    for command, call in zip(every, ("write", "write", "write", "write", "pwrite"), strict=True):
        assert call in shell(command, folder)


def test_counters_on_the_page_are_those_of_the_log():
    """The parts of the output that the page shows, line by line, and its Python."""
    log = Path(darshan.__file__).parent / "examples" / "example_logs" / "sample-badost.darshan"
    shown = shell(f"ensio info {log}", ROOT).splitlines()
    lines = [
        line
        for block in blocks("importing.md")[1:]
        for line in block
        if not line.startswith((">>>", "(2048"))
    ]
    assert len(lines) > 15
    assert [line for line in lines if line.rstrip() not in shown] == []
    posix = ensembles.open(log).counters.modules["POSIX"]
    assert (posix.totals["FSYNCS"], posix.by_rank["write_s"].max().round(1)) == (2048, 777.9)


def test_the_finding_on_the_page_is_that_of_the_log():
    log = Path(darshan.__file__).parent / "examples" / "example_logs" / "sample-badost.darshan"
    transcript = (
        page("diagnosis.md").split("$ ensio diagnose sample-badost.darshan\n")[1].split("\n\nThe ")[0]
    )
    written = [line[4:] for line in transcript.splitlines()]
    assert shell(f"ensio diagnose {log}", log.parent).splitlines()[: len(written)] == written


def test_exports_are_made(folder):
    every = commands("exporting.md")
    assert len(every) == 5
    for command in every:
        shell(command, folder)
    assert len((folder / "run.csv").read_text().splitlines()) > len(
        (folder / "writes.csv").read_text().splitlines()
    )
    for made in ("run.h5", "archive"):
        assert json.loads(shell(f"ensio info --json {made}", folder))["calls"]["write"]["count"] == 108
    assert json.loads((folder / "run.json").read_text())["traceEvents"]


def test_remedies_for_lost_events_record_the_program(folder):
    every = commands("troubleshooting.md")
    assert len(every) == 4
    for command in every:
        shell(command, folder)
    for run in ("small", "run2"):
        assert calls_of(folder / run)["write"] == 108


@pytest.mark.parametrize("name", ["workloads.md", "../reference/simulation.md"])
def test_workloads_are_run(tmp_path, name):
    every = commands(name)
    assert len(every) >= 4
    for command in every:
        shell(command, tmp_path)
    for recorded, remedy in re.findall(r"(?m)^    \$ ensio try (\S+) --with (\S+)$", page(name)):
        (tried,) = re.findall(rf"ensio replay {recorded} -o (\S+) --with {remedy} ", "\n".join(every))
        assert sum(calls_of(tmp_path / recorded).values()) > sum(calls_of(tmp_path / tried).values())


def test_passes_over_large_runs_agree(folder):
    every = [line.replace("RUN", "run") for line in commands("large-runs.md") if "tcp:" not in line]
    every = [line.replace("--workers 8", "--workers 2") for line in every]  # eight take seconds to start
    sizes = []
    for command in (line for line in every if "scheduler.json" not in line):
        shell(command, folder)
        sizes.append((folder / "report.html").stat().st_size)
    assert len(sizes) == 8
    assert max(sizes) - min(sizes) < 0.01 * sizes[0]


READS = re.compile(
    r"""(?:getenv|setting|is_on)\("(ENSIO_\w+)"\)|&\w+\.\w+, "(ENSIO_\w+)\"|"""
    r"""environ\w*(?:\.get\(|\[)b?"(ENSIO_\w+)"|\$\{(ENSIO_\w+)[:}-]""",
)


def test_settings_are_those_that_the_code_reads():
    tracked = subprocess.run(
        ["git", "ls-files", "libtrace", "ensembles", "viz", "testbed", "calibration"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    sources = [ROOT / name for name in tracked if name.endswith((".c", ".h", ".py", "ensio-cc"))]
    text = "\n".join(source.read_text() for source in sources)
    read = {next(filter(None, found)) for found in READS.findall(text)}
    documented = set(re.findall(r"^\| `(ENSIO_\w+)`", page("settings.md"), re.M))
    assert len(read) >= 14
    assert documented == read
