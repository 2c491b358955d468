"""Run hostile variants of models in watched processes: no file may crash, hang or flood one.

    python tools/fuzz_models.py --count 5000 --seed 1 --jobs 2
    python tools/fuzz_models.py --count 5000 --seed 1 --against litert
    python tools/fuzz_models.py --seed 1 --only 4711 --save /tmp/variants
    NUMBA_BOUNDSCHECK=1 python tools/fuzz_models.py --count 20000

A variant is a recorded model, or one that `fuzz_ops.py` draws, with changes to types, shapes, indices, options,
buffers, quantization and subgraphs, or to its bytes. It is loaded, allocated, fed, run twice and read, with limits of
64 MiB of memory and 1e9 of work. Findings are crashes (signals), hangs (no end within --seconds), memory beyond
--memory, and errors other than tflq's. A second run on planned arrays that differs from the first is a finding, too.
--save writes it with the fewest changes that still cause it.

Exit status: 0 nothing found; 1 errors found; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from modelfuzz.subjects import SUBJECTS
from modelfuzz.variants import Variant, variant
from modelfuzz.watching import watch

FOUND = 1
#: Number of variants that one child runs.
BATCH = 1000
#: Maximum number of runs to make a finding smaller.
_ATTEMPTS = 40

Ends = list[tuple[Variant, str]]


def run(numbers: range, args: argparse.Namespace) -> Ends:
    """Return the outcomes of the variants of those numbers."""
    _import(args.against)
    models = [] if args.models is None else sorted(args.models.rglob("*.tflite"))
    variants = [variant(args.seed, number, models) for number in numbers]
    return list(watch(SUBJECTS[args.against], variants, args.seconds, args.memory << 20))


def _import(subject: str) -> None:
    """Import what the children need before they are forked. One thread each: a process with more cannot be forked."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if subject == "litert":
        import ai_edge_litert.interpreter  # noqa: F401
    else:
        import numba  # noqa: F401

        import tflq.engine.api.interpreter
        import tflq.engine.profiles  # noqa: F401


def smallest(failing: Variant, end: str, args: argparse.Namespace) -> Variant:
    """Return the variant with the fewest changes that has the same outcome."""
    kind, attempts = kind_of(end), _ATTEMPTS
    smaller = True
    while smaller:
        smaller = False
        for simpler in failing.simpler():
            attempts -= 1
            if attempts < 0:
                return failing
            [(_, other)] = watch(SUBJECTS[args.against], [simpler], args.seconds, args.memory << 20)
            if kind_of(other) == kind:
                failing, smaller = simpler, True
                break
    return failing


def kind_of(end: str) -> str:
    """Return the first word of a variant's outcome."""
    return end.partition(":")[0]


def all_ends(args: argparse.Namespace) -> Iterator[tuple[Variant, str]]:
    """Yield the outcome of every variant, batch by batch."""
    numbers = range(args.only, args.only + 1) if args.only is not None else range(args.start, args.start + args.count)
    batches = [numbers[i : i + BATCH] for i in range(0, len(numbers), BATCH)]
    if args.jobs == 1:
        for batch in batches:
            yield from run(batch, args)
        return
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        for future in [pool.submit(run, batch, args) for batch in batches]:
            yield from future.result()


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="variants (default: 5000)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first (default: 0)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--only", type=int, metavar="N", help="only the variant of this number")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="vary the models of this folder only")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time (default: 1)")
    parser.add_argument("--against", choices=SUBJECTS, default="tflq", help="what runs them (default: tflq)")
    parser.add_argument("--seconds", type=float, default=30, help="after which a variant hangs (default: 30)")
    parser.add_argument("--memory", type=int, default=512, help="MiB by which a child may grow (default: 512)")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where findings are written, made smaller")
    return parser.parse_args()


def main() -> int:
    """Run all variants and print their outcomes."""
    args = arguments()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for made, end in all_ends(args):
        counts[end if end.startswith("refused") else kind_of(end)] += 1
        kinds[kind_of(end)] += 1
        if not end.startswith("!"):
            if args.only is not None:
                print(f"{made}: {end}")
            continue
        print(f"--seed {args.seed} --only {made.number}: {end} ({made})", file=sys.stderr, flush=True)
        if args.save is not None:
            least = smallest(made, end, args)
            args.save.mkdir(parents=True, exist_ok=True)
            name = f"{args.against}-{args.seed}-{made.number}-{kind_of(end).strip('!')}"
            (args.save / f"{name}.tflite").write_bytes(least.data())
            (args.save / f"{name}.txt").write_text(f"{end}\n{least}\n")
    print(", ".join(f"{end} {count}" for end, count in counts.most_common()))
    found = sum(count for kind, count in kinds.items() if kind.startswith("!"))
    print(f"{found} found in {sum(kinds.values())} variants")
    return FOUND if found else 0


if __name__ == "__main__":
    sys.exit(main())
