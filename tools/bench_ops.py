"""Time every operator in every choice of types against LiteRT, at a size where LiteRT takes about a millisecond.

    python tools/bench_ops.py [--ops 'CONV_*'] [--profile litert-ref] [--draws 2] [--target 1000] [--json FILE]
    python tools/bench_ops.py --compare BEFORE AFTER

Models are those of `fuzz_ops.py`, drawn larger: each is grown until one invoke of LiteRT takes --target microseconds,
within a factor of two if the operator can grow. Every choice of types is drawn --draws times, and the largest ratio
counts. One process for each operator runs both interpreters in turn, one thread each, warm; the times are the smallest.
Rows that LiteRT's resolver of the profile lacks are timed against its full resolver and marked `*`. Needs the extra
`litert`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from opfuzz.case import Case, fed
from opfuzz.draw import Draw
from opfuzz.families import SPECS
from opfuzz.session import operators

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: The resolver of LiteRT that each profile is timed against.
RESOLVERS = {
    "litert-ref": "BUILTIN_REF",
    "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}
#: A row: operator, types, number of the draw, microseconds of LiteRT and of tflq.
Row = dict[str, Any]
#: Attempts to reach the target; the largest factor of one.
GROWTHS, LEAP = 10, 64.0
#: Draws of one operator, at most; seconds and turns of one timing.
DRAWS, SECONDS, TURNS = 60, 0.3, 25
#: Times within this factor of the target are near enough.
NEAR = 2.0
#: Bytes of a model's inputs, at most.
MOST = 1 << 27


def drawn(op: str, number: int, grow: float) -> Case:
    """Return the operator's draw of that number."""
    return SPECS[op](Draw(np.random.default_rng([number]), grow), op)


def kinds(case: Case) -> str:
    """Return the operand types without repetitions."""
    left, right = case.types.split(" -> ")
    return " -> ".join(" ".join(dict.fromkeys(word for word in half.split() if word != "-")) for half in (left, right))


