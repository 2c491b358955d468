"""Accumulators that wrap are no other runtime's right: the values show the overflow."""

from __future__ import annotations

import math

import numpy as np

from support.devices import T, dump, one, twice_rounded
from tflq.diagnosis.faults import DefectKind
from tflq.diagnosis.why import DeviceEvidence, Party, answer
from tflq.face.report.verbs.why import Asked, advice, headline


def test_sums_that_exceed_32_bits() -> None:
    draw = np.random.default_rng(1)
    w = np.clip(draw.normal(80, 20, (8, 2048)), -127, 127).astype(np.int8)
    scales = np.float32(0.0005), np.float32(0.01), np.float32(2)
    model = one(
        "FULLY_CONNECTED",
        [T("int16", (1, 2048), scales[0], 0), T("int8", (8, 2048), scales[1], 0, value=w)],
        T("int16", (1, 8), scales[2], 0),
        ("FullyConnectedOptions", {}),
    )
    real = float(np.float64(scales[0]) * np.float64(scales[1]) / np.float64(scales[2]))
    samples = []
    for level in (9000, 15000, 20000):
        x = np.clip(draw.normal(level, 3000, (1, 2048)), -32767, 32767).astype(np.int16)
        total = (x.astype(np.int64) @ w.astype(np.int64).T)[0]
        wrapped = [(int(t) + 2**31) % 2**32 - 2**31 for t in total]
        made = np.array([[twice_rounded(t, real) for t in wrapped]], np.int16)
        samples.append(dict(dump(model, [x], [made]).tensors))
    from tflq.comparison.evidence.dumps import dump_of

    found = answer(model, DeviceEvidence(tuple(samples), tuple(dump_of(model, s) for s in samples)), "tflm")
    assert math.isfinite(real)
    assert found.defect is not None
    assert found.defect.kind == DefectKind.OVERFLOW
    assert found.fault == Party.KNOWN
    assert "int32 accumulators overflow and wrap around" in headline(found)
    assert "known of " in headline(found)
    assert "tflite-runtime from " in headline(found)
    assert "from now on" not in advice(found, Asked())
