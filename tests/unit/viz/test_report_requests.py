"""The requests of each API in the report: a folded table with the numbers of ``ensio requests``."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_runs import run_of

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.units import bytes_text, seconds_text
from ensembles.viz import write_report

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


def told(run: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["requests", str(run), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def of_corpus(name: str, folder: Path) -> Path:
    subprocess.run(["tar", "-xJf", CORPUS / f"{name}.tar.xz", "-C", folder], check=True)
    return folder / name


def section(page: Path) -> str:
    text = page.read_text(encoding="utf-8").replace("\xa0", " ")
    return text.partition('<section id="transfers">')[2].partition("</section>")[0]


def tables(text: str) -> list[list[dict[str, str]]]:
    return [table(part) for part in text.split("</table>")[:-1]]


def table(text: str) -> list[dict[str, str]]:
    headers = re.findall(r"<th>([^<]*)</th>", text)
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"(?s)<tr><td.*?</tr>", text)]
    return [dict(zip(headers, row, strict=True)) for row in rows]


@pytest.mark.parametrize("name", ["replay-btio", "replay-gcrm", "replay-profile", "replay-tail", "sim-gcrm"])
def test_the_table_has_the_numbers_of_the_command(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = of_corpus(name, tmp_path)
    write_report(en.open(run), tmp_path / "a.html")
    (found, sizes), expected = tables(section(tmp_path / "a.html")), told(run, capsys)["requests"]
    assert len(found) == len(expected) > 0
    for row, entry in zip(found, expected, strict=True):
        assert (row["API"], row["op"]) == (entry["layer"], entry["op"])
        assert row["requests"] == f"{entry['count']:,}"
        assert (row["bytes"], row["time"]) == (bytes_text(entry["bytes"]), seconds_text(entry["time_s"]))
        assert row.get("collective", "") == ("" if entry["collective"] is None else str(entry["collective"]))
        for key in ("misaligned", "crossing"):
            count, share = row.get(key, "").partition(" (")[::2]
            if not entry["located"]:
                assert not count
                continue
            assert count == f"{entry[key]:,}"
            assert float(share.removesuffix(" %)")) == pytest.approx(100 * entry[f"{key}_share"], abs=0.051)
    assert len(sizes) == sum(min(len(entry["sizes"]), 3) for entry in expected)
    assert sizes[0]["count"] == f"{expected[0]['sizes'][0]['count']:,}"


def test_misaligned_requests_are_in_the_title_where_they_are_known(tmp_path: Path) -> None:
    write_report(en.open(of_corpus("replay-btio", tmp_path)), tmp_path / "a.html")
    text = section(tmp_path / "a.html")
    assert "<h2>Requests: 19 (95 %) of mpiio read misaligned</h2>" in text
    assert "Misaligned: offsets are not multiples of the stripe or file system's block." in html.unescape(
        text
    )
    writes = [("pwrite", 0.1 * i, 0.01, 1000) for i in range(7)]
    run_of(tmp_path / "run", [[*writes, *(("pread", 0.7 + 0.01 * i, 0.01, 10) for i in range(20))]])
    write_report(en.open(tmp_path / "run"), tmp_path / "b.html")
    text = section(tmp_path / "b.html")
    assert "<h2>Requests: posix write moved most, 6.84 KiB in 7 requests</h2>" in text
    assert "<th>misaligned</th>" not in text


def test_a_run_without_reads_and_writes_has_no_such_section(tmp_path: Path) -> None:
    run_of(tmp_path / "run", [[("open", 0.1, 0.01, 0), ("close", 0.3, 0.01, 0)]])
    write_report(en.open(tmp_path / "run"), tmp_path / "a.html")
    assert 'id="transfers"' not in (tmp_path / "a.html").read_text()


def test_it_is_folded_until_a_reader_opens_it(tmp_path: Path) -> None:
    pytest.importorskip(
        "playwright", reason="playwright is not installed: the report is not tried in a browser"
    )
    from browser import browser, chromium

    if chromium() is None:
        pytest.skip("no Chromium on PATH: the report is not tried in a browser")
    write_report(en.open(of_corpus("replay-btio", tmp_path)), tmp_path / "a.html")
    with browser() as open_page:
        report = open_page(tmp_path / "a.html")
        part = report.page.locator("#transfers")
        assert not part.locator("table").first.is_visible()
        part.locator("summary").click()
        assert part.locator("table").first.is_visible()
        assert part.locator("tbody tr").first.locator("td").nth(6).inner_text() == "19 (95\xa0%)"
        assert report.page.evaluate("document.documentElement.scrollWidth") <= 1400
        assert report.problems == []
