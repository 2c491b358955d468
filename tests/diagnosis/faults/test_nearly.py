"""A float mistake is named although the device's sums are rounded otherwise."""

from __future__ import annotations

import numpy as np

from support.devices import T, dump, one
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.findings import investigate
from tflq.engine.profiles import by_name

REF = by_name("litert-ref")


def test_a_missing_bias_up_to_the_order_of_sums() -> None:
    draw = np.random.default_rng(2)
    w = draw.normal(size=(6, 80)).astype(np.float32)
    bias = draw.normal(size=6).astype(np.float32)
    model = one(
        "FULLY_CONNECTED",
        [T("float32", (2, 80)), T("float32", (6, 80), value=w), T("float32", (6,), value=bias)],
        T("float32", (2, 6)),
        ("FullyConnectedOptions", {}),
    )
    x = draw.normal(size=(2, 80)).astype(np.float32)
    order = draw.permutation(80)  # no hypothesis has this order of sums
    made = np.cumsum(x[:, None, order] * w[None][..., order], axis=2, dtype=np.float32)[..., -1]
    explanation = investigate(model, [dump(model, [x], [made])], REF).explanation
    assert explanation is not None
    assert explanation.defect is not None
    assert explanation.defect.name.startswith("bias missing")
    assert "up to the rounding of floats" in explanation.defect.name
    assert explanation.defect.certainty == Certainty.LIKELY
