"""What is known about a run beside its calls: from spools, and through trace.h5."""

import json
import struct
from pathlib import Path

import pytest
from made_spools import made_events
from spool_writer import SpoolContent, write_spool

import ensembles
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS
from ensembles.model.lustre import Component, decode_layout
from ensembles.model.metadata import Mount, Process, RunMetadata
from ensembles.model.run_info import RunInfo
from ensembles.run.collect import collect
from ensembles.run.information import hints_of

MOUNTS = r"""/ ext4 /dev/vda1
/home nfs4 server:/export/home
/scratch lustre 10.1.1.1@o2ib:/fs1
/with\040blank xfs /dev/vdb
/home/ann tmpfs hidden
/home/ann fuse.sshfs ann@far:/
"""


def spool(path: Path, rank: int, facts: dict, **properties: str) -> None:
    path.parent.mkdir(exist_ok=True)
    content = SpoolContent(
        threads=[made_events(3, rank)],
        files={1: "/scratch/a", 2: "/home/ann/b", 7: "/link/c", 8: "/link/d"},
        file_facts=facts,
        properties={"host": f"node{rank // 2}", **properties},
        head={"rank": rank, "first_realtime_ns": 10**18, "last_realtime_ns": 10**18 + 10**9},
    )
    write_spool(path, content)


@pytest.fixture
def directory(tmp_path) -> Path:
    run = tmp_path / "run"
    told = {
        "user": "ann",
        "uid": "1000",
        "libc": "glibc 2.36",
        "mpi": "Open MPI v4.1.4",
        "env.ROMIO_HINTS": "/home/ann/hints=x",
        "env.OMP_NUM_THREADS": "",
    }
    first = {1: {"hint.cb_nodes": "4", "lustre.lov": "00"}, 7: {"mount": "/scratch"}}
    first |= {8: {"mount": r"/with\040blank"}}
    spool(run / "0.spool", 0, first, mounts=MOUNTS, processors="1", **{"block./home": "1048576"}, **told)
    second = {1: {"hint.cb_nodes": "9", "hint.striping_unit": "1"}}
    spool(run / "1.spool", 1, second, **{"block./": "4096", "block./home": "8192"}, **told)
    spool(run / "2.spool", 2, {}, mounts="/ xfs /dev/sda\n", **told)
    return run


@pytest.fixture(params=("spools", "trace.h5"))
def run(request, directory) -> ensembles.Run:
    if request.param == "spools":
        return ensembles.open(directory)
    return ensembles.open(collect(str(directory), str(directory / "other.h5"))[0])


def test_facts_of_files_are_those_of_all_processes_and_the_first_one_is_believed(run):
    assert run.info.file_facts == {
        "/scratch/a": {"hint.cb_nodes": "4", "lustre.lov": "00", "hint.striping_unit": "1"},
        "/link/c": {"mount": "/scratch"},
        "/link/d": {"mount": "/with blank"},
    }


def test_versions_user_and_environment_are_kept(run):
    assert (run.info.user, run.info.mpi_version, run.info.libc_version) == (
        "ann",
        "Open MPI v4.1.4",
        "glibc 2.36",
    )
    assert run.info.environment == {"ROMIO_HINTS": "/home/ann/hints=x", "OMP_NUM_THREADS": ""}


def test_the_version_of_mpich_is_one_line_without_tabs(tmp_path):
    spool(tmp_path / "run" / "0.spool", 0, {}, mpi="MPICH Version:\t4.0.2\n")
    assert ensembles.open(tmp_path / "run").info.mpi_version == "MPICH Version: 4.0.2"


def test_nodes_with_fewer_processors_than_tasks_are_known(run):
    assert (run.info.processors, run.info.oversubscribed) == ({"node0": 1}, {"node0": 2})


