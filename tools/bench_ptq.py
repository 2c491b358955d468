"""Post-training quantization compared: tflq's presets and other tools on the same models, calibration and evaluation.

    python tools/bench_ptq.py [MODEL ...] [--presets fast,balanced,best] [--subsets 3] [--rows 200]
        [--tensorflow PYTHON] [--ai-edge-quantizer PYTHON] [--json FILE]

The material is in $TFLQ_SHARED/ptq (default ../shared/ptq). Every contestant quantizes every model on the same seeded
subsets of the calibration rows, each in a process of its own. The results run in LiteRT's default interpreter on the
evaluation rows, which are used for nothing else. The other tools run in the environments of the given Pythons, and are
left out without one. Figures are medians over the subsets. They are the task metric (top-1, or PSNR in dB), the paired
standard error of its difference to float, top-1 agreement with float, and SQNR of the outputs in dB. The number of
float operators, size, seconds and peak memory follow. The table is Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

import tflq
from tflq.model.ir import SignatureDef, TensorType, view

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("TFLQ_SHARED", HERE.parents[1] / "shared")) / "ptq"

#: Model -> its data set.
MODELS = {
    "mlperf_kws_dscnn": "kws",
    "fm_mbv1_relu": "fashion",
    "fm_mbv1_skew": "fashion",
    "fm_mbv3": "fashion",
    "fm_leaky_res": "fashion",
    "fm_hard": "fashion",
    "fm_vit_b1": "fashion",
    "fm_unet": "fashion",
    "digits_mlp": "digits",
}


def stored_to_float(data: str, stored: np.ndarray) -> np.ndarray:
    """Return stored integers as the float32 inputs of a data set's models."""
    if data == "kws":
        return ((stored.astype(np.float32) - 83) * np.float32(0.5847029089927673)).astype(np.float32)
    return (stored.astype(np.float32) / np.float32(16 if data == "digits" else 255)).astype(np.float32)


def load_data(model: str, part: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the inputs of a part ("calib" or "eval"), and the labels, or clean images for fm_unet."""
    data = MODELS[model]
    with np.load(SHARED / "data" / f"{data}_{part}.npz") as file:
        stored, labels = file["x"], file.get("y", None)
    inputs = stored_to_float(data, stored)
    if model != "fm_unet":
        return inputs, labels
    noise = np.random.default_rng(5 if part == "calib" else 11).normal(0, 0.3, stored.shape)
    return np.clip(stored / 255 + noise, 0, 1).astype(np.float32), inputs


@dataclass(frozen=True)
class Score:
    """One contestant on one model and subset; `metric_error` is the standard error of the difference to float."""

    metric: float
    metric_error: float
    agreement: float | None
    sqnr: float
    float_operators: int
    size: int
    seconds: float
    peak_mib: float


def litert_outputs(path: Path, inputs: np.ndarray) -> np.ndarray:
    """Return outputs as real numbers, float64[N, ...], of LiteRT's default interpreter."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    rows = []
    for row in inputs:
        interpreter.set_tensor(given["index"], as_codes(row[None], given))
        interpreter.invoke()
        values = interpreter.get_tensor(wanted["index"])[0].astype(np.float64)
        scale, point = wanted["quantization"]
        rows.append((values - point) * scale if wanted["dtype"] != np.float32 else values)
    return np.array(rows)


def as_codes(values: np.ndarray, details: dict) -> np.ndarray:
    """Return real inputs in the model's input type."""
    if details["dtype"] == np.float32:
        return values
    scale, point = details["quantization"]
    limits = np.iinfo(details["dtype"])
    return np.clip(np.round(values / np.float64(scale)) + point, limits.min, limits.max).astype(details["dtype"])


def judge(model: str, reference: np.ndarray, got: np.ndarray, truth: np.ndarray) -> tuple[float, float, float | None]:
    """Return the metric, the standard error of its difference to float's, and the agreement with float."""
    if model == "fm_unet":
        errors, before = (np.mean((y - truth) ** 2, axis=(1, 2, 3)) for y in (got, reference))
        slope = 10 / np.log(10) / errors.mean()  # of the PSNR over all images in their mean squared error
        error = slope * (errors - before).std(ddof=1) / np.sqrt(len(got))
        return float(-10 * np.log10(errors.mean())), float(error), None
    top, before = got.argmax(1), reference.argmax(1)
    gain = (top == truth).astype(float) - (before == truth)
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    return float(np.mean(top == truth)), error, float(np.mean(top == before))


def float_operators(path: Path) -> int:
    """Return the number of operators that compute in float: any except QUANTIZE and DEQUANTIZE with a float operand."""
    model = tflq.load(path)
    graph = view(model)
    count = 0
    for operator in graph.ops:
        types = {spec.type for spec in (*operator.input_specs, *operator.output_specs) if spec is not None}
        edge = operator.builtin in ("QUANTIZE", "DEQUANTIZE")
        count += TensorType.FLOAT32 in types and not edge
    return count


Maker = Callable[[Path, Path, Path], dict]


def with_signature(source: Path, out: Path) -> Path:
    """Return the model with a signature, which some tools need: its own, or one with its tensors' names."""
    model = tflq.load(source)
    if model.signature_defs:
        return source
    graph = view(model)
    names = [tuple((graph.tensors[t].name or f"t{t}", t) for t in edge) for edge in (graph.inputs, graph.outputs)]
    tflq.save(replace(model, signature_defs=(SignatureDef("serving_default", *names),)), out)
    return out


def other_tool(python: str, tool: str) -> Maker:
    """Return a contestant in another environment."""

    def make(model: Path, samples: Path, out: Path) -> dict:
        signed = with_signature(model, out.with_suffix(".signed.tflite"))
        return run_child([python, str(HERE / "ptq_baselines.py"), tool, str(signed), str(samples), str(out)])

    return make


def preset(name: str) -> Maker:
    """Return the contestant of a tflq preset, in a process of its own."""

    def make(model: Path, samples: Path, out: Path) -> dict:
        return run_child([sys.executable, __file__, "--make", name, str(model), str(samples), str(out)])

    return make


def make_with_tflq(name: str, model: str, samples: str, out: str) -> None:
    """Run the child process of `preset`."""
    import resource
    import time

    start = time.perf_counter()
    tflq.quantize(model, ([row[None]] for row in np.load(samples)), recipe=name).save(out)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(seconds, 3), "peak_mib": round(peak)}))


