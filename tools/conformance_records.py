"""Records of conformance runs: digests of outputs, so that any two runtimes can be compared without a third.

`golden/conformance/cases/SUITE.json` lists a suite's cases by the digests of their models and inputs. A record has the
results in that order. Cases of different suites are the same if their digests are: older records stay comparable.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tflq.devices.suites.jobs import suite_mark
from tflq.devices.suites.make import kept, read_suite, write_suite
from tflq.model.storage.arrays import opened

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "golden" / "conformance"
SCHEMA, CASES_SCHEMA = "tflq/conformance-record/2", "tflq/conformance-cases/1"
#: Hexadecimal digits of the digest of outputs, of a case, and of the name of a suite's file.
DIGITS, CASE_DIGITS, SUITE_DIGITS = 8, 12, 16
#: Results without outputs to compare. UNDEFINED: two runs differ; ABSENT: the record's suite does not have the case.
REFUSED, ENDED, UNDEFINED, ABSENT = "refused", "ended", "undefined", "absent"


@dataclass(frozen=True)
class Record:
    """The run of one runtime: by operator, a digest or the word for a missing result of each case.

    `accepted` counts models that had to be refused and ran. `seconds`: from the first case to the last answer.
    """

    key: str
    name: str
    machine: str
    seconds: float
    accepted: int
    results: Mapping[str, Sequence[str]]

    def digests(self) -> list[str]:
        """Return the results of all cases, in order."""
        return [result for op in sorted(self.results) for result in self.results[op]]


def cases_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the list of a run's cases that a runtime has to run, by operator and types."""
    found: dict[str, dict[str, list[str]]] = {}
    for case in document["cases"]:
        if not case["must_be_refused"]:
            found.setdefault(case["op"], {}).setdefault(case["types"], []).append(case["digest"][:CASE_DIGITS])
    packed = {op: {types: " ".join(words) for types, words in kinds.items()} for op, kinds in sorted(found.items())}
    return {"schema": CASES_SCHEMA, "suite": document["suite"], "cases": packed}