@pytest.mark.parametrize(
    ("lives", "most"),
    [
        ([(0, 0), (0, 0), (0, 0)], 3),  # not known
        ([(1, 2), (3, 4), (5, 6)], 0),  # one after the other
        ([(1, 9), (2, 3), (4, 5), (6, 7)], 2),  # a script and its programs
        ([(1, 4), (2, 5), (3, 6), (7, 8)], 3),
    ],
)
def test_tasks_share_processors_that_live_at_one_time(lives, most):
    processes = [
        Process(rank=rank, host="n", pid=rank, start_unix_ns=start, end_unix_ns=end)
        for rank, (start, end) in enumerate(lives)
    ]
    metadata = RunMetadata(len(lives), 1, 0, (), [], processes, [], processors={"n": 1})
    assert RunInfo("run", metadata).oversubscribed == ({"n": most} if most else {})


def test_a_task_that_waits_for_another_that_it_started_shares_no_processor():
    # make, gcc and its parts one after the other; or a program with three workers at one time
    for lives, most in (
        ([(0, 1, 99), (1, 2, 50), (2, 3, 20), (2, 22, 40)], {}),
        ([(0, 1, 99), (1, 2, 50), (1, 3, 51), (1, 4, 52)], {"n": 3}),
        ([(0, 1, 99), (1, 2, 100)], {"n": 2}),  # the first one does not wait for it
    ):
        processes = [
            Process(
                rank=number, host="n", pid=number + 1, parent_pid=by, start_unix_ns=start, end_unix_ns=end
            )
            for number, (by, start, end) in enumerate(lives)
        ]
        metadata = RunMetadata(len(lives), 1, 0, (), [], processes, [], processors={"n": 1})
        assert RunInfo("run", metadata).oversubscribed == most


def test_processes_without_calls_are_not_among_the_tasks_that_live_together():
    lives = [(-1, 1, 2), (0, 3, 6), (1, 4, 7)]  # as sleep before the ranks of a script
    processes = [
        Process(rank=rank, host="n", pid=start, start_unix_ns=start, end_unix_ns=end)
        for rank, start, end in lives
    ]
    assert RunInfo("run", RunMetadata(2, 2, 0, (), [], processes, [])).live_together


def test_most_tasks_at_one_moment_are_those_whose_lives_overlap():
    lives = [(0, 1, 9), (1, 2, 5), (2, 5, 8), (3, 9, 12)]
    processes = [
        Process(rank=rank, host="n", pid=rank + 1, start_unix_ns=start, end_unix_ns=end)
        for rank, start, end in lives
    ]
    found = RunInfo("run", RunMetadata(4, 4, 0, (), [], processes, []))
    assert (found.most_alive, found.live_together) == (2, False)
    assert RunInfo("run", RunMetadata(5, 5, 0, (), [], processes, [])).most_alive == 5  # one is not known


def test_every_node_has_its_mounts(run):
    assert list(run.info.mounts) == ["node0", "node1"]
    assert run.info.mounts["node0"][1] == Mount("/home", "nfs4", "server:/export/home", 1048576)
    assert run.info.mounts["node0"][0].block_bytes == 4096  # of a process of this node without a table
    assert run.info.mounts["node0"][3].point == "/with blank"
    assert run.info.mounts["node1"] == (Mount("/", "xfs", "/dev/sda", 0),)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/scratch/a", "lustre"),
        ("/scratch", "lustre"),
        ("/scratchy/a", "ext4"),
        ("/home/bob/x", "nfs4"),
        ("/home/ann/b", "fuse.sshfs"),  # the later mount hides the earlier one
        ("/link/c", "lustre"),  # a symbolic link led there
        ("/with blank/c", "xfs"),
        ("/link/d", "xfs"),
    ],
)
def test_a_file_lies_on_the_deepest_mount_above_it(run, path, kind):
    assert run.info.filesystem_of(path).type == kind


def test_without_mounts_the_file_system_is_not_known(tmp_path):
    spool(tmp_path / "run/0.spool", 0, {})
    run = ensembles.open(tmp_path / "run")
    assert run.info.filesystem_of("/scratch/a") is None
    assert run.info.striping_of("/scratch/a") is None
    assert (run.info.user, run.info.environment, run.info.mounts) == ("", {}, {})


