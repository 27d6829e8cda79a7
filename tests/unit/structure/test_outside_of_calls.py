"""What the kernel counts apart from calls: libaio of fio, whose counters these are."""

from __future__ import annotations

from ensembles.structure.unseen import outside_of_calls_sentence

LIBAIO = {
    "read_by_calls": 244_963,
    "written_by_calls": 8_417_616,
    "read_bytes": 15_859_712,
    "write_bytes": 26_652_672,
    "cancelled_write_bytes": 294_912,
}
PSYNC = {
    "read_by_calls": 16_154_140,
    "written_by_calls": 26_122_042,
    "read_bytes": 7_909_376,
    "write_bytes": 26_472_448,
    "cancelled_write_bytes": 393_216,
}


def test_io_without_calls_is_told_in_both_directions() -> None:
    told = outside_of_calls_sentence(LIBAIO)
    assert "fetched 15.1 MiB from storage, and read calls returned 239 KiB" in told
    assert "made 25.1 MiB of files dirty, and write calls took 8.03 MiB" in told
    assert "libaio" in told


def test_calls_that_explain_the_bytes_need_no_sentence() -> None:
    assert outside_of_calls_sentence(PSYNC) == ""
    assert outside_of_calls_sentence({}) == ""


def test_files_removed_before_they_were_written_do_not_count() -> None:
    assert outside_of_calls_sentence({"write_bytes": 64 << 20, "cancelled_write_bytes": 60 << 20}) == ""


def test_pages_of_the_recorder_are_not_those_of_the_program() -> None:
    """1,500,000 reads of a program that writes nothing: their records made 69.3 MiB dirty."""
    process = {"write_bytes": 72_700_000, "read_by_calls": 6_144_000_000}
    assert outside_of_calls_sentence(process, calls=1_500_000, processes=1) == ""
    assert "made 23.1 MiB of files dirty" in outside_of_calls_sentence(LIBAIO, calls=1_000, processes=1)
    assert (
        outside_of_calls_sentence(process | {"write_bytes": 200_000_000}, calls=1_500_000, processes=1) != ""
    )
