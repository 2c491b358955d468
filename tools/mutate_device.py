"""Plant mistakes into operators of real models, and measure how often `tflq explain` finds and names them.

A device in software (tools/device), whose code shares nothing with explain's, computes one operator of a model with one
mistake; the later operators continue from its result. All tensors are written as a dump. Models are those of golden/
and, if TFLQ_SHARED is set, those in that folder.

    python tools/mutate_device.py --rates
    python tools/mutate_device.py --count 40 --save /tmp/dumps
    python tools/mutate_device.py --rates --case 17
    python tools/mutate_device.py --rates --pairs --count 100

Exit status: 0 the rates are high enough (or were not requested); 1 they are not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from device.judging import Judged, described, document, faulty, good, judged, lines, rates
from device.planting import Case, cases

ROOT = Path(__file__).resolve().parents[1]


def models() -> list[Path]:
    """Return small networks and single operators of golden/, then the real models of the shared material."""
    own = [
        *sorted((ROOT / "golden/models").glob("*.tflite")),
        *sorted((ROOT / "golden/singleop/models").glob("*.tflite")),
    ]
    shared = (ROOT / os.environ.get("TFLQ_SHARED", "../shared")).resolve() / "suites/real/models"
    return [*own, *sorted(shared.rglob("*.tflite"))]


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="number of dumps (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--own", action="store_true", help="only models of golden/")
    parser.add_argument("--pairs", action="store_true", help="plant two mistakes at once in every dump")
    parser.add_argument("--rates", action="store_true", help="explain every dump, and print how often that is right")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write every dump as an .npz, and cases.json")
    parser.add_argument("--json", action="store_true", help="print the rates as JSON")
    return parser.parse_args()


def main() -> int:
    """Plant, write and measure, as requested."""
    args = arguments()
    chosen = [m for m in models() if not args.own or m.is_relative_to(ROOT / "golden")]
    drawn = cases(chosen, range(args.count) if args.case is None else [args.case], args.seed, pairs=args.pairs)
    if args.save:
        drawn = saved(drawn, args.save)
    if not args.rates:
        for case in drawn:
            print(json.dumps(facts(case)))
        return 0
    results: list[Judged] = []
    for case in drawn:
        results.append(judged(case))
        for one in results[-1:] if args.case is not None else faulty(results[-1:]):
            print(described(one), file=sys.stderr, flush=True)
    print(document(results, args.seed) if args.json else "\n".join(lines(results)))
    return 0 if good(rates(results)) else 1


def facts(case: Case) -> dict[str, Any]:
    """Return the facts of a planted mistake."""
    return {
        "case": case.number,
        "seed": case.seed,
        "kind": case.kind,
        "mistake": case.mistake,
        "model": str(case.model),
        "profile": case.profile,
        "operator": case.site.index,
        "op": case.site.op,
        "type": case.site.type,
        "changed": case.changed,
        "samples": len(case.samples),
        "partial": case.partial,
    }


def saved(drawn: Iterator[Case], folder: Path) -> Iterator[Case]:
    """Yield the cases, after writing each dump by tensor index."""
    folder.mkdir(parents=True, exist_ok=True)
    known = []
    for case in drawn:
        case.save(folder / f"{case.number:04}.npz")
        known.append(facts(case))
        (folder / "cases.json").write_text(json.dumps(known, indent=1), encoding="utf-8")
        yield case


if __name__ == "__main__":
    sys.exit(main())