def test_kinds_of_texts_are_those_of_the_header():
    assert CONSTANTS["ENSIO_TEXT_FILE_FACTS"] == 4


# Lustre's structures, written out as it publishes them.


def plain(stripe_bytes, targets, count=None, pool=None, pattern=1) -> bytes:
    """``lov_user_md_v1``, or with a pool ``lov_user_md_v3``."""
    head = struct.pack(
        "<IIQQIHH",
        0x0BD30BD0 if pool is not None else 0x0BD10BD0,
        pattern,
        0x123,
        0x200000400,
        stripe_bytes,
        len(targets) if count is None else count,
        0,
    )
    name = b"" if pool is None else pool.encode().ljust(16, b"\0")
    objects = (struct.pack("<QQII", 77, 0x100010000, 0, target) for target in targets)
    return head + name + b"".join(objects)


def composite(*components, mirrors=0) -> bytes:
    """``lov_comp_md_v1`` of (identity, flags, start, end, layout)."""
    entries, blobs = b"", b""
    begin = 32 + 48 * len(components)
    for identity, flags, start, end, layout in components:
        place = begin + len(blobs)
        entries += struct.pack("<IIQQIIIQI", identity, flags, start, end, place, len(layout), 3, 0, 0)
        blobs += layout
    size = begin + len(blobs)
    return (
        struct.pack("<IIIHHHBB2HQ", 0x0BD60BD0, size, 1, 0, len(components), mirrors, 0, 0, 0, 0, 0)
        + entries
        + blobs
    )


def test_a_plain_layout_has_one_component_with_its_targets():
    striping = decode_layout(plain(1 << 20, [4, 0, 17]).hex())
    assert striping.components == (Component(0, None, 1 << 20, 3, (4, 0, 17)),)
    assert (striping.stripe_bytes, striping.stripe_count) == (1 << 20, 3)


def test_a_layout_with_a_pool_names_it():
    striping = decode_layout(plain(1 << 22, [9], pool="flash").hex())
    assert striping.components == (Component(0, None, 1 << 22, 1, (9,), "flash"),)


def test_a_progressive_layout_has_its_extents_and_what_is_not_written_has_no_targets():
    end = (1 << 64) - 1
    layout = composite(
        (1, 0x10, 0, 1 << 20, plain(1 << 20, [], count=0, pattern=0x100)),
        (2, 0x10, 1 << 20, 1 << 30, plain(1 << 20, [3, 5], pool="")),
        (3, 0, 1 << 30, end, plain(1 << 22, [], count=0xFFFF)),
    )
    striping = decode_layout(layout.hex())
    assert striping.components == (
        Component(0, 1 << 20, 1 << 20, 0, kind="mdt"),
        Component(1 << 20, 1 << 30, 1 << 20, 2, (3, 5)),
        Component(1 << 30, None, 1 << 22, -1, instantiated=False),
    )
    assert (striping.stripe_bytes, striping.stripe_count) == (1 << 20, 2)


def test_copies_of_a_mirrored_file_are_told_apart():
    end = (1 << 64) - 1
    copies = [((mirror << 16) | 1, 0x10, 0, end, plain(1 << 20, [mirror])) for mirror in (1, 2)]
    assert [part.mirror for part in decode_layout(composite(*copies, mirrors=1).hex()).components] == [1, 2]


