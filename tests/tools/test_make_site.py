"""The site: every page is in it, no link or anchor is broken, and rows have anchors that stay."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import fault_docs
import make_site
import pytest
import runtime_docs

from support import suites

DOCS = suites.ROOT / "docs"
ROWS = re.compile(r'<a id="([^"]+)"></a>')


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [found[key] or "" for key in ("href", "src") if found.get(key)]
        self.anchors += [found["id"] or ""] if "id" in found else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    into = tmp_path_factory.mktemp("site") / "site"
    assert make_site.build(into) == 0
    return into


def local(page: Path, link: str) -> tuple[Path, str] | None:
    """The file and the anchor of a link to this site."""
    if re.match(r"[a-z]+:|//", link):
        return None
    path, anchor = urldefrag(link)
    return ((page.parent / unquote(path)).resolve() if path else page), anchor


def broken(site: Path) -> Iterator[str]:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for target in filter(None, (local(path, link) for link in page.links)):
            if not target[0].exists():
                yield f"{path.name}: {target[0].name}"
            elif target[1] and target[0] in pages and unquote(target[1]) not in pages[target[0]].anchors:
                yield f"{path.name}: {target[0].name}#{target[1]}"


def test_no_link_or_anchor_is_broken(site: Path) -> None:
    found = [text for text in broken(site) if not text.startswith("404.html")]
    assert found == []


def test_every_page_is_there_with_search_and_without_a_network(site: Path) -> None:
    for path in DOCS.rglob("*.md"):
        assert (site / path.relative_to(DOCS)).with_suffix(".html").exists(), path
    assert (site / "search" / "search_index.js").exists()
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="([^"]+)"|<link[^>]+stylesheet[^>]+href="([^"]+)"', text)
        assert loaded
        assert not [url for urls in loaded for url in urls if re.match("http|//", url)], path.name


@pytest.mark.parametrize("name", ["faults", "runtimes", "scoreboard"])
def test_every_row_has_an_anchor_of_its_own(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    anchors = ROWS.findall(text)
    assert len(set(anchors)) == len(anchors) > 29
    assert all(re.fullmatch(r"[\w.-]+", anchor) for anchor in anchors)


def test_anchors_that_were_published_stay() -> None:
    published = {
        "faults": [
            "rule-bias-scale",
            "rule-refused",
            "why-user",
            "user-input-rgb-and-bgr-exchanged",
            "mistake-bias-missing",
        ],
        "runtimes": ["op-conv_2d", "op-add", "op-softmax"],
        "scoreboard": ["op-conv_2d", "litert-2.3.0-ref", "openvino-2026.4.1"],
    }
    for name, anchors in published.items():
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert set(anchors) <= set(ROWS.findall(text)), name


@pytest.mark.slow
def test_the_page_of_faults_is_up_to_date() -> None:
    assert fault_docs.page() == fault_docs.PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_runtimes_is_up_to_date() -> None:
    assert runtime_docs.page() == runtime_docs.PAGE.read_text(encoding="utf-8")


def test_a_folder_with_other_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    script = suites.ROOT / "tools" / "make_site.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, [p.name for p in tmp_path.iterdir()]) == (2, ["thesis.txt"])
    assert "no site of this tool" in done.stderr


def shown(address: str) -> str:
    """The document that Chromium makes of a page, after its scripts."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,800", "--virtual-time-budget=10000"]
    command = [chromium, *options, "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_search_works_from_a_disk(site: Path) -> None:
    found = shown(f"{(site / 'scoreboard.html').as_uri()}?q=nchw")
    assert "matching documents" in found
    assert "Mistakes of users" in found


def test_operators_by_runtimes_are_coloured_and_have_filters(site: Path) -> None:
    found = shown((site / "runtimes.html").as_uri())
    rows = [row for row in (DOCS / "runtimes.md").read_text(encoding="utf-8").splitlines() if "<a id=" in row]
    cells = [cell.strip() for row in rows for cell in row.split(" | ")[1:]]
    for name, sign in (("same", "="), ("other", "≠"), ("none", "–")):
        assert found.count(f'<td class="{name}">') == sum(cell.startswith(sign) for cell in cells) > 99
    assert f"{len(rows)} of {len(rows)} operators" in found
    assert found.count("<select>") == 3
