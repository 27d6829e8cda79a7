"""Every event names the source line that led to it: the first one outside of libraries."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from places import PATIENCE_S, PROGRAMS
from test_hdf5 import flags

import ensembles
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS

_MARK = re.compile(r"site \w+: (\d+ \w+(?:, \d+ \w+)*)")


def marked(source) -> dict[str, Counter]:
    """The calls of each marked line of a program, by ``file:line``."""
    found = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        for calls in _MARK.findall(line):
            words = (call.split() for call in calls.split(", "))
            found[f"{source.name}:{number}"] = Counter({name: int(count) for count, name in words})
    return found


def calls_at(run, place: str) -> Counter:
    events = run.select(site=place)
    return Counter(run.calls[number].name.removesuffix("64") for number in events.call.tolist())


def check(recorder, source, program) -> ensembles.Run:
    """The calls from each line are those that stand there."""
    data = recorder.folder / "data"
    data.mkdir(exist_ok=True)
    done = recorder.execute(program, data)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    run = ensembles.open(recorder.run)
    lines = marked(source)
    assert len(lines) >= 3
    assert {place: calls_at(run, place) for place in lines} == lines
    of_data = run.select(file=f"{data}/*")
    assert of_data.site.all()
    assert {run.info.sites[number].frames[0].state for number in set(of_data.site.tolist())} == {"line"}
    return run


@pytest.mark.parametrize("options", [[], ["-O0"], ["-no-pie"], ["-fno-omit-frame-pointer"]], ids=str)
def test_each_event_has_its_line(recorder, options):
    program = recorder.build("site_calls", "-g", *options)
    run = check(recorder, recorder.source("site_calls"), program)
    assert calls_at(run, "write_some") == {"write": 10, "pwrite": 2}  # of the child too
    assert calls_at(run, "site_calls.c") == calls_at(run, "*/programs/site_calls.c") == calls_at(run, "*")


def test_a_static_program(relinked):
    check(relinked, relinked.source("site_calls"), relinked.build("site_calls", "-g", "-static"))


LANGUAGES = {"C++": ("g++", "site_streams.cpp"), "Fortran": ("gfortran", "site_writes.f90")}


@pytest.mark.parametrize(("compiler", "source"), LANGUAGES.values(), ids=LANGUAGES.keys())
@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
def test_what_a_runtime_library_does_has_the_line_of_the_program(preload, compiler, source, optimised):
    program = preload.folder / "program"
    command = [compiler, "-g", optimised, PROGRAMS / source, "-o", program]
    subprocess.run(command, check=True, cwd=preload.folder)  # gfortran writes modules there
    run = check(preload, PROGRAMS / source, program)
    if compiler == "gfortran":
        assert calls_at(run, "restart::write_restart") == {"write": 3}


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_what_libraries_do_below_hdf5_has_the_line_that_called_hdf5(preload, flavour):
    """Of MPI-IO and POSIX too, and whichever of the layers are recorded."""
    options = flags("cflags", f"hdf5-{flavour}") + flags("libs", f"hdf5-{flavour}")
    program = preload.build("hdf5_parallel", "-g", *options, compiler=f"mpicc.{flavour}")
    for number, layers in enumerate(("posix,mpiio,hdf5", "posix")):
        preload.run = preload.folder / f"run-{number}"
        path = preload.folder / f"{number}.h5"
        inner = ["env", f"LD_PRELOAD={preload.library}"]  # not for the launcher
        launch = [f"mpiexec.{flavour}", "-n", 2, *inner, program, path, 20, 30]
        environment = ANY_TASKS | {"ENSIO_LAYERS": layers, "LD_PRELOAD": ""}
        done = preload.execute(*launch, environment=environment)
        assert done.returncode == 0, done.stderr
        run = ensembles.open(preload.run)
        writes = run.select(file=str(path), op="write", layer="posix")
        assert len(writes) > 0
        places = {run.info.sites[number].frames[0].file for number in set(writes.site.tolist())}
        assert {place.rpartition("/")[2] for place in places} == {"hdf5_parallel.c"}


def test_callers_of_callers(preload):
    program = preload.build("site_calls", "-g")
    data = preload.folder / "data"
    data.mkdir()
    done = preload.execute(program, data, environment={"ENSIO_CALLPATH": "3"})
    assert done.returncode == 0
    run = ensembles.open(preload.run)
    paths = {
        run.info.sites[number].label
        for number in set(run.select(site="write_some", call="write").site.tolist())
    }
    assert len(paths) == 2
    assert {path.split(" < ")[0].split(",")[0] for path in paths} == {"write_some"}
    assert any(" < child, " in path or " < main, " in path for path in paths)
    assert {path.count(" < ") for path in paths} <= {1, 2}


def test_sites_are_not_recorded_on_request(recorder):
    program = recorder.build("site_calls", "-g")
    data = recorder.folder / "data"
    data.mkdir()
    assert recorder.execute(program, data, environment={"ENSIO_CALLPATH": "0"}).returncode == 0
    run = ensembles.open(recorder.run)
    assert not run.events.site.any()
    assert len(run.info.sites) == 1
    with pytest.raises(ensembles.EnsioError, match="no call site"):
        run.select(site="main")


def recorded(recorder, *options) -> tuple:
    program = recorder.build("site_calls", *options)
    data = recorder.folder / "data"
    data.mkdir(exist_ok=True)
    assert recorder.execute(program, data).returncode == 0
    return program, recorder.run


def test_without_debug_information_the_function_is_known(preload):
    _, path = recorded(preload, "-g0")
    run = ensembles.open(path)
    labels = {run.info.sites[number].label for number in set(run.select(call="write").site.tolist())}
    assert len(labels) == 1
    assert re.fullmatch(r"write_some\+0x[0-9a-f]+ \(site_calls-preloaded\)", labels.pop())
    assert calls_at(run, "write_some") == {"write": 10, "pwrite": 2}


def test_a_stripped_program_gives_addresses(preload):
    program = preload.build("site_calls", "-g", "-s")
    data = preload.folder / "data"
    data.mkdir()
    assert preload.execute(program, data).returncode == 0
    run = ensembles.open(preload.run)
    (number,) = set(run.select(call="write").site.tolist())
    assert re.fullmatch(r"site_calls-preloaded\+0x[0-9a-f]+", run.info.sites[number].label)
    assert run.info.sites[number].frames[0].state == "stripped"


def test_a_program_that_was_built_again_gives_no_wrong_lines(preload, capsys):
    program, path = recorded(preload, "-g")
    preload.build("site_calls", "-g", "-O0")
    run = ensembles.open(path)
    assert {frame.state for site in run.info.sites[1:] for frame in site.frames} == {"rebuilt"}
    assert all("rebuilt since" in site.label for site in run.info.sites[1:])
    assert main(["sites", str(path)]) == 0
    assert f"{program} was built again since the run" in capsys.readouterr().err
    program.unlink()
    (path / "trace.h5").unlink(missing_ok=True)
    assert {site.frames[0].state for site in ensembles.open(path).info.sites[1:]} == {"missing"}


def test_a_collected_run_keeps_its_lines_without_the_program(preload):
    program, path = recorded(preload, "-g")
    assert main(["collect", str(path)]) == 0
    before = [site.label for site in ensembles.open(path).info.sites]
    program.unlink()
    for record in (*path.glob("*.spool"), *path.glob("*.ensio")):
        record.unlink()
    assert [site.label for site in ensembles.open(path).info.sites] == before
    assert any("write_some, site_calls.c:" in label for label in before)


def test_the_command(preload, capsys):
    _, path = recorded(preload, "-g")
    assert main(["sites", str(path), "--json", "--op", "write", "--file", "*/data/data"]) == 0
    answer = json.loads(capsys.readouterr().out)
    by_place = {site["label"]: site for site in answer["sites"]}
    lines = marked(preload.source("site_calls"))
    (loop,) = (place for place, calls in lines.items() if "write" in calls)
    assert by_place[f"write_some, {loop}"]["count"] == 10
    assert by_place[f"write_some, {loop}"]["bytes"] == 30
    for share in ("share", "io_share"):
        assert sum(site[share] for site in answer["sites"]) == pytest.approx(1)
    run = ensembles.open(path)
    assert sum(site["count"] for site in answer["sites"]) == len(run.select(op="write", file="*/data/data"))
    assert main(["sites", str(path), "--site", loop, "--limit", "1"]) == 0
    assert f"write_some, {loop}" in capsys.readouterr().out
    assert main(["events", str(path), "--where", "site=no_such_place"]) == 2
    assert "there is no call site" in capsys.readouterr().err


PLUGIN = """
#include <fcntl.h>
#include <unistd.h>
void NAME(const char *path)
{
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    (void)!write(fd, "x", 1);
    close(fd);
}
"""
LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    for (int i = 2; i + 1 < count; i += 2) {
        void *library = dlopen(arguments[i], RTLD_NOW);
        void *symbol = library ? dlsym(library, arguments[i + 1]) : 0;
        void (*function)(const char *) = (void (*)(const char *))symbol;
        if (!function) { puts(dlerror()); return 1; }
        function(arguments[1]);
        dlclose(library);
    }
}
"""


