"""A site's file of settings: recorder and commands read it alike, and a bad one harms no program."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime

import h5py
import pytest
from places import BUILD

import ensembles

ENSIO = os.path.join(os.path.dirname(sys.executable), "ensio")
WRITE = ("dd", "if=/dev/zero", "of=data", "bs=1k", "count=20", "status=none")


@pytest.fixture
def site(tmp_path):
    """A function that records a program by default, as a site does; it returns what the program said."""

    def record(settings, command=WRITE, **variables):
        (tmp_path / "ensio.conf").write_text(settings)
        return recorded(tmp_path, command, ENSIO_CONF=str(tmp_path / "ensio.conf"), **variables)

    return record


def recorded(folder, command, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    environment |= {"LD_PRELOAD": f"{BUILD}/lib/libensio-preload.so"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def asked(folder, conf):
    """What a command says that reads the file."""
    environment = os.environ | {"ENSIO_CONF": str(conf), "ENSIO_HISTORY": ""}
    command = [ENSIO, "history", "list", "--db", "none.db"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stderr


def test_lines_are_defaults_of_the_variables(site, tmp_path):
    text = "# of the site\n\n  ENSIO_MODE=profile\t\r\nENSIO_DIR=first\nENSIO_ARGUMENTS=0\n"
    assert site(text) == ""
    run = ensembles.open(tmp_path / "first")
    assert (run.mode, len(run.info.command)) == ("profile", 1)
    assert {run.info.environment[name] for name in ("ENSIO_MODE", "ENSIO_ARGUMENTS")} == {"profile", "0"}
    site(text, ENSIO_MODE="tail")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["first"]
    assert ensembles.open(f"{tmp_path / 'first'}#2").mode == "tail"


def test_always_holds_whatever_a_user_sets(site, tmp_path):
    site("always ENSIO_MODE=profile\n", ENSIO_MODE="trace", ENSIO_DIR="forced")
    assert ensembles.open(tmp_path / "forced").mode == "profile"


def test_users_who_ask_for_a_recording_get_it_without_the_defaults(site, tmp_path):
    site("ENSIO_MODE=profile\nENSIO_PROGRAMS=/none\nENSIO_USERS=nobody-here\n", ENSIO_DIR="asked")
    assert ensembles.open(tmp_path / "asked").mode == "trace"
    command = (ENSIO, "run", "-o", "a%Yb", "--", *WRITE)
    assert "recorded in a%Yb" in site("ENSIO_DISABLE=1\n", command)
    assert ensembles.open(tmp_path / "a%Yb").mode == "trace"


@pytest.mark.parametrize(
    ("lines", "variables"),
    [
        ("", {"ENSIO_DISABLE": "1"}),
        ("ENSIO_DISABLE=1\n", {}),
        ("ENSIO_USERS=somebody:!root\n", {}),
        ("ENSIO_PROGRAMS=!/usr/bin/*:!/bin/*:*\n", {}),
    ],
)
def test_who_is_not_recorded(site, tmp_path, lines, variables):
    assert site(lines, **variables) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "ensio.conf"]


def test_who_is_recorded(site, tmp_path):
    site("ENSIO_PROGRAMS=*/dd\nENSIO_USERS=ro?t:*\nENSIO_DISABLE=1\n", ENSIO_DISABLE="0")
    assert len(list(tmp_path.glob("ensio-dd-*"))) == 1


def test_fields_of_the_run_directory(site, tmp_path):
    site(f"ENSIO_DIR={tmp_path}/%u/%Y/%m/%d/%p-%j_100%%_%q%\n", SLURM_JOB_ID="77", USER="wrong")
    (run,) = tmp_path.glob("*/*/*/*/dd-77_100%_%q%")
    assert ensembles.open(run).info.job == "77"
    user, *date = run.relative_to(tmp_path).parts[:4]
    assert user == subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    assert abs((datetime.now() - datetime(*map(int, date))).total_seconds()) < 2 * 86400
    assert date == datetime.fromtimestamp(run.stat().st_mtime, UTC).strftime("%Y %m %d").split()


BAD = {
    "name": ("# one\nENSIO_MOD=trace\n", "line 2 of {} is not a setting of it, such as ENSIO_MODE=profile"),
    "blanks": ("ENSIO_MODE = trace\n", "line 1 of {} is not a setting of it"),
    "two names": ("ENSIO_MODE ENSIO_PCONTROL=ipm\n", "line 1 of {} is not a setting of it"),
    "no line": ("\n\nprofile", "line 3 of {} is not a setting of it"),
    "own": ("always ENSIO_DISABLE=0\n", "line 1 of {} is always, but users have the last word"),
    "started": ("ENSIO_LAUNCH=x\n", "line 1 of {} is not a setting of it"),
    "zero byte": ("ENSIO_MODE=pro\0file\n", "line 1 of {} is not a setting of it"),
    "long": ("#" * 16385, "{} is longer than 16 KiB"),
    "invalid": ("ENSIO_\udcffX=1\n", "line 1 of {} is not a setting of it"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_sentence_in_recorder_and_commands(tmp_path, kind):
    text, sentence = BAD[kind]
    conf = tmp_path / "bad.conf"
    conf.write_bytes(os.fsencode(text))
    said = recorded(tmp_path, WRITE, ENSIO_CONF=str(conf))
    assert said.startswith(f"ensio: no I/O is recorded, because {sentence.format(conf)}")
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.conf", "data"]
    assert f"ensio: {sentence.format(conf)}" in asked(tmp_path, conf)


def test_a_file_that_others_may_write_or_that_is_none(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("ENSIO_MODE=profile\n")
    conf.chmod(0o666)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "closed").write_text("ENSIO_MODE=profile\n")
    os.chown(tmp_path / "closed", 12345, 12345)
    wrong = "is not a file of root or of you that only its owner or group can write"
    for name, in_recorder, in_command in [
        ("conf", wrong, wrong),
        ("closed", wrong, wrong),
        ("pipe", wrong, "is not readable"),
        ("missing", "cannot be read", "is not readable"),
        (".", wrong, "is not readable"),
    ]:
        said = recorded(tmp_path, WRITE, ENSIO_CONF=f"{tmp_path}/{name}")
        assert f"because {tmp_path}/{name} {in_recorder}" in said
        assert f"ensio: {tmp_path}/{name} {in_command}" in asked(tmp_path, f"{tmp_path}/{name}")
    assert not list(tmp_path.glob("ensio-*"))


def test_commands_take_their_settings_from_it(tmp_path):
    (tmp_path / "ensio.conf").write_text("ENSIO_HISTORY=of-the-site.db\n")
    environment = {key: value for key, value in os.environ.items() if key != "ENSIO_HISTORY"}
    for variables, name in (({}, "of-the-site.db"), ({"ENSIO_HISTORY": "mine.db"}, "mine.db")):
        done = subprocess.run(
            [ENSIO, "history", "list"],
            cwd=tmp_path,
            env=environment | {"ENSIO_CONF": "ensio.conf"} | variables,
            capture_output=True,
            text=True,
        )
        assert done.stderr.startswith(f"ensio: there is no history {name}")


SECRETS = ("secret", "classified", "weapon", "blackbird", "count=20")


def recorded_secrets(folder, run, **variables):
    """Record a copy of dd whose program, folder, arguments, files and job are secrets."""
    secret = folder / "ann's secret"
    secret.mkdir(exist_ok=True)
    program = secret / "classified"
    shutil.copy("/bin/dd", program)
    command = (program, "if=/dev/zero", "of=weapon.h5", "bs=1k", "count=20", "status=none")
    variables |= {"SLURM_JOB_NAME": "blackbird", "ENSIO_CALLPATH": "2"}
    recorded(secret, command, ENSIO_DIR=str(run), **variables)


def in_clear(path, *further):
    """The secrets that a trace file or a history holds, in its texts and in its bytes."""
    content = path.read_bytes()
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            texts = []
            file.visititems(
                lambda _, item: texts.extend(item[()]) if getattr(item, "dtype", None) == "O" else None
            )
        content += b"\0".join(texts)
    return [name for name in (*SECRETS, *further) if name.encode() in content]


def test_a_recorded_run_without_names(tmp_path):
    """The program, its folder, arguments, files and user are names; regions of the system are not."""
    recorded_secrets(tmp_path, tmp_path / "run")
    words = [ENSIO, "anonymise", tmp_path / "run", "-o", tmp_path / "out.h5"]
    subprocess.run(words, check=True, capture_output=True)
    assert in_clear(tmp_path / "out.h5", tmp_path.name) == []
    run, before = ensembles.open(tmp_path / "out.h5"), ensembles.open(tmp_path / "run")
    assert [path.endswith(".h5") for path in run.files if path] == [True]
    assert len(run.select(call="write")) == len(before.select(call="write")) == 20
    assert len(run.info.command) == len(before.info.command)
    assert "/usr/bin/dd" not in run.info.program


def test_a_site_that_demands_it_keeps_no_names(tmp_path):
    """One run, a directory of two launches, and one whose process was killed: files and history have none."""
    runs = tmp_path / "runs"
    for directory in ("one", "two", "two", "killed"):
        recorded_secrets(tmp_path, runs / directory, ENSIO_MODE="profile")
    (tmp_path / "key").write_text("the key of the site")
    dd = f"'{tmp_path}/ann'\\''s secret/classified'"
    killed = ("sh", "-c", f"{dd} if=/dev/zero of=weapon.h5 bs=1k & sleep .3; kill -9 $!")
    recorded(tmp_path, killed, ENSIO_DIR=str(runs / "killed"))

    def add():
        environment = os.environ | {"ENSIO_ANONYMISE": str(tmp_path / "key")}
        words = [ENSIO, "history", "add", runs, "--db", tmp_path / "runs.db"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True)

    assert add().stdout.startswith("5 runs added to ")
    assert in_clear(tmp_path / "runs.db", tmp_path.name) == []
    names = {str(path.relative_to(runs)) for path in runs.glob("**/*") if path.is_file()}
    kept = {name for name in names if name.startswith("killed/")}
    assert names - kept == {"one/trace.h5", "two/1/trace.h5", "two/2/trace.h5"}
    assert {name for name in names - kept if in_clear(runs / name, tmp_path.name)} == set()
    assert any(name.endswith(".spool") for name in kept)
    assert len(ensembles.open(runs / "one").info.command) == 6
    assert "0 runs added to 0 experiments, 5 were there already, 0 not added" in add().stdout
