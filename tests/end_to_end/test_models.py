"""Models of file systems: what is wrong with one is told with its line."""

import pytest
from places import BUILD

from ensembles.model.errors import EnsioError
from ensembles.workloads.simulation import read_model

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def _built(monkeypatch):
    if not (BUILD / "bin" / "ensio-simulate").exists():
        pytest.fail(f"ensio-simulate is not built in {BUILD}; run ./dev setup")
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:/usr/bin:/bin")


@pytest.fixture
def written(tmp_path):
    """Writes a model; returns its path."""

    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return str(path)

    return write


GOOD = """\
title = "mine"   # for people
source = "measured"
targets = 12
target_MB_per_s = 350.25

[fault]
slow-target = 1
close-cost = 0.5
"""


def test_model_and_command_line_become_settings(written):
    model = read_model(written(GOOD), ["close-cost=2", "background-load=0.25", "slow-target=0"])
    assert model.name == "mine"
    assert dict(model.parameters) == {"targets": 12, "target_MB_per_s": 350.25}
    assert dict(model.faults) == {"close-cost": 2, "background-load": 0.25}
    lines = dict(line.split(" ") for line in model.settings_text().splitlines())
    assert {key: float(value) for key, value in lines.items()} == {
        "targets": 12,
        "target_MB_per_s": 350.25,
        "fault.close-cost": 2,
        "fault.background-load": 0.25,
    }


@pytest.mark.parametrize("own", ["", "tasks_per_node = 8\n"])
def test_tasks_of_a_node_may_be_other_than_the_machines(written, own):
    model = read_model(written(own + GOOD))
    assert model.tasks_per_node == (8 if own else 4)  # 4: testbed/pfsmodel/settings.h
    lines = [line.split() for line in model.with_tasks_per_node(3).settings_text().splitlines()]
    assert [float(value) for key, value in lines if key == "tasks_per_node"] == [3]
    assert dict(lines).keys() >= {"targets", "fault.close-cost"}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("targets = 12", "tragets = 12", "mine.toml:3: there is no key tragets"),
        ("targets = 12", "targets = 0", "mine.toml:3: targets is 0, it must be from 1 to"),
        ("targets = 12", 'targets = "12"', "mine.toml:3: targets is '12', it must be a number"),
        ("targets = 12", "targets = true", "mine.toml:3: targets is True, it must be a number"),
        ("350.25", "nan", "mine.toml:4: target_MB_per_s is nan"),
        ("slow-target", "slow-targets", "mine.toml:7: there is no fault slow-targets in the model"),
        ("0.5", "-0.5", "mine.toml:8: fault.close-cost is -0.5, it must be from 0 to"),
        ('"measured"', "7", "mine.toml:2: source must be text in quotes"),
        ("[fault]", "[faults]", "mine.toml:6: there is no key faults"),
        ("targets = 12", "targets = ", "mine.toml: is not TOML"),
    ],
)
def test_mistake_in_a_model_is_told_with_its_line(written, old, new, sentence):
    assert GOOD.count(old) == 1
    with pytest.raises(EnsioError) as raised:
        read_model(written(GOOD.replace(old, new)))
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("slow-target", "--fault slow-target: write a fault as ID=STRENGTH"),
        ("slow-target=", 'the strength "" is not a number'),
        ("slow-target=strong", 'the strength "strong" is not a number'),
        ("slow-target=nan", 'the strength "nan" is not a number'),
        ("slow-target=inf", "fault.slow-target is inf, it must be from 0 to"),
        ("slow-target=-1", "fault.slow-target is -1.0, it must be from 0 to"),
        ("slow_target=1", "--fault slow_target=1: there is no fault slow_target in the model: choose from "),
    ],
)
def test_mistake_in_a_fault_is_told(written, fault, sentence):
    with pytest.raises(EnsioError) as raised:
        read_model(written(GOOD), [fault])
    assert sentence in str(raised.value)


def test_model_that_is_not_there_is_told(tmp_path):
    with pytest.raises(EnsioError, match=r"nosuch: no such model in .*: choose from "):
        read_model("nosuch")
    with pytest.raises(EnsioError, match=r"none\.toml: cannot be read: No such file"):
        read_model(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(EnsioError, match=r"bytes\.toml: is not a text file in UTF-8"):
        read_model(str(tmp_path / "bytes.toml"))
