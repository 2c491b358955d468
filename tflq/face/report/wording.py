"""Numbers, names, stages, runtimes and differences as short text; words that reports use in one meaning each.

The words are the glossary of `tflq help words`, docs/glossary.md and every page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from tflq.comparison.inspection.difference import HISTOGRAM_REACH, Difference
from tflq.comparison.inspection.prepared import StageFacts
from tflq.face.report.blocks import Shortened
from tflq.texts import shown


def how_far(d: Difference) -> str:
    """Return how many elements differ, how far, and in which direction."""
    text = f"{d.differing:,} of {d.elements:,} elements differ"
    if not d.unit or not d.above + d.below:
        return text
    floats = "" if d.absolute is None else f" ({d.absolute:.3g} absolute, {d.relative:.3g} relative)"
    directions = f"{d.above:,} above, {d.below:,} below, {d.bias:+.3f} on average"
    return f"{text}, by up to {d.largest:,} {d.unit}{floats}: {directions}"


def histogram_text(difference: Difference) -> str:
    """Return the histogram of distances in LSB or ULP; elements beyond HISTOGRAM_REACH count at its ends."""

    def label(distance: int) -> str:
        return f"{distance:+d}" if abs(distance) < HISTOGRAM_REACH else f"{distance:+d} or beyond"

    return ", ".join(f"{label(distance)}: {count:,}" for distance, count in difference.histogram)


#: Characters of a tensor's name.
NAME = 48


def short_name(name: str) -> str:
    """Return the first of the names that converters join, or only its end if it is long."""
    first, joined, _ = name.partition(";")
    return ("…" + first[-NAME:] if len(first) > NAME else first) + (";…" if joined else "")


def brief_name(name: str) -> Shortened:
    """Return the short form of a name with the whole of it, both escaped."""
    return Shortened(shown(short_name(name)), shown(name))


_LETTERS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """Return a number with at most three digits; whole ones below 10,000 keep all: 512, 1.31 M, 0.0021."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1e4:
        factor, letter = next((f, letter) for f, letter in _LETTERS if abs(value) >= 0.9995 * f)
        return f"{value / factor:.3g} {letter}" if abs(value) < 999.5 * factor else f"{value / factor:,.0f} {letter}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str], most: int, between: str = ", ", last: str = " and ") -> str:
    """Return the first `most` names, and how many more there are."""
    more = len(names) - most
    return between.join(names[:most]) + (f"{last}{more} more" if more > 0 else "")


def bytes_text(size: float) -> str:
    """Return a number of bytes in the largest unit that fits: 812 bytes, 3.28 MiB."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 999.5 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size:,.0f} bytes"


def seconds_text(seconds: float) -> str:
    """Return a time in the largest unit that fits, with three digits: 8.70 ms, 412 us, 12.3 s."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= 0.9995 * factor or unit == "us":
            value = seconds / factor
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return ""


def runtime_text(runtime: Any) -> str:
    """Return the package, version and settings of a runtime in one line."""
    fact = runtime.get if isinstance(runtime, Mapping) else lambda name, default="": getattr(runtime, name, default)
    if not fact("package", ""):
        return "an unnamed runtime"
    text = f"{fact('package', '')} {fact('version', '')} {fact('resolver', '')}, " + counted(
        fact("threads", 1), "thread"
    )
    if fact("delegate", ""):
        text += f", {fact('delegate', '')} in {counted(sum(fact('delegated', ())), 'partition')}"
    cpu = f" on {fact('cpu', '')}" if fact("cpu", "") else ""
    return f"{text}, {fact('platform', '')}{cpu}"


#: Words of the names of profiles.
_RUNTIMES = {
    "litert": "LiteRT",
    "tflite": "TFLite",
    "tf": "TensorFlow",
    "tflm": "TFLite Micro",
    "js": "JS",
    "ref": "reference",
    "opt": "optimized",
    "xnnpack": "XNNPACK",
    "avx2": "AVX2",
    "arm64": "AArch64",
    "a53": "Cortex-A53",
    "cmsis-nn": "CMSIS-NN",
    "esp-nn": "ESP-NN",
    "single": "single rounding",
    "spec": "the specification",
}


def runtime_name(profile: str) -> str:
    """Return the runtime of a built-in profile, as in LiteRT 2.2 reference; other names unchanged."""
    words = re.findall(r"[a-z0-9]+-nn|[^-]+", profile)
    is_known = words[:1] and words[0] in _RUNTIMES and all(w in _RUNTIMES or w[0].isdigit() for w in words)
    return " ".join(_RUNTIMES.get(word, word) for word in words) if is_known else profile


def stage_text(stage: StageFacts, channel: int | None = None) -> str:
    """Return an output stage in one line, for one channel or for all."""

    def pick(values: Sequence[Any]) -> str:
        if channel is None or len(values) <= 1:
            return span(values)
        return number_text(values[channel]) if channel < len(values) else span(values)

    where = f", channel {channel}" if channel is not None and len(stage.real) > 1 else ""
    text = f"{stage.field or 'output'}: {stage.kind}{where}, real {pick(stage.real)}"
    if stage.mantissa:
        text += f", Q31 {pick(stage.mantissa)}, shift {pick(stage.shift)}"
    if stage.zero_point is not None:
        text += f", zero point {stage.zero_point}, clamp [{stage.low}, {stage.high}]"
    return text


def span(values: Sequence[Any]) -> str:
    """Return a value, or the range of several."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return number_text(low) if low == high else f"{number_text(low)} .. {number_text(high)}"


def number_text(value: Any) -> str:
    """Return a number with at most nine digits, enough for any float32."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


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
