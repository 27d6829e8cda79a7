"""Spools in a folder of the node (ENSIO_SPOOL), and the run directory that points to them."""

import os
import shutil
import stat

import pytest
from commands_here import executed
from test_calls import names

import ensembles
from ensembles.run.collect import collect


@pytest.fixture
def spools(recorder):
    """The folder for spools, and the environment that names it."""
    return recorder.folder / "node/spools"


def run_there(recorder, spools, **options):
    program = recorder.build("every_call")
    data = recorder.folder / "data"
    data.mkdir(exist_ok=True)
    return recorder.execute(program, data, environment={"ENSIO_SPOOL": str(spools)}, **options)


def test_spools_lie_in_the_folder_of_the_node_and_are_found_from_the_run_directory(recorder, spools):
    assert run_there(recorder, spools).returncode == 7
    there = list((spools / "run").iterdir())
    assert there
    for path in there:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.readlink(recorder.run / path.name) == str(path)
    assert stat.S_IMODE((spools / "run").stat().st_mode) == 0o700
    assert sum(path.is_file() and not path.is_symlink() for path in recorder.run.iterdir()) == 0
    assert len(names(ensembles.open(recorder.run).events)) > 40


def test_spools_of_another_node_are_named_with_host_and_folder(recorder, spools):
    run_there(recorder, spools)
    here = len([*recorder.run.glob("*.spool"), *recorder.run.glob("*.ensio")])
    gone = [recorder.run / f"west-12-{number}.spool" for number in range(2)]
    for number, link in enumerate(gone):
        link.symlink_to(f"/nowhere/run/west-12-{number}.spool")
    run = ensembles.open(recorder.run)
    assert len(run.info.processes) == here
    (note,) = [note for note in run.notes if "/nowhere" in note]
    assert "2 processes on host west lie in /nowhere/run on that host" in note
    shutil.rmtree(spools)
    done = executed("info", recorder.run)
    assert done.returncode == 2
    assert str(spools / "run") in done.stderr


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("NAME", "Too many levels of symbolic links"),
        ("gone.spool", "No such file"),
        ("a.txt/x", "Not a directory"),
    ],
)
def test_a_link_that_leads_nowhere_is_not_told_to_lead_to_another_host(recorder, tmp_path, target, why):
    recorder.execute(recorder.build("every_call"), tmp_path)
    here = len(ensembles.open(recorder.run).info.processes)
    (recorder.run / "a.txt").touch()
    link = recorder.run / "west-12-0.spool"
    link.symlink_to(target.replace("NAME", link.name))
    run = ensembles.open(recorder.run)
    assert len(run.info.processes) == here
    (note,) = [note for note in run.notes if link.name in note]
    assert why in note
    assert not [note for note in run.notes if "on that host" in note]


def test_what_was_collected_on_the_node_is_read_elsewhere(recorder, spools):
    run_there(recorder, spools)
    before = len(ensembles.open(recorder.run).events)
    collect(str(recorder.run))
    shutil.rmtree(spools)
    run = ensembles.open(recorder.run)
    assert (len(run.events), run.notes) == (before, [])


def test_a_folder_that_another_user_made_is_refused_and_the_program_goes_on(recorder, spools):
    spools.mkdir(parents=True)
    (spools / "run").mkdir()
    os.chown(spools / "run", 54321, 54321)
    done = run_there(recorder, spools)
    assert done.returncode == 7
    assert done.stderr.count(b"ensio:") == 1
    assert b"is not private to you" in done.stderr
    assert list((spools / "run").iterdir()) == []


@pytest.mark.parametrize("what", ["link", "open"])
def test_a_link_or_a_folder_open_to_others_is_refused(recorder, spools, what):
    spools.mkdir(parents=True)
    other = recorder.folder / "other"
    other.mkdir()
    if what == "link":
        (spools / "run").symlink_to(other)
    else:
        (spools / "run").mkdir()
        (spools / "run").chmod(0o777)
    done = run_there(recorder, spools)
    assert done.returncode == 7
    assert b"is not private to you" in done.stderr
    assert list(other.iterdir()) == []
    assert not list((spools / "run").iterdir())


def test_forked_children_have_their_spools_there_too(recorder, spools):
    program = recorder.build("processes")
    recorder.execute(program, recorder.folder / "out", environment={"ENSIO_SPOOL": str(spools)})
    links = [*recorder.run.glob("*.spool"), *recorder.run.glob("*.ensio")]
    assert len(links) > 1
    assert all(link.is_symlink() and link.exists() for link in links)
