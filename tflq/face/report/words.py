"""Words that reports use in one meaning each: the glossary of `tflq help words`, docs/glossary.md and every page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

#: Word -> its meaning, in the order of a walk through the verbs.
WORDS: Mapping[str, str] = {
    "profile": "One runtime's arithmetic: package, version and resolver, such as litert-ref or tflm.",
    "promise": "How exactly tflq computes an operator: exact, exact on the same libm, close (n ULP) or refused.",
    "golden": "A recording of what a runtime computed: inputs, outputs and, if asked for, every tensor.",
    "dump": "The tensors that a device computed, in a file of any form, also the text that a board printed.",
    "isolated": "Each operator gets the other side's own inputs, so that errors of earlier operators do not spread.",
    "cumulative": "The whole model runs end to end, so that errors spread.",
    "EXPLAINED": "The verdict of exit code 6: two runtimes differ exactly as their profiles do, and tflq names where.",
    "cause": "What a device computed instead. It is certain only if nothing else that was tried reproduces every bit.",
    "LSB": "A step of an integer tensor: 1 LSB is one code, times the scale a real value.",
    "ULP": "A step of a floating-point number: the distance to the next one.",
    "libm": "The C library's mathematics, such as exp and tanh: its last bits depend on the system.",
    "portable by rule": "The same bits on every runtime by the operator's rules alone; tflq prove decides the others.",
    "witness": "An input on which two profiles give different bits: the proof that they are not equal.",
    "dB": "Signal-to-noise ratio (SQNR): 20 dB more is a tenth of the error; about 30 dB is usual for int8.",
    "top-1": "The class with the largest score; the same top-1 means the same answer.",
    "KL divergence": "How far two distributions of scores are apart, in nats; 0 means that they are the same.",
    "held-out": "Of samples: nothing was fitted to them.",
    "cross-validated": "Judged on samples by a model that was fitted to the others; the file was then fitted to all.",
    "DR": "Rounds twice: half up, then half away from zero. DRU rounds twice half up, SR once half up.",
    "M16": "Rounds once half up, with a multiplier of 16 bits.",
    "DBL": "Rounds once, half away from zero, in float64. F32 rounds half to even in float32.",
}
#: Other forms of words.
_FORMS = {
    "profile": "[Pp]rofiles?",
    "promise": "[Pp]romises?",
    "golden": "[Gg]oldens?",
    "dump": "[Dd]umps?",
    "isolated": "[Ii]solated",
    "cumulative": "[Cc]umulative",
    "EXPLAINED": "EXPLAINED",
    "cause": "[Cc]auses?",
    "dB": "dB|SQNR",
    "portable by rule": "[Pp]ortable by rule",
    "witness": "[Ww]itness(?:es)?",
    "held-out": "[Hh]eld-out",
    "cross-validated": "[Cc]ross-validated",
    "DR": "DRU?|SR",
    "DBL": "DBL|F32",
}
_WORDS = "|".join(rf"(?P<w{i}>{_FORMS.get(w, re.escape(w))})" for i, w in enumerate(WORDS))
_PATTERN = re.compile(rf"(?<![\w./-])(?:{_WORDS})(?![\w/-]|\.\w)")  # no part of a file's name
_TAG = re.compile(r"(<[^>]*>)")
#: Elements whose text stays as it is: other links, code, pictures and controls.
_CLOSED = frozenset(
    ("a", "code", "pre", "script", "style", "svg", "button", "summary", "select", "option", "label", "textarea", "h1")
)


def linked(body: Markup, found: set[str]) -> Markup:
    """Return a page's markup with each word linked at its first place in a section, and add these words to `found`.

    A link goes to `#word-NAME` on the same page and has the meaning as its title.
    """
    written, inside, fresh = list[str](), list[str](), set[str]()

    def link(match: re.Match[str]) -> str:
        word = tuple(WORDS)[int((match.lastgroup or "w0")[1:])]
        if word in fresh:
            return match[0]
        fresh.add(word)
        return f'<a class="word" href="#{anchor(word)}" title="{escape(WORDS[word])}">{match[0]}</a>'

    for part in _TAG.split(str(body)):
        if part.startswith("<"):
            name = re.match(r"</?([a-zA-Z0-9]*)", part)
            tag = "" if name is None else name[1].lower()
            if tag == "section":
                found |= fresh
                fresh.clear()
            if tag in _CLOSED:
                inside = inside[:-1] if part.startswith("</") else [*inside, tag]
            written.append(part)
        else:
            written.append(part if inside else _PATTERN.sub(link, part))
    found |= fresh
    return Markup("".join(written))


def anchor(word: str) -> str:
    """Return the anchor of a word, on pages and in docs/glossary.md."""
    return f"word-{word.lower().replace(' ', '-')}"


def glossary_text(width: int = 100) -> str:
    """Return all words with their meanings, one below the other."""
    from textwrap import fill

    longest = max(map(len, WORDS)) + 2
    if width < 3 * longest:
        return "\n".join(fill(f"{word}: {meaning}", width, subsequent_indent="  ") for word, meaning in WORDS.items())
    indent = " " * longest
    return "\n".join(
        fill(f"{word:<{longest}}{meaning}", width, subsequent_indent=indent) for word, meaning in WORDS.items()
    )
