"""The checks of layouts themselves: each finds its mistake on a page that is broken on purpose, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import Browser, browser

pytestmark = pytest.mark.slow

_CUT = "width: 5rem; overflow: hidden; white-space: nowrap"
_ELLIPSIS = f"{_CUT}; text-overflow: ellipsis"
_BOX = (
    '<svg width="400" height="50"><g>{}<rect width="90" height="42" fill="{}"/><text x="5" y="20">{}</text></g></svg>'
)
#: A page's body, and what is found: the check and the beginning of the text.
BROKEN = {
    "wider than the screen": ('<p style="width: 3000px">wide</p>', ["overflow: 3"]),
    "cut": (f'<p style="{_CUT}">a text that is far too long</p>', ["clipped: a text"]),
    "cut by what is around": (f'<div style="{_CUT}"><b>a text that is far too long</b></div>', ["clipped: a text"]),
    "cut with an ellipsis alone": (f'<p style="{_ELLIPSIS}">a text that is far too long</p>', ["clipped: a text"]),
    "shortened without the whole": ("<p>block/conv2d/Bias…</p>", ["clipped: no title: block"]),
    "out of its section": (
        '<section style="width: 5rem"><p style="white-space: nowrap">a text that is far too long</p></section>',
        ["clipped: outside its section: a text"],
    ),
    "out of its box": (_BOX.format("", "white", "DEPTHWISE_CONV_2D_LONG"), ["clipped: outside its box: DEPTH"]),
    "over another": ('<p>one text</p><p style="margin-top: -2.1em">another</p>', ["overlap: "]),
    "gray on white": ('<p style="color: #999">faint</p>', ["contrast: 2.85: faint"]),
    "faint by opacity": ('<p style="opacity: .4">faint</p>', ["contrast: 2."]),
    "dark on its ground": ('<div style="background: #333"><p>dark</p></div>', ["contrast: 1."]),
    "dark on its box": (_BOX.format("", "#333", "ADD"), ["contrast: 1."]),
}
SOUND = {
    "whole": "<p>a text</p><p>another</p>",
    "cut with its whole": f'<p style="{_ELLIPSIS}" title="all of it">a text that is far too long</p>',
    "scrolled": '<div style="width: 5rem; overflow-x: auto; white-space: nowrap">a text that is far too long</div>',
    "shortened with the whole": '<p><span title="block/conv2d/BiasAdd">block/conv2d/Bias…</span></p>',
    "box with the whole": _BOX.format("<title>DEPTHWISE_CONV_2D</title>", "white", "DEPTH…"),
    "large and faint": '<p style="color: #888; font-size: 24px">large</p>',
    "hidden": '<p hidden>hidden</p><details><summary>more</summary><p style="color: #ccc">folded</p></details>',
    "scrolled away": '<div style="height: 2em; overflow: auto"><p>one<p>two<p>three</div><p>beside</p>',
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def found(chromium: Browser, folder: Path, body: str) -> list[str]:
    page = folder / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>page</title><body>{body}", encoding="utf-8")
    chromium.show(page.as_uri())
    return chromium.layout()


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_found(name: str, chromium: Browser, tmp_path: Path) -> None:
    body, expected = BROKEN[name]
    complaints = found(chromium, tmp_path, body)
    assert len(complaints) == len(expected), complaints
    assert all(one.startswith(start) for one, start in zip(complaints, expected, strict=True)), complaints


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_page_has_no_complaint(name: str, chromium: Browser, tmp_path: Path) -> None:
    assert found(chromium, tmp_path, SOUND[name]) == []


def test_what_is_folded_is_checked_when_it_is_open(chromium: Browser, tmp_path: Path) -> None:
    assert found(chromium, tmp_path, SOUND["hidden"]) == []
    chromium.unfold()
    assert [one.partition(":")[0] for one in chromium.layout()] == ["contrast"]