@pytest.mark.all_cases
def test_libraries_that_are_loaded_one_after_the_other_at_one_address(recorder):
    """Their return addresses are the same, and the sites are not."""
    folder = recorder.folder
    libraries = []
    for name in ("first", "other"):
        source = folder / f"{name}.c"
        source.write_text(PLUGIN.replace("NAME", name))
        libraries += [folder / f"{name}.so", name]
        subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", source, "-o", libraries[-2]], check=True)
    (folder / "loader.c").write_text(LOADER)
    recorder.source = lambda name: folder / f"{name}.c"
    program = recorder.build("loader", "-ldl")
    done = recorder.execute(program, folder / "data", *libraries, *libraries)
    assert (done.returncode, done.stdout) == (0, b"")
    run = ensembles.open(recorder.run)
    if recorder.way == "relinked":  # which does not see calls in shared libraries
        assert len(run.select(file=str(folder / "data"))) == 0
        return
    assert calls_at(run, "first") == calls_at(run, "other") == {"open": 2, "write": 2, "close": 2}


def test_sites_of_an_interpreter_are_in_the_interpreter(preload):
    """Its line is that of no script, unless Python sites are asked for."""
    script = preload.folder / "script.py"
    script.write_text("open('data', 'w').write('x' * 100)\n")
    assert preload.execute(sys.executable, script, cwd=preload.folder).returncode == 0
    run = ensembles.open(preload.run)
    events = run.select(file=str(preload.folder / "data"))
    assert len(events) > 0
    assert events.site.all()


