"""What all tests share: none depends on how fast the machine is, or on results that were kept before."""

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
    *("test_notebooks.py", "test_dev.py", "test_frozen.py", "test_figures_page.py", "test_user_pages.py"),
    *("test_reproduce.py", "test_explore_in_jupyter.py", "test_kept.py", "test_filters.py", "test_texts.py"),
    *("test_browser.py", "test_packaging.py", "test_job_file.py", "test_explorer_server.py"),
    "test_explorer_copies.py",
)
"""Files that take longest. The answers of the third are those that the others of the corpus begin with."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let processes that share the tests begin with the longest files: else one works alone at the end."""
    if hasattr(config, "workerinput"):
        place = {name: number for number, name in enumerate(LONGEST)}
        items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))
