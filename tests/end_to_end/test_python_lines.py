"""Call sites of Python programs are lines of their scripts, if asked for (ENSIO_PYTHON_LINES)."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest
from places import PATIENCE_S

import ensembles
from ensembles.cli.main import main

LINES = {"ENSIO_PYTHON_LINES": "1"}


def interpreters() -> list:
    """The interpreter of the tests, and others that are on the path and run."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for version in ("3.11", "3.12", "3.13"):
        path = shutil.which(f"python{version}")
        asked = [path, "-c", "import sys; print(sys.executable)"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False) if path else None
        if done is not None and done.returncode == 0:
            found.setdefault(version, done.stdout.strip())
    return [pytest.param(path, id=version) for version, path in found.items()]


def places(run, **filters) -> dict[str, int]:
    """Number of calls by place."""
    counts: dict[str, int] = {}
    events = run.select(**filters)
    for number in events.site.tolist():
        label = run.info.label_of_site(number)
        counts[label] = counts.get(label, 0) + 1
    return counts


@pytest.mark.parametrize("python", interpreters())
def test_sites_are_lines_of_the_script(preload, tmp_path, python):
    program = preload.source("python_lines").with_suffix(".py")
    outputs = []
    for name, execute, more in (("with", preload.execute, LINES), ("without", preload.untraced, {})):
        (tmp_path / name).mkdir()
        done = execute(python, program, cwd=tmp_path / name, environment=more)
        files = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        outputs.append((done.returncode, done.stdout, done.stderr, files))
    assert outputs[0] == outputs[1]

    run = ensembles.open(preload.run)
    data = str(tmp_path / "with" / "plain.dat")
    opens = places(run, op="open", file=data)
    # The stack of the last one is deeper than is looked at, but its line is at the top.
    assert opens == {"write_restart, python_lines.py:8": 4, "Reader.load, python_lines.py:14": 1}
    assert places(run, op="write", file=data) == {"write_restart, python_lines.py:9": 4}
    (reads,) = places(run, op="read", file=data).items()
    assert (reads[0].endswith("python_lines.py:16"), reads[1]) == (True, 4)
    assert places(run, call="truncate", file=data) == {"<module>, python_lines.py:40": 1}
    dumped = places(run, op="write", file="*/données.json")
    assert set(dumped) == {"dump, python_lines.py:22", "dump, python_lines.py:23"}  # json is in between
    assert "<module>, python_lines.py:49" in places(run, op="meta", file="*/absent.dat")
    site = next(site for site in run.info.sites if site.label == "write_restart, python_lines.py:9")
    assert (site.frames[0].file, site.frames[0].state) == (str(program), "line")
    assert len(run.select(site="python_lines.py:9")) == 4


def test_a_line_has_callers_if_asked_for(preload, tmp_path):
    program = preload.source("python_lines").with_suffix(".py")
    preload.execute(
        sys.executable, program, cwd=tmp_path, check=True, environment={**LINES, "ENSIO_CALLPATH": "3"}
    )
    found = places(ensembles.open(preload.run), op="write", file="*/plain.dat")
    first = "write_restart, python_lines.py:9 < steps, python_lines.py:28 < <module>, python_lines.py:36"
    assert found[first] == 3


def test_without_the_setting_sites_are_in_the_interpreter_and_the_setting_is_named(preload, tmp_path, capsys):
    program = preload.source("python_lines").with_suffix(".py")
    preload.execute(sys.executable, program, cwd=tmp_path, check=True)
    assert not any("python_lines.py" in label for label in places(ensembles.open(preload.run)))
    assert main(["sites", str(preload.run)]) == 0
    interpreter = [line for line in capsys.readouterr().err.splitlines() if "/python3" in line]
    assert len(interpreter) == 1
    assert "record with ENSIO_PYTHON_LINES=1" in interpreter[0]


