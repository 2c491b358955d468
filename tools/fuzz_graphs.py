"""Compare tflq with a runtime on random graphs of several operators.

    python tools/fuzz_graphs.py --count 2000 --seed 1
    python tools/fuzz_graphs.py --against litert-2.2-xnnpack --python py22/bin/python --count 500
    python tools/fuzz_graphs.py --seed 1 --only 4711 --save /tmp/graph

Graphs have one to five operators, on float32 and on codes, with constants as they are, behind DEQUANTIZE of float16 or
int8, or shared; a quarter of them is resized. What a single operator does not show is compared: what a delegate takes,
how it decides by recorded shapes, what it folds. Operators that are promised exactly must have the runtime's bits.

Exit status: 0 nothing differs; 1 something does; 2 wrong usage; 3 nothing differs, but few graphs were compared.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from graphfuzz.drawing import Drawn, draw
from opfuzz.compare import difference_of, run_guarded
from opfuzz.remote import Ended, Ran, Refused, Remote
from opfuzz.remote_worker import invoke
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.flatbuf import read
from tflq.typing import Array

FOUND, FEW = 1, 3
_RESOLVERS = {"ref": "BUILTIN_REF", "opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}
_SECONDS = 60.0
#: Results of a comparison. The last three are findings.
SAME, CLOSE, REFUSED, ENDED = "same", "close", "refused by both", "the runtime ended"
DIFFERS, ACCEPTED, LEFT = "differs", "refused by the runtime only", "refused by tflq only"
#: Words of runtimes that lack an operator, which a profile takes from the full resolver.
LACKS = ("Didn't find op", "unresolved")


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="litert-ref,litert-opt,litert-xnnpack", help="profiles, after commas")
    parser.add_argument("--python", default=sys.executable, help="a Python that has their package")
    parser.add_argument("--count", type=int, default=500, help="how many graphs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    parser.add_argument("--only", type=int, help="only the graph of this number")
    parser.add_argument("--save", type=Path, metavar="DIR", help="save graphs that differ, as .tflite and .npz")
    return parser.parse_args()


def main() -> int:
    """Compare, report, and return the exit status."""
    args = arguments()
    profiles = args.against.split(",")
    module = "tflite_runtime.interpreter" if profiles[0].startswith("tflite-") else "ai_edge_litert.interpreter"
    runtimes = {name: Remote([args.python], module, _RESOLVERS[name.rpartition("-")[2]], _SECONDS) for name in profiles}
    tally = Counter[str]()
    for number in range(args.count) if args.only is None else [args.only]:
        drawn = draw(args.seed, number)
        for name, runtime in runtimes.items() if drawn is not None else ():
            word, note = judge(drawn, name, runtime)
            tally[word] += 1
            if word in (DIFFERS, ACCEPTED, LEFT):
                print(f"{number} {name}: {word}: {note} ({' > '.join(drawn.names)})", flush=True)
                if args.save is not None:
                    save(drawn, args.save / f"{args.seed}_{number}")
    for runtime in runtimes.values():
        runtime.close()
    print(", ".join(f"{count} {word}" for word, count in tally.most_common()))
    if any(tally[word] for word in (DIFFERS, ACCEPTED, LEFT)):
        return FOUND
    return 0 if 2 * tally[SAME] >= tally.total() or args.only is not None else FEW


def judge(drawn: Drawn, profile: str, runtime: Remote) -> tuple[str, str]:
    """Return what a graph comes to under a profile and its runtime, and a note."""
    theirs, ours = runtime.outputs(drawn.model, drawn.samples), run_guarded(lambda: run(drawn, profile))
    if isinstance(theirs, Ended):
        return ENDED, ""
    if isinstance(theirs, Refused):
        if not isinstance(ours, Ran) or any(word in theirs.reason for word in LACKS):
            return REFUSED, ""
        return ACCEPTED, " ".join(theirs.reason.split())[:200]
    if not isinstance(ours, Ran):
        undefined = isinstance(ours, Refused) and ours.undefined
        return (REFUSED if undefined else LEFT), ours.reason[:200]
    pairs = [
        pair for one, other in zip(ours.outputs, theirs.outputs, strict=True) for pair in zip(one, other, strict=True)
    ]
    note = next(filter(None, (difference_of(got, want) for got, want in pairs)), "")
    if not note:
        return SAME, ""
    is_near = not is_promised(drawn, profile) and all(are_near(got, want) for got, want in pairs)
    return (CLOSE if is_near else DIFFERS), note


def run(drawn: Drawn, profile: str) -> list[list[Array]]:
    """Return the outputs of every sample under a profile."""
    interpreter = Interpreter(model_content=drawn.model, profile=profile)
    for detail, value in zip(interpreter.get_input_details(), drawn.samples[0], strict=True):
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    return [invoke(interpreter, sample) for sample in drawn.samples]


def is_promised(drawn: Drawn, profile: str) -> bool:
    """Return whether every operator is promised exactly, on this machine at least."""
    try:
        return all(step.promise.word != "close" for step in make_plan(read(drawn.model), by_name(profile)).steps)
    except TflqError:
        return False


def are_near(got: Array, want: Array) -> bool:
    """Return whether results without an exact promise are alike: codes by one step, floats by a thousandth, NaN or not.

    Nothing is promised about NaN.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype.kind != "f":
        return bool(np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= 1)
    numbers = np.isfinite(got) & np.isfinite(want)
    return bool(np.allclose(got[numbers], want[numbers], rtol=1e-3, atol=1e-3))


def save(drawn: Drawn, place: Path) -> None:
    """Save a graph with its inputs."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.with_suffix(".tflite").write_bytes(drawn.model)
    named = {f"s{k}_in{i}": value for k, sample in enumerate(drawn.samples) for i, value in enumerate(sample)}
    np.savez(place.with_suffix(".npz"), **named)


if __name__ == "__main__":
    sys.exit(main())
