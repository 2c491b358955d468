"""Write the generated parts of docs/profiles.md: the list of profiles and the table of known faults.

python tools/profile_docs.py           write them
python tools/profile_docs.py --check   only say whether they are up to date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tflq.profiles import PROFILES
from tflq.profiles.faults import FAULTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "profiles.md"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Markdown rows; bars inside cells are escaped."""
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def profiles() -> Iterator[str]:
    """The list of profiles."""
    titles = ("profile", "package", "version", "resolver", "CPU")
    return table(titles, ((f"`{n}`", *(getattr(p.source, f) for f in _SOURCE)) for n, p in PROFILES.items()))


_SOURCE = ("package", "version", "resolver", "cpu")


def faults() -> Iterator[str]:
    """The table of known faults."""
    titles = ("operator", "types", "versions", "symptom", "source", "profiles that have it")
    rows = (
        (f.op, ", ".join(f.types), f.versions, f.symptom, f.source, ", ".join(f"`{p}`" for p in f.profiles))
        for f in FAULTS
    )
    return table(titles, rows)


PARTS = {"profiles": profiles, "faults": faults}


def page(text: str) -> str:
    """`text` with every generated part made anew."""
    for name, make in PARTS.items():
        start, end = f"<!-- {name}: made by tools/profile_docs.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{PAGE.name} has no part {name!r}")
        before, after = pattern.split(text, maxsplit=1)
        text = before + "\n".join((start, "", *make(), "", end)) + after
    return text


def main() -> int:
    """0 where the page is up to date, or now is."""
    old = PAGE.read_text(encoding="utf-8")
    new = page(old)
    if "--check" in sys.argv[1:]:
        print("up to date" if new == old else f"{PAGE.name} is out of date: run tools/profile_docs.py")
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
