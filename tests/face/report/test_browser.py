"""Every page in a real browser: quiet, whole, readable on a telephone, and its graph does what it says.

Screenshots of all pages are left in the folder that pytest prints as its temporary one (pages*/).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support import suites
from support.browser import VIEWS, Browser, browser
from support.hostile import NAMES
from support.pages import INT8, PAGES, WITHOUT_GRAPH, files_for_pages, page_of, verbs
from tflq.engine.api.files import load, save
from tflq.face.report.graph.drawing import ModelView, view_of
from tflq.face.report.render import html
from tflq.face.report.verbs.inspect import inspect_report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, object]:
    return files_for_pages(folder)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def inspect_page(view: ModelView) -> str:
    return html.page_of(inspect_report(view.inspection), view)


def test_every_verb_with_a_page_is_among_them() -> None:
    made = [words.split() for words in PAGES.values()]
    assert [verb for verb in verbs() if not any(words[: len(verb.split())] == verb.split() for words in made)] == []


#: What the headlines of some pages say.
HEADLINES = {
    "explain": r"<span.*>DIFFERS</span> in 4 of 20 .*; likely cause: litert-opt",
    "explain-same": r"<span.*good.*>SAME</span> in all 20",
    "run": r"top-1: 9 \(0\.5977\), computed under litert-ref",
    "conform": r"<span.*>FAILS</span> [1-9]\d* of [1-9]\d* cases fail against litert-ref \([1-9]\d* not supported",
    "lint-clean": r'<span class="good">nothing found</span>',
    "diff-same": r'<span class="good">no difference</span>',
    "quantize": r'<span class="\w+">same top-1 as in float in ',
}


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_has_the_answer(name: str, files: dict[str, object]) -> None:
    page = page_of(name, files).read_text(encoding="utf-8")
    found = re.search("<h1>(.*?)</h1>", page)
    assert found is not None
    assert re.match(HEADLINES[name], found[1]), found[1]


def test_bars_are_in_order_and_the_winner_is_green(files: dict[str, object]) -> None:
    page = page_of("quantize", files).read_text(encoding="utf-8")
    ratios = re.findall(r'href="#op-\d+">[^<]*</a></th>.*?>([\d.]+) dB<', page)
    assert len(ratios) > 10
    assert ratios == sorted(ratios, key=float)  # the worst first
    ranking = page[page.index("divergence, nats") :]
    assert re.findall(r'class="bar (\w+)"', ranking)[:3] == ["good", "plain", "plain"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_and_fits(name: str, files: dict[str, object], chromium: Browser, folder: Path) -> None:
    page = page_of(name, files)
    for width, theme in VIEWS:
        chromium.show(page.as_uri(), width, theme)
        assert [asked for asked in chromium.requests() if not asked.startswith("data:")] == [page.as_uri()]
        loaded = chromium.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert [name for name in loaded if not name.startswith("data:")] == []
        chromium.screenshot(folder / f"{name}-{width}-{theme}.png")
        assert chromium.complaints() == []
        found = chromium.layout()
        chromium.unfold()
        assert sorted({*found, *chromium.layout()}) == [], (width, theme)
    assert chromium.nameless() == []
    drawn = chromium.run("return document.querySelectorAll('#drawing .box[data-op]').length")
    assert bool(drawn) == (name not in WITHOUT_GRAPH)


@pytest.mark.parametrize("name", ["explain", "long", "quantize", "profiles", "prove", "unet"])
@pytest.mark.parametrize("width", [1400, 420])
def test_every_panel_is_laid_out(name: str, width: int, files: dict[str, object], chromium: Browser) -> None:
    chromium.show(page_of(name, files).as_uri(), width)
    operators = chromium.run("return [...document.querySelectorAll('#graph template')].map(panel => panel.id.slice(6))")
    for operator in operators:
        chromium.run(f"location.hash = '#op-{operator}'; window.dispatchEvent(new Event('hashchange'))")
        assert panel(chromium).split()[0] == operator
        chromium.unfold()
        assert chromium.layout() == [], operator


def panel(chromium: Browser) -> str:
    return str(chromium.run("return document.querySelector('#panel h3').textContent"))


def test_the_graph_answers(files: dict[str, object], chromium: Browser) -> None:
    chromium.show(page_of("explain", files).as_uri())
    assert panel(chromium) == "4 CONV_2D"  # the first that differs
    chromium.driver.find_element("css selector", "#box-5").click()
    assert panel(chromium) == "5 ADD"
    assert chromium.run("return location.hash") == "#op-5"
    view = chromium.driver.find_element("css selector", "#view")
    view.send_keys("\ue015")  # arrow down
    assert panel(chromium) == "6 CONV_2D"
    assert chromium.run("return document.activeElement.id") == "box-6"
    find = chromium.driver.find_element("css selector", "#find")
    find.send_keys("softmax")
    assert chromium.run("return document.querySelectorAll('.box:not(.dim)').length") == 1
    find.send_keys("\ue007")  # enter
    assert panel(chromium) == "19 SOFTMAX"
    find.clear()
    shade = "return document.querySelector('#box-4').classList[1]"
    assert chromium.run(shade) == "hot5"
    chromium.driver.find_element("css selector", "#colouring option:nth-child(3)").click()
    assert chromium.run(shade) == "bad"
    assert chromium.run("return document.querySelector('#box-4 .value').textContent") == "differs"
    width = "return document.querySelector('#drawing').getBoundingClientRect().width"
    before = chromium.run(width)
    chromium.driver.find_element("css selector", "#nearer").click()
    assert chromium.run(width) == pytest.approx(1.25 * before)
    chromium.driver.find_element("css selector", "#whole").click()
    assert chromium.run("const v = document.querySelector('#view'); return v.scrollHeight - v.clientHeight") <= 2
    assert chromium.complaints() == []


#: A function body: boxes that the frame does not show.
OUTSIDE = """
const frame = document.querySelector('#view').getBoundingClientRect();
return [...document.querySelectorAll('#drawing .box')].filter(box => {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  return left < frame.left || right > frame.right || top < frame.top || bottom > frame.bottom;
}).length
"""
#: A function body: whether two boxes overlap.
OVERLAP = """
const all = [...document.querySelectorAll('#drawing .box > rect')].map(box => box.getBoundingClientRect());
return all.some((a, i) => all.slice(i + 1).some(b =>
  a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1))
