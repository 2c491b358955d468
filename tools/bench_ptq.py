"""Post-training quantization compared: tflq's presets and other tools on the same models, calibration and evaluation.

    python tools/bench_ptq.py [MODEL ...] [--presets fast,balanced,best] [--modes int8,int8x4,int16x8] [--subsets 3]
        [--rows 200] [--rival TOOL[:ALGORITHM]=PYTHON ...] [--results FILE.jsonl] [--jobs 1] [--print] [--brief]

The material is in $TFLQ_SHARED (`tools/ptq_tasks.py`). Every contestant quantizes every model on the same seeded
subsets of the calibration samples, each in a process of its own. The results run in LiteRT's default interpreter on
evaluation samples that are used for nothing else. Rivals run in the environments of the given Pythons: --rival
litert-quantizer:MSE=/path/to/python; `tools/ptq_baselines.py` lists them.

Every result is a line of --results. Results that are there are not measured again; with --print nothing is. The table
is Markdown: medians over subsets. `to float` and `to rival` are paired over folds of the evaluation samples: the mean
difference of the metric, and its standard error, which counts folds and subsets. A rival is better if the difference is
below 0 by more than that error; such rows end in a word. The rival is the best one by its metric among those that leave
at most half of the float model's operators in float.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ptq_tasks import NAMES, SHARED, Work, ratio, unit_of, work_of

import tflq
from tflq.model.ir import SignatureDef, TensorType, view
from tflq.quantization.recipe_files import read_recipe

HERE = Path(__file__).resolve().parent
#: Parts of the evaluation samples by which standard errors are computed.
FOLDS = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """One contestant in one mode on one model and subset."""

    model: str
    mode: str
    by: str
    subset: int
    metrics: tuple[float, ...] = ()  # by fold
    metric: float = float("nan")
    sqnr: float = float("nan")
    float_operators: int = 0
    size: int = 0
    seconds: float = 0.0
    peak_mib: float = 0.0
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The fields that identify a measurement."""
        return self.model, self.mode, self.by, self.subset


def litert_outputs(path: Path, inputs: np.ndarray) -> list[np.ndarray]:
    """Return each output as real numbers, float64[N, ...], of LiteRT's default interpreter."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    (given,), wanted = interpreter.get_input_details(), interpreter.get_output_details()
    rows: list[list[np.ndarray]] = [[] for _ in wanted]
    for row in inputs:
        interpreter.set_tensor(given["index"], as_codes(row[None], given))
        interpreter.invoke()
        for kept, details in zip(rows, wanted, strict=True):
            values = interpreter.get_tensor(details["index"])[0].astype(np.float64)
            scale, point = details["quantization"]
            kept.append((values - point) * scale if details["dtype"] != np.float32 else values)
    return [np.array(kept) for kept in rows]


def as_codes(values: np.ndarray, details: dict[str, Any]) -> np.ndarray:
    """Return real inputs in the model's input type."""
    if details["dtype"] == np.float32:
        return values
    scale, point = details["quantization"]
    limits = np.iinfo(details["dtype"])
    return np.clip(np.round(values / np.float64(scale)) + point, limits.min, limits.max).astype(details["dtype"])


def float_operators(path: Path) -> int:
    """Return the number of operators that compute in float: any except QUANTIZE and DEQUANTIZE with a float operand."""
    count = 0
    for operator in view(tflq.load(path)).ops:
        types = {spec.type for spec in (*operator.input_specs, *operator.output_specs) if spec is not None}
        count += TensorType.FLOAT32 in types and operator.builtin not in ("QUANTIZE", "DEQUANTIZE")
    return count


def with_signature(source: Path, out: Path) -> Path:
    """Return the model with a signature, which some tools need: its own, or one with its tensors' names."""
    model = tflq.load(source)
    if model.signature_defs:
        return source
    graph = view(model)
    names = [tuple((graph.tensors[t].name or f"t{t}", t) for t in edge) for edge in (graph.inputs, graph.outputs)]
    tflq.save(replace(model, signature_defs=(SignatureDef("serving_default", *names),)), out)
    return out


