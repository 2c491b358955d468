"""The one layout of all pages. A page is whole: style, script and pictures are in it, and its policy forbids all else.

The Content-Security-Policy names the script by its digest, so that no text out of a file can ever run as one.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import tflq
from tflq.face.report.html.parts import text, together
from tflq.face.report.words import WORDS, anchor, linked

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
