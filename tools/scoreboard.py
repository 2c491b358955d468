"""Record conformance runs of real runtimes, and write docs/scoreboard.md: which runtimes agree on which operators.

    tflq conform make -o smoke.npz --level smoke
    tflq conform run smoke.npz --target CMD --work WORK --json > run.json
    python tools/scoreboard.py record run.json WORK --name "OpenVINO 2026.4.1, CPU" --key openvino-2026.4.1
    python tools/scoreboard.py page            write docs/scoreboard.md from golden/conformance/*.json
    python tools/scoreboard.py page --check    only check whether it is up to date

A record has a digest of each case's outputs, so that any two runtimes can be compared without a third.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profile_docs import kept

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "golden" / "conformance"
PAGE = ROOT / "docs" / "scoreboard.md"
SCHEMA = "tflq/conformance-record/1"
#: Hexadecimal digits of a digest.
DIGITS = 8
#: Results without outputs to compare.
REFUSED, ENDED = "refused", "ended"
HEAD = """# Scoreboard

Which runtimes compute the same bits? Each runtime ran the smoke suite ({cases} models of one operator,
[conformance.md](conformance.md)) on x86-64 with AVX2. `tools/scoreboard.py` writes this page from `golden/conformance`.
No row is computed by tflq: the records are digests of the runtimes' own outputs. They were made before the suite came
to cover every geometry of windows and matrices; these cases are not in them.

## Runtimes

*computed* counts the models whose outputs were compared, *refused* those that the runtime does not support. *agrees
with LiteRT* is the share of the computed models whose outputs have the bits of the reference kernels of LiteRT 2.3.0.
"""
PAIRS = """## Who agrees with whom

The percentage of models with the same bits, of those that both compute. Numbers are those of the first table; the best
partner of each row is in bold.
"""
OPERATORS = """## Operators

