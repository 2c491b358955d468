"""Time every operator in every choice of types against LiteRT, at one size or as the work grows.

    python tools/bench_ops.py [--ops 'CONV_*'] [--profile litert-ref] [--draws 2] [--targets 1000] [--json FILE]
    python tools/bench_ops.py --profile litert-xnnpack --targets 50,500,5000 --plot FILE.svg
    python tools/bench_ops.py --compare BEFORE AFTER

Models are those of `fuzz_ops.py`, drawn larger: each is grown until one invoke of LiteRT takes a target's microseconds,
within a factor of two if the operator can grow. Every choice of types is drawn --draws times, and the largest ratio
counts. With several targets, the slope counts: what tflq takes for more work over what LiteRT takes for it, from the
smallest model to the largest. --plot draws ratios against passes of innermost loops, which are multiply-accumulates or
elements (needs matplotlib). One process for each operator runs both interpreters in turn, one thread each, warm; the
times are the smallest. Rows that LiteRT's resolver of the profile lacks are timed against its full resolver and marked
`*`. Needs the extra `litert`.
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
#: A slope that docs/performance.md explains.
STEEP = 4
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


def timed(case: Case, profile: str) -> tuple[float, float, bool, int]:
    """Return the smallest seconds of LiteRT and of tflq, whether LiteRT's full resolver was needed, and the passes."""
    import tflq
    from tflq.engine.interpreter import make_plan
    from tflq.engine.profiles import by_name

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
    work = make_plan(tflq.load(model), by_name(profile)).cost.work
    return least[0], least[1], resolver != RESOLVERS[profile], work


def serve(pipe: Connection, op: str, profile: str, draws: int, targets: list[float]) -> None:
    """Send the rows of one operator, then None."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    counts: dict[str, int] = {}
    for number in range(DRAWS):
        types = kinds(drawn(op, number, 1.0))
        if counts.get(types, 0) >= draws:
            continue
        for target in targets:
            found = grown(op, number, RESOLVERS[profile], target)
            if found is None:
                break
            case, grow = found
            types = kinds(case)  # what is drawn after the values may differ from the small case
            row = {"op": op, "types": types, "number": number, "grow": grow}
            try:
                theirs, ours, full, work = timed(case, profile)
            except Exception as error:  # a refusal is a row, too
                pipe.send(row | {"error": repr(error)[:200]})
                break
            if theirs < target / 10:  # cannot grow
                break
            pipe.send(row | {"litert": theirs * 1e6, "tflq": ours * 1e6, "full": full, "work": work})
            if target == targets[-1]:
                counts[types] = counts.get(types, 0) + 1
    pipe.send(None)


def rows(op: str, profile: str, draws: int, targets: list[float]) -> Iterator[Row]:
    """Yield the rows of one operator, measured in a process of its own."""
    context = multiprocessing.get_context("fork")
    pipe, end = context.Pipe()
    child = context.Process(target=serve, args=(end, op, profile, draws, targets), daemon=True)
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


def slopes(table: list[Row]) -> list[tuple[float, list[Row]]]:
    """Return the slope of each choice of types with its models by size: that of the draw where it is largest."""
    drawn: dict[tuple[str, str, int], list[Row]] = {}
    for row in table:
        if "error" not in row:
            drawn.setdefault((row["op"], row["types"], row["number"]), []).append(row)
    largest: dict[tuple[str, str], tuple[float, list[Row]]] = {}
    for (op, types, _), models in drawn.items():
        models = sorted(models, key=lambda row: float(row["litert"]))
        first, last = models[0], models[-1]
        if last["litert"] < 2 * first["litert"]:  # of one size
            continue
        slope = (last["tflq"] - first["tflq"]) / (last["litert"] - first["litert"])
        if slope > largest.get((op, types), (-np.inf, []))[0]:
            largest[op, types] = slope, models
    return sorted(largest.values(), key=lambda found: found[0], reverse=True)


def slope_line(slope: float, models: list[Row]) -> str:
    """Return a slope as text, with the ratio of each size."""
    sizes = "  ".join(f"{ratio(row):.2f} at {row['litert']:.0f} us" for row in models)
    return f"{slope:8.2f} {models[0]['op']:28} {models[0]['types']:48} {sizes}"


def draw(found: list[tuple[float, list[Row]]], path: Path) -> None:
    """Draw the ratio of each choice of types against its passes; name those that are steep."""
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "tflq", "svg.fonttype": "none", "font.size": 8})
    figure, panel = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for slope, models in found:
        steep = slope > STEEP
        label = f"{models[0]['op']} {models[0]['types']}" if steep else None
        places = [(row["work"], ratio(row)) for row in models]
        panel.plot(
            *zip(*places, strict=True), marker=".", color=None if steep else "0.8", label=label, zorder=1 + steep
        )
    panel.set(xscale="log", yscale="log", xlabel="passes of innermost loops", ylabel="tflq : LiteRT")
    if any(slope > STEEP for slope, _ in found):
        panel.legend(frameon=False, fontsize=6)
    figure.savefig(path, metadata={"Date": None})


def compared(before: list[Row], after: list[Row]) -> Iterator[str]:
    """Yield the rows of two files that both have, largest ratio before first."""
    later = {(row["op"], row["types"], row["number"]): row for row in after if "error" not in row}
    for row in sorted((row for row in before if "error" not in row), key=ratio, reverse=True):
        other = later.get((row["op"], row["types"], row["number"]))
        if other is not None:
            yield f"{ratio(row):8.2f} {ratio(other):8.2f} {row['litert']:9.0f} us {row['op']:28} {row['types']}"


def targets_of(text: str) -> list[float]:
    """Return the numbers of a list with commas, in ascending order."""
    return sorted(map(float, text.split(",")))


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="only these operators")
    parser.add_argument("--profile", choices=list(RESOLVERS), default="litert-ref", help="default: litert-ref")
    parser.add_argument("--draws", type=int, default=2, help="models of each choice of types (default: 2)")
    parser.add_argument("--targets", type=targets_of, default=[1000.0], help="microseconds of LiteRT (default: 1000)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw ratios against passes")
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
        table += rows(op, args.profile, args.draws, [target / 1e6 for target in args.targets])
        print(op, len(table), file=sys.stderr, flush=True)
        if args.json:
            args.json.write_text(json.dumps(table, indent=0) + "\n", "utf-8")
    if len(args.targets) > 1:
        print(*(slope_line(*found) for found in slopes(table)), sep="\n")
    else:
        print(*map(line, worst(table)), sep="\n")
    if args.plot:
        draw(slopes(table), args.plot)
    print(*(f"{row['op']} {row['types']}: {row['error']}" for row in table if "error" in row), sep="\n")
    return 0 if any("error" not in row for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
