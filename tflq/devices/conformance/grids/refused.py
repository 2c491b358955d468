"""Models that a target must refuse: a runtime that checks its models rejects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tflq.devices.conformance.draft import Draft, samples_of
from tflq.devices.conformance.one_operator import T

#: Prefix of the aim of every case that must be refused.
REFUSED = "must be refused: "


def drafts(seed: int) -> Iterator[Draft]:
    """Yield shapes, types and quantization that do not match."""
    rng = np.random.default_rng([seed, 5])

    def case(op: str, why: str, inputs: tuple[T, ...], output: T, options: tuple[str, Mapping[str, object]]) -> Draft:
        return Draft(op, REFUSED + why, inputs, (output,), samples_of(rng, inputs), options, 1)

    def image(kind: str, *shape: int, zero_point: int = 0) -> T:
        return T(kind, shape, 0.05, zero_point)

    window = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    for kind in ("int8", "uint8"):
        weights = rng.integers(0, 100, (2, 1, 1, 3))
        bias = T("int32", (2,), 0.0025, 0, value=np.zeros(2))
        w = T(kind, (2, 1, 1, 3), 0.05, 0, value=weights)
        conv = ("Conv2DOptions", window)
        yield case("CONV_2D", "channels", (image(kind, 1, 4, 4, 4), w, bias), image(kind, 1, 4, 4, 2), conv)
        short = T("int32", (3,), 0.0025, 0, value=np.zeros(3))
        yield case("CONV_2D", "length of the bias", (image(kind, 1, 4, 4, 3), w, short), image(kind, 1, 4, 4, 2), conv)
        shapes = (image(kind, 2, 3), image(kind, 2, 4))
        yield case("ADD", "shapes that do not broadcast", shapes, image(kind, 2, 4), ("AddOptions", {}))
        yield case("MUL", "shapes that do not broadcast", shapes, image(kind, 2, 4), ("MulOptions", {}))
        joined = ("ConcatenationOptions", {"axis": 0, "fused_activation_function": 0})
        yield case("CONCATENATION", "shapes along another axis", shapes, image(kind, 4, 3), joined)
        to = T("int32", (2,), value=np.array([5, 5]))
        options = ("ReshapeOptions", {"new_shape": (5, 5)})
        yield case("RESHAPE", "number of elements", (image(kind, 2, 3), to), image(kind, 5, 5), options)
        order = T("int32", (3,), value=np.array([0, 1, 2]))
        yield case(
            "TRANSPOSE", "length of the order", (image(kind, 2, 3), order), image(kind, 3, 2), ("TransposeOptions", {})
        )
    for point in (1, -5):
        x = image("int16", 2, 3, zero_point=point)
        y = T("int16", (2, 3), 1 / 32768, 0)
        yield Draft("LOGISTIC", f"{REFUSED}zero point of int16", (x,), (y,), samples_of(rng, (x,)), None, 3)