def run_child(command: list[str]) -> dict:
    """Return the last line of JSON that the command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(lines[-1])


def scores(model: str, makers: dict[str, Maker], subsets: int, rows: int) -> Iterator[tuple[str, Score]]:
    """Yield every contestant on every subset of one model."""
    source = SHARED / "models" / f"{model}_float.tflite"
    calibration, _ = load_data(model, "calib")
    inputs, truth = load_data(model, "eval")
    assert truth is not None
    reference = litert_outputs(source, inputs)
    metric, error, agreement = judge(model, reference, reference, truth)
    yield "float", Score(metric, error, agreement, np.inf, float_operators(source), source.stat().st_size, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(subsets):
            order = np.random.default_rng(seed).permutation(len(calibration))[:rows]
            samples = Path(folder) / f"{seed}.npy"
            np.save(samples, calibration[order])
            for name, make in makers.items():
                out = Path(folder) / f"{name}_{seed}.tflite"
                try:
                    cost = make(source, samples, out)
                except RuntimeError as failure:
                    print(f"{model}, {name}, subset {seed}: {failure}", file=sys.stderr)
                    continue
                got = litert_outputs(out, inputs)
                metric, error, agreement = judge(model, reference, got, truth)
                sqnr = 10 * float(np.log10((reference**2).sum() / ((reference - got) ** 2).sum()))
                size = out.stat().st_size
                yield name, Score(metric, error, agreement, sqnr, float_operators(out), size, **cost)


def median(found: list[Score]) -> Score:
    """Return each figure's median."""
    columns = {k: [asdict(s)[k] for s in found] for k in asdict(found[0])}
    return Score(**{k: None if v[0] is None else statistics.median(v) for k, v in columns.items()})


def row(model: str, name: str, s: Score) -> str:
    """Return a row of the table."""
    metric = f"{s.metric:.2f} dB" if model == "fm_unet" else f"{s.metric:.4f}"
    agreement = "-" if s.agreement is None else f"{s.agreement:.4f}"
    return (
        f"| {model} | {name} | {metric} | {s.metric_error:.4f} | {agreement} | {s.sqnr:.1f} | {s.float_operators} "
        f"| {s.size} | {s.seconds:.1f} | {s.peak_mib:.0f} |"
    )


HEADER = """| model | by | metric | error | agreement | dB | float operators | bytes | s | MiB |
|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)} (all)")
    parser.add_argument("--presets", default="fast,balanced,best")
    parser.add_argument("--subsets", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python with tensorflow")
    parser.add_argument("--ai-edge-quantizer", metavar="PYTHON", help="a Python with ai-edge-quantizer")
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--make", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make_with_tflq(*options.make)
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    makers: dict[str, Maker] = {}
    if options.tensorflow:
        makers["TensorFlow"] = other_tool(options.tensorflow, "tensorflow")
    if options.ai_edge_quantizer:
        makers["ai-edge-quantizer"] = other_tool(options.ai_edge_quantizer, "ai-edge-quantizer")
    makers.update({f"tflq {name}": preset(name) for name in options.presets.split(",") if name})
    print(HEADER, flush=True)
    results: dict[str, dict[str, list[Score]]] = {}
    for model in options.models or MODELS:
        found = results.setdefault(model, {})
        for name, score in scores(model, makers, options.subsets, options.rows):
            found.setdefault(name, []).append(score)
        for name, several in found.items():
            print(row(model, name, median(several)), flush=True)
    if options.json:
        document = {m: {n: [asdict(s) for s in several] for n, several in f.items()} for m, f in results.items()}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
