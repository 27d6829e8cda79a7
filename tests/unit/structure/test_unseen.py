"""What the kernel counted and no recorded call explains: its bytes, its reason, and when nothing is said."""

from __future__ import annotations

import pytest

from ensembles.diagnosis.account import Account, Entry
from ensembles.model.events import Call
from ensembles.model.metadata import KernelBytes
from ensembles.structure.unseen import Unseen, find_unseen

OPEN, WRITE, MMAP = (
    Call(name, "posix", op) for name, op in (("open", "open"), ("write", "write"), ("mmap", "meta"))
)
FSEEK, FREAD, FSCANF = (
    Call(name, "stdio", op) for name, op in (("fseek", "seek"), ("fread", "read"), ("fscanf", "read"))
)
MIB = 1 << 20


def linked(*libraries: str) -> str:
    kernel = KernelBytes(4_000, 80 * MIB, 0, 0, facts=("linked",), libraries=libraries)
    unseen = find_unseen(kernel, {WRITE: (16, 16 * MIB)})
    assert unseen is not None
    return unseen.sentence


def test_libraries_of_io_are_named_alone() -> None:
    told = linked("libcurl.so.4", "libhdf5.so.103", "libkrb5.so.3", "libgfortran.so.5")
    assert told.startswith("the kernel counted 80.0 MiB written by calls, and 16.0 MiB are recorded: ")
    assert "(loaded: libhdf5.so.103, libgfortran.so.5)" in told


def test_of_many_others_some_are_named() -> None:
    told = linked(*(f"libother{number}.so" for number in range(40)))
    assert "libother0.so" in told
    assert "libother2.so and 37 more)" in told


@pytest.mark.parametrize("mib", [1, 50])
def test_raw_calls_are_told_with_their_bytes(mib: int) -> None:
    unseen = find_unseen(KernelBytes(9_000, mib * MIB + 6, 0, mib * MIB), {WRITE: (1, 6)})
    assert unseen is not None
    assert (unseen.written_bytes, unseen.dirtied_bytes, unseen.is_much) == (mib * MIB, 0, True)
    assert f"{mib}.0" in unseen.sentence
    assert "strace" in unseen.sentence


def test_go_is_the_reason_where_the_program_is_written_in_it() -> None:
    unseen = find_unseen(KernelBytes(0, 9 * MIB, 0, 0, facts=("go",)), {})
    assert unseen is not None
    assert "Go" in unseen.sentence


def test_a_go_process_that_left_without_its_counters_cannot_be_checked() -> None:
    unseen = find_unseen(KernelBytes(0, 0, 0, 0, facts=("go", "unchecked")), {WRITE: (1, 6)})
    assert unseen is not None
    assert unseen.is_much
    assert unseen.sentence.startswith(
        "the bytes of a process cannot be checked: the program is written in Go"
    )


def test_bytes_of_pipes_and_excluded_files_are_not_missing() -> None:
    kernel = KernelBytes(30 * MIB, 40 * MIB, 0, 0, excluded_read=30 * MIB, excluded_written=39 * MIB)
    assert find_unseen(kernel, {WRITE: (1, MIB)}) is None


def test_bytes_that_may_have_been_on_pipes_need_evidence_of_a_file() -> None:
    """A program without recorded calls between two pipes, as the kernel counted it; then into a file."""
    facts = ("piped-in", "piped-out")
    unseen = find_unseen(KernelBytes(9 * MIB, 9 * MIB, 0, 0, facts=facts), {})
    assert unseen is not None
    assert (unseen.written_bytes, unseen.is_much) == (0, False)
    assert "through a pipe" in unseen.sentence
    unseen = find_unseen(KernelBytes(0, 9 * MIB, 0, 9 * MIB, facts=facts), {})
    assert unseen is not None
    assert (unseen.written_bytes, unseen.is_much) == (9 * MIB, True)


def test_of_one_process_no_share_of_its_bytes_is_passed_over() -> None:
    kernel, calls = KernelBytes(0, 62 * MIB, 0, 62 * MIB), {WRITE: (60, 60 * MIB)}
    assert find_unseen(kernel, calls) is not None
    assert find_unseen(kernel, calls, processes=64) is None


def test_what_many_short_processes_read_at_their_start_is_explained_and_what_they_write_is_not() -> None:
    """200 of dd, which read 2,996 B each in setlocale, as the kernel counted them; then by raw calls."""
    calls = {WRITE: (200, 4_092)}
    assert find_unseen(KernelBytes(605_000, 4_092, 0, 0), calls, processes=202) is None
    wrote = find_unseen(KernelBytes(605_000, MIB + 4_092, 0, MIB), calls, processes=202)
    assert isinstance(wrote, Unseen)
    assert (wrote.read_bytes, wrote.written_bytes, wrote.is_much) == (0, MIB, True)
    read = find_unseen(KernelBytes(60 * MIB, 4_092, 0, 0), calls, processes=202)
    assert isinstance(read, Unseen)
    assert read.read_bytes == 60 * MIB


def test_a_page_for_each_small_write_is_explained() -> None:
    """5,000 files of 100 B, as the kernel counted them: a page each."""
    calls = {OPEN: (5_000, 0), WRITE: (5_000, 500_000)}
    assert find_unseen(KernelBytes(0, 500_000, 0, 20_480_000), calls) is None


def test_files_that_are_opened_again_and_again_make_their_inodes_dirty_once() -> None:
    """An update of a mapped file for each opening, as rrdtool does: 48,000 openings of 4 files."""
    unseen = find_unseen(KernelBytes(0, 0, 0, 6 * MIB), {OPEN: (48_000, 0), MMAP: (48_000, 0)}, files=4)
    assert isinstance(unseen, Unseen)
    assert unseen.dirtied_bytes == 6 * MIB - 4 * 512


