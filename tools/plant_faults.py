"""Plant faults into runs of real models, and count how often `tflq why` is right, honest, wrong, or certain and wrong.

Faults are of arithmetic, memory, addressing, omission, float kernels, host code, and combinations. Devices in software
(tools/device, tools/faultfuzz), whose code shares nothing with tflq's hypotheses, compute them. A dump has one to three
samples, with all tensors or outputs only. Models are those of golden/ and, if TFLQ_SHARED is set, those in that folder.

    python tools/plant_faults.py --count 100
    python tools/plant_faults.py --kind stale --verbose
    python tools/plant_faults.py --number 17 --verbose

right: the answer names the fault. honest: it names none, and states that. Exit status 1 if an answer is certain and
wrong, if some are wrong, or if fewer than 85 % are right.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from faultfuzz import arithmetic, floats, further, memory
from faultfuzz.planted import Kind, Planted, drawn_run
from mutate_device import ROOT, models

from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.why import Answer, DeviceEvidence, answer
from tflq.engine.api.files import load
from tflq.errors import TflqError
from tflq.face.report.verbs.why import Asked, paste
from tflq.model.ir import view

KINDS: tuple[Kind, ...] = (*memory.KINDS, *arithmetic.KINDS, *floats.KINDS, *further.KINDS)
#: Limits of models on elements of all tensors and on operators, and draws for one fault.
_ELEMENTS, _OPERATORS, _DRAWS = 3 * 10**5, 130, 60
_HONEST = re.compile(r"cannot tell|undetermined|no hypothesis|not decided|possibly", re.I)
WORDS = ("right", "honest", "wrong", "certain and wrong")


def subjects() -> list[Path]:
    """Return small models: networks first, single operators after them."""
    shared = (ROOT / os.environ.get("TFLQ_SHARED", "../shared")).resolve() / "suites/singleop/models"
    return [path for path in (*models(), *sorted(shared.rglob("*.tflite"))) if path.stat().st_size < 400_000]


def planted(number: int, seed: int, paths: Sequence[Path], kinds: Sequence[Kind]) -> Planted | None:
    """Return the fault of a number, drawn until it is visible; None if no draw is."""
    rng = np.random.default_rng((seed, number))
    weights = np.array([kind.weight for kind in kinds])
    kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
    networks = [path for path in paths if path.stat().st_size > 6000]
    for _ in range(_DRAWS):
        among = networks if networks and rng.random() < 0.6 else paths
        path = among[int(rng.integers(len(among)))]
        try:
            model = load(path)
            graph = view(model)
            size = sum(int(np.prod(spec.shape)) for spec in graph.tensors)
            if len(model.subgraphs) > 1 or size > _ELEMENTS or not 0 < len(graph.ops) <= _OPERATORS:
                continue
            if any(spec.is_variable for spec in graph.tensors):
                continue
            found = kind.plant(drawn_run(path, model, rng, kind.samples), rng)
        except (TflqError, KeyError, IndexError, AttributeError, AssertionError, ValueError, TypeError):
            continue
        if found is not None:
            return found
    return None


def asked(fault: Planted) -> Answer:
    """Return the answer to the dump."""
    dumps = tuple(dump_of(fault.model, one) for one in fault.samples)
    evidence = DeviceEvidence(fault.samples, dumps)
    return answer(fault.model, evidence, fault.profile, fault.given)


def said(found: Answer) -> str:
    """Return the answer's text, without the lines to paste."""
    return paste(found, Asked("m.tflite", "d.npz"), "").split("\nElement ")[0].split("\n```")[0]


def judged(fault: Planted, found: Answer, text: str) -> str:
    """Return one of WORDS."""
    whole = text + "\n" + "; ".join(_causes(found))
    if any(re.search(pattern, whole, re.I | re.S) for pattern in fault.right):
        return "right"
    if found.certainty == Certainty.NONE and _HONEST.search(text):
        return "honest"
    return "certain and wrong" if found.certainty == Certainty.CERTAIN else "wrong"


def _causes(found: Answer) -> Iterator[str]:
    """Yield every name of the causes that the answer offers."""
    explanation = None if found.findings is None else found.findings.explanation
    for cause in () if explanation is None else (*explanation.exact, *explanation.ranking.possible):
        yield from (cause.name, *cause.also)


def main() -> int:
    """Plant, ask and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int)
    parser.add_argument("--kind", default="", help="only kinds or families of which the name contains this")
    parser.add_argument(
        "--verbose", action="store_true", help="print every answer; by default, those that are not right"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = [
        kind
        for kind in KINDS
        if (not args.kind or any(w in kind.name or w == kind.family for w in args.kind.split(",")))
    ]
    paths, table, began = subjects(), dict[str, Counter[str]](), time.time()
    for number in range(args.count) if args.number is None else [args.number]:
        fault = planted(number, args.seed, paths, kinds)
        if fault is None:
            print(f"{number}: nothing drawn", flush=True)
            continue
        start = time.time()
        found = asked(fault)
        text = said(found)
        word = judged(fault, found, text)
        table.setdefault(f"{fault.family}: {fault.kind}", Counter())[word] += 1
        if word != "right" or args.verbose:
            where = f"{Path(fault.path).stem} operator {fault.index}, {fault.profile}, {len(fault.samples)} samples"
            tensors = "all tensors" if fault.is_whole else "outputs only"
            print(f"{number}: {word.upper()}: {fault.kind} in {where}, {tensors} ({time.time() - start:.1f} s)")
            print(text if args.verbose else "    " + text.splitlines()[0], flush=True)
    return _summary(table, time.time() - began)


def _summary(table: dict[str, Counter[str]], seconds: float) -> int:
    """Print the table, and return the exit status."""
    total: Counter[str] = sum(table.values(), Counter())
    print(f"\n{'kind':56}" + "".join(f"{word:>20}" for word in WORDS))
    for name, counts in (*sorted(table.items()), ("all", total)):
        print(f"{name:56}" + "".join(f"{counts[word]:>20}" for word in WORDS))
    count = max(1, sum(total.values()))
    print(f"{total['right'] / count:.1%} of {count} right, in {seconds:.0f} s")
    return int(total["wrong"] + total["certain and wrong"] > 0 or total["right"] < 0.85 * count)


if __name__ == "__main__":
    sys.exit(main())
