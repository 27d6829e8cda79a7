"""The models of machines: their keys are those of the model, and only what must differ between them does."""

import re
import tomllib

import pytest
from project import ROOT

import ensembles
from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.plan import expand
from ensembles.workloads.patterns.reading import read_pattern
from ensembles.workloads.simulation.models import read_model
from ensembles.workloads.simulation.simulate import simulate
from testbed.reproduce.fitted import FITS

MODELS = sorted((ROOT / "testbed" / "models").glob("*.toml"))
SETTINGS = (ROOT / "testbed" / "pfsmodel" / "settings.h").read_text()
PARAMETERS = {
    key: [float(number) for number in numbers]
    for key, *numbers in re.findall(r"^    X\((\w+), (\S+), (\S+), (\S+)\)", SETTINGS, re.MULTILINE)
}
FAULTS = re.findall(r'^    X\(\w+, "([\w-]+)"\)', SETTINGS, re.MULTILINE)
TEXTS = {"title", "source"}


def model(name: str) -> dict:
    return tomllib.loads((ROOT / "testbed" / "models" / f"{name}.toml").read_text())


def test_there_are_the_models_of_the_papers_and_a_healthy_one():
    assert {path.stem for path in MODELS} == {
        "archer",
        "franklin",
        "franklin-patched",
        "healthy",
        "jaguar",
        "sdumont",
    }


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_keys_are_known_and_numbers_within_their_limits(path):
    keys = tomllib.loads(path.read_text())
    assert set(keys) > TEXTS
    for key, value in keys.items():
        if key == "fault":
            assert set(value) <= set(FAULTS)
        elif key not in TEXTS:
            _, least, most = PARAMETERS[key]
            assert least <= value <= most, key


def test_healthy_is_what_the_model_is_without_settings():
    keys = model("healthy")
    assert "fault" not in keys
    assert {key: value for key, value in keys.items() if key not in TEXTS} == {
        key: PARAMETERS[key][0] for key in keys if key not in TEXTS
    }


def test_the_patch_takes_strided_readahead_away_and_nothing_else():
    faulty, patched = model("franklin"), model("franklin-patched")
    assert faulty["fault"].pop("strided-readahead") == 1
    assert faulty["fault"] == patched["fault"]
    of_the_fault = {"stride_window_MiB", "page_ms", "page_noise", "title"}
    assert {key: value for key, value in faulty.items() if key not in of_the_fault} == {
        key: value for key, value in patched.items() if key != "title"
    }


def test_the_fitted_numbers_are_those_that_the_files_mark():
    """Each key of the lists has (fitted) in its line, and no other key has it."""
    folders = (ROOT / "testbed" / "models", ROOT / "testbed" / "tapioca" / "machines")
    marked = {}
    for path in (path for folder in folders for path in folder.glob("*.toml")):
        if path.stem == "franklin-patched":  # Franklin without a fault, as another test says
            continue
        keys = re.findall(r"^(\w+) = \S+ +#.*\(fitted\)", path.read_text(), re.MULTILINE)
        if keys:
            marked[path.stem] = set(keys)
    assert marked == {name: set(keys) for fit in FITS for name, keys in fit.numbers.items()}


@pytest.mark.parametrize(("stripes", "targets"), [(0, 48), (4, 4)])
def test_a_file_lies_on_as_many_targets_as_its_hint_says(tmp_path, stripes, targets):
    pattern = read_pattern(ROOT / "testbed" / "patterns" / "benchio.toml")
    plan = expand(pattern, {"tasks": 2, "repetitions": 1, "hdf5": 0, "stripes": stripes})
    simulate(plan, read_model("archer"), tmp_path)
    striping = ensembles.open(tmp_path).info.striping_of("/simulated/benchio-mpiio.dat")
    assert striping is not None
    assert striping.stripe_count == targets


def test_a_hint_for_stripes_that_is_not_a_number_is_refused():
    with pytest.raises(EnsioError, match='striping_factor must be a whole number, not "-1"'):
        read_model("archer").striped({"striping_factor": "-1"})


def test_archer_has_nothing_that_is_fitted():
    assert "(fitted)" not in (ROOT / "testbed" / "models" / "archer.toml").read_text()


def test_every_parameter_and_fault_is_documented():
    page = (ROOT / "docs" / "reference" / "pfsmodel.md").read_text()
    words = set(re.findall(r"`([\w-]+)`", page))
    factors = {"straggler_task_factor", "straggler_node_factor"}  # "…_factor" in the table
    assert set(PARAMETERS) - factors <= words
    assert set(FAULTS) <= words
