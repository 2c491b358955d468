"""Record conformance runs of real runtimes, and write docs/scoreboard.md: which runtimes agree on which operators.

    tflq conform make -o smoke.npz --level smoke
    tflq conform run smoke.npz --target CMD --work WORK --json > run.json
    python tools/scoreboard.py record run.json WORK --name "OpenVINO 2026.4.1, CPU" --key openvino-2026.4.1
        [--again second.json]                  documents of further runs: what differs is undefined
    python tools/scoreboard.py rest smoke.npz openvino-2026.4.1 -o rest.npz
                                               only the cases that a record lacks; after a run of them:
    python tools/scoreboard.py join rest.json WORK smoke.npz --key openvino-2026.4.1
    python tools/scoreboard.py page            write the page and its picture from golden/conformance
    python tools/scoreboard.py page --check    only check whether they are up to date

The figures of docs/targets.md, in rows that link to a record, are written, too.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance_records import (
    ABSENT,
    ENDED,
    REFUSED,
    ROOT,
    UNDEFINED,
    Record,
    computed,
    join,
    records,
    rest_of,
    shared,
    write,
)
from profile_docs import kept, with_part
from scoreboard_picture import Share, draw, step

PAGE, PICTURE, TARGETS = (ROOT / "docs" / name for name in ("scoreboard.md", "scoreboard.svg", "targets.md"))
#: The record that others are compared with.
BASE = "litert-2.3.0-ref"
#: Least share of a group's cases that a member computes, in percent.
ALIKE = 90
HEAD = """Which runtimes compute the same bits? {runs} releases and systems ran the smoke suite, {cases} models of one
operator ([conformance.md](conformance.md)), on x86-64 with AVX-512. Their outputs fall into {groups} groups. In a
group, all bits are the same wherever two members compute a case.

![Systems by systems, and operators by systems](scoreboard.svg)

`tools/scoreboard.py` writes this part and its picture from `golden/conformance`. No row is computed by tflq: the
records are digests of the runtimes' own outputs.

## Runtimes

*same* and *differs* count the models whose outputs have the bits of the reference kernels of LiteRT 2.3.0, and those
whose outputs have others. *refused* are models that the runtime does not support, *failed* those at which it crashed or
hung, or whose outputs change from run to run, *accepted* those that had to be refused. Times are those of one process
that loads and runs all models, beside other work of the machine.

| group | runtime | same | differs | refused | failed | accepted | seconds |
|---|---|---|---|---|---|---|---|"""
PAIRS = """## Who agrees with whom

The percentage of models with the same bits, of those that both groups compute; the best partner of each row is in bold.
"""
OPERATORS = """## Operators