def recorded(
    document: Mapping[str, Any], key: str, name: str, machine: str, seconds: float, again: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the record of a run from the document of `tflq conform run --json`, and from those of further runs."""
    seen = {(case["digest"], case["outputs"] or "") for run in (document, *again) for case in run["cases"]}
    outputs = Counter(digest for digest, _ in seen)
    found: dict[str, dict[str, list[str]]] = {}
    for case in document["cases"]:
        if not case["must_be_refused"]:
            word = (case["outputs"] or "")[:DIGITS] or _missing(case)
            word = word if outputs[case["digest"]] == 1 else UNDEFINED
            found.setdefault(case["op"], {}).setdefault(case["types"], []).append(word)
    results = {op: " ".join(" ".join(words) for words in kinds.values()) for op, kinds in sorted(found.items())}
    accepted = sum(case["must_be_refused"] and case["result"] == "accepted" for case in document["cases"])
    about = {"schema": SCHEMA, "key": key, "name": name, "machine": machine, "suite": document["suite"]}
    return {**about, "seconds": round(seconds, 1), "accepted": accepted, "results": results}


def seconds_of(work: Path) -> float:
    """Return the seconds between a folder's first case and its last answer, by the times of its files."""
    given = [path.stat().st_mtime for path in work.glob("*/case.txt")]
    answers = [path.stat().st_mtime for name in ("out*.bin", "refused.txt") for path in work.glob(f"*/{name}")]
    return max(answers) - min(given)


def rest_of(suite: str, key: str, output: str, folder: Path = RECORDS) -> int:
    """Write a suite of the cases that a record lacks, and return their number.

    A case is known by the digest of its model and inputs, so that a record with the results of both is whole.
    """
    row = _read(folder / f"{key}.json", SCHEMA)
    known = {name for names in _cases(folder, row["suite"]).values() for name in names}
    with opened(suite) as archive:
        whole = read_suite(archive)
        cases = tuple(c for c in whole.cases if not c.is_refused and c.digest[:CASE_DIGITS] not in known)
        write_suite(output, replace(whole, cases=cases), kept(cases, archive))
    return len(cases)


def join(document: Mapping[str, Any], work: Path, key: str, suite: str, folder: Path = RECORDS) -> None:
    """Write a record on a suite: its own results, and those of a run of the cases that it lacked.

    Raises:
        SystemExit: Some case of the suite has neither.
    """
    with opened(suite) as archive:
        mark, whole = suite_mark(archive), read_suite(archive)
    cases = [{"must_be_refused": c.is_refused, "op": c.op, "types": c.types, "digest": c.digest} for c in whole.cases]
    listed = cases_of({"suite": mark, "cases": cases})
    row = _read(folder / f"{key}.json", SCHEMA)
    given: dict[str, str] = {}
    for op, names in _cases(folder, row["suite"]).items():
        given |= dict(zip(names, row["results"][op].split(), strict=True))
    for case in document["cases"]:
        given[case["digest"][:CASE_DIGITS]] = (case["outputs"] or "")[:DIGITS] or _missing(case)
    lacking = sum(name not in given for kinds in listed["cases"].values() for name in _words(kinds))
    if lacking:
        raise SystemExit(f"{key}: {lacking} cases are in neither")
    results = {op: " ".join(given[name] for name in _words(kinds)) for op, kinds in listed["cases"].items()}
    seconds = round(row["seconds"] + seconds_of(work), 1)
    made = {**row, "suite": mark, "seconds": seconds, "results": results}
    for path, value in ((folder / "cases" / f"{mark[:SUITE_DIGITS]}.json", listed), (folder / f"{key}.json", made)):
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _words(kinds: Mapping[str, str]) -> list[str]:
    return [name for words in kinds.values() for name in words.split()]


def _missing(case: Mapping[str, Any]) -> str:
    return REFUSED if case["result"] == REFUSED else ENDED


def write(
    document: Mapping[str, Any],
    work: Path,
    key: str,
    name: str,
    machine: str,
    folder: Path = RECORDS,
    again: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write a run's record, and its suite's list of cases if that is missing.

    Raises:
        SystemExit: The run is not whole.
    """
    if document["left"] or document["shard"] != [1, 1]:
        raise SystemExit(f"{key}: only a part of the suite was run")
    listed = folder / "cases" / f"{document['suite'][:SUITE_DIGITS]}.json"
    listed.parent.mkdir(parents=True, exist_ok=True)
    made = recorded(document, key, name, machine, seconds_of(work), again)
    for path, value in ((listed, cases_of(document)), (folder / f"{key}.json", made)):
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path, schema: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if row["schema"] != schema:
        raise SystemExit(f"{path}: is not {schema}")
    return row


def _cases(folder: Path, suite: str) -> dict[str, list[str]]:
    """Return a suite's cases by operator."""
    row = _read(folder / "cases" / f"{suite[:SUITE_DIGITS]}.json", CASES_SCHEMA)
    return {op: _words(kinds) for op, kinds in row["cases"].items()}


def records(folder: Path = RECORDS) -> list[Record]:
    """Return all records on the cases of the first one's suite, in the order of `order.txt`.

    Raises:
        SystemExit: A record is missing in the list, or has not the cases of its suite.
    """
    keys = (folder / "order.txt").read_text(encoding="utf-8").split()
    if {path.stem for path in folder.glob("*.json")} != set(keys):
        raise SystemExit(f"{folder / 'order.txt'}: does not list every record")
    rows = [_read(folder / f"{key}.json", SCHEMA) for key in keys]
    asked = _cases(folder, rows[0]["suite"])
    return [_record(row, asked, _cases(folder, row["suite"])) for row in rows]


def _record(row: Mapping[str, Any], asked: Mapping[str, Sequence[str]], own: Mapping[str, Sequence[str]]) -> Record:
    given: dict[str, str] = {}
    for op, names in own.items():
        words = row["results"].get(op, "").split()
        if len(words) != len(names):
            raise SystemExit(f"{row['key']}: {len(words)} results of {len(names)} cases of {op}")
        given |= dict(zip(names, words, strict=True))
    results = {op: tuple(given.get(name, ABSENT) for name in names) for op, names in asked.items()}
    return Record(row["key"], row["name"], row["machine"], row["seconds"], row["accepted"], results)


def shared(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return on how many cases both computed the same, and how many both computed."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if len(a) == len(b) == DIGITS]
    return sum(a == b for a, b in both), len(both)


def computed(results: Sequence[str]) -> int:
    """Return the number of results with outputs."""
    return sum(len(word) == DIGITS for word in results)
