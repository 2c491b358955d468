"""Run random models of one operator each with bounds checks in compiled code, most of them hostile.

    NUMBA_BOUNDSCHECK=1 python tools/fuzz_bounds.py --count 20 --seed 1
    NUMBA_BOUNDSCHECK=1 python tools/fuzz_bounds.py --ops 'SEGMENT_*' --count 500 --profiles litert-ref tflm
    NUMBA_DISABLE_JIT=1 python tools/fuzz_bounds.py --count 200

Of `--count` models per operator, one in five is drawn as in `fuzz_ops.py`; the others are damaged. Each runs under one
of the profiles (default: all with the operator), in turn. A model may be refused, or fail with an error of tflq. It
must not read or write outside of an array in compiled code, nor raise another error. With NUMBA_DISABLE_JIT=1 the same
source runs as Python, which compiles nothing and finds the same; machine code without bounds checks is refused.

Exit status: 0 nothing found; 1 errors found; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatch
from types import FrameType

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import Draw
from opfuzz.families import BESIDES, SPECS
from opfuzz.hostile import hostile
from opfuzz.remote_worker import invoke
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.jit.compiled import Compiled
from tflq.engine.profiles import PROFILES
from tflq.errors import OperatorFailed, TflqError

FOUND, USAGE = 1, 2
DRAWN = {**SPECS, **BESIDES}
#: One of this many models stays as drawn.
HONEST_ONE_IN = 5
MEMORY_BYTES = 64 << 20
#: The error for an index beyond an array in machine code with bounds checks.
_OUTSIDE = "index is out of bounds"


@dataclass
class Tally:
    """The outcomes of models, and those that must not occur."""

    ends: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


def draw_case(seed: int, op: str, number: int) -> Case:
    """Return the case of that number of an operator."""
    place = list(DRAWN).index(op)
    case = DRAWN[op](Draw(np.random.default_rng([seed, place, number])), op)
    if number % HONEST_ONE_IN == 0:
        return case
    return hostile(Draw(np.random.default_rng([seed, place, number, 1])), case)


def run(case: Case, profile: str) -> str:
    """Return the outcome of the case; it begins with "!" if it must not occur."""
    try:
        model = case.model()
    except (ValueError, TypeError, OverflowError, IndexError):  # the file format cannot represent that
        return "no model"
    try:
        interpreter = Interpreter(model_content=model, profile=profile, memory_limit=MEMORY_BYTES)
        interpreter.allocate_tensors()
        for sample in case.samples:
            invoke(interpreter, sample)
    except OperatorFailed as error:
        return f"! outside of an array: {error}" if is_outside(error.__cause__) else "failed"
    except TflqError as error:
        return type(error).__name__
    except Exception as error:
        return f"! {type(error).__name__}: {error}"
    return "ran"


def is_outside(error: BaseException | None) -> bool:
    """Return whether compiled code, or the same source as Python, raised this for an index beyond an array."""
    return isinstance(error, IndexError) and (str(error) == _OUTSIDE or _is_compiled(_innermost(error)))


def _innermost(error: BaseException) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


def _is_compiled(frame: FrameType | None) -> bool:
    return frame is not None and isinstance(frame.f_globals.get(frame.f_code.co_name), Compiled)


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10, help="models of each operator (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--case", type=int, help="only the case of this number of each operator, shown in full")
    parser.add_argument(
        "--ops", action="append", default=[], metavar="PATTERN", help="only these operators, such as 'CONV_*'"
    )
    parser.add_argument("--profiles", nargs="+", metavar="NAME", default=list(PROFILES), choices=PROFILES)
    return parser.parse_args()


def main() -> int:
    """Run all cases and print their outcomes."""
    args = arguments()
    if all(os.environ.get(name, "0") in ("", "0") for name in ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT")):
        print("set NUMBA_BOUNDSCHECK=1 or NUMBA_DISABLE_JIT=1", file=sys.stderr)
        return USAGE
    tally = Tally()
    for op in (op for op in DRAWN if not args.ops or any(fnmatch(op.upper(), p.upper()) for p in args.ops)):
        profiles = [name for name in args.profiles if op in PROFILES[name].kernels]
        for number in range(args.count if profiles else 0) if args.case is None else [args.case]:
            profile = profiles[(args.seed + number) % len(profiles)]
            case = draw_case(args.seed, op, number)
            end = run(case, profile)
            tally.ends[end.partition(":")[0]] += 1
            if end.startswith("!"):
                tally.found.append(f"--seed {args.seed} --ops {op} --case {number} ({profile}) {end}")
                print(tally.found[-1], file=sys.stderr)
            if args.case is not None:
                print(f"{case}\n{profile}: {end}")
    print(", ".join(f"{end} {count}" for end, count in tally.ends.most_common()))
    return FOUND if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