"""


@pytest.mark.parametrize("width", [1400, 420])
def test_the_whole_model_is_in_columns(width: int, files: dict[str, object], chromium: Browser) -> None:
    """20 operators in the first view of a screen; a telephone begins with one column, in which they can be read."""
    chromium.show(page_of("inspect", files).as_uri(), width)
    assert (chromium.run(OUTSIDE) == 0) == (width == 1400)
    chromium.driver.find_element("css selector", "#whole").click()
    assert (chromium.run(OUTSIDE), chromium.run(OVERLAP)) == (0, False)
    columns = "return document.querySelectorAll('#drawing svg use').length"
    assert chromium.run(columns) > 1
    assert not chromium.run("return document.querySelector('#map').offsetParent !== null")
    chromium.driver.find_element("css selector", "#box-15").click()
    assert panel(chromium).split()[0] == "15"
    chromium.driver.find_element("css selector", "#plain").click()
    assert (chromium.run(columns), chromium.run(OVERLAP)) == (0, False)
    assert chromium.run("return document.querySelectorAll('#drawing > #arrows > path').length") > 20
    shown = chromium.run("return document.querySelector('#box-15').getBoundingClientRect().top")
    frame = chromium.run("const f = document.querySelector('#view').getBoundingClientRect(); return [f.top, f.bottom]")
    assert frame[0] < shown < frame[1]  # the chosen one is in view
    assert chromium.complaints() == []


def test_an_address_leads_to_an_operator(files: dict[str, object], chromium: Browser) -> None:
    chromium.show(page_of("verify", files).as_uri() + "#op-7")
    assert panel(chromium) == "7 DEPTHWISE_CONV_2D"
    chromium.run("location.hash = '#op-2'")
    time.sleep(0.2)
    assert panel(chromium) == "2 CONV_2D"


def test_hostile_names_are_only_shown(chromium: Browser, folder: Path) -> None:
    model = load(INT8)
    graph = model.subgraphs[0]
    evil = (*NAMES, "</title><script>window.pwned=1</script>", '"><img src=x onerror="window.pwned=1">', "</template>")
    tensors = tuple(replace(t, name=evil[i % len(evil)]) for i, t in enumerate(graph.tensors))
    named = replace(model, subgraphs=(replace(graph, tensors=tensors),))
    (folder / "evil.html").write_text(inspect_page(view_of(named)), encoding="utf-8", errors="backslashreplace")
    chromium.show((folder / "evil.html").as_uri(), 420)
    assert chromium.run("return window.pwned") is None
    assert chromium.complaints() == []
    operators = len(graph.operators)
    assert chromium.run("return document.querySelectorAll('#graph template').length") == operators
    assert chromium.run("return document.documentElement.scrollWidth") <= 420


def test_a_thousand_operators_are_drawn(chromium: Browser, folder: Path) -> None:
    model = load(INT8)
    graph = model.subgraphs[0]
    add = next(o for o in graph.operators if model.operator_codes[o.opcode_index].name == "ADD")
    spec = replace(graph.tensors[add.outputs[0]])
    tensors = [replace(spec, name=f"t{i}", buffer=0) for i in range(1001)]
    chain = [replace(add, inputs=(i, max(0, i - i % 7)), outputs=(i + 1,)) for i in range(1000)]
    large = replace(
        model,
        subgraphs=(
            replace(graph, tensors=tuple(tensors), operators=tuple(chain), inputs=(0,), outputs=(1000,), name="main"),
        ),
        signature_defs=None,
    )
    page = inspect_page(view_of(save(large)))
    (folder / "large.html").write_text(page, encoding="utf-8")
    assert len(page) < 5_000_000
    chromium.show((folder / "large.html").as_uri())
    assert chromium.run("return document.querySelectorAll('#drawing .box[data-op]').length") == 1000
    chromium.run("document.querySelector('#view').scrollTo(0, 1e6)")
    chromium.driver.find_element("css selector", "#find").send_keys("t500")
    assert chromium.run("return document.querySelector('#matches').textContent") != ""
    assert chromium.complaints() == []


@pytest.mark.skipif(bool(suites.missing()), reason="no shared test material")
def test_mobilenet_fits_in_three_megabytes(chromium: Browser, folder: Path) -> None:
    model = suites.SHARED / "suites" / "real" / "models" / "coral" / "mobilenet_v2_1.0_224_quant.tflite"
    page = inspect_page(view_of(model))
    assert len(page.encode()) < 3_000_000
    (folder / "mobilenet.html").write_text(page, encoding="utf-8")
    chromium.show((folder / "mobilenet.html").as_uri())
    chromium.screenshot(folder / "mobilenet.png")
    assert (chromium.run(OUTSIDE), chromium.run(OVERLAP)) == (0, False)
    assert chromium.layout() == []
    assert chromium.complaints() == []
