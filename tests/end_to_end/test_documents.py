"""Links between the documents lead somewhere; decisions are short rules, which the index lists; the
glossary defines each term once."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "tools" / "dev"))

import prose
import prose_texts

pytestmark = pytest.mark.quick

TRACKED = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
FILES = {name for name in TRACKED.split("\0") if name}
FOLDERS = {str(folder) for name in FILES for folder in Path(name).parents}
DOCUMENTS = sorted(name for name in FILES if name.endswith(".md"))
DECISIONS = "docs/decisions"
GLOSSARY = "docs/glossary.md"
PAGES = sorted(name for name in DOCUMENTS if name.startswith(DECISIONS) and name != f"{DECISIONS}/README.md")
LINK = re.compile(r"\]\(([^()\s]+)\)")


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@cache
def anchors_in(name: str) -> set[str]:
    """The headings of a document, as links name them."""
    headings = re.findall(r"^#+ (.*)$", text_of(name), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(name: str) -> list[str]:
    """Targets in a document that are neither files, nor folders, nor headings."""
    dead = []
    for target in LINK.findall(text_of(name)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        found = os.path.relpath(os.path.normpath(place), ROOT)
        if found not in FILES | FOLDERS or (anchor and anchor not in anchors_in(found)):
            dead.append(target)
    return dead


def test_links_lead_to_files_and_headings():
    assert {name: dead for name in DOCUMENTS if (dead := dead_links(name))} == {}


MOST_PAGES, MOST_WORDS = 60, 80


def test_decisions_are_short_rules_under_headings_that_state_them():
    wrong = {}
    for page in PAGES:
        title, *rules = re.split(r"^## ", text_of(page), flags=re.M)
        assert re.fullmatch(r"# \S.*\n\nCode: .*\n\n", title), page
        words = {heading: len(text.split()) for heading, _, text in (rule.partition("\n") for rule in rules)}
        assert len(words) == len(rules) > 0, page
        wrong |= {(page, head): count for head, count in words.items() if not 0 < count <= MOST_WORDS}
    assert wrong == {}


def test_decisions_name_what_the_code_has():
    product = re.compile(
        r"(libtrace|ensembles|viz|testbed|tools)/.*\.(py|c|h|def|js|awk|toml)$|pyproject.toml$"
    )
    sources = {name for name in FILES if product.match(name)}
    words = {word for name in sources for word in re.findall(r"\w+", text_of(name))}
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"`@?([A-Za-z_][\w.]*)(?:\([^`]*\))?`", text_of(page))
        if Path(name).suffix not in (".a", ".h5", ".json")
    }
    assert {(page, name) for page, name in named if not set(name.split(".")) <= words} == set()
    assert len(named) > 150


def test_index_of_decisions_lists_every_page_once():
    listed = re.findall(r"^\| \[(\S+)\]\((\S+)\) \| \S.* \|$", text_of(f"{DECISIONS}/README.md"), re.M)
    assert sorted(listed) == [(Path(page).stem, Path(page).name) for page in PAGES]
    assert 30 <= len(listed) <= MOST_PAGES


def test_index_of_decisions_says_what_became_of_every_old_number():
    rows = re.findall(r"^\| (\d+) \| \S.* \| (.*) \|$", text_of(f"{DECISIONS}/README.md"), re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 178))
    assert [number for number, rules in rows if "#" not in rules and rules != "history only"] == []


FRAGMENTS = [
    name for name in DOCUMENTS if name.startswith("changelog.d/") and name != "changelog.d/README.md"
]


def is_change(name: str, text: str) -> bool:
    """Whether a file of changelog.d has a kind that towncrier knows, and one or two sentences."""
    kinds = "|".join(kind["directory"] for kind in towncrier_settings()["type"])
    sentences = len(re.findall(r"[.!?](?=\s|$)", text))
    is_plain = "\n\n" not in text.strip() and text[:1] not in ("*", "-", "#")
    is_named = re.fullmatch(rf"changelog\.d/[a-z][a-z0-9-]*\.({kinds})\.md", name)
    return bool(is_named) and is_plain and sentences in (1, 2) and len(text.split()) <= 60


def test_changes_are_named_by_their_kind_and_have_two_sentences_at_most():
    assert [name for name in FRAGMENTS if not is_change(name, text_of(name))] == []
    sentence = "`--host NAME` is a filter of all commands.\n"
    assert is_change("changelog.d/filter-by-host.added.md", sentence)
    assert not is_change("changelog.d/filter-by-host.feature.md", sentence)
    assert not is_change("changelog.d/filter-by-host.added.md", sentence * 3)


def test_changelog_has_the_place_of_the_next_version_above_the_last_one():
    above, place, below = text_of("CHANGELOG.md").partition(towncrier_settings()["start_string"])
    assert place
    assert "\n## " not in above
    assert re.match(r"\n## \d+\.\d+\.\d+(rc\d+)? - \d{4}-\d\d-\d\d\n", below)


def towncrier_settings():
    return tomllib.loads(text_of("pyproject.toml"))["tool"]["towncrier"]


ENTRY = re.compile(r"^\* \*\*(.+?)\*\*", re.M)


def test_glossary_defines_each_term_once_in_order():
    sections = text_of(GLOSSARY).split("\n## ")[1:]
    terms = [ENTRY.findall(section) for section in sections]
    for section in terms:
        assert section == sorted(section, key=str.lower)
    every = [term.lower() for section in terms for term in section]
    assert len(every) == len(set(every)) >= 60


def test_terms_in_italics_have_an_entry():
    text = text_of(GLOSSARY).partition("\n## ")[2]
    defined = {term.lower() for term in re.findall(r"\*\*(.+?)\*\*", text)}
    used = {" ".join(term.lower().split()) for term in re.findall(r"(?<!\*)\*([A-Za-z][^*]*)\*(?!\*)", text)}
    assert "calls" in used
    assert {term for term in used if not {term, term.removesuffix("s")} & defined} == set()


CODE_PATH = re.compile(
    r"`((?:libtrace|ensembles|viz|testbed|tests|tools|calibration|benchmarks|docs|notebooks)/[\w./*-]*)`"
)


def test_paths_in_documents_are_there():
    missing = set()
    for name in DOCUMENTS:
        named = {path.rstrip("/") for path in CODE_PATH.findall(text_of(name))}
        new = set(re.findall(r'title="([^"]+)"', text_of(name)))
        missing |= {(name, path) for path in named - new if not any(ROOT.glob(path))}
    assert missing == set()


METHODS = [name for name in DOCUMENTS if re.match(r"docs/reference/methods/[a-z]+\.md", name)]
CODE_NAME = re.compile(r"^\* `(ensembles/[\w/]+\.py)`: `(\w+)`$", re.M)


def test_page_of_a_method_names_its_code():
    for name in METHODS:
        named = CODE_NAME.findall(text_of(name).partition("\n## Code\n")[2])
        assert named, name
        for path, symbol in named:
            assert re.search(rf"^(def|class) {symbol}\b", text_of(path), re.M), (name, path, symbol)


def test_overview_describes_every_folder_of_the_code():
    text = text_of("docs/developer/overview.md")
    folders = {
        "/".join(name.split("/")[:2])
        for name in FILES
        if re.match(r"(libtrace|ensembles|testbed|tests)/[^/]+/", name)
    }
    assert {folder for folder in folders if f"`{folder}" not in text} == set()
    assert len(folders) > 35


def test_index_leads_to_every_page():
    linked = set()
    for name in (
        "docs/README.md",
        f"{DECISIONS}/README.md",
        "docs/reference/methods/README.md",
        "docs/reference/calibration/README.md",
    ):
        for target in LINK.findall(text_of(name)):
            linked.add(
                str((ROOT / name).parent.joinpath(target.partition("#")[0]).resolve().relative_to(ROOT))
            )
    pages = {name for name in DOCUMENTS if name.startswith("docs/")} - {"docs/README.md"}
    assert pages - linked == set()


# One thought a sentence: mean words a sentence of a page, as tools/dev/prose.py counts them.
LONGEST_MEAN_WORDS = 22


def mean_words(name: str) -> float:
    """Mean number of words of the sentences of a page."""
    texts = prose_texts.texts_of(ROOT / name, text_of(name))
    lengths = [length for text in texts for length in prose.sentence_lengths(text.words)]
    return sum(lengths) / max(len(lengths), 1)


def test_sentences_are_short():
    means = {name: mean_words(name) for name in DOCUMENTS if name.startswith("docs/")}
    assert {name: mean for name, mean in means.items() if mean > LONGEST_MEAN_WORDS} == {}


def test_machines_that_test_changes_run_the_one_command():
    for name in (".github/workflows/test.yml", ".gitlab-ci.yml"):
        last = [line.strip("- ") for line in text_of(name).splitlines() if line.strip()][-1]
        assert last.removeprefix("run: ") == ".ci/run", name
        assert not re.search(r"pytest|\./dev|ruff", text_of(name)), name


@pytest.mark.slow
def test_site_is_made_without_a_warning_and_can_be_searched(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", "-d", tmp_path / "state"]
    done = subprocess.run([*command, ROOT / "docs", tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*.html")}
    ours = {name.removeprefix("docs/") for name in DOCUMENTS if name.startswith("docs/")}
    assert {name.removesuffix("md") + "html" for name in ours} <= pages
    assert "lustre" in (tmp_path / "site/searchindex.js").read_text()
    packed = Path(shutil.make_archive(tmp_path / "packed", "zip", tmp_path / "site"))
    assert packed.stat().st_size < 3e6  # in a wheel (test_packaging.py)
    names = (tmp_path / "site/reference/api.html").read_text()
    assert "diagnose" in names
    assert "&lt;function" not in names  # values are as their sources have them
    places = (bytes(ROOT), bytes(tmp_path))  # whose names differ in each build
    files = [path.read_bytes() for path in (tmp_path / "site").rglob("*.*")]
    assert not any(place in file for place in places for file in files)
