"""What a killed process leaves has sums: no changed bit of them changes an answer unsaid."""

from __future__ import annotations

import random
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import ensembles
from ensembles.model.c_layout import ACCOUNT, CELL, SPOOL
from ensembles.model.errors import EnsioError
from ensembles.readers.native.account import (
    ACCOUNT_POSITION,
    account_in_job_file,
    sum_of_account,
    sum_words,
)
from ensembles.readers.native.spool import LOSSES_POSITION, read_spool, sum_of_identity

RUNS = Path(__file__).parents[3] / "corpus/runs"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """The spool of a process that was killed, with the sums of a recorder that keeps them."""
    with tarfile.open(RUNS / "killed.tar.xz") as packed:
        packed.extractall(tmp_path)
    path = next(path for path in sorted(tmp_path.rglob("*.spool")) if read_spool(str(path)).cells)
    data = bytearray(path.read_bytes())
    for part in read_spool(str(path)).cells:
        cells = np.frombuffer(data, CELL.dtype, part.length, part.position)
        cells["sum"] = 0
        words = cells.view("u1").reshape(len(cells), -1)[:, : CELL.field_offset("largest")].copy()
        cells["sum"] = sum_words(words.view("u8"))
    account = ACCOUNT.unpack(bytes(data), ACCOUNT_POSITION)._replace(end_written_by_calls=5 << 20, facts=1)
    account = account._replace(facts=1 | sum_of_account(account) << 32)
    data[ACCOUNT_POSITION : ACCOUNT_POSITION + ACCOUNT.size] = np.array(account, "u8").tobytes()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / path.name).write_bytes(data)
    return tmp_path / "one" / path.name


def answer(path: Path) -> tuple[object, list[str]]:
    run = ensembles.open(path.parent)
    assert run.summary is not None
    sums = {name: column.tobytes() for name, column in run.summary.cells.items()}
    return (sums, run.info.kernel_bytes), run.notes


def test_a_changed_bit_is_said(spool: Path) -> None:
    dice, data, sound = random.Random(38), spool.read_bytes(), answer(spool)
    record = read_spool(str(spool))
    of_cells = [part.position + n * CELL.size for part in record.cells for n in range(part.length)]
    of_cells = [at for at in of_cells if CELL.unpack(data, at).count]
    for _ in range(30):
        cell = dice.choice(of_cells) + dice.randrange(CELL.field_offset("power2"))
        account = ACCOUNT_POSITION + dice.randrange(ACCOUNT.field_offset("excluded"))
        at = dice.choice((cell, account, LOSSES_POSITION + dice.randrange(64)))
        changed = bytearray(data)
        changed[at] ^= 1 << dice.randrange(8)
        spool.write_bytes(changed)
        found = answer(spool)
        assert found[0] == sound[0] or found[1] != sound[1], at


def test_numbers_of_the_head_that_cannot_be_are_named_or_refused(spool: Path) -> None:
    data = spool.read_bytes()
    for name in ("unrecorded_children", "lost_calls", "rank", "state", "allocated_bytes"):
        changed = bytearray(data)
        changed[SPOOL.field_offset(name) + 3] ^= 0x40
        spool.write_bytes(changed)
        try:
            assert any(name in note or "damaged" in note for note in answer(spool)[1]), name
        except EnsioError as error:
            assert name in str(error)  # noqa: PT017


def test_a_changed_bit_of_what_the_head_says_of_its_process_is_refused(spool: Path) -> None:
    data, at = bytearray(spool.read_bytes()), SPOOL.field_offset("identity_sum")
    data[at : at + 4] = sum_of_identity(bytes(data)).to_bytes(4, sys.byteorder)
    spool.write_bytes(data)
    answer(spool)
    for name in ("pid", "parent_pid", "tasks", "first"):
        changed = bytearray(data)
        changed[SPOOL.field_offset(name)] ^= 2
        spool.write_bytes(changed)
        with pytest.raises(EnsioError, match="their sum"):
            read_spool(str(spool))


def test_an_account_is_read_from_a_job_file_whatever_its_sum(spool: Path) -> None:
    account = ACCOUNT.unpack(spool.read_bytes(), ACCOUNT_POSITION)
    for read in range(50):
        account = account._replace(end_read_by_calls=read, facts=1)
        facts = 1 | sum_of_account(account) << 32
        words = " ".join(map(str, account._replace(facts=facts)))
        assert account_in_job_file({b"account": words.encode()}) == account
