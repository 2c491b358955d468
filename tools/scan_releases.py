"""Run an edge suite in every released runtime, and show what changed from one release to the next.

FOLDER holds virtual environments named PACKAGE-VERSION, such as ai-edge-litert-2.3.0 or tflite-micro-0.dev20261023. A
release is added with one command, which makes its environment, runs the suite and writes its part of the page:

    python tools/scan_releases.py FOLDER --add ai-edge-litert==2.4.0 --write
    python tools/scan_releases.py FOLDER --only ai-edge-litert --count 400
    python tools/scan_releases.py FOLDER --profiles --write

The suite are models at the edges of Prepare's conditions (tools/prepare_edges.py), drawn from a seed. Every model runs
in two processes, one of them with poisoned memory; where they disagree, its result is undefined and not compared.
FOLDER/outcomes.json keeps what was seen, so that only new releases run.
`--profiles` compares each profile with its runtime, too. `--write` writes its part of docs/scoreboard.md.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from profile_docs import table, with_part

from opfuzz.edges import Edge, draw_edge
from opfuzz.releases import releases
from opfuzz.scanning import PACKAGES, Change, Environment, Kept, Outcomes, changes, environments, outcomes
from opfuzz.session import numbers, operators
from opfuzz.sides import WRONG, Answer, Side

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scoreboard.md"
#: Operators that a cell names.
NAMED = 8
HEAD = """What changed from one released runtime to the next, on {count:,} single-operator models at the limits of
what kernels accept: strides larger than images, scales beyond 2^8 and below 2^-20, unequal scales, absent biases and
shapes, biases of another scale, sums near the ends of int32, several scales where one is usual, any activation and
version. Numbers in brackets count models. *bits* are other outputs, *accepted* runs now, *refused* is refused now. What
aborts, or differs between two processes of one release, is not compared. Float outputs are compared by bits, too.
Releases that change nothing are listed, so that one profile can describe several.

`tools/scan_releases.py FOLDER --write` writes this part (seed {seed}); `--add PACKAGE==VERSION` adds a release.
"""
AGREEMENT = """
### Profiles on the same models

*equal* are the same bits, *not claimed* are floats whose profile promises closeness only, *refused alike* by both.
"""


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of virtual environments")
    parser.add_argument("--add", action="append", default=[], metavar="PACKAGE==VERSION", help="install this release")
    parser.add_argument("--python", default=sys.executable, help="the Python of new environments")
    parser.add_argument("--only", default="", help="only packages whose name begins with this")
    parser.add_argument("--count", type=int, default=1000, help="number of models (default: 1000)")
    parser.add_argument("--seed", type=int, default=37, help="seed of the suite (default: 37)")
    parser.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="only these operators")
    parser.add_argument("--profiles", action="store_true", help="compare profiles with their runtimes, too")
    parser.add_argument("--write", action="store_true", help="write its part of docs/scoreboard.md")
    return parser.parse_args()


def install(folder: Path, wanted: str, python: str) -> None:
    """Make the environment of a release."""
    package, _, version = wanted.partition("==")
    place = folder / f"{package}-{version}"
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", wanted], check=True)


def suite(args: argparse.Namespace) -> list[Edge]:
    """Return the models."""
    drawn = (draw_edge(args.seed, number) for number in numbers(args.seed, operators(args.ops)))
    return list(itertools.islice((edge for edge in drawn if edge is not None), args.count))


def scanned(found: Sequence[Environment], edges: Sequence[Edge], kept: Kept) -> Iterator[Change]:
    """Yield the changes of every resolver, in the order of releases. Outcomes that are kept are not made again."""
    for resolver in dict.fromkeys(name for _, names in PACKAGES.values() for name in names):
        line: list[Outcomes] = []
        for one in found:
            if resolver in PACKAGES[one.package][1]:
                made = kept.get(one, resolver) or outcomes(one, resolver, edges)
                if made is not None:
                    kept.put(made)
                print(f"{one.name} {resolver}: {'does not start' if made is None else 'done'}", file=sys.stderr)
                line += [] if made is None else [made]
        yield from changes(line, edges)


def named(ops: Counter[str]) -> str:
    """Return the operators with most models first."""
    shown = [f"{op} ({count})" for op, count in ops.most_common(NAMED)]
    more = len(ops) - NAMED
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def page(found: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of the table."""
    titles = ("from", "to", "resolver", "compared", "bits", "accepted", "refused")
    rows = (
        (
            change.before,
            change.after,
            change.resolver or "reference kernels",
            f"{change.compared:,}",
            named(change.bits),
            named(change.accepted),
            named(change.refused),
        )
        for change in found
    )
    yield from table(titles, rows)


def agreements(folder: Path, edges: Sequence[Edge]) -> Iterator[tuple[str, Counter[Answer]]]:
    """Yield the answers of every profile whose runtime is there."""
    for release in releases(folder):
        if not release.python.exists():
            continue
        try:
            side = Side(release.profile, [str(release.python)], release.module, release.resolver)
        except (EOFError, OSError):
            continue
        yield release.profile, Counter(side.judge(edge).answer for edge in edges)
        side.close()


def agreement_lines(found: Iterator[tuple[str, Counter[Answer]]]) -> Iterator[str]:
    """Yield the lines of the table of profiles."""
    answers = [answer for answer in Answer if answer not in WRONG]
    titles = ("profile", *(answer.value for answer in answers), "disagree")
    rows = (
        (f"`{name}`", *(f"{counts[a]:,}" for a in answers), f"{sum(counts[a] for a in WRONG):,}")
        for name, counts in found
    )
    yield from table(titles, rows)


def main() -> int:
    """Scan, print and write."""
    args = arguments()
    for wanted in args.add:
        install(args.folder, wanted, args.python)
    found = [one for one in environments(args.folder) if one.package.startswith(args.only)]
    if not found:
        print(f"no environment PACKAGE-VERSION in {args.folder}", file=sys.stderr)
        return 2
    edges = suite(args)
    kept = Kept(args.folder / "outcomes.json", f"seed {args.seed}, {len(edges)} models, {' '.join(args.ops)}")
    lines = [HEAD.format(count=len(edges), seed=args.seed), *page(list(scanned(found, edges, kept)))]
    finish(lines, args.write)
    if args.profiles:
        finish([*lines, AGREEMENT, *agreement_lines(agreements(args.folder, edges))], args.write)
    return 0


def finish(lines: Sequence[str], write: bool) -> None:
    """Print the tables, and write them into the page if that is wanted."""
    print("\n".join(lines), flush=True)
    if write:
        text = with_part(PAGE.read_text(encoding="utf-8"), "releases", "scan_releases", lines)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