def make_with_tflq(name: str, mode: str, model: str, samples: str, out: str) -> None:
    """Run the child process of a preset."""
    import resource
    import time

    start = time.perf_counter()
    recipe = replace(read_recipe(name), mode=mode)
    tflq.quantize(model, ([row[None]] for row in np.load(samples)), recipe=recipe).save(out)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


def run_child(command: list[str]) -> dict[str, float]:
    """Return the last line of JSON that the command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1][:300])
    cost: dict[str, float] = json.loads(lines[-1])
    return cost


def measured(work: Work, wanted: Entry, rivals: dict[str, str], rows: int, reference: list[np.ndarray]) -> Entry:
    """Return the entry with the figures of one contestant."""
    if wanted.by == "float":
        return _figures(wanted, work, work.model, reference, {})
    with tempfile.TemporaryDirectory() as folder:
        samples, out = Path(folder) / "samples.npy", Path(folder) / "made.tflite"
        order = np.random.default_rng(wanted.subset).permutation(len(work.calibration))
        np.save(samples, work.calibration[order[: min(rows, len(order) * 2 // 3)]])
        if wanted.by in rivals:
            signed = with_signature(work.model, Path(folder) / "signed.tflite")
            command = [rivals[wanted.by], str(HERE / "ptq_baselines.py"), wanted.by, wanted.mode, str(signed)]
        else:
            command = [sys.executable, __file__, "--make", wanted.by, wanted.mode, str(work.model)]
        try:
            cost = run_child([*command, str(samples), str(out)])
            return _figures(wanted, work, out, reference, cost)
        except (RuntimeError, ValueError) as failure:
            return replace(wanted, error=str(failure))


def _figures(wanted: Entry, work: Work, path: Path, reference: list[np.ndarray], cost: dict[str, float]) -> Entry:
    outputs = litert_outputs(path, work.inputs)
    return replace(
        wanted,
        metrics=tuple(work.metrics(outputs, reference, FOLDS)),
        metric=work.metric(outputs, reference, np.arange(len(work.inputs))),
        sqnr=ratio(outputs, reference),
        float_operators=float_operators(path),
        size=path.stat().st_size,
        **cost,
    )


def difference(ours: Sequence[Entry], others: Sequence[Entry]) -> tuple[float, float]:
    """Return the mean difference of the metric over subsets and folds, and its standard error."""
    pairs = {e.subset: e for e in others}
    apart = np.array([np.subtract(e.metrics, pairs.get(e.subset, others[0]).metrics) for e in ours])
    by_fold, by_subset = apart.mean(axis=0), apart.mean(axis=1)
    spread = by_fold.var(ddof=1) / len(by_fold)
    if len(by_subset) > 1:
        spread += by_subset.var(ddof=1) / len(by_subset)
    return float(apart.mean()), float(np.sqrt(spread))


HEADER = """| model | mode | by | metric | | to float | to rival | dB | float operators | bytes | s | MiB | |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def table(entries: Sequence[Entry], rivals: Sequence[str], *, brief: bool) -> list[str]:
    """Return the rows of the table. `rivals` are contestants that are not tflq's; only the best is shown if `brief`."""
    lines = [HEADER]
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for entry in entries:
        groups.setdefault((entry.model, entry.mode), {}).setdefault(entry.by, []).append(entry)
    for (model, mode), found in groups.items():
        good = {by: [e for e in several if not e.error] for by, several in found.items()}
        floats = found.get("float") or groups.get((model, "float"), {}).get("float", [])
        most = floats[0].float_operators / 2 if floats else np.inf
        shirking = {by for by, several in good.items() if several and several[0].float_operators > most}
        foreign = {by: s for by, s in good.items() if by in rivals and by not in shirking and s}
        best = max(foreign.items(), key=lambda item: statistics.median(e.metric for e in item[1]), default=("", []))[1]
        for by, several in good.items():
            if brief and by in rivals and several is not best:
                continue
            if not several:
                lines.append(f"| {model} | {mode} | {by} | {found[by][0].error} | | | | | | | | | |")
                continue
            line = _row(several, floats, best if by not in rivals and by != "float" else [])
            lines.append(line[:-1] + "mostly float |" if by in rivals and by in shirking else line)
    return lines


