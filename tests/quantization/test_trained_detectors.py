"""Detectors, segmentation and super-resolution trained for this project: metrics before and after, in LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support.suites import SHARED
from tflq.comparison.results import Verdict
from tflq.model.ir import view
from tflq.quantization.judge.outputs import labels_of_files
from tflq.quantization.recipe import Recipe
from tflq.verbs.compare import compare

FOLDER = SHARED / "detectors"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="TFLQ_SHARED names no folder with detectors"),
]
#: Network -> its data, the metric, the float model's value, and the most that one configuration may lose.
NETWORKS = {
    "yolo_px640": ("shapes", "mAP50-95", 0.820, 0.015),
    "seg": ("seg", "mIoU", 0.8575, 0.01),
    "sr": ("sr", "PSNR", 36.23, 0.4),
}
EVALUATED = 250


def rows(path: Path) -> Any:
    with np.load(path) as file:
        return np.float32(file["x"] / np.float32(255))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("network", NETWORKS)
def test_one_configuration_keeps_what_the_float_model_can(network: str) -> None:
    data, name, value, loss = NETWORKS[network]
    model = tflq.load(FOLDER / "models" / f"{network}.tflite")
    result = tflq.quantize(model, rows(FOLDER / "data" / f"{data}_calib.npz"), Recipe())
    check = result.report.check.report
    if check is not None:  # LiteRT is installed
        assert check.verdict in (Verdict.SAME, Verdict.CLOSE)
    path = FOLDER / "data" / f"{data}_eval.npz"
    labels = labels_of_files(path, path, model)
    assert labels is not None
    figures = compare(model, result.model, rows(path)[:EVALUATED], labels[:EVALUATED]).figures
    metric = next(metric for metric in figures.metrics if metric.name == name)
    assert metric.reference == pytest.approx(value, abs=0.006)
    assert metric.other > metric.reference - loss
    if network.startswith("yolo"):
        assert view(result.model).ops[-1].name == "CONCATENATION"
        assert figures.matches is not None
        assert figures.matches.rate > 0.97
