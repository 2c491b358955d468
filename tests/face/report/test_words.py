"""Words of the glossary: one table for the command, the document and the pages, each linked where it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from markupsafe import Markup

from support.commands import tflq
from tflq.engine.profiles import PROFILES
from tflq.face.report.html.page import page
from tflq.face.report.wording import WORDS, anchor, glossary_text, linked, runtime_name

ROOT = Path(__file__).resolve().parents[3]


def test_the_glossary_fits_one_screen_and_any_width() -> None:
    shown = tflq("help", "words", env={"COLUMNS": "120"}).stdout
    assert len(shown.splitlines()) <= 24
    assert all(word in shown for word in WORDS)
    assert max(map(len, glossary_text(40).splitlines())) <= 40


def test_the_document_is_up_to_date() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from glossary_docs import PAGE
        from glossary_docs import page as written
    finally:
        sys.path.pop(0)
    assert PAGE.read_text(encoding="utf-8") == written()


def test_words_are_linked_once_in_each_section_and_explained_below() -> None:
    body = "<section><p>A promise, isolated, and a promise.</p><code>promise</code></section><section>Promises: 3 dB"
    whole = page("verify", "DR of the dump", Markup(body + "</section>"))
    linked_words = re.findall(r'<a class="word" href="#([\w-]+)"', whole)
    assert linked_words == ["word-promise", "word-isolated", "word-promise", "word-db"]
    explained = re.findall(r'<dt id="([\w-]+)">', whole)
    assert explained == [anchor(word) for word in WORDS if anchor(word) in {*linked_words, "word-dr", "word-dump"}]
    assert "<code>promise</code>" in whole


def test_pictures_links_names_and_scripts_stay() -> None:
    found: set[str] = set()
    closed = "<svg><text>dump</text></svg>", '<a href="#dump">dump</a>', "<pre>tflq dump</pre>"
    for same in (*closed, "<td>dump_tensor</td>", "<td>dump.npz</td>"):
        assert linked(Markup(same), found) == same
    assert not found


def test_every_profile_names_its_runtime() -> None:
    names = {name: runtime_name(name) for name in PROFILES}
    assert len(set(names.values())) == len(names)
    assert all(text[0].isupper() or name == "spec" for name, text in names.items())
    assert names["tflm-2026.9-cmsis-nn-single"] == "TFLite Micro 2026.9 CMSIS-NN single rounding"
    assert [runtime_name(name) for name in ("chip.yaml", "", "litert-ref+single-rounding")] == [
        "chip.yaml",
        "",
        "litert-ref+single-rounding",
    ]