def test_many_sites(preload):
    """More sites than the cache of return addresses has places."""
    source = preload.folder / "many.c"
    lines = [f'void f{i}(void) {{ (void)!pwrite(3, "x", 1, {i}); count++; }}' for i in range(3000)]
    calls = "\n".join(f"f{i}();" for i in range(3000))
    source.write_text(
        "#include <fcntl.h>\n#include <unistd.h>\nvolatile int count;\n"
        + "\n".join(lines)
        + "\nint main(int n, char **a) { open(a[1], O_CREAT | O_RDWR, 0600);\n"
        + f"for (int i = 0; i < 3; i++) {{ {calls} }} return count != 9000; }}\n"
    )
    preload.source = lambda name: source
    program = preload.build("many", "-g", "-O0")
    assert preload.execute(program, preload.folder / "data").returncode == 0
    run = ensembles.open(preload.run)
    events = run.select(call="pwrite")
    for event_site, offset in list(zip(events.site.tolist(), events.offset.tolist(), strict=True))[::97]:
        assert run.info.sites[event_site].frames[0].function == f"f{offset}"
    assert len(set(events.site.tolist())) == 3000


def test_copies_of_a_program_are_found_by_their_own_path(preload, tmp_path):
    program = preload.build("site_calls", "-g")
    copy = tmp_path / "elsewhere"
    shutil.copy(program, copy)
    check(preload, preload.source("site_calls"), copy)


def test_a_path_of_long_frames_is_not_looked_for_behind_a_short_stack(recorder, tmp_path):
    program = recorder.build("site_stacks", "-g")
    done = recorder.execute(
        program, tmp_path / "out", environment={"ENSIO_CALLPATH": "2"}, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(ensembles.open(recorder.run).select(call="write")) == 3


def test_a_run_of_sums_says_what_to_record(preload, capsys):
    """The summary does not distinguish sites: no table is better than a wrong one."""
    program = preload.build("site_calls", "-g")
    data = preload.folder / "data"
    data.mkdir()
    done = preload.execute(program, data, environment={"ENSIO_MODE": "profile"})
    assert done.returncode == 0, done.stderr
    assert main(["sites", str(preload.run)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "sums do not know call sites: record again with ensio run --mode trace" in said.err
    assert len(said.err.strip().splitlines()) == 1
