"""Float models with calibration samples and a metric, of $TFLQ_SHARED: what tools/bench_ptq.py measures."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(os.environ.get("TFLQ_SHARED", Path(__file__).resolve().parents[2] / "shared"))
#: Model -> its data set.
PTQ = {
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
DETECTORS = {"yolo_px": "shapes", "yolo_px640": "shapes", "ssd": "shapes", "seg": "seg", "sr": "sr"}
#: Networks of $TFLQ_SHARED/suites/modern with one input; their inputs are drawn here.
MODERN = ("vit", "mnv4", "unet", "det", "gru")
NAMES = (*PTQ, *DETECTORS, *MODERN)
#: Model -> its metric, where it is not that of its kind.
UNITS = {"fm_unet": "PSNR", "seg": "mIoU", "sr": "PSNR"}


def unit_of(name: str) -> str:
    """Return the name of a model's metric."""
    return UNITS.get(name) or ("top-1" if name in PTQ else "mAP50-95" if name in DETECTORS else "dB")


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One model: calibration samples along axis 0, evaluation inputs, their truth, and the name of the metric."""

    name: str
    model: Path
    calibration: np.ndarray
    inputs: np.ndarray
    truth: Any
    unit: str

    def metrics(self, outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray], folds: int) -> list[float]:
        """Return the metric of each fold of the evaluation samples."""
        size = len(self.inputs)
        picks = [np.arange(k, size, folds) for k in range(folds)]
        return [self.metric([o[p] for o in outputs], [r[p] for r in reference], p) for p in picks]

    def metric(self, outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray], rows: np.ndarray) -> float:
        """Return the metric on some rows of the evaluation samples, the same way up: more is better."""
        if self.unit == "dB":
            return ratio(outputs, reference)
        if self.unit == "top-1":
            return float(np.mean(outputs[0].argmax(1) == self.truth[rows]))
        if not isinstance(self.truth, tuple):
            return float(-10 * np.log10(np.mean((outputs[0] - self.truth[rows]) ** 2)))
        module, file = self.truth
        found = module.metric(self.name, list(outputs), {key: value[rows] for key, value in file.items()})
        return float(found[self.unit])


def ratio(outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the worst output's signal-to-noise ratio, dB."""
    pairs = zip(outputs, reference, strict=True)
    return min(10 * float(np.log10((r**2).sum() / max(((r - o) ** 2).sum(), 1e-30))) for o, r in pairs)


def work_of(name: str) -> Work:
    """Return the work of a name."""
    if name in PTQ:
        return _ptq(name)
    return _detector(name) if name in DETECTORS else _modern(name)


def _ptq(name: str) -> Work:
    data = PTQ[name]
    parts = []
    for part in ("calib", "eval"):
        with np.load(SHARED / "ptq" / "data" / f"{data}_{part}.npz") as file:
            stored, labels = file["x"], file.get("y", None)
        if data == "kws":
            inputs = (stored.astype(np.float32) - 83) * np.float32(0.5847029089927673)
        else:
            inputs = stored.astype(np.float32) / np.float32(16 if data == "digits" else 255)
        if name == "fm_unet":
            noise = np.random.default_rng(5 if part == "calib" else 11).normal(0, 0.3, stored.shape)
            inputs, labels = np.clip(stored / 255 + noise, 0, 1).astype(np.float32), inputs
        parts.append((inputs.astype(np.float32), labels))
    (calibration, _), (inputs, truth) = parts
    model = SHARED / "ptq" / "models" / f"{name}_float.tflite"
    return Work(name, model, calibration, inputs, truth, unit_of(name))


def _detector(name: str) -> Work:
    folder, data = SHARED / "detectors", DETECTORS[name]
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    import score

    with np.load(folder / "data" / f"{data}_calib.npz") as file:
        calibration = file["x"].astype(np.float32) / np.float32(255)
    with np.load(folder / "data" / f"{data}_eval.npz") as file:
        known = {key: file[key] for key in file.files}
    inputs = known["x"].astype(np.float32) / np.float32(255)
    return Work(name, folder / "models" / f"{name}.tflite", calibration, inputs, (score, known), unit_of(name))


def _modern(name: str) -> Work:
    """Return a network that has no data: inputs are smooth noise with the spread of its recorded ones."""
    chance = np.random.default_rng(7)
    shape = (32, 16) if name == "gru" else (32, 32, 3)
    noise = chance.normal(size=(600, *shape)).astype(np.float32)
    for axis in range(1, noise.ndim - 1):
        noise = (noise + np.roll(noise, 1, axis) + np.roll(noise, 2, axis)) / np.float32(1.7)
    inputs = (noise * np.float32(0.43 if name == "gru" else 0.3)).astype(np.float32)
    inputs += np.float32(0 if name == "gru" else 0.22)
    model = SHARED / "suites" / "modern" / name / "model.tflite"
    return Work(name, model, inputs[:200], inputs[200:], None, unit_of(name))
