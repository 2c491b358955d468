"""Compare tflq with LiteRT on random models of one operator each.

Needs the extra `litert`. Every model is run in tflq and, in a child process, in LiteRT with BUILTIN_REF (with the full
resolver if that one lacks the operator); all outputs are compared bit by bit.

    python tools/fuzz_ops.py --count 20000 --seed 1
    python tools/fuzz_ops.py --ops 'CONV_*' --count 200
    python tools/fuzz_ops.py --seed 1 --case 4711 --save /tmp/difference

Exit status: 0 no unexplained difference; 1 there are some; 2 wrong usage; 3 nothing differs, but too few of the models
ran with outputs that vary.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from importlib.util import find_spec
from pathlib import Path

from opfuzz.compare import judge
from opfuzz.evidence import Evidence
from opfuzz.minimise import minimised
from opfuzz.remote import Remote, litert
from opfuzz.report import as_json, described, progress, save, table
from opfuzz.session import HONEST, Judged, Tally, judged, numbers, operators

FOUND, USAGE, LITTLE = 1, 2, 3


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many models (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--case", type=int, help="only the case of this number, shown in full")
    parser.add_argument(
        "--ops", action="append", default=[], metavar="PATTERN", help="only these operators, such as 'CONV_*'"
    )
    parser.add_argument(
        "--limit", type=int, default=20, help="stop after this many differences (default: 20; 0: never)"
    )
    parser.add_argument(
        "--save", type=Path, metavar="DIR", help="save every difference, minimised, as .tflite and .npz"
    )
    parser.add_argument("--evidence", type=Path, metavar="FILE", help="add the comparisons to this file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


def main() -> int:
    """Run, report, and return the exit status of the findings."""
    args = arguments()
    if find_spec("ai_edge_litert") is None:
        print("ai-edge-litert is not installed: pip install 'tflq[litert]'", file=sys.stderr)
        return USAGE
    ops = operators(args.ops)
    if not ops:
        print(f"no operator that can be drawn matches {' '.join(args.ops)}", file=sys.stderr)
        return USAGE
    chosen = [args.case] if args.case is not None else itertools.islice(numbers(args.seed, ops), args.count)
    tally = Tally()
    with litert() as live:
        for one in progress(judged(args.seed, chosen, live), 1 if args.case is not None else args.count):
            tally.add(one)
            if one.wrong or args.case is not None:
                show(one, args, live)
            if len(tally.wrong) == args.limit > 0:
                break
    if args.evidence:
        known = Evidence.load(args.evidence)
        known.merge(tally.evidence)
        known.save(args.evidence)
    print(as_json(tally, args.seed) if args.json else table(tally, args.seed))
    if tally.wrong:
        return FOUND
    return 0 if tally.varied >= HONEST or args.case is not None else LITTLE


def show(one: Judged, args: argparse.Namespace, live: Remote) -> None:
    """Print one case and, if it is wrong, its simplest form."""
    line = f"--seed {args.seed} --case {one.number}"
    print(described(one.case, one.outcome, line), file=sys.stderr)
    if not one.wrong:
        return
    smaller = minimised(one.case, one.outcome, live)
    outcome = judge(smaller, live)
    print(described(smaller, outcome, f"{line}, minimised"), file=sys.stderr)
    if args.save:
        save(args.save, f"{one.case.op.lower()}_{args.seed}_{one.number}", smaller, outcome, line)


if __name__ == "__main__":
    sys.exit(main())