H5PY = """
import h5py, numpy as np
def store(group):
    group.create_dataset("x", data=np.arange(1000.0))   # line 4
def load(group):
    return group["x"][2:5].sum()                        # line 6
with h5py.File("a.h5", "w") as file:
    store(file)
with h5py.File("a.h5", "r") as file:
    assert load(file) == 9
"""

NETCDF4 = """
import netCDF4, numpy as np
def store(data):
    data.createDimension("n", 1000)
    data.createVariable("x", "f8", ("n",))[:] = np.arange(1000.0)   # line 5
def load(data):
    return data["x"][2:5].sum()                                     # line 7
with netCDF4.Dataset("a.nc", "w") as data:
    store(data)
with netCDF4.Dataset("a.nc") as data:
    assert load(data) == 9
"""


@pytest.mark.parametrize(
    ("module", "script", "layer", "store", "load"),
    [("h5py", H5PY, "hdf5", 4, 6), ("netCDF4", NETCDF4, "netcdf", 5, 7)],
    ids=["h5py", "netCDF4"],
)
def test_what_extension_modules_do_belongs_to_the_script(
    preload, tmp_path, module, script, layer, store, load
):
    # Not imported here: netCDF4 makes HDF5 of this process, and of later tests, use its own filters.
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: its calls from Python are not recorded")
    (tmp_path / "analyse.py").write_text(script, encoding="utf-8")
    preload.execute(
        sys.executable, "analyse.py", cwd=tmp_path, check=True, environment=LINES, timeout=PATIENCE_S
    )
    run = ensembles.open(preload.run)
    for op, function, line in (("write", "store", store), ("read", "load", load)):
        found = places(run, layer=layer, op=op)
        assert found
        assert set(found) <= {f"{function}, analyse.py:{line}"}
    # What is called below has a line of the script too.
    below = places(run, layer="posix", op="write", file=str(tmp_path / "a.*"))
    assert below
    assert all("analyse.py:" in label for label in below)


def test_commands_without_a_file_have_the_line_of_their_text(preload, tmp_path):
    script = "import os\nfd = os.open('a', os.O_CREAT | os.O_WRONLY)\nos.write(fd, b'x')\n"
    preload.execute(sys.executable, "-c", script, cwd=tmp_path, check=True, environment=LINES)
    assert places(ensembles.open(preload.run), op="write") == {"<module>, <string>:3": 1}


def test_sites_command_filters_by_line(preload, tmp_path, capsys):
    program = preload.source("python_lines").with_suffix(".py")
    preload.execute(sys.executable, program, cwd=tmp_path, check=True, environment=LINES)
    assert main(["sites", str(preload.run), "--op", "write", "--where", "site=python_lines.py:9"]) == 0
    assert "write_restart, python_lines.py:9" in capsys.readouterr().out


def test_programs_without_an_interpreter_have_the_sites_that_they_have_without_the_setting(
    recorder, tmp_path
):
    program = recorder.build("site_calls", "-g")
    (tmp_path / "data").mkdir()
    found = []
    for more in ({}, LINES):
        recorder.run = tmp_path / f"run-{len(found)}"
        recorder.execute(program, tmp_path / "data", environment=more)
        found.append(places(ensembles.open(recorder.run)))
    assert found[0] == found[1]
    assert len(found[0]) > 1


def test_sites_without_lines_say_how_to_record_them(preload, tmp_path, capsys):
    from ensembles.diagnosis.call_sites import python_hint

    program = preload.source("python_lines").with_suffix(".py")
    hints = {}
    for lines in ("0", "1"):
        preload.execute(sys.executable, program, cwd=tmp_path, environment={"ENSIO_PYTHON_LINES": lines})
        run = ensembles.open(preload.run)
        hints[lines] = python_hint(run)
        assert main(["sites", str(preload.run)]) == 0
        told = capsys.readouterr().err.count("record with ENSIO_PYTHON_LINES=1")
        assert told == (lines == "0")
        shutil.rmtree(preload.run)
    assert "record with ENSIO_PYTHON_LINES=1" in hints["0"]
    assert hints["1"] == ""