def _row(several: Sequence[Entry], floats: Sequence[Entry], rival: Sequence[Entry]) -> str:
    columns = ("metric", "sqnr", "float_operators", "size", "seconds", "peak_mib")
    m = {c: statistics.median(getattr(e, c) for e in several) for c in columns}
    first = several[0]
    to_float, to_rival, word = "", "", ""
    if first.by != "float" and floats and np.isfinite(floats[0].metric) and floats[0].metrics[0] < 200:
        to_float = "{:+.4f} ± {:.4f}".format(*difference(several, floats))
    if rival:
        apart, error = difference(several, rival)
        to_rival, word = f"{apart:+.4f} ± {error:.4f}", "rival better" if apart < -error else ""
    unit = unit_of(first.model)
    sqnr = "" if not np.isfinite(m["sqnr"]) or m["sqnr"] > 200 else f"{m['sqnr']:.1f}"
    cost = f"{m['size']:.0f} | {m['seconds']:.1f} | {m['peak_mib']:.0f}"
    return (
        f"| {first.model} | {first.mode} | {first.by} | {m['metric']:.4f} | {unit} | {to_float} | {to_rival} | {sqnr} "
        f"| {m['float_operators']:.0f} | {cost} | {word} |"
    )


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(NAMES)} (all)")
    parser.add_argument("--presets", default="fast,balanced,best")
    parser.add_argument("--modes", default="int8")
    parser.add_argument("--subsets", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200, help="of the samples; at most two thirds of them")
    parser.add_argument("--rival", action="append", default=[], metavar="TOOL[:ALGORITHM]=PYTHON")
    parser.add_argument("--results", metavar="FILE", type=Path, default=Path("bench_ptq.jsonl"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="print the table of the results, measure nothing")
    parser.add_argument("--brief", action="store_true", help="of the rivals, show the best one alone")
    parser.add_argument("--make", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make_with_tflq(*options.make)
    if unknown := set(options.models) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not (options.print or SHARED.is_dir()):
        parser.error(f"no material in {SHARED}: set TFLQ_SHARED")
    known = (
        [Entry(**json.loads(line)) for line in options.results.read_text().splitlines()]
        if options.results.exists()
        else []
    )
    rivals = dict(word.rsplit("=", 1) for word in options.rival)
    foreign = {e.by for e in known if e.by.partition(":")[0] in ("tensorflow", "ai-edge-quantizer", "litert-quantizer")}
    names = [*rivals, *(name for name in options.presets.split(",") if name)]
    done = {entry.key for entry in known}
    for model in () if options.print else options.models or NAMES:
        wanted = [Entry(model, "float", "float", 0)]
        for mode in options.modes.split(","):
            wanted += [Entry(model, mode, by, s) for by in names for s in range(options.subsets)]
        if missing := [entry for entry in wanted if entry.key not in done]:
            work = work_of(model)
            reference = litert_outputs(work.model, work.inputs)
            with ThreadPoolExecutor(options.jobs) as pool, options.results.open("a") as file:
                measure = partial(measured, work, rivals=rivals, rows=options.rows, reference=reference)
                for entry in pool.map(measure, missing):
                    known.append(entry)
                    file.write(json.dumps(vars_of(entry)) + "\n")
                    file.flush()
    shown = [e for e in known if not options.models or e.model in options.models]
    order = {name: place for place, name in enumerate(NAMES)}
    print("\n".join(table(sorted(shown, key=lambda e: order[e.model]), [*foreign, *rivals], brief=options.brief)))
    return None


def vars_of(entry: Entry) -> dict[str, Any]:
    """Return the entry as JSON values."""
    return {name: getattr(entry, name) for name in Entry.__slots__}


if __name__ == "__main__":
    main()
