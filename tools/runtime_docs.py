"""Write the table of docs/runtimes.md: every operator by runtimes, from the kernel tables of their profiles.

python tools/runtime_docs.py           write it
python tools/runtime_docs.py --check   only check whether it is up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from profile_docs import kept, table, with_part

from tflq.comparison.inspection.profile_pairs import compare_profiles
from tflq.engine.profiles import by_name
from tflq.engine.profiles.profile import Profile

PAGE = Path(__file__).resolve().parents[1] / "docs" / "runtimes.md"
BASE = "litert-ref"
#: The profiles of the table, and their heads.
COLUMNS = {
    "litert-opt": "2.3 opt",
    "litert-xnnpack": "2.3 XNNPACK",
    "litert-2.4-ref": "2.4 ref",
    "litert-2.4-opt": "2.4 opt",
    "litert-2.4-xnnpack": "2.4 XNNPACK",
    "litert-1.0-ref": "1.0 ref",
    "tflite-2.14-ref": "2.14 ref",
    "tflite-2.14-opt": "2.14 opt",
    "tf-2.5-opt": "2.5 opt",
    "tflm": "TFLM",
    "tflm-cmsis-nn": "CMSIS-NN",
    "tflm-esp-nn": "ESP-NN",
}
#: Types that a cell lists, and their short names.
LISTED = 4
_SHORT = {"int8": "i8", "uint8": "u8", "int16": "i16", "int4": "i4", "float32": "f32", "float16": "f16"}
_SHORT |= {"int32": "i32", "int64": "i64", "uint32": "u32", "bool": "bool", "string": "string"}


def differing(other: Profile) -> dict[str, set[str]]:
    """Return the forms of each operator in which a profile can differ from the base."""
    found: dict[str, set[str]] = {}
    for difference in compare_profiles(by_name(BASE), other):
        found.setdefault(difference.op, set()).update(difference.types)
    return found


def cell(op: str, profile: Profile, forms: Mapping[str, set[str]]) -> str:
    """Return how a profile computes an operator."""
    if op not in profile.kernels:
        return "–"
    if op not in forms:
        return "="
    words = sorted({form.split()[0].rstrip("?") for form in forms[op]}, key=_order)
    return "≠ " + (" ".join(_SHORT.get(word, word) for word in words) if len(words) <= LISTED else "most types")


def _order(word: str) -> tuple[int, str]:
    return (list(_SHORT).index(word) if word in _SHORT else len(_SHORT), word)


def page() -> str:
    """Return the page with its table updated."""
    profiles = {name: by_name(name) for name in COLUMNS}
    forms = {name: differing(profile) for name, profile in profiles.items()}
    titles = ("operator", *COLUMNS.values())
    text = PAGE.read_text(encoding="utf-8")
    return with_part(text, "operators", "runtime_docs", table(titles, _rows(profiles, forms)))


def _rows(profiles: Mapping[str, Profile], forms: Mapping[str, dict[str, set[str]]]) -> Iterator[list[str]]:
    for op in sorted(by_name(BASE).kernels, key=str.upper):
        cells = [cell(op, profile, forms[name]) for name, profile in profiles.items()]
        yield [f'<a id="op-{op.lower()}"></a>{op}', *cells]


def main() -> int:
    """Write the page; with --check return 1 if it is out of date."""
    return kept(PAGE, page(), only_check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
