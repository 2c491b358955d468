"""Compare profiles with their runtimes on random models at the edges of Prepare's conditions.

Every model has one operator and one to three changes: strides larger than images, scales beyond 2**8 or below 2**-20,
unequal scales and zero points, one tensor as both operands, absent shapes and biases, biases of another scale or type,
sums near the ends of int32, several scales where one is usual, buffers without bytes, any activation, odd versions. It
is refused alike by a profile and its runtime, or runs in both with the same bits.

    python tools/prepare_edges.py --count 5000 --seed 1
    python tools/prepare_edges.py --ops 'CONV_*' --count 200 --micro FOLDER/bin/python
    python tools/prepare_edges.py --seed 1 --case 4711 --save /tmp/edge

Needs LiteRT (the extra `litert`); TensorFlow Lite Micro is asked if this Python, or the one of --micro, has it. Exit
status: 0 no disagreement; 1 there are some; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from opfuzz.edges import Edge, draw_edge
from opfuzz.report import described_edge
from opfuzz.session import numbers, operators
from opfuzz.sides import WRONG, Answer, Side, Verdict

FOUND, USAGE = 1, 2
LITERT, MICRO = "ai_edge_litert.interpreter", "tflite_micro"
#: Profile -> the resolver of LiteRT that it describes.
RESOLVERS = {
    "litert-ref": "BUILTIN_REF",
    "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="number of models (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--case", type=int, help="only the model of this number")
    parser.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="only these operators")
    parser.add_argument("--profiles", default="", help="only these profiles, with commas between")
    parser.add_argument("--micro", type=Path, metavar="PYTHON", help="a Python that has tflite-micro")
    parser.add_argument("--limit", type=int, default=0, help="stop after this many disagreements (default: 0, never)")
    parser.add_argument("--save", type=Path, metavar="DIR", help="save disagreements as .tflite and .npz")
    return parser.parse_args()


def sides(micro: Path | None) -> Iterator[tuple[str, list[str], str, str]]:
    """Yield profile, command, module and resolver of the runtimes that are there."""
    here = [sys.executable]
    if find_spec("ai_edge_litert") is not None:
        yield from ((profile, here, LITERT, resolver) for profile, resolver in RESOLVERS.items())
    python = here if micro is None else [str(micro)]
    if subprocess.run([*python, "-c", f"import {MICRO}"], capture_output=True, check=False).returncode == 0:
        yield "tflm", python, MICRO, ""


def edges(args: argparse.Namespace, ops: tuple[str, ...]) -> Iterator[Edge]:
    """Yield the models."""
    if args.case is not None:
        chosen: Iterator[int] = iter([args.case])
    else:
        chosen = numbers(args.seed, ops)
    drawn = (draw_edge(args.seed, number) for number in chosen)
    return itertools.islice((edge for edge in drawn if edge is not None), args.count)


def main() -> int:
    """Compare, print the counts, and return the exit status."""
    args = arguments()
    ops = operators(args.ops)
    wanted = args.profiles.split(",") if args.profiles else []
    with ExitStack() as stack:
        known = [Side(*side) for side in sides(args.micro) if not wanted or side[0] in wanted]
        for side in known:
            stack.callback(side.close)
        if not known or not ops:
            print("no runtime to compare with, or no operator that can be drawn", file=sys.stderr)
            return USAGE
        counts = compared(args, edges(args, ops), known)
    print(table(counts))
    return FOUND if any(counts[key] for key in counts if key[1] in WRONG) else 0


def compared(args: argparse.Namespace, drawn: Iterator[Edge], known: list[Side]) -> Counter[tuple[str, Answer]]:
    """Return the number of answers by profile; print and save disagreements."""
    counts: Counter[tuple[str, Answer]] = Counter()
    for edge in drawn:
        for side in known:
            if side.is_micro and not edge.is_for_micro:
                continue
            verdict = side.judge(edge)
            counts[side.profile, verdict.answer] += 1
            if verdict.answer in WRONG or args.case is not None:
                show(args, edge, side.profile, verdict)
        if args.limit and sum(counts[key] for key in counts if key[1] in WRONG) >= args.limit:
            break
    return counts


def show(args: argparse.Namespace, edge: Edge, profile: str, verdict: Verdict) -> None:
    """Print a model and the answer on it; save it if that is wanted."""
    line = f"--seed {args.seed} --case {edge.number} {profile}"
    print(described_edge(edge, f"{line}: {verdict.answer.value}: {verdict.note}"), flush=True)
    if args.save:
        args.save.mkdir(parents=True, exist_ok=True)
        stem = args.save / f"{edge.case.op.lower()}_{args.seed}_{edge.number}"
        stem.with_suffix(".tflite").write_bytes(edge.content)
        np.savez(
            stem.with_suffix(".npz"), **{f"s{s}_in{i}": v for s, x in enumerate(edge.samples) for i, v in enumerate(x)}
        )


def table(counts: Counter[tuple[str, Answer]]) -> str:
    """Return the counts by profile and answer."""
    profiles = list(dict.fromkeys(profile for profile, _ in counts))
    lines = [f"{'':32}" + "".join(f"{profile:>16}" for profile in profiles)]
    lines += [f"{answer.value:32}" + "".join(f"{counts[p, answer]:16,}" for p in profiles) for answer in Answer]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