Runtimes with the same letter agree on every model of the operator that both compute. A is the class of the first
runtime that computes the operator. Small letters mark a runtime that refuses a part of the models, and – one that
refuses all. Each row has an anchor, such as [#op-conv_2d](#op-conv_2d).
"""


@dataclass(frozen=True)
class Record:
    """The run of one runtime: a digest, or the word for a missing result, for each case by operator."""

    key: str
    name: str
    machine: str
    suite: str
    results: Mapping[str, Sequence[str]]

    def digests(self) -> list[str]:
        """Return the results of all cases, in order."""
        return [result for op in sorted(self.results) for result in self.results[op]]


def digest(folder: Path) -> str:
    """Return the digest of a case's outputs."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("out*_*.bin")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:DIGITS]


def recorded(document: Mapping[str, Any], work: Path, key: str, name: str, machine: str) -> dict[str, Any]:
    """Return the record of a run from its document and its folder. Models that must be refused are left out."""
    results: dict[str, list[str]] = {}
    for case in document["cases"]:
        if case["must_be_refused"]:
            continue
        if case["result"] in ("passes", "differs"):
            word = digest(work / case["id"])
        else:
            word = REFUSED if case["result"] == REFUSED else ENDED
        results.setdefault(case["op"], []).append(word)
    packed = {op: " ".join(words) for op, words in sorted(results.items())}
    about = {"schema": SCHEMA, "key": key, "name": name, "machine": machine, "suite": document["suite"]}
    return {**about, "results": packed}


def read(path: Path) -> Record:
    """Return a record."""
    row = json.loads(path.read_text(encoding="utf-8"))
    if row["schema"] != SCHEMA:
        raise SystemExit(f"{path}: is no record of this tool")
    results = {op: tuple(words.split()) for op, words in row["results"].items()}
    return Record(row["key"], row["name"], row["machine"], row["suite"], results)


def records(folder: Path = RECORDS) -> list[Record]:
    """Return all records of one suite, in the order of `order.txt`.

    Raises:
        SystemExit: Records are of different suites, or missing in the list.
    """
    keys = (folder / "order.txt").read_text(encoding="utf-8").split()
    found = [read(folder / f"{key}.json") for key in keys]
    if {path.stem for path in folder.glob("*.json")} != set(keys):
        raise SystemExit(f"{folder / 'order.txt'}: does not list every record")
    if len({record.suite for record in found}) != 1:
        raise SystemExit(f"{folder}: records of different suites cannot be compared")
    return found


def shared(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return on how many cases both computed the same, and how many both computed."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if len(a) == len(b) == DIGITS]
    return sum(a == b for a, b in both), len(both)


def letters(vectors: Sequence[Sequence[str]]) -> list[str]:
    """Return a letter for each vector of results: equal letters agree wherever both computed."""
    classes: list[list[Sequence[str]]] = []
    found = []
    for vector in vectors:
        computed = sum(len(word) == DIGITS for word in vector)
        if not computed:
            found.append("–")
            continue
        number = next((n for n, members in enumerate(classes) if _agrees(vector, members)), len(classes))
        if number == len(classes):
            classes.append([])
        classes[number].append(vector)
        letter = chr(ord("A") + number)
        found.append(letter if computed == len(vector) else letter.lower())
    return found


def _agrees(vector: Sequence[str], members: Sequence[Sequence[str]]) -> bool:
    """Return whether a vector agrees with every member, and has something in common with one."""
    pairs = [shared(vector, member) for member in members]
    return all(same == both for same, both in pairs) and any(both for _, both in pairs)


def row(cells: Sequence[object]) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def percent(same: int, both: int) -> str:
    """Return a share, rounded down, so that 100 means all."""
    return "" if not both else str(100 * same // both)


def page(found: Sequence[Record]) -> str:
    """Return the page."""
    return "\n".join([*_runtimes(found), "", *_pairs(found), "", *_operators(found), ""])


def _runtimes(found: Sequence[Record]) -> Iterator[str]:
    base = next(record for record in found if record.key == "litert-2.3.0-ref").digests()
    yield HEAD.format(cases=len(base))
    yield row(["no.", "runtime", "computed", "refused", "ended", "agrees with LiteRT"])
    yield "|" + "---|" * 6
    for number, record in enumerate(found, 1):
        results = record.digests()
        same, both = shared(results, base)
        counts = [both, results.count(REFUSED), results.count(ENDED)]
        yield row([f'<a id="{record.key}"></a>{number}', record.name, *counts, f"{percent(same, both)} %"])


def _pairs(found: Sequence[Record]) -> Iterator[str]:
    yield PAIRS
    yield row(["no.", "runtime", *range(1, len(found) + 1)])
    yield "|" + "---|" * (len(found) + 2)
    results = [record.digests() for record in found]
    for number, record in enumerate(found):
        shares = [shared(results[number], other) for other in results]
        best = max(same / both for k, (same, both) in enumerate(shares) if k != number and both)
        cells = [
            "" if k == number else f"**{percent(*pair)}**" if pair[1] and pair[0] / pair[1] == best else percent(*pair)
            for k, pair in enumerate(shares)
        ]
        yield row([number + 1, record.name, *cells])


def _operators(found: Sequence[Record]) -> Iterator[str]:
    yield OPERATORS
    yield row(["operator", "models", *range(1, len(found) + 1)])
    yield "|" + "---|" * (len(found) + 2)
    for op in sorted(found[0].results):
        vectors = [record.results[op] for record in found]
        yield row([f'<a id="op-{op.lower()}"></a>{op}', len(vectors[0]), *letters(vectors)])


def main() -> int:
    """Record a run, or write the page; return 1 if it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="record a run")
    recording.add_argument("document", type=Path, help="what `tflq conform run --json` printed")
    recording.add_argument("work", type=Path, help="the folder that --work named")
    recording.add_argument("--name", required=True, help="the runtime with its release, for people")
    recording.add_argument("--key", required=True, help="the name of the record's file")
    writing = verbs.add_parser("page", help="write docs/scoreboard.md")
    writing.add_argument("--check", action="store_true", help="only check whether it is up to date")
    args = parser.parse_args()
    if args.verb == "record":
        document = json.loads(args.document.read_text(encoding="utf-8"))
        made = recorded(document, args.work, args.key, args.name, f"{platform.system()} {platform.machine()}")
        RECORDS.mkdir(exist_ok=True)
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        (RECORDS / f"{args.key}.json").write_text(text, encoding="utf-8")
        return 0
    return kept(PAGE, page(records()), only_check=args.check)


if __name__ == "__main__":
    sys.exit(main())
