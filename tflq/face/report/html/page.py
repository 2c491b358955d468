"""The one layout of all pages, and its parts as markup.

Parts of pages as markup: sections, paragraphs, tables, figures, bars, commands. Every text is escaped here.

Functions take inline values and parts. Only `Markup` is inserted without escaping.

The one layout of all pages. A page is whole: style, script and pictures are in it, and its policy forbids all else.

The Content-Security-Policy names the script by its digest, so that no text out of a file can ever run as one.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import tflq
from tflq.face.report.blocks import Badge, Bar, CodeBlock, Columns, OperatorBlock, Shortened, Styled
from tflq.face.report.wording import WORDS, anchor, linked
from tflq.texts import printable

#: Bars that are shown, and those that one more than that leaves; the rest is folded.
_MOST_BARS, _FIRST_BARS = 24, 16
#: Classes of columns, by their alignment.
_WAYS = {"<": "", ">": ' class="number"', "=": ' class="whole"'}
#: Lines of a cell that are not folded.
_CELL_LINES = 5


def text(value: object) -> Markup:
    """Return an inline value as markup: control characters are escaped, line breaks are kept."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, tuple):
        return Markup("").join(map(text, value))
    if isinstance(value, OperatorBlock):
        return operator_link(value.index, value.op)
    if isinstance(value, CodeBlock):
        return code(value.text)
    if isinstance(value, Badge):
        return dotted(value.text, value.style)
    if isinstance(value, Shortened) and value.text != value.whole:
        return Markup('<span title="{1}">{0}</span>').format(text(value.text), text(value.whole))
    if isinstance(value, Styled):
        styled = Markup("<strong>{1}</strong>" if value.style == "strong" else '<span class="{0}">{1}</span>')
        return styled.format(value.style, text(value.text))
    return escape("\n".join(printable(line) for line in str(value).split("\n")))


def dotted(value: object, style: str) -> Markup:
    """Return text with a dot, both in the colour of its style."""
    dot = Markup('<span class="{}"><span class="dot" aria-hidden="true"></span>{}</span>')
    return dot.format(style, text(value))


def together(*parts: object) -> Markup:
    """Return parts one after the other."""
    return Markup("\n").join(text(part) for part in parts if part)


def section(name: str, title: str, *parts: object) -> Markup:
    """Return a section with a heading; nothing if it has no parts. `name` is its anchor."""
    body = together(*parts)
    if not body:
        return Markup("")
    opening = Markup('<section id="{0}" aria-labelledby="{0}-title">\n<h2 id="{0}-title">{1}</h2>\n')
    return opening.format(name, text(title)) + body + Markup("\n</section>")


def paragraph(value: object, style: str = "") -> Markup:
    """Return a paragraph, in the colour of a style if one is given; nothing for no text."""
    if not value:
        return Markup("")
    return Markup("<p{}>{}</p>").format(_class(style), text(value))


def code(value: object) -> Markup:
    """Return a path, name or number as it is typed."""
    return Markup("<code>{}</code>").format(text(value))


def listing(values: Iterable[object]) -> Markup:
    """Return a list with bullets; nothing for no values."""
    items = Markup("").join(Markup("<li>{}</li>").format(text(value)) for value in values)
    return Markup("<ul>{}</ul>").format(items) if items else Markup("")


def details(summary: object, *parts: object, opened: bool = False) -> Markup:
    """Return parts that are folded below a summary line."""
    start = Markup("<details open>" if opened else "<details>")
    return start + Markup("<summary>{}</summary>\n").format(text(summary)) + together(*parts) + Markup("</details>")


def table(columns: Columns, rows: Iterable[Sequence[object]], styles: Sequence[str] = ()) -> Markup:
    """Return a table that scrolls sideways if it is too wide. Columns that are empty in every row are left out.

    `styles` are the classes of the rows, where they have any.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    kept = [i for i in range(len(columns)) if any(row[i] for row in cells)]
    way = [Markup(_WAYS[side]) for _, side in columns]
    head = Markup("").join(Markup("<th scope=col{}>{}</th>").format(way[i], text(columns[i][0])) for i in kept)
    body = Markup("\n").join(
        Markup("<tr{}>{}</tr>").format(
            _class(styles[number] if number < len(styles) else ""),
            Markup("").join(Markup("<td{}>{}</td>").format(way[i], row[i]) for i in kept),
        )
        for number, row in enumerate(cells)
    )
    frame = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="table"><table>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}\n</tbody></table></div>"
    )
    return frame.format(head, body)


def _cell(value: object) -> Markup:
    """Return a cell; the lines beyond the first few are folded."""
    if not isinstance(value, str) or isinstance(value, Markup) or "\n" not in value:
        return text(value)
    lines = [text(line) for line in value.split("\n")]
    shown, rest = Markup("<br>").join(lines[:_CELL_LINES]), Markup("<br>").join(lines[_CELL_LINES:])
    return together(shown, details(f"and {len(lines) - _CELL_LINES} more", rest) if rest else "")


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names and values; those without a value are left out."""
    rows = [Markup("<dt>{}</dt><dd>{}</dd>").format(text(name), text(value)) for name, value in pairs if value != ""]
    return Markup('<dl class="facts">{}</dl>').format(Markup("").join(rows)) if rows else Markup("")


