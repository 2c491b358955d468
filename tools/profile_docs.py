"""Write generated parts of docs/runtimes.md (the list of profiles, known faults, which release changed which operator's
bits), docs/xnnpack.md (what XNNPACK rewrites) and schemas/profile.schema.json (names of profiles and releases).

python tools/profile_docs.py           write them
python tools/profile_docs.py --check   only check whether they are up to date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tflq.engine.kernels import notes
from tflq.engine.kernels.notes import Effect, GraphRewrite
from tflq.engine.kernels.validity import RELEASES
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles.building import NOT_MEASURED, VALUES
from tflq.engine.profiles.history import history, known_faults
from tflq.engine.profiles.table import ROWS

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCHEMA = DOCS.parent / "schemas" / "profile.schema.json"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield Markdown rows; bars inside cells are escaped."""
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def profiles() -> Iterator[str]:
    """Return the list of profiles."""
    titles = ("profile", "package", "version", "resolver", "CPU")
    return table(titles, ((f"`{n}`", *(getattr(p.source, f) for f in _SOURCE)) for n, p in PROFILES.items()))


_SOURCE = ("package", "version", "resolver", "cpu")


def faults() -> Iterator[str]:
    """Return the table of known faults."""
    titles = ("operator", "types", "versions", "symptom", "source", "profiles that have it")
    rows = (
        (f.op, ", ".join(f.types), f.versions, f.symptom, f.source, ", ".join(f"`{p}`" for p in known.profiles))
        for known in known_faults()
        for f in (known.fault,)
    )
    return table(titles, rows)


def changes() -> Iterator[str]:
    """Return the history of every operator."""
    titles = ("operator", "types", "resolvers", "up to", "formula", "from", "formula", "decided by", "source")
    return table(
        titles,
        (
            (c.op, c.types, ", ".join(c.resolvers), c.last, c.before, c.first, c.after, _DECIDED[c.build], c.source)
            for c in history()
        ),
    )


def rewrites() -> Iterator[str]:
    """Return the table of XNNPACK's rewrites."""
    titles = ("what", "function", "since", "effect", "profiles that reproduce it", "where, or why not")
    return table(
        titles,
        (
            (r.what, f"`{r.function}`", r.day, r.effect.value, ", ".join(_reproducing(r)), r.where)
            for r in sorted(notes.rewrites(), key=lambda r: list(Effect).index(r.effect) == 0)
        ),
    )


def _reproducing(rewrite: GraphRewrite) -> Iterator[str]:
    """Yield the profiles that reproduce a rewrite."""
    if rewrite.when is not None:
        yield from (f"`{name}`" for name, p in PROFILES.items() if rewrite.when.holds(p.runtime))


_DECIDED = {False: "source", True: "build"}
#: page -> its generated parts
PAGES = {
    "runtimes.md": {"profiles": profiles, "changes": changes, "faults": faults},
    "xnnpack.md": {"rewrites": rewrites},
}


def with_names(text: str) -> str:
    """Return the schema of profiles' files with the names of all profiles, releases and values of fields."""
    document = json.loads(text)
    properties = document["properties"]
    properties["base"]["enum"] = list(ROWS)
    for field, values in VALUES.items():
        document["$defs"]["arithmetic"]["properties"][field]["enum"] = list(values)
    properties["figures"]["enum"] = [NOT_MEASURED, *ROWS]
    properties["runtime"]["properties"]["release"]["enum"] = list(RELEASES)
    return json.dumps(document, indent=2) + "\n"


def page(title: str, text: str) -> str:
    """Return the page's `text` with every generated part updated."""
    for name, make in PAGES[title].items():
        text = with_part(text, name, "profile_docs", make())
    return text


def with_part(text: str, name: str, tool: str, lines: Iterable[str]) -> str:
    """Return a page's `text` with the part `name`, which `tool` makes, replaced by `lines`."""
    start, end = f"<!-- {name}: made by tools/{tool}.py -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"the page has no part {name!r}")
    before, after = pattern.split(text, maxsplit=1)
    return before + "\n".join((start, "", *lines, "", end)) + after


def kept(path: Path, text: str, *, only_check: bool) -> int:
    """Write a page; with `only_check` return 1 if it is out of date, and leave it."""
    if only_check:
        return int(path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0


def main() -> int:
    """Return 0 if the pages are up to date, or have been updated."""
    old = {DOCS / title: (DOCS / title).read_text(encoding="utf-8") for title in PAGES}
    new = {path: page(path.name, text) for path, text in old.items()}
    old[SCHEMA] = SCHEMA.read_text(encoding="utf-8")
    new[SCHEMA] = with_names(old[SCHEMA])
    if "--check" in sys.argv[1:]:
        stale = [path.name for path in new if new[path] != old[path]]
        print(f"{', '.join(stale)} out of date: run tools/profile_docs.py" if stale else "up to date")
        return int(bool(stale))
    for path, text in new.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
