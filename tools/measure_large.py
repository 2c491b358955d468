"""Measure the cost of `tflq quantize` on models of real size, by depth and by number of samples.

    python tools/make_large.py mobilenet_v2 large/
    python tools/measure_large.py large/mobilenet_v2.tflite --recipes fast,balanced,best
    for n in 13 26 52 104; do python tools/make_large.py chain:$n large/ --samples 400; done
    python tools/measure_large.py large/chain*.tflite --samples 50,100,200,400 --plot growth.svg

MODEL_calib.npy must be next to MODEL.tflite. Each run is a process of its own. The table, in Markdown, has wall-clock
and processor seconds, the peak memory of the largest process, and whether LiteRT gave the same bits. --plot draws the
runs of the first recipe (needs matplotlib).

Exit status: 0 every run was verified; 1 some were not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflq.engine.api.files import load
from tflq.model.ir import view

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL")


@dataclass(frozen=True)
class Run:
    """One run. `convolutions` is the number of operators with products; `peak` is in MiB."""

    model: str
    convolutions: int
    samples: int
    recipe: str
    seconds: float
    processor_seconds: float
    peak: float
    is_verified: bool


def measured(model: Path, samples: int, recipe: str, jobs: int) -> Run:
    """Quantize on the first of the model's samples."""
    stored = np.load(model.with_name(f"{model.stem}_calib.npy"), mmap_mode="r")
    samples = min(samples, len(stored))
    with tempfile.TemporaryDirectory() as place:
        calibration, output = Path(place, "samples.npy"), Path(place, "integer.tflite")
        np.save(calibration, stored[:samples])
        words = ["quantize", str(model), "--calibration", str(calibration), "-o", str(output), "--recipe", recipe]
        before = time.monotonic()
        with open(Path(place, "report.json"), "w+b") as report:
            process = subprocess.Popen(
                [sys.executable, "-m", "tflq", *words, "--jobs", str(jobs), "--json"],
                stdout=report,
                stderr=subprocess.DEVNULL,
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            report.seek(0)
            told = json.load(report)
        if process.returncode:
            raise SystemExit(f"{model}: {told['message']}")
        seconds = time.monotonic() - before
    loaded = load(model)
    used = [operator.builtin for operator in view(loaded).ops]
    count = sum(name in CONVOLUTIONS for name in used)
    peak = usage.ru_maxrss / 1024
    is_verified = told["check"]["verdict"] == "same"
    return Run(model.stem, count, samples, recipe, seconds, usage.ru_utime + usage.ru_stime, peak, is_verified)


def drawn(runs: Sequence[Run], path: Path) -> None:
    """Plot processor seconds against the number of convolutions, and against that of samples."""
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "tflq", "svg.fonttype": "none", "font.size": 9})
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for panel, across, along, label in (
        (panels[0], "convolutions", "samples", "convolutions"),
        (panels[1], "samples", "convolutions", "samples"),
    ):
        for value in sorted({getattr(run, along) for run in runs}):
            line = sorted((getattr(r, across), r.processor_seconds) for r in runs if getattr(r, along) == value)
            panel.plot(*zip(*line, strict=True), marker="o", label=f"{value} {along}")
        panel.set(xlabel=label, ylabel="processor seconds", xlim=(0, None), ylim=(0, None))
        panel.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    path.write_text(re.sub(r"[ \t]+$", "", path.read_text(), flags=re.MULTILINE))


def main() -> int:
    """Quantize all models with all recipes and numbers of samples, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.tflite")
    parser.add_argument("--recipes", default="fast", help="presets or files, with commas (default: fast)")
    parser.add_argument("--samples", default="100", help="numbers, with commas (default: 100)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time (default: 1)")
    parser.add_argument("--plot", type=Path, help="an SVG file to draw")
    args = parser.parse_args()
    print("| model | convolutions | samples | recipe | s | processor s | MiB | verified |\n|" + "---|" * 8, flush=True)
    runs = []
    for model in args.models:
        for recipe in args.recipes.split(","):
            for samples in map(int, args.samples.split(",")):
                run = measured(model, samples, recipe, args.jobs)
                runs.append(run)
                verdict = "yes" if run.is_verified else "NO"
                print(
                    f"| {run.model} | {run.convolutions} | {run.samples} | {run.recipe} | {run.seconds:.0f} "
                    f"| {run.processor_seconds:.0f} | {run.peak:.0f} | {verdict} |",
                    flush=True,
                )
    if args.plot:
        drawn([run for run in runs if run.recipe == runs[0].recipe], args.plot)
    return int(not all(run.is_verified for run in runs))


if __name__ == "__main__":
    sys.exit(main())
