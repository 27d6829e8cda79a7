"""What all tests share: none depends on how fast the machine is, or on results that were kept before."""

from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory):
    """A cache that no earlier test run has filled, also for the programs that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


LONGEST = (
    *("test_dev.py", "test_figures_page.py", "test_frozen.py", "test_notebooks.py", "test_user_pages.py"),
    *("test_explorer_server.py", "test_texts.py", "test_browser.py", "test_fingerprints_of_programs.py"),
    *(
        "test_filters.py",
        "test_packaging.py",
        "test_job_file.py",
        "test_kept.py",
        "test_explore_in_jupyter.py",
    ),
    *("test_explorer_copies.py", "test_faults_under_programs.py", "test_virtual_and_real.py"),
    *("test_explore_in_jupyter.py", "test_dask.py", "test_mpi_messages.py"),
)
"""Files that take longest. The answers of the third are those that the others of the corpus begin with."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put off cases of ``each_once``; let processes that share the tests begin with the longest files.

    Else one works alone at the end.
    """
    put_off(items)
    if hasattr(config, "workerinput"):
        place = {name: number for number, name in enumerate(LONGEST)}
        items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


def put_off(items: list[pytest.Item]) -> None:
    """Of a test with ``each_once``, keep cases with each value of each parameter; the others are long."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_once") and not item.get_closest_marker("long"):
            cases[item.nodeid.partition("[")[0]].append((values_of(item), item))
    for left in cases.values():
        used: Counter[tuple[str, str]] = Counter()

        def worth(case: tuple[set, pytest.Item], used: Counter = used) -> tuple[int, int]:
            return sum(not used[value] for value in case[0]), -sum(used[value] for value in case[0])

        while left and worth(max(left, key=worth))[0]:
            taken = max(left, key=worth)
            left.remove(taken)
            used.update(taken[0])
        for _, item in left:
            item.add_marker(pytest.mark.long)


def values_of(item: pytest.Item) -> set[tuple[str, str]]:
    """The values of a case; what is written as one row of several parameters is one value."""
    values = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    found = {("", "")}  # a test without parameters is a case too
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].replace(" ", "").split(",") if isinstance(mark.args[0], str) else mark.args[0]
        found.add((",".join(names), repr([values.pop(name) for name in names])))
    return found | {(name, repr(value)) for name, value in values.items()}
