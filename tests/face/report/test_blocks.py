"""Every block in each renderer: what is shown where, in which order, and escaped."""

from __future__ import annotations

import re

import pytest

from support import suites
from support.each import each
from tflq.face.report import blocks
from tflq.face.report.blocks import Block, Inline, Report, plain
from tflq.face.report.graph.drawing import view_of
from tflq.face.report.render.html import card_html, card_text, page_of, parts_of
from tflq.face.report.render.text import lines_of

EVIL = "<b>\x1b[31m"
ROWS = [[str(n), blocks.OperatorBlock(n, "ADD"), blocks.Badge("same", "good")] for n in range(3)]
COLUMNS = (("#", ">"), ("operator", "<"), ("status", "<"))
VERDICT = blocks.Headline("2 differ", "bad", "DIFFERS", "m")
TABLE = blocks.TableBlock(COLUMNS, ROWS, most=1, rest="{left} left of {of}, {shown} shown", fold="all rows", indent=1)


def text(*given: Block) -> list[str]:
    return [line.text for line in lines_of(Report("verb", given))]


@each(
    ("block", "lines", "markup"),
    [
        (
            blocks.Headline("2 differ", "bad", "DIFFERS", "m"),
            ["DIFFERS m: 2 differ"],
            '<p class="bad">DIFFERS m: 2 differ',
        ),
        (blocks.Text(("a ", blocks.CodeBlock("b")), "faint", 1), ["  a b"], '<p class="soft">a <code>b</code></p>'),
        (blocks.Text(blocks.Styled("x", "strong")), ["x"], "<p><strong>x</strong></p>"),
        (blocks.Note("late"), ["note: late"], '<p><span class="warning">'),
        (blocks.Gap(), [""], ""),
        (blocks.Listing(["a", "b"]), ["  a", "  b"], "<ul><li>a</li><li>b</li></ul>"),
        (
            TABLE,
            ["  #  operator  status", "  0  ADD       same", "  2 left of 3, 1 shown"],
            "<summary>all rows</summary>",
        ),
        (blocks.TableBlock(COLUMNS, []), [], ""),
        (blocks.Next(["tflq a", "tflq b"]), ["Next: tflq a", "  or: tflq b"], '<section id="next"'),
        (blocks.Section("s", "Title", [blocks.Text("inside")]), ["inside"], '<h2 id="s-title">Title</h2>'),
        (blocks.Section("s", "Title", []), [], ""),
        (blocks.Fold("more", [blocks.Text("inside")]), [], "<summary>more</summary>"),
        (blocks.Verbatim("a\n  b"), ["a", "  b"], "<pre>a\n  b</pre>"),
        (blocks.Pairs([("name", "value")]), ["", "name  value"], "<dt>name</dt><dd>value</dd>"),
        (blocks.Bars("op", "ms", [blocks.Bar("a", 1, "1 ms")]), [], '<span class="bar plain"'),
        (blocks.InText([blocks.Text("only text")]), ["only text"], ""),
        (blocks.OnPage(lambda view: [blocks.Text("only page")]), [], "<p>only page</p>"),
        (blocks.Graph(), [], 'id="graph"'),
        (blocks.Brief("where", "then"), [], ""),
        (blocks.Text(EVIL), ["<b>\x1b[31m"], "&lt;b&gt;\\x1b[31m"),
    ],
)
def test_a_block_in_text_and_on_a_page(block: Block, lines: list[str], markup: str) -> None:
    assert text(block) == lines
    drawn = parts_of([block], VIEW)
    assert markup in drawn
    assert bool(drawn) == bool(markup)


VIEW = view_of(suites.ROOT / "golden" / "singleop" / "models" / "add_u8_0.tflite")


def test_a_page_gathers_verdict_and_facts_above_its_blocks() -> None:
    given = [blocks.Text("body"), blocks.FactLine("fact", "good"), blocks.Headline("2 differ", "bad", "DIFFERS", "m")]
    page = page_of(Report("verb", list(given), about=blocks.CodeBlock("m.tflite"), title="window"))
    order = [
        "<title>DIFFERS 2 differ · window</title>",
        ">DIFFERS</span> 2 differ</h1>",
        "<code>m.tflite</code>",
        "fact</span>",
        "<p>body</p>",
    ]
    positions = [page.find(part) for part in order]
    assert -1 not in positions
    assert positions == sorted(positions)
    assert "DIFFERS m: 2 differ" not in page


def test_a_page_without_a_verdict_has_a_headline() -> None:
    assert "<h1>3 profiles</h1>" in page_of(Report("verb", [], headline="3 profiles"))


def test_long_cells_are_folded_on_a_page() -> None:
    table = blocks.TableBlock((("a", "<"),), [["\n".join(map(str, range(7)))]])
    assert re.search(r"0<br>1.*4\n<details><summary>and 2 more</summary>\n5<br>6</details>", parts_of([table]))


def test_a_card_is_the_verdict_and_a_brief_above_the_text() -> None:
    brief = blocks.Brief("where", "then")
    assert card_text(Report("verb", [VERDICT, brief])) == "DIFFERS m: 2 differ\nwhere\nthen"
    assert "<details>" not in card_html(Report("verb", [VERDICT, brief]))
    assert "body</pre></details>" in card_html(Report("verb", [VERDICT, brief, blocks.Text("body")]))


@pytest.mark.parametrize("value", ["a", ("a", blocks.CodeBlock("b"), ("c",)), blocks.OperatorBlock(3, "ADD")])
def test_an_inline_value_has_plain_text(value: Inline) -> None:
    assert plain(value) in ("a", "abc", "ADD")
