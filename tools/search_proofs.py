"""Search inputs that contradict `tflq prove`'s verdict "equal", on random small operators.

    python tools/search_proofs.py --seed 1 --count 2000
    python tools/search_proofs.py --seed 1 --start 2000 --count 2000 --processes 2
    python tools/search_proofs.py --seed 1 --count 2000 --live 0.2

With --live, a share of the pairs with LiteRT profiles is also compared in LiteRT (needs the extra `litert`).

Exit status: 0 no contradiction; 1 there are some.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic

from prooffuzz.session import PROFILES, Search, Tally

FOUND = 1
#: Number of cases in one piece of work.
_PIECE = 25


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--start", type=int, default=0, help="number of the first case (default: 0)")
    parser.add_argument("--count", type=int, default=500, help="number of cases (default: 500)")
    parser.add_argument(
        "--live", type=float, default=0.0, help="share of equal pairs to compare in LiteRT (default: 0)"
    )
    parser.add_argument(
        "--profiles", nargs="+", default=PROFILES, choices=PROFILES, metavar="NAME", help="each case uses some"
    )
    parser.add_argument("--processes", type=int, default=1, help="number of worker processes (default: 1)")
    parser.add_argument("--seconds", type=float, default=0, help="stop after that time (default: 0, no limit)")
    return parser.parse_args()


def piece(seed: int, start: int, stop: int, live: float = 0.0, profiles: Sequence[str] = PROFILES) -> Tally:
    """Judge the cases from `start` below `stop`."""
    search, tally = Search(seed, live, [sys.executable], profiles), Tally()
    for _ in search.run(range(start, stop), tally):
        pass
    search.close()
    return tally


def main() -> int:
    """Run, report, and return the exit status of the findings."""
    args = arguments()
    stop, began, total, done = args.start + args.count, monotonic(), Tally(), args.start
    pieces = [(at, min(at + _PIECE, stop)) for at in range(args.start, stop, _PIECE)]
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(piece, args.seed, *ends, args.live, args.profiles) for ends in pieces]
        for future, (_, end) in zip(waiting, pieces, strict=True):
            part, done = future.result(), end
            add(total, part)
            for found in part.wrong:
                print(f"--seed {args.seed} --start {found.number} --count 1: {found}", flush=True)
            progress = f"\r{done} cases, {total.equal:,} equal, {len(total.wrong)} contradicted"
            print(progress, end="", file=sys.stderr, flush=True)
            if args.seconds and monotonic() - began > args.seconds:
                pool.shutdown(cancel_futures=True)
                break
    print(file=sys.stderr)
    print(table(total, args.seed, args.start, done, monotonic() - began))
    return FOUND if total.wrong else 0


def add(total: Tally, part: Tally) -> None:
    """Add the counts of a part."""
    total.drawn.update(part.drawn)
    total.words.update(part.words)
    total.ways.update(part.ways)
    total.refused += part.refused
    total.live += part.live
    total.wrong += part.wrong


def table(tally: Tally, seed: int, start: int, stop: int, seconds: float) -> str:
    """Return the counts as text."""
    words: Counter[str] = Counter()
    for (_, word), count in tally.words.items():
        words[word] += count
    lines = [
        f"seed {seed}, cases {start} to {stop - 1}: {sum(tally.drawn.values()):,} drawn, {tally.refused:,} refused",
        "pairs of kernels: " + ", ".join(f"{words[word]:,} {word}" for word in ("equal", "differs", "not decided")),
        "equal by: " + ", ".join(f"{way} {count:,}" for way, count in tally.ways.most_common()),
        f"equal pairs compared in LiteRT: {tally.live:,}",
        f"contradicted: {len(tally.wrong):,}, in {seconds:,.0f} s",
        "",
        f"{'form':24}{'drawn':>8}{'equal':>8}{'differs':>9}{'undecided':>11}",
    ]
    for form in sorted(tally.drawn):
        counts = [tally.words[form, word] for word in ("equal", "differs", "not decided")]
        lines.append(f"{form:24}{tally.drawn[form]:8}{counts[0]:8}{counts[1]:9}{counts[2]:11}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