Groups with the same letter agree on every model of the operator that both compute. A is the class of the first
group that computes the operator. Small letters mark a group that refuses a part of the models, and – one that
refuses all. Each row has an anchor, such as [#op-conv_2d](#op-conv_2d).
"""
#: A row of docs/targets.md: a link to a record, then its figures.
FIGURES = re.compile(r"^(\| \[[^\]]+\]\(scoreboard\.md#([\w.-]+)\) \|)(?: [\d,]+ \|){5} \d+ s \|", re.MULTILINE)


@dataclass(frozen=True)
class Group:
    """Records with the same bits wherever two of them compute a case; the first member computes most."""

    members: tuple[Record, ...]

    @property
    def results(self) -> Mapping[str, Sequence[str]]:
        """The results of the member that computes most cases."""
        return max(self.members, key=lambda record: computed(record.digests())).results

    def digests(self) -> list[str]:
        """Return the results of all cases, in order."""
        return [result for op in sorted(self.results) for result in self.results[op]]

    @property
    def name(self) -> str:
        """The members by kernels: names and releases, of which a range has its ends only."""
        if len(self.members) == 1:
            return self.members[0].name
        kernels: dict[str, dict[str, list[str]]] = {}
        for record in self.members:
            words, _, kind = record.name.partition(", ")
            system, _, release = words.rpartition(" ")
            kernels.setdefault(kind, {}).setdefault(system, []).append(release)
        alike: dict[str, list[str]] = {}
        for kind, systems in kernels.items():
            alike.setdefault(", ".join(f"{s} {_range(found)}" for s, found in systems.items()), []).append(kind)
        return "; ".join(f"{systems}, {' and '.join(kinds)}" for systems, kinds in alike.items())


def _range(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[-1]} to {releases[0]}"


def groups_of(found: Sequence[Record]) -> list[Group]:
    """Return groups of records with the same bits, in the order of their first members."""
    groups: list[list[Record]] = []
    for record in found:
        home = next((members for members in groups if all(_alike(record, member) for member in members)), None)
        if home is None:
            groups.append([record])
        else:
            home.append(record)
    return [Group(tuple(members)) for members in groups]


def _alike(one: Record, other: Record) -> bool:
    results = one.digests(), other.digests()
    same, both = shared(*results)
    return same == both and 100 * both >= ALIKE * max(map(computed, results)) > 0


def letters(vectors: Sequence[Sequence[str]]) -> list[str]:
    """Return a letter for each vector of results: equal letters agree wherever both computed."""
    classes: list[list[Sequence[str]]] = []
    found = []
    for vector in vectors:
        if not computed(vector):
            found.append("–")
            continue
        number = next((n for n, members in enumerate(classes) if _agrees(vector, members)), len(classes))
        if number == len(classes):
            classes.append([])
        classes[number].append(vector)
        letter = chr(ord("A") + number)
        found.append(letter if computed(vector) == len(vector) else letter.lower())
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


def figures(record: Record, base: Record) -> list[int]:
    """Return how many models have the base's bits, differ, are refused, ended or are undefined, or were accepted."""
    results = record.digests()
    same, both = shared(results, base.digests())
    return [same, both - same, results.count(REFUSED), sum(map(results.count, (ENDED, UNDEFINED))), record.accepted]


def page(found: Sequence[Record]) -> str:
    """Return the page with the part of the records updated."""
    groups = groups_of(found)
    lines = [*_runtimes(found, groups), "", *_pairs(groups), "", *_operators(groups)]
    return with_part(PAGE.read_text(encoding="utf-8"), "scoreboard", "scoreboard", lines)


def _runtimes(found: Sequence[Record], groups: Sequence[Group]) -> Iterator[str]:
    base = next(record for record in found if record.key == BASE)
    yield HEAD.format(cases=f"{len(base.digests()):,}", runs=len(found), groups=len(groups))
    for number, group in enumerate(groups, 1):
        for record in group.members:
            anchor = f'<a id="{record.key}"></a>{number}'
            yield row([anchor, record.name, *figures(record, base), f"{record.seconds:.0f}"])
    lacking = [record.name for record in found if ABSENT in record.digests()]
    if lacking:
        yield f"\nRan an older suite, without some of the cases: {'; '.join(lacking)}."


def _pairs(groups: Sequence[Group]) -> Iterator[str]:
    yield PAIRS
    yield row(["group", "first member", *range(1, len(groups) + 1)])
    yield "|" + "---|" * (len(groups) + 2)
    results = [group.digests() for group in groups]
    for number, group in enumerate(groups):
        shares = [shared(results[number], other) for other in results]
        best = max((same / both for k, (same, both) in enumerate(shares) if k != number and both), default=0)
        cells = [
            "" if k == number else f"**{percent(*pair)}**" if pair[1] and pair[0] / pair[1] == best else percent(*pair)
            for k, pair in enumerate(shares)
        ]
        yield row([number + 1, group.members[0].name, *cells])


def _operators(groups: Sequence[Group]) -> Iterator[str]:
    yield OPERATORS
    yield row(["operator", "models", *range(1, len(groups) + 1)])
    yield "|" + "---|" * (len(groups) + 2)
    for op in sorted(groups[0].results):
        vectors = [group.results[op] for group in groups]
        yield row([f'<a id="op-{op.lower()}"></a>{op}', len(vectors[0]), *letters(vectors)])


def _share(one: Sequence[str], other: Sequence[str]) -> Share:
    same, both = shared(one, other)
    return same, both, len(one)


def picture(found: Sequence[Record]) -> str:
    """Return the picture. Operators with the same squares share a row; those that all share are left out."""
    groups = groups_of(found)
    base = next(record for record in found if record.key == BASE)
    results = [group.digests() for group in groups]
    pairs = [[_share(one, other) for other in results] for one in results]
    rows: dict[tuple[object, ...], list[str]] = {}
    shares = {op: [_share(group.results[op], base.results[op]) for group in groups] for op in base.results}
    for op, parts in shares.items():
        rows.setdefault(tuple((step(share), share[1] * 4 // share[2]) for share in parts), []).append(op)
    named = [(_joined(ops), shares[ops[0]]) for ops in rows.values()]
    return draw([_short(group.name) for group in groups], pairs, [name for name, _ in named], [p for _, p in named])


def _joined(ops: Sequence[str]) -> str:
    return ", ".join(ops) if len(", ".join(ops)) < 46 else f"{ops[0]} and {len(ops) - 1} more"


def _short(name: str) -> str:
    return (
        name.replace("reference kernels", "reference")
        .replace("optimized kernels", "optimized")
        .replace(" after ", ", ")
    )


def targets(found: Sequence[Record], text: str) -> str:
    """Return docs/targets.md with the figures of the records."""
    by_key = {record.key: record for record in found}

    def written(match: re.Match[str]) -> str:
        record = by_key[match.group(2)]
        return f"{row([match.group(1)[2:-2], *figures(record, by_key[BASE]), f'{record.seconds:.0f} s'])}"

    return FIGURES.sub(written, text)


def main() -> int:
    """Record a run, or write the pages; return 1 if one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="record a run")
    recording.add_argument("document", type=Path, help="what `tflq conform run --json` printed")
    recording.add_argument("work", type=Path, help="the folder that --work named")
    recording.add_argument("--name", required=True, help="system and release, a comma and its kernels, for people")
    recording.add_argument("--key", required=True, help="the name of the record's file")
    recording.add_argument("--again", type=Path, action="append", default=[], help="what another run printed")
    resting = verbs.add_parser("rest", help="write a suite of the cases that a record lacks")
    resting.add_argument("suite", help="the whole suite")
    resting.add_argument("key", help="the name of the record's file")
    resting.add_argument("-o", "--output", required=True, help="the suite to write")
    joining = verbs.add_parser("join", help="add a run of these cases to the record")
    joining.add_argument("document", type=Path, help="what `tflq conform run --json` printed for the rest")
    joining.add_argument("work", type=Path, help="the folder that --work named")
    joining.add_argument("suite", help="the whole suite")
    joining.add_argument("--key", required=True, help="the name of the record's file")
    writing = verbs.add_parser("page", help="write docs/scoreboard.md and its picture")
    writing.add_argument("--check", action="store_true", help="only check whether they are up to date")
    args = parser.parse_args()
    if args.verb == "record":
        document = json.loads(args.document.read_text(encoding="utf-8"))
        again = [json.loads(path.read_text(encoding="utf-8")) for path in args.again]
        write(document, args.work, args.key, args.name, f"{platform.system()} {platform.machine()}", again=again)
        return 0
    if args.verb == "rest":
        print(f"{args.output}: {rest_of(args.suite, args.key, args.output)} cases")
        return 0
    if args.verb == "join":
        join(json.loads(args.document.read_text(encoding="utf-8")), args.work, args.key, args.suite)
        return 0
    found = records()
    made = {PAGE: page(found), PICTURE: picture(found), TARGETS: targets(found, TARGETS.read_text(encoding="utf-8"))}
    return max([kept(path, text, only_check=args.check) for path, text in made.items()])


if __name__ == "__main__":
    sys.exit(main())
