"""The check of wording finds a phrase where a file has prose, and only there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import prose
from prose import findings, phrases_in, sentence_lengths
from prose_texts import texts_of

TOOL = Path(prose.__file__)

MARKDOWN = """\
# A blue moon

Once in a blue
moon, see [a blue moon](blue.md).

```
a blue moon
```

* `a blue moon` is code
"""
PYTHON = '''\
"""Under a blue

moon: a blue moon."""

blue_moon = 1  # a blue moon
# once in a blue
# moon
text = f"a blue moon of {blue_moon}"
data = "blue_moon"
'''
C = """\
/* once in a blue
 * moon */
int blue_moon; // a blue moon
char *text = "a blue moon \\" /* a blue moon";
char quote = '"'; /* a blue moon */
"""
SHELL = """\
# a blue moon
say "a blue moon"
"""
TOML = """\
[blue]
moon = "a blue moon" # a blue moon
"""
TEMPLATE = """\
<p class="a blue moon">{{ "a blue moon" }}</p>
{# a blue moon #}
<script>
"a blue moon"
</script>
a blue moon
"""
FORTRAN = """\
! a blue moon
print *, 'a blue moon!' ! nothing
"""


@pytest.fixture
def phrases(tmp_path):
    path = tmp_path / "phrases.toml"
    path.write_text('[phrases]\n"blue moon" = "rarely"\n')
    return phrases_in(path)


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.md", MARKDOWN, [1, 3, 4]),
        ("a.py", PYTHON, [3, 5, 6, 8]),
        ("a.c", C, [1, 3, 4, 4, 5]),
        ("a.sh", SHELL, [1, 2]),
        ("a.toml", TOML, [2, 2]),
        ("a.html", TEMPLATE, [2, 6]),
        ("a.f90", FORTRAN, [1]),
        ("a.bin", SHELL, []),
    ],
)
def test_phrases_are_found_in_prose_with_their_lines(phrases, name, content, lines):
    found = list(findings(texts_of(Path(name), content), phrases))
    assert [line for line, _, _ in found] == lines
    assert {(words.lower(), better) for _, words, better in found} <= {("blue moon", "rarely")}


def test_phrase_is_whole_words():
    phrases = phrases_in(TOOL.with_name("phrases.toml"))
    texts = texts_of(Path("a.md"), "Everywhere there is no event; it is no longer nobodys.\n")
    assert list(findings(texts, phrases)) == []


def test_every_phrase_is_a_regular_expression_with_a_wording():
    phrases = phrases_in(TOOL.with_name("phrases.toml"))
    assert len(phrases) > 30
    assert all(phrase.better and not phrase.pattern.search("") for phrase in phrases)


def test_words_of_sentences_are_counted():
    words = "A file has 3.5 GB (see e.g. Fig. 2).\nIt is closed!\n\nNo full stop here\n\nTwo words."
    assert sentence_lengths(words) == [9, 3]


def run(folder: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(folder / "tools" / "dev" / "prose.py"), *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path):
    """A project with the check, and a document of two phrases."""
    tools = tmp_path / "tools" / "dev"
    tools.mkdir(parents=True)
    for name in ("prose.py", "prose_texts.py"):
        (tools / name).write_text((TOOL.parent / name).read_text())
    (tools / "phrases.toml").write_text('[phrases]\n"blue moon" = "rarely"\n')
    (tmp_path / "a.md").write_text("A blue moon.\n\nA blue moon again.\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_phrase_is_printed_with_its_place_and_the_standard_wording(project):
    done = run(project)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ['a.md:1: "blue moon": rarely', 'a.md:3: "blue moon": rarely']


def test_sum_of_allowed_phrases_only_shrinks(project):
    allowed = project / "tools" / "dev" / "phrases_allowed.toml"
    allowed.write_text('[allowed]\n"moved.md" = 2\n"gone.md" = 4\n')
    assert "a.md:1:" in run(project).stdout
    assert run(project, "--lower").returncode == 0
    assert re.findall(r'^".*', allowed.read_text(), re.M) == ['"a.md" = 2']
    assert run(project).returncode == 0
    (project / "a.md").write_text("A blue moon. A blue moon. A blue moon.\n")
    assert "3 phrases, 2 are allowed" in run(project).stdout
    assert run(project, "--lower").returncode == 1
    assert re.findall(r'^".*', allowed.read_text(), re.M) == ['"a.md" = 2']
