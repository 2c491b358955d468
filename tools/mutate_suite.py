"""Measure how many planted mistakes of devices a conformance suite catches, by operator and type.

A device in software (tools/device) computes each case's operator with one applicable mistake. The suite catches it if
any output of any case differs from the expected one. A mistake may change nothing in a case if another case of the same
operator and type reveals it.

    tflq conform make -o standard.npz --jobs 2
    python tools/mutate_suite.py standard.npz
    python tools/mutate_suite.py standard.npz --level smoke --least 0.9 --missed
    python tools/mutate_suite.py layout.npz --layout       mistakes of layout (tools/device/layouts.py), for all types

Exit status: 0 the score is at least --least; 1 it is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from device.description import RIGHT
from device.layouts import caught_in, plants
from device.mistakes import MISTAKES
from device.operators import compute, has
from device.site import site_of
from tflq.devices.suites.draft import kind_of
from tflq.devices.suites.make import arrays, model_of, read_suite
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.ir import view
from tflq.model.storage.arrays import Archive, opened

#: Operator, operand types, name of the mistake.
Plant: TypeAlias = tuple[str, str, str]
#: Mistakes that change no bit: sums of uint8 are never negative, and LiteRT rounds their quotients half up.
NONE: frozenset[Plant] = frozenset((("AVERAGE_POOL_2D", "uint8 -> uint8", "average rounds once, half up"),))


def caught_by(archive: Archive, level: str) -> dict[Plant, bool]:
    """Return every applicable mistake, by operator and types, and whether some case reveals it."""
    found: dict[Plant, bool] = {}
    for case in read_suite(archive).part(level).cases:
        if case.is_refused:
            continue
        model = load(model_of(archive, case))
        site = site_of(model, 0)
        if site is None or not has(site):
            continue
        graph = view(model)
        samples = [dict(zip(graph.inputs, arrays(archive, s), strict=True)) for s in case.samples]
        expected = [arrays(archive, s)[0] for s in case.expected]
        if not _agrees(site, RIGHT, samples, expected):
            print(f"{case.id}: the device without a mistake gives other bits; skipped", file=sys.stderr)
            continue
        for mistake in MISTAKES:
            plant = (case.op, case.types, mistake.name)
            if plant not in NONE and not found.get(plant, False) and mistake.can_be_made(site):
                found[plant] = not _agrees(site, mistake.made_by(RIGHT), samples, expected)
    return found


def layouts_caught_by(archive: Archive, level: str) -> dict[Plant, bool]:
    """Return every mistake of layout, by operator and type, and whether some case reveals it."""
    found = dict.fromkeys(plants(), False)
    suite = read_suite(archive).part(level)
    profile = by_name(suite.profile)
    for case in suite.cases:
        kind = kind_of(case.types)
        if case.is_refused or kind is None:
            continue
        plan = make_plan(load(model_of(archive, case)), profile)
        for given, expected in zip(case.samples, case.expected, strict=True):
            for name in caught_in(case.op, case.types, plan, arrays(archive, given), arrays(archive, expected)):
                found[case.op, kind, name] = True
    return found


def _agrees(site: Any, device: Any, samples: list[dict[int, Any]], expected: list[Any]) -> bool:
    return all(np.array_equal(compute(site, device, s), e) for s, e in zip(samples, expected, strict=True))


def lines(found: dict[Plant, bool], *, missed: bool) -> Iterator[str]:
    """Yield the score by operator, and the mistakes that no case reveals."""
    for op in sorted({plant[0] for plant in found}):
        here = [is_caught for plant, is_caught in found.items() if plant[0] == op]
        yield f"{op:20} {sum(here):4} of {len(here):4}"
    for plant in sorted(p for p, is_caught in found.items() if missed and not is_caught):
        yield f"missed: {' | '.join(plant)}"
    yield f"{sum(found.values())} of {len(found)} mistakes caught: {sum(found.values()) / max(1, len(found)):.2%}"


def main() -> int:
    """Score a suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="a suite from `tflq conform make`")
    parser.add_argument("--level", default="standard", help="cases up to this level (default: standard)")
    parser.add_argument("--least", type=float, default=1.0, help="the least share of caught mistakes (default: 1)")
    parser.add_argument("--missed", action="store_true", help="list mistakes that no case reveals")
    parser.add_argument("--layout", action="store_true", help="plant mistakes of layout instead")
    args = parser.parse_args()
    with opened(args.suite) as archive:
        found = (layouts_caught_by if args.layout else caught_by)(archive, args.level)
    print("\n".join(lines(found, missed=args.missed)))
    return 0 if sum(found.values()) >= args.least * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