def commands(values: Iterable[str]) -> Markup:
    """Return commands to copy, each on its own."""
    return Markup("\n").join(Markup("<pre>{}</pre>").format(text(value)) for value in values)


def figure(drawing: Markup, caption: object) -> Markup:
    """Return a drawing with its caption; nothing if there is no drawing."""
    if not drawing:
        return Markup("")
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(drawing, text(caption))


def side_by_side(*figures: Markup) -> Markup:
    """Return figures beside each other, as far as there is room."""
    shown = [f for f in figures if f]
    return Markup('<div class="side">{}</div>').format(Markup("\n").join(shown)) if shown else Markup("")


def key(style: str) -> Markup:
    """Return a small square in a colour, for captions."""
    return Markup('<span class="key {}" aria-hidden="true"></span>').format(style)


def operator_link(index: int, op: str) -> Markup:
    """Return an operator's index and type as a link to its panel."""
    return Markup('<a href="#op-{0}">{0} {1}</a>').format(index, text(op))


def bars(title: str, unit: str, rows: Sequence[Bar], *, full: float = 0.0) -> Markup:
    """Return bars from left to right as a table: label, bar, value; the rest of many is folded. Nothing without rows.

    Args:
        title: What the labels are, as in "operator".
        unit: What the values are, with their unit.
        rows: From top to bottom. Values below 0 extend to the left of those above.
        full: A value as long as the room there is, where none is larger.
    """
    if not rows:
        return Markup("")
    values = [row.value for row in rows if math.isfinite(row.value)]
    longest, lowest = max([*values, full]), min([*values, 0.0])
    room = longest - lowest

    def place(value: float) -> str:
        """Return the style of a bar: its length, and where it begins if there are values below 0."""
        share = abs(value) / room if room and math.isfinite(value) else float(bool(value))
        length = max(100 * share, 0.5) if value else 0.0
        if not lowest:
            return f"width:{min(length, 100.0):.1f}%"
        begin = 100 * (min(value, 0.0) - lowest) / room if math.isfinite(value) else -100 * lowest / room
        return f"margin-left:{begin:.1f}%;width:{min(length, 100 - begin):.1f}%"

    first = len(rows) if len(rows) <= _MOST_BARS else _FIRST_BARS
    line = Markup(
        '<tr><th scope="row">{}</th><td><span class="bar {}" style="{}"></span></td><td class="number">{}</td></tr>'
    )
    lines = [line.format(text(r.label), r.style, place(r.value), text(r.text)) for r in rows]
    head = Markup('<thead><tr><th scope="col">{}</th><th scope="col" colspan="2">{}</th></tr></thead>')
    frame = Markup('<table class="bars" aria-label="{}">{}<tbody>{}</tbody></table>')
    drawn = [
        frame.format(text(f"{unit} by {title}"), head.format(text(title), text(unit)), Markup("\n").join(part))
        for part in (lines[:first], lines[first:])
        if part
    ]
    return drawn[0] if len(drawn) == 1 else drawn[0] + details(f"and {len(rows) - first:,} more", drawn[1])


def _class(style: str) -> Markup:
    return Markup(' class="{}"').format(style) if style else Markup("")


_TEMPLATES = Path(__file__).parent / "templates"


def page(
    verb: str,
    headline: object,
    *parts: object,
    title: str = "",
    word: str = "",
    tone: str = "",
    facts: Iterable[object] = (),
) -> str:
    """Lay out a page.

    Args:
        verb: The verb that writes it.
        headline: The finding, in one line.
        parts: Sections, from top to bottom.
        title: Of the window, where it is not the headline.
        word: The verdict before the headline.
        tone: Its style: good, bad or warning.
        facts: Files read and settings: lines below the headline.
    """
    script = _source("page.js")
    words: set[str] = set()
    _, body, *lines = (linked(text(part), words) for part in (headline, together(*parts), *facts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return str(
        fill(
            "page.html",
            version=tflq.__version__,
            verb=verb,
            title=title or f"{word} {headline}".strip(),
            word=word,
            tone=tone,
            headline=headline,
            facts=lines,
            body=body,
            words=[(anchor(word), word, meaning) for word, meaning in WORDS.items() if word in words],
            style=Markup(_source("style.css")),
            script=Markup(script),
            policy=Markup(
                f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
            ),
        )
    )


def fill(template: str, **values: Any) -> Markup:
    """Return a template of `templates/` filled in. Every text is escaped; a missing value is an error."""
    return Markup(_environment().get_template(template).render(**values))


@cache
def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _fit_to_be_shown(value: Any) -> Any:
    return text(value) if isinstance(value, str) else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_fit_to_be_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