def of_mib(mib: int, **more: int) -> KernelBytes:
    return KernelBytes(**{"read": 0, "written": 0, "fetched": 0, "dirtied": mib * MIB} | more)


@pytest.mark.parametrize(
    ("facts", "calls", "named"),
    [
        (("io_uring",), {}, "through io_uring,"),
        (("libaio",), {}, "through libaio,"),
        ((), {MMAP: (2, 0)}, "through mapped files (2 calls of mmap),"),
        ((), {}, ": the rest went through raw system calls or streams of wide characters; "),
        (("children",), {}, "characters or child programs that are not recorded"),
        (("inline-stdio",), {}, ": the rest went through inline stdio (getc_unlocked, putc_unlocked); "),
        (("go",), {}, "written in Go"),
    ],
)
def test_a_mechanism_is_named_only_where_it_was_seen(facts, calls, named) -> None:
    unseen = find_unseen(KernelBytes(0, 0, 0, MIB, facts=facts), calls)
    assert isinstance(unseen, Unseen)
    assert (unseen.dirtied_bytes, unseen.is_much) == (MIB, True)
    assert unseen.sentence.startswith(
        "the processes wrote at least 1.00 MiB to files without read and write calls, "
    )
    assert named in unseen.sentence
    # Neither recorder sees what goes through no call, so that none sends the user to the other one.
    goes_beyond = bool({"io_uring", "libaio"}.intersection(facts) or calls)
    assert goes_beyond is not ("strace" in unseen.sentence)
    assert goes_beyond is ("perf record -e 'io_uring:*" in unseen.sentence)


def test_requests_beside_recorded_calls_are_named_though_the_kernel_counts_none_of_their_bytes() -> None:
    """Reads by io_uring from the page cache."""
    unseen = find_unseen(KernelBytes(0, MIB, 0, MIB, facts=("io_uring",)), {WRITE: (16, MIB)})
    assert unseen is not None
    assert unseen.hides_time
    assert unseen.sentence.startswith("requests of io_uring moved unknown bytes")


def test_writes_into_large_folios_of_data_that_were_read_are_explained() -> None:
    assert (
        find_unseen(of_mib(40, read=40 * MIB, written=480), {FREAD: (40, 40 * MIB), WRITE: (160, 480)})
        is None
    )


def test_what_read_ahead_or_the_loader_fetched_is_not_io_of_the_program() -> None:
    """A script with zarr on a cold cache, by its counters."""
    kernel = KernelBytes(9 * MIB, 0, 43 * MIB, 0)
    assert find_unseen(kernel, {FREAD: (100, 9 * MIB)}) is None
    aio = find_unseen(KernelBytes(9 * MIB, 0, 43 * MIB, 0, facts=("libaio",)), {FREAD: (100, 9 * MIB)})
    assert aio is not None
    assert (aio.fetched_bytes, aio.is_much) == (34 * MIB, True)


def test_streams_read_a_buffer_at_each_seek() -> None:
    calls = {FSEEK: (2_000, 0), FREAD: (2_000, 200_000)}
    assert find_unseen(KernelBytes(8_200_000, 0, 0, 0), calls) is None


def test_bytes_of_fscanf_are_said_not_to_be_counted() -> None:
    unseen = find_unseen(KernelBytes(2 * MIB, 0, 0, 0), {FSCANF: (300_000, 0)})
    assert unseen is not None
    assert "the bytes of fscanf are not counted" in unseen.sentence
    assert not unseen.is_much


def test_libraries_of_mpi_on_several_nodes_may_use_sockets() -> None:
    kernel = KernelBytes(0, 80 * MIB, 0, 0, facts=("linked",), libraries=("libgfortran.so.5",))
    assert find_unseen(kernel, {WRITE: (16, 16 * MIB)}, nodes=2) is None
    assert find_unseen(kernel, {OPEN: (1, 0)}, nodes=2) is not None


def test_in_many_small_processes_dirty_pages_do_not_show_that_bytes_went_to_a_pipe() -> None:
    """Each had less dirty pages than its record has: the recorded writes are not among them either."""
    facts = ("piped-in", "piped-out")
    unseen = find_unseen(KernelBytes(0, 3 * MIB, 0, 0, facts=facts), {WRITE: (300, MIB)}, processes=200)
    assert unseen is not None
    assert unseen.written_bytes == 2 * MIB
    assert "the rest may have gone through a pipe, or went through" in unseen.sentence
    assert not unseen.is_much
    on_pipes = KernelBytes(0, 3 * MIB, 0, MIB, facts=facts)
    assert find_unseen(on_pipes, {WRITE: (300, MIB)}, processes=200) is None


@pytest.mark.parametrize(
    ("kernel", "calls"),
    [
        (KernelBytes(0, 0, 9 * MIB, 0), {MMAP: (1, 0)}),  # a cold file that is mapped
        (KernelBytes(0, 0, 0, 0, facts=("io_uring",)), {OPEN: (1, 0)}),  # requests of few bytes
        (KernelBytes(0, 9_000, 0, 0), {OPEN: (1, 0)}),  # raw calls of few bytes
    ],
)
def test_io_that_took_time_in_no_recorded_call_bounds_its_share(
    kernel: KernelBytes, calls: dict[Call, tuple[int, int]]
) -> None:
    unseen = find_unseen(kernel, calls)
    assert unseen is not None
    assert unseen.hides_time
    whole = Account(10.0, 1.0, (Entry("calls", 1.0), Entry("outside", 9.0)), True).with_unseen()
    assert (whole.io_low_s, whole.io_s, whole.to_json()["entries"][1]["low_s"]) == (1.0, 10.0, 0.0)
