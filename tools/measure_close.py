"""Measure the distance between a runtime and its profile in float rows that are promised to be close.

    python tools/measure_close.py PROFILE [--python 'COMMAND'] [--count 2000] [--seed 1]

The operators are random: ordinary and extreme, small and with sums of thousands. The largest difference of every row
goes into `schemas/measured_ulp.json`, in units in the last place of the largest magnitude in its tensor. Only samples
with finite inputs and results count. Rows of few samples get no figure, nor do those whose results may jump: if an
activation is quantized on the way, the last bit of a float decides a whole step. COMMAND starts a Python with the
runtime.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tflq
from opfuzz.case import Array, Case
from opfuzz.draw import Draw
from opfuzz.long_sums import LONG
from opfuzz.remote import Ran, Remote
from opfuzz.remote_worker import invoke
from opfuzz.session import draw_case, numbers, operators
from tflq.comparison.inspection.difference import difference
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError

FIGURES = Path(__file__).resolve().parent.parent / "schemas" / "measured_ulp.json"
MODULES = {
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "ai-edge-litert-nightly": "ai_edge_litert.interpreter",
    "tflite-runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite",
}
#: Fewer samples are not significant, and a larger difference is not a rounding.
SAMPLES, ROUNDING = 30, 1 << 16
#: One of this many cases is long, for operators that add.
LONG_EVERY = 4


def is_close(kernel: Kernel) -> bool:
    """Return whether a row's results are floats that are not promised to be equal."""
    return kernel.exactness.word == "close"


def cases(profile: Profile, seed: int, count: int) -> Iterator[Case]:
    """Yield cases of the operators with such a row."""
    ops = [op for op in operators([]) if op in profile.kernels and any(map(is_close, profile.kernels[op]))]
    long = [op for op in ops if op in LONG]
    for drawn, number in zip(range(count), numbers(seed, ops), strict=False):
        yield draw_case(seed, number)
        if long and drawn % LONG_EVERY == 0:
            op = long[drawn // LONG_EVERY % len(long)]
            yield LONG[op](Draw(np.random.default_rng([seed, number, 1])), op)


def row_of(case: Case, profile: Profile) -> Kernel | None:
    """Return the row that computes a case, if it is one to be measured and can be run."""
    try:
        (step,) = make_plan(tflq.load(case.model()), profile).steps
    except TflqError:
        return None
    return step.kernel if is_close(step.kernel) else None


def distances(case: Case, profile: Profile, runtime: Remote) -> Iterator[int]:
    """Yield the largest difference of each valid sample."""
    theirs = runtime.run(case)
    if not isinstance(theirs, Ran):
        return
    interpreter = tflq.Interpreter(model_content=case.model(), profile=profile)
    interpreter.allocate_tensors()
    for sample, wanted in zip(case.samples, theirs.outputs, strict=True):
        try:
            got = invoke(interpreter, sample)
        except TflqError:
            return
        if all(map(finite, (*sample, *wanted, *got))):
            yield max((difference(w, g).at_scale or 0 for w, g in zip(wanted, got, strict=True)), default=0)


def finite(value: Array) -> bool:
    """Return whether there is neither an infinity nor a NaN."""
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())


def main() -> int:
    """Measure one profile, and add its figures to those in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--python", default=sys.executable, metavar="COMMAND")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", default=platform.machine(), help="the processor of the runtime, for the file")
    args = parser.parse_args()
    profile = by_name(args.profile)
    source = profile.source
    resolver = source.resolver if source.resolver.isupper() else ""
    runtime = Remote(shlex.split(args.python), MODULES[source.package], resolver)
    found: dict[str, list[int]] = {}
    for case in cases(profile, args.seed, args.count):
        row = row_of(case, profile)
        if row is not None:
            found.setdefault(f"{row.op} {row.signature}", []).extend(distances(case, profile, runtime))
    runtime.close()
    store(args, profile, {key: measured for key, measured in sorted(found.items()) if measured})
    return 0


def store(args: Any, profile: Profile, found: dict[str, list[int]]) -> None:
    """Merge the figures with those of earlier runs: the largest counts, and rows that ever jumped have none."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    source = profile.source
    runtime = f"{source.package} {source.version} {source.resolver}"
    before = known.get(profile.name, {})
    rows = dict(before["rows"]) if before.get("runtime") == runtime else {}
    for key, measured in found.items():
        earlier = rows.pop(key, {"ulp": 0, "samples": 0})
        ulp, samples = max(earlier["ulp"], *measured), earlier["samples"] + len(measured)
        if samples >= SAMPLES and ulp <= ROUNDING:
            rows[key] = {"ulp": ulp, "samples": samples}
    known[profile.name] = {"runtime": runtime, "cpu": args.cpu, "seed": args.seed, "rows": dict(sorted(rows.items()))}
    FIGURES.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    for key, measured in found.items():
        left_out = "" if key in rows else "  (left out)"
        print(f"{max(measured):>12,} ULP in {len(measured):>5} samples: {key}{left_out}")


if __name__ == "__main__":
    sys.exit(main())