def litert(model: bytes, resolver: str) -> Any:
    """Return LiteRT's interpreter, with its name after the resolver if that is the full one instead."""
    from ai_edge_litert import interpreter as runtime

    for name in dict.fromkeys((resolver, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")):
        try:
            types = runtime.OpResolverType
            made = runtime.Interpreter(
                model_content=model, num_threads=1, experimental_op_resolver_type=getattr(types, name)
            )
            made.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            if "op" not in str(error).lower():
                raise
        else:
            return made, name
    raise ValueError("no resolver has the operator")


def ready(interpreter: Any, case: Case) -> Callable[[], object]:
    """Set the inputs, invoke twice, and return the invoke."""
    for detail, value in zip(interpreter.get_input_details(), case.samples[0], strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    interpreter.invoke()
    return interpreter.invoke  # type: ignore[no-any-return]


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def grown(op: str, number: int, resolver: str, target: float) -> tuple[Case, float] | None:
    """Return the draw that LiteRT takes about the target for, and its growth; None if LiteRT refuses it."""
    grow, best = 1.0, None
    for _ in range(GROWTHS):
        case = drawn(op, number, grow)
        if sum(int(np.prod(t.shape)) for t in (*fed(case.inputs), *case.outputs)) * 4 > MOST:
            break
        try:
            call = ready(litert(case.model(), resolver)[0], case)
        except (ValueError, RuntimeError, TypeError, NotImplementedError):
            break
        took = min(seconds(call) for _ in range(3))
        if best is None or abs(np.log(took / target)) < abs(np.log(best[2] / target)):
            best = case, grow, took
        if target / NEAR < took < target * NEAR or (took > target and grow == 1):
            break
        grow = max(1.0, grow * min(LEAP, target / took))
    return None if best is None else best[:2]


def timed(case: Case, profile: str) -> tuple[float, float, bool]:
    """Return the smallest seconds of LiteRT and of tflq, and whether LiteRT's full resolver was needed."""
    import tflq

    model = case.model()
    theirs, resolver = litert(model, RESOLVERS[profile])
    ours = tflq.Interpreter(model_content=model, profile=profile)
    ours.allocate_tensors()
    calls = ready(theirs, case), ready(ours, case)
    least, start = [np.inf, np.inf], time.perf_counter()
    for turn in range(TURNS):
        for side, call in enumerate(calls):
            least[side] = min(least[side], seconds(call), seconds(call))
        if turn > 1 and time.perf_counter() - start > SECONDS:
            break
    return least[0], least[1], resolver != RESOLVERS[profile]


def serve(pipe: Connection, op: str, profile: str, draws: int, target: float) -> None:
    """Send the rows of one operator, then None."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    counts: dict[str, int] = {}
    for number in range(DRAWS):
        types = kinds(drawn(op, number, 1.0))
        if counts.get(types, 0) >= draws:
            continue
        found = grown(op, number, RESOLVERS[profile], target)
        if found is None:
            continue
        case, grow = found
        types = kinds(case)  # what is drawn after the values may differ from the small case
        try:
            theirs, ours, full = timed(case, profile)
        except Exception as error:  # a refusal is a row, too
            pipe.send({"op": op, "types": types, "number": number, "grow": grow, "error": repr(error)[:200]})
            continue
        if theirs < target / 10:  # cannot grow
            continue
        counts[types] = counts.get(types, 0) + 1
        row = {"op": op, "types": types, "number": number, "grow": grow, "litert": theirs * 1e6, "tflq": ours * 1e6}
        pipe.send(row | {"full": full})
    pipe.send(None)


def rows(op: str, profile: str, draws: int, target: float) -> Iterator[Row]:
    """Yield the rows of one operator, measured in a process of its own."""
    context = multiprocessing.get_context("fork")
    pipe, end = context.Pipe()
    child = context.Process(target=serve, args=(end, op, profile, draws, target), daemon=True)
    child.start()
    end.close()
    try:
        while (row := pipe.recv()) is not None:
            yield row
    except EOFError:
        yield {"op": op, "types": "", "error": "LiteRT ended the process"}
    child.join()


def worst(table: list[Row]) -> list[Row]:
    """Return the row with the largest ratio of each choice of types, largest first."""
    largest: dict[tuple[str, str], Row] = {}
    for row in table:
        if "error" not in row:
            key = row["op"], row["types"]
            largest[key] = max(largest.get(key, row), row, key=ratio)
    return sorted(largest.values(), key=ratio, reverse=True)


def ratio(row: Row) -> float:
    """Return tflq's time over LiteRT's."""
    return float(row["tflq"] / row["litert"])


def line(row: Row) -> str:
    """Return a row as text."""
    mark = "*" if row["full"] else " "
    where = f"number {row['number']} grow {row['grow']:.4g}"
    return f"{ratio(row):8.2f}{mark}{row['litert']:9.0f} us {row['op']:28} {row['types']:48} {where}"


def compared(before: list[Row], after: list[Row]) -> Iterator[str]:
    """Yield the rows of two files that both have, largest ratio before first."""
    later = {(row["op"], row["types"], row["number"]): row for row in after if "error" not in row}
    for row in sorted((row for row in before if "error" not in row), key=ratio, reverse=True):
        other = later.get((row["op"], row["types"], row["number"]))
        if other is not None:
            yield f"{ratio(row):8.2f} {ratio(other):8.2f} {row['litert']:9.0f} us {row['op']:28} {row['types']}"


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="only these operators")
    parser.add_argument("--profile", choices=list(RESOLVERS), default="litert-ref", help="default: litert-ref")
    parser.add_argument("--draws", type=int, default=2, help="models of each choice of types (default: 2)")
    parser.add_argument("--target", type=float, default=1000, help="microseconds of LiteRT (default: 1000)")
    parser.add_argument("--json", type=Path, help="also write all rows to this file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="print two such files side by side")
    return parser.parse_args()


def main() -> int:
    """Measure and print, or compare; exit status 1 if nothing was measured."""
    args = arguments()
    if args.compare:
        before, after = (json.loads(path.read_text("utf-8")) for path in args.compare)
        print(*compared(before, after), sep="\n")
        return 0
    if any(os.environ.get(name) != "1" for name in THREADS):  # libraries read them when they are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))
    table: list[Row] = []
    for op in operators(args.ops):
        table += rows(op, args.profile, args.draws, args.target / 1e6)
        print(op, len(table), file=sys.stderr, flush=True)
    print(*map(line, worst(table)), sep="\n")
    print(*(f"{row['op']} {row['types']}: {row['error']}" for row in table if "error" in row), sep="\n")
    if args.json:
        args.json.write_text(json.dumps(table, indent=0) + "\n", "utf-8")
    return 0 if any("error" not in row for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
