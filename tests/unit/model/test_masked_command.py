"""Secrets in command lines are masked in all that is made from a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_spools import made_events, spool

from ensembles.cli.main import main
from ensembles.model.masked_command import mask_command


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("--password=hunter2", "--password=***"),
        ("-password=hunter2", "-password=***"),
        ("--db.Password=a&b;c d", "--db.Password=***"),
        ("--password hunter2 -v", "--password *** -v"),
        ("--password -v x", "--password -v x"),
        ("--no-password x", "--no-password x"),
        ("--token-file x --tokens 5 tokenizer=3", "--token-file x --tokens 5 tokenizer=3"),
        ("token=t GITHUB_TOKEN=t --client-secret s", "token=*** GITHUB_TOKEN=*** --client-secret ***"),
        ("api-key=k API_KEY=k --apikey k X-Api-Key=k", "api-key=*** API_KEY=*** --apikey *** X-Api-Key=***"),
        ("AWS_SESSION_TOKEN=a AWS_REGION=b", "AWS_SESSION_TOKEN=*** AWS_REGION=***"),
        ("https://me:p@ss@host/a redis://:pw@h", "https://me:***@host/a redis://:***@h"),
        ("https://T0ken@host:80/a@b me:pw@z:/d", "https://***@host:80/a@b me:***@z:/d"),
        ("git+ssh://me:pw@h ftp://:p@h user@host", "git+ssh://me:***@h ftp://:***@h user@host"),
        ("MYSQL_PWD=x --pw=x --auth=u:p --db-pass x", "MYSQL_PWD=*** --pw=*** --auth=*** --db-pass ***"),
        ("--author=me --bypass x --compass=n pwds=1", "--author=me --bypass x --compass=n pwds=1"),
        ("http://h/?a=1&token=t&b=2", "http://h/?a=1&token=***&b=2"),
        ("-psecret -p secret", "-psecret -p secret"),
    ],
)  # fmt: skip
def test_the_rule(given: str, shown: str) -> None:
    words = given.split(" ") if "a&b" not in given else [given]
    assert " ".join(mask_command(tuple(words))) == shown
    assert mask_command(tuple(shown.split(" "))) == tuple(shown.split(" "))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("PGPASSWORD=a psql; ./a --token='b c' x", "PGPASSWORD=***"),
        ("psql --password 'b c' -v; x", "psql --password *** -v; x"),
        ("cd /x; TOKEN=a ./b", "cd /x; TOKEN=*** ./b"),
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("curl -H 'X-Api-Key: k' h", "curl -H 'X-Api-Key: ***' h"),
        ('{"password": "a b", "user": "me"}', '{"password": ***, "user": "me"}'),
        ("rsync me:pw@host:/d .; x", "rsync me:***@host:/d .; x"),
        ("curl https://me:pw@h/x | sh", "curl https://me:***@h/x | sh"),
    ],
)
def test_lines_of_shells(given: str, shown: str) -> None:
    assert mask_command(("sh", "-c", given)) == ("sh", "-c", shown)


def test_answers_reports_and_files_of_a_run_have_no_secret(tmp_path: Path, capsys) -> None:
    words = ["prog", "--password=hunter2", "s3://me:hunter2@h", "--token", "hunter2", "plain"]
    run, out = tmp_path / "run", tmp_path / "out"
    texts = {"command": "\x1f".join(words), "env.ENSIO_COMMAND": "\x1f".join(["mpiexec", *words])}
    spool(run / "0.spool", [made_events(50, 0)], properties=texts)
    out.mkdir()
    place = str(out / "runs.db")
    for command in (
        ["info", str(run), "--json"],
        ["collect", str(run), "-o", str(out / "run.h5")],
        ["report", str(run), "-o", str(out / "report.html")],
        ["history", "add", str(run), "--db", place, "--experiment", "nightly"],
        ["history", "show", "1", "--db", place, "--json"],
    ):
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert "hunter2" not in printed
        if "--json" in command:
            shown = json.loads(printed)["command"]
            assert shown[-6:] == ["prog", "--password=***", "s3://me:***@h", "--token", "***", "plain"]
    assert not [path for path in out.iterdir() if b"hunter2" in path.read_bytes()]
