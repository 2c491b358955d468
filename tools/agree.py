"""Run one model in many real runtimes on the same inputs, and compare all tensors bit by bit with the first runtime's.

Inputs are extreme codes, the samples of --inputs, images that give the first product sums at thresholds of its codes,
samples that a search found to bring deeper sums there, and random codes. RUNTIMES is a folder of environments and
programs; a runtime that it lacks is named and skipped. docs/how-to/same-bits-everywhere.md makes one.

    python tools/agree.py golden/models/digits_mobilenet_int8.tflite --runtimes litert-ref litert-opt litert-xnnpack
    python tools/agree.py MODEL --certificate CERTIFICATE --folder RUNTIMES --inputs samples.npz --count 1000

With a certificate, tensors that it proves equal for every input are counted apart from the others. Runtimes that
compute in float inside (openvino, apache-tvm), or that it does not name, only report: their counts are in parentheses.

Exit status: 0 no proved tensor differs (without a certificate: no tensor); 1 one does; 2 nothing was compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from agreement.certificates import claim_of
from agreement.comparing import Lockstep, Result, forms_of
from agreement.devices import devices
from agreement.inputs import Drawn, Sample
from agreement.report import document, table, thresholds
from agreement.searching import Search
from agreement.sums import Census

import tflq
from tflq.errors import TflqError, UnknownNameError
from tflq.model.ir import Model, view
from tflq.model.surgery.tap import all_outputs

DIFFERENT, NOTHING = 1, 2
#: The runtimes that are compared by default.
DEFAULT = (
    "litert-ref",
    "litert-opt",
    "litert-xnnpack",
    "litert-2.4-xnnpack",
    "tflite-2.14-opt",
    "tflite-2.11-opt",
    "tflite-2.7-opt",
    "tf-2.3-opt",
    "tflm",
    "tflm-cmsis-nn",
    "tflm-cmsis-nn-single",
    "litert-opt-arm64",
    "litert-xnnpack-arm64",
    "openvino",
    "apache-tvm",
)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--certificate", type=Path, help="what `tflq prove -o` wrote about the model")
    parser.add_argument("--folder", type=Path, default=Path("runtimes"), metavar="RUNTIMES", help="default: runtimes")
    parser.add_argument("--runtimes", nargs="+", default=list(DEFAULT), metavar="NAME", help="the first is the measure")
    parser.add_argument("--inputs", type=Path, help="samples of the model's inputs: codes, or real values in float")
    parser.add_argument("--count", type=int, default=1000, help="number of inputs (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the inputs (default: 1)")
    parser.add_argument("--search", type=float, default=20, metavar="SECONDS", help="time of the search (default: 20)")
    parser.add_argument(
        "--budget", type=float, default=0, metavar="SECONDS", help="runs of one runtime (default: no limit)"
    )
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="loading, one run (default: 120)")
    parser.add_argument("--outputs", action="store_true", help="compare the model's outputs only, not every tensor")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all counts")
    return parser.parse_args(words)


def inputs_of(model: Model, args: argparse.Namespace) -> Iterator[tuple[str, Sample]]:
    """Yield up to `count` inputs with their kind, kinds in turn; a quarter may be given, a quarter is constructed."""
    drawn, quarter = Drawn(model, "litert-ref", args.seed), args.count // 4
    given = list(islice(drawn.given(args.inputs), quarter)) if args.inputs else []
    start = [*given[:4], *drawn.random(4)]
    found = Search(drawn, "litert-ref").found(start, quarter // 2, args.search) if args.search else []
    kinds = {
        "extreme": drawn.extreme(),
        "given": iter(given),
        "constructed": drawn.constructed(quarter),
        "searched": iter(found),
        "random": drawn.random(args.count),
    }
    yield from islice(in_turn(kinds), args.count)


def in_turn(kinds: dict[str, Iterator[Sample]]) -> Iterator[tuple[str, Sample]]:
    """Yield one sample of each kind after the other, as long as a kind has some: a runtime may end early."""
    while kinds:
        for kind in list(kinds):
            sample = next(kinds[kind], None)
            if sample is None:
                del kinds[kind]
            else:
                yield kind, sample


def compared(model: Model, args: argparse.Namespace) -> tuple[list[Result], Census, dict[str, int]]:
    """Return the results, the accumulators of the first runtime's values, and the inputs by kind."""
    shown, tensors = (model, view(model).outputs) if args.outputs else all_outputs(model)
    known = devices(args.folder)
    if args.runtimes == list(DEFAULT):  # some have no profile on this processor
        args.runtimes = [name for name in DEFAULT if name in known]
    absent = [name for name in args.runtimes if name not in known]
    if absent:
        raise UnknownNameError("runtime", absent[0], tuple(known))
    kinds: dict[str, int] = {}
    census = Census.of(Drawn(model, "litert-ref", args.seed).products)
    inputs = view(model).inputs
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        tflq.save(shown, path)
        chosen = [known[name] for name in args.runtimes]
        with Lockstep(chosen, path, forms_of(view(shown)), args.limit, args.budget) as lockstep:
            for number, (kind, sample) in enumerate(inputs_of(model, args)):
                values = lockstep.run(number, sample, tensors)
                if values is None:
                    break
                kinds[kind] = kinds.get(kind, 0) + 1
                census.add({**dict(zip(inputs, sample, strict=True)), **values}, args.budget)
    return lockstep.results, census, kinds


def main(words: Sequence[str] | None = None) -> int:
    """Compare, report, and return the exit status."""
    args, began = arguments(words), monotonic()
    try:
        model = tflq.load(args.model)
        claim = claim_of(model, args.model, args.certificate)
        results, census, kinds = compared(model, args)
    except TflqError as error:
        print(error, file=sys.stderr)
        return NOTHING
    print(f"{args.model}: {', '.join(f'{count:,} {kind}' for kind, count in kinds.items())} inputs")
    print(thresholds(census))
    print(*table(results, claim), sep="\n")
    if args.json:
        args.json.write_text(json.dumps(document(results, census, claim), indent=1) + "\n", encoding="utf-8")
    exact = [r for r in results if r.inputs and not r.device.reports_only]
    if len(exact) < 2:
        print("nothing was compared: fewer than two runtimes ran")
        return NOTHING
    wrong = [r.device.name for r in exact if claim.names(r.device.name) and r.differs_in(claim.tensors)]
    word = f"differ from {exact[0].device.name}: {', '.join(wrong)}" if wrong else "the same bits"
    print(f"{word} ({len(exact)} runtimes, {monotonic() - began:.0f} s)")
    return DIFFERENT if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
