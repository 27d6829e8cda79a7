"""A build that is configured again with other libraries links its programs again: packages come and go."""

import os
import subprocess

import pytest
from places import ROOT

JOBS = min(4, len(os.sched_getaffinity(0)))


def libraries_of_replay(build, *options):
    """Libraries of ensio-replay after the build was configured over the files of an earlier one."""
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    configure = ["cmake", "-S", ROOT, "-B", build, "-DENSIO_TESTBED=ON", *options]
    for command in (configure, ["cmake", "--build", build, f"-j{JOBS}"]):
        words = [*command, "--target", "ensio-replay"] if "--build" in command else command
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    replay = build / "bin" / "ensio-replay"
    return subprocess.run(["ldd", replay], capture_output=True, text=True, check=True).stdout


@pytest.mark.long  # a build; new machines, where ./dev demo comes before ./dev test, try it each time
def test_a_library_that_was_installed_later_is_used(tmp_path):
    without = libraries_of_replay(tmp_path, "-DENSIO_MPI_LIBRARIES=NO")
    assert "netcdf" not in without
    assert "libnetcdf" in libraries_of_replay(tmp_path)