def test_targets_that_were_cut_off_are_missing_and_nothing_else():
    layout = plain(1 << 20, list(range(300)))[:4096]
    striping = decode_layout(layout.hex())
    assert striping.stripe_count == 300
    assert striping.components[0].targets == tuple(range((4096 - 32) // 24))


@pytest.mark.parametrize("layout", ["", "zz", "0", "d00bd10b", "00" * 64, plain(1, [1]).hex()[:40]])
def test_what_is_no_layout_gives_nothing(layout):
    assert decode_layout(layout) is None


def test_no_cut_of_a_composite_layout_is_an_error():
    layout = composite(
        (1, 0x10, 0, 1 << 20, plain(1 << 20, [1])), (2, 0x10, 1 << 20, 1 << 30, plain(1 << 20, [3, 5]))
    )
    for length in range(len(layout)):
        decode_layout(layout[:length].hex())


def test_info_tells_user_mpi_and_where_the_files_lie(directory, capsys):
    layout = plain(1 << 20, [4, 0, 17, 3]).hex()
    facts = {1: {"lustre.lov": layout}}
    spool(directory / "0.spool", 0, facts, mounts=MOUNTS, user="ann", job="77", mpi="MPICH  Version: 4.0")
    assert main(["info", str(directory)]) == 0
    text = capsys.readouterr().out
    assert "job        77, user ann\n" in text
    assert "MPI        MPICH Version: 4.0\n" in text
    assert "files on   lustre at /scratch (1 file, stripe count 4, stripe size 1 MiB)\n" in text
    assert main(["info", "--json", str(directory)]) == 0
    information = json.loads(capsys.readouterr().out)
    (system,) = information["filesystems"]
    assert (system["type"], system["point"], system["files"]) == ("lustre", "/scratch", 1)
    assert system["stripes"] == [{"stripe_count": 4, "stripe_bytes": 1 << 20, "files": 1}]
    assert (information["user"], information["clock_error_s"]) == ("ann", None)


def test_info_and_report_have_hints_and_stripings(tmp_path, capsys):
    directory = tmp_path / "run"
    facts = {
        1: {
            "lustre.lov": plain(1 << 20, [4, 0]).hex(),
            "hint.cb_nodes": "4",
            "hint.romio_ds_write": "disable",
        },
    }
    spool(directory / "0.spool", 0, facts, mounts=MOUNTS, user="ann", job="77", mpi="MPICH  Version: 4.0")
    assert main(["info", str(directory)]) == 0
    text = capsys.readouterr().out
    assert "hints      cb_nodes=4, romio_ds_write=disable (1 file)\n" in text
    assert main(["info", "--json", str(directory)]) == 0
    information = json.loads(capsys.readouterr().out)
    assert information["hints"] == [{"hints": {"cb_nodes": "4", "romio_ds_write": "disable"}, "files": 1}]
    page = directory.parent / "page.html"
    assert main(["report", str(directory), "-o", str(page)]) == 0
    shown = page.read_text().replace("\xa0", " ")
    assert "cb_nodes=4, romio_ds_write=disable (1 file)" in shown
    assert "lustre at /scratch" in shown
    assert "stripe count 2, stripe size 1 MiB (1 file)" in shown


def test_files_with_the_same_hints_are_counted_together(tmp_path):
    directory = tmp_path / "run"
    both = {"hint.cb_nodes": "4"}
    spool(directory / "0.spool", 0, {1: both, 2: both, 3: {"mount": "/scratch"}})
    run = ensembles.open(directory)
    assert hints_of(run, run.info.file_facts) == [{"hints": {"cb_nodes": "4"}, "files": 2}]
    assert hints_of(run, []) == []


@pytest.mark.parametrize(
    ("lives", "most"),
    [
        ([(0, 0, 3)], 3),  # times are not known
        ([(1, 9, 1), (2, 3, 2), (4, 5, 2)], 3),  # a program whose children follow each other
        ([(1, 2, 1), (3, 4, 1), (5, 6, 0)], 1),
        ([(1, 8, 2), (1, 9, 1), (2, 7, 1)], 3),  # the first one recorded again after its end
    ],
)
def test_threads_of_a_task_are_those_at_one_time(lives, most):
    """The last task has them; the two before it made no call."""
    processes = [
        Process(rank=2, host="n", pid=start, start_unix_ns=start, end_unix_ns=end, threads=threads)
        for start, end, threads in lives
    ]
    info = RunInfo("run", RunMetadata(3, sum(threads for *_, threads in lives), 0, (), [], processes, []))
    assert info.threads_of_tasks.tolist() == [1, 1, most]
    assert info.most_threads == most
