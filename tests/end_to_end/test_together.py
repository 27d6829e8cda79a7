"""Jobs in which all ranks are recorded, and jobs in which only some are."""

import subprocess

import pytest
from compiling import build
from places import ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS
from test_mpi import FLAVOURS

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.readers.native.spool import read_spool

SOME = {"all": (1, 1, 1, 1), "first": (1, 1, 0, 0), "last": (0, 0, 1, 1), "all but the last": (1, 1, 1, 0)}


class Job:
    """One program with and without the recorder, and launches that mix both.

    Parameters
    ----------
    way : str
        ``relinked`` or ``preloaded``.
    """

    def __init__(self, flavour, way, folder, source="mpi_meets", options=()):
        self.flavour, self.folder, self.run = flavour, folder, folder / "run"
        self.plain, linked = folder / "plain", folder / "linked"
        compiler, file = f"mpicc.{flavour}", PROGRAMS / f"{source}.c"
        build(self.plain, compiler, "-w", *options, file)
        if way == "relinked":
            build(linked, ENSIO_CC, compiler, "-w", *options, file)
        self.recorded = [linked] if way == "relinked" else ["env", f"LD_PRELOAD={PRELOAD}", self.plain]

    def launch(self, environment, which, *arguments, **variables) -> subprocess.CompletedProcess:
        """Start a task for each of `which`, those that are 1 recorded."""
        parts = []
        for recorded in which:
            program = self.recorded if recorded else [self.plain]
            parts += [":"] * bool(parts) + ["-n", "1", *program, *arguments]
        command = [f"mpiexec.{self.flavour}", *map(str, parts)]
        environment = environment | ANY_TASKS | {"ENSIO_DIR": str(self.run)} | variables
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture(params=("relinked", "preloaded"))
def way(request) -> str:
    return request.param


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    ("which", "ending"),
    [
        *((each, "MPI_Finalize") for each in SOME),
        *((each, "PMPI_Finalize") for each in ("all", "first")),
        *(pytest.param(each, "PMPI_Finalize", marks=pytest.mark.long) for each in list(SOME)[2:]),
    ],
)
def test_no_rank_waits_for_one_that_is_not_recorded(relinked, tmp_path, flavour, way, which, ending):
    job, which = Job(flavour, way, tmp_path), SOME[which]
    done = job.launch(relinked.environment(), which, ending)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
    # All together write the job file; where some are not recorded, no task waits for them there either.
    assert (job.run / "job.ensio").exists() == all(which)
    assert len(list(job.run.glob("*.ensio"))) == (1 if all(which) else sum(which))
    # Rank 0 called, but there was none to answer for the others; where all answered, the folder is gone.
    assert bool(list(job.run.glob(".meeting-*"))) == (which[0] == 1 and not all(which))


def on_nodes(job: Job, names: list[str]) -> list[str]:
    """The arguments of a launch in which each task believes to be on the node of that name."""
    parts = []
    for name in names:
        words = " ".join(map(str, job.recorded))
        parts += [":"] * bool(parts) + ["-n", "1", "unshare", "--uts", "sh", "-c"]
        parts.append(f"hostname {name}; exec {words}")
    return [f"mpiexec.{job.flavour}", *parts]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_clocks_that_are_one_and_the_same_are_found_to_be_within_the_stated_bound(
    relinked, tmp_path, flavour, way
):
    unshared = subprocess.run(["unshare", "--uts", "true"], capture_output=True, text=True)
    if unshared.returncode != 0:
        pytest.skip(f"tasks cannot be given their own host names here: {unshared.stderr.strip()}")
    job = Job(flavour, way, tmp_path)
    environment = relinked.environment() | ANY_TASKS | {"ENSIO_DIR": str(job.run), "ENSIO_JOBFILE": "keep"}
    command = on_nodes(job, ["east", "west", "east", "west"])
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
    run = ensembles.open(job.run)
    assert run.info.hosts == ["east", "west"]
    assert run.info.clock_error_s > 0
    for process in run.info.processes:
        told_ns = read_spool(str(job.run / process.source)).head.first_realtime_ns
        assert abs(process.start_unix_ns - told_ns) / 1e9 <= run.info.clock_error_s * (process.host == "west")


def test_one_node_needs_no_barriers(relinked, tmp_path):
    job = Job("openmpi", "relinked", tmp_path)
    job.launch(relinked.environment(ENSIO_JOBFILE="keep"), (1, 1, 1, 1))
    run = ensembles.open(job.run)
    assert run.info.clock_error_s == 0
    assert read_spool(str(job.run / run.info.processes[0].source)).head.begin0_left == 0
