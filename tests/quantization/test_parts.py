"""Parts of joint outputs, and ranges: figures of each part by plain NumPy, and a model calibrated on other numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import commands
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.face.report.verbs.compare_texts import lead_text
from tflq.model.ir import view
from tflq.quantization.judge.comparison import Fidelities, compare_models
from tflq.quantization.judge.detections import OutputPart, parts_of

RNG = np.random.default_rng(0)
SCORES, BOXES = (1, 6), (1, 10)
SAMPLES = [(np.float32(RNG.random(SCORES)), np.float32(300 * RNG.random(BOXES))) for _ in range(40)]
JOIN = ("ConcatenationOptions", {"axis": 1, "fused_activation_function": 0})


def joined() -> tflq.Model:
    """Scores in [0, 1] and boxes in [0, 300], joined."""
    ops = [Op("CONCATENATION", (0, 1), (2,), JOIN)]
    return tflq.load(build(Graph([T("float32", shape) for shape in (SCORES, BOXES, (1, 16))], (0, 1), (2,), ops)))


def joined_int8() -> tflq.Model:
    """Return the same model in int8; both parts have the scale of the boxes."""
    fine, coarse = (1 / 255, -128), (300 / 255, -128)
    tensors = [T("int8", SCORES, *fine), *(T("int8", shape, *coarse) for shape in (BOXES, SCORES, (1, 16)))]
    ops = [Op("QUANTIZE", (0,), (2,), None, 2), Op("CONCATENATION", (2, 1), (3,), JOIN, 2)]
    return tflq.load(build(Graph(tensors, (0, 1), (3,), ops)))


@pytest.fixture(scope="module")
def found() -> Fidelities:
    samples = ({0: scores, 1: boxes} for scores, boxes in SAMPLES)
    return compare_models(joined(), joined_int8(), samples)


def ratio(reference: np.ndarray, other: np.ndarray) -> float:
    signal = np.square(reference - reference.mean(axis=0)).sum()
    return float(10 * np.log10(signal / ((reference - other) ** 2).sum()))


def test_each_part_has_its_own_figures(found: Fidelities) -> None:
    step = np.float32(300 / 255)
    scores, boxes = (np.concatenate([one[k] for one in SAMPLES]).astype(np.float64) for k in (0, 1))
    fine = np.clip(np.rint(scores * 255), 0, 255) / 255
    lost = np.rint(fine / step) * step
    kept = np.clip(np.rint(boxes / step), 0, 255) * step
    assert [part.places.tolist() for part in found.parts] == [list(range(6)), list(range(6, 16))]
    assert found.parts[0].fidelity.sqnr == pytest.approx(ratio(scores, lost), abs=0.3)
    assert found.parts[1].fidelity.sqnr == pytest.approx(ratio(boxes, kept), abs=0.3)
    assert found.sqnr > 35 > 10 > found.parts[0].fidelity.sqnr
    assert len(found.parts[0].values) == 2


def test_the_headline_is_the_lost_part(found: Fidelities) -> None:
    assert found.weakest is found.parts[0]
    assert lead_text(found).startswith("part ")
    assert "2 distinct values" in lead_text(found)


def labels(ops: list[Op], tensors: list[T], output: int) -> list[OutputPart]:
    return parts_of(view(tflq.load(build(Graph(tensors, (0, 1), (output,), ops)))), 0, output)


def test_moves_between_a_concatenation_and_the_output_are_followed() -> None:
    tensors = [T("float32", (1, 2, 3)), T("float32", (1, 4, 3)), T("float32", (1, 6, 3)), T("float32", (1, 3, 6))]
    ops = [Op("CONCATENATION", (0, 1), (2,), JOIN), Op("TRANSPOSE", (2, 4), (3,))]
    turned = [*tensors, T("int32", (3,), value=[0, 2, 1]), T("float32", (18,)), T("int32", (1,), value=[18])]
    first, second = labels([*ops, Op("RESHAPE", (3, 6), (5,))], turned, 5)
    assert first.places.tolist() == [0, 1, 6, 7, 12, 13]
    assert len(second.places) == 12
    assert labels([Op("CONCATENATION", (0, 1), (2,), JOIN), Op("ABS", (2,), (3,))], [*tensors[:3], tensors[2]], 3) == []


def test_parts_of_parts_and_repeated_operands() -> None:
    tensors = [T("float32", (1, 2)), T("float32", (1, 3)), T("float32", (1, 5)), T("float32", (1, 7))]
    nested = [Op("CONCATENATION", (0, 1), (2,), JOIN), Op("CONCATENATION", (2, 0), (3,), JOIN)]
    assert [part.places.tolist() for part in labels(nested, tensors, 3)] == [[0, 1, 5, 6], [2, 3, 4]]
    same = [Op("CONCATENATION", (0, 0), (2,), JOIN)]
    assert labels(same, [tensors[0], tensors[1], T("float32", (1, 4))], 2) == []


def test_a_model_calibrated_on_other_numbers_is_named(tmp_path: Path) -> None:
    """Ranges of 0 to 255 for values from 0 to 1."""
    rng, names = np.random.default_rng(1), ("float.tflite", "int8.tflite")
    floats = [T("float32", (1, 8)), T("float32", (1, 8)), T("float32", (1, 8))]
    wide = [T("int8", (1, 8), 1.0, -128), T("int8", (1, 8), 1.0, -128), T("int8", (1, 8), 1.0, -128)]
    for name, tensors in zip(names, (floats, wide), strict=True):
        ops = [Op("MAXIMUM", (0, 0), (1,)), Op("MINIMUM", (1, 1), (2,))]
        (tmp_path / name).write_bytes(build(Graph(tensors, (0,), (2,), ops)))
    np.save(tmp_path / "x.npy", np.float32(rng.random((20, 8))))
    words = [*(str(tmp_path / name) for name in names), "--inputs", str(tmp_path / "x.npy")]
    done = commands.tflq("compare", *words)
    assert done.exit_code == 0
    assert "ranges of 2 of 2 tensors are 16 or more times as wide" in done.output
    assert re.search(
        r"input g0t0: its codes stand for 0 to 255, and the samples hold 0\.0\d* to 0\.9\d*: ", done.output
    )
    np.save(tmp_path / "x.npy", np.float32(rng.random((20, 8)) * 255))
    assert "calibrated on" not in commands.tflq("compare", *words).output
    assert "Next: tflq diff" not in done.output
