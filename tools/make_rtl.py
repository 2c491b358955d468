"""Make golden/rtl: a requantizer of 1,024 directed accumulators and a small pointwise layer, recorded in LiteRT.

    python tools/make_rtl.py

`requantizer.tflite` is a CONV_2D of one weight: each channel has a multiplier of its own, and its bias is the
accumulator, chosen at edges between codes, on ties, at the ends of registers. `pointwise.tflite` has products.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tflq
from tflq.devices.learning.questions import Probe
from tflq.devices.suites.draft import Draft, T

ROOT = Path(__file__).resolve().parent.parent / "golden" / "rtl"
CHANNELS = 1024
#: Scales of input and output: powers of two, so that a weight's scale alone decides the multiplier.
_A, _Y = 2.0**-5, 2.0**-4


def requantizer(rng: np.random.Generator) -> bytes:
    """Return the model of directed accumulators."""
    odd = rng.choice([1.0, 3.0, 5.0, 7.0, 11.0, 13.0, 255.0], CHANNELS)
    few, any_bits = odd * 2.0 ** rng.integers(-17, 0, CHANNELS), 2.0 ** rng.uniform(-18, 0, CHANNELS)
    reals = np.where(np.arange(CHANNELS) % 2, few, any_bits)
    reals[::16] = odd[::16] * 2.0 ** rng.integers(0, 5, len(reals[::16]))  # shifts to the left
    codes = rng.integers(-140, 141, CHANNELS)
    places = codes + rng.choice([0.5, 0.5, 0.5, 0.0, 0.25], CHANNELS)
    totals = np.round(places / reals) + rng.choice([-1, 0, 0, 0, 1], CHANNELS)
    ends = rng.choice([-(2**31) + 1, 2**31 - 1, -(2**23), 2**23, -(2**15) - 1, 2**15, 0, -1, 1], CHANNELS)
    totals = np.where(rng.random(CHANNELS) < 0.1, ends, totals)
    b = (reals * _Y / _A).astype(np.float32)
    bias = np.clip(totals, -(2**31) + 1, 2**31 - 1).astype(np.int32)
    probe = Probe(np.float32(_A), np.float32(_Y), 3, -5, b, bias)
    return probe.draft("CONV_2D", "int8").model()


def pointwise(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """Return the model of a convolution of single pixels and its input: 4 pixels of 24 channels, 16 filters."""
    x = T("int8", (1, 2, 2, 24), 0.02, -7)
    scales = (0.005 * rng.uniform(0.5, 2.0, 16)).astype(np.float32)
    w = T("int8", (16, 1, 1, 24), scales.tolist(), [0] * 16, 0, rng.integers(-127, 128, (16, 1, 1, 24)))
    products = (np.float32(0.02) * scales).tolist()
    bias = T("int32", (16,), products, [0] * 16, 0, rng.integers(-4000, 4000, 16))
    y = T("int8", (1, 2, 2, 16), 0.021, 11)
    given = rng.integers(-128, 128, (1, 2, 2, 24)).astype(np.int8)
    options = dict.fromkeys(("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor"), 1)
    chosen = ("Conv2DOptions", {**options, "padding": 1, "fused_activation_function": 0})
    return Draft("CONV_2D", "products", (x, w, bias), (y,), ((given,),), chosen, 5).model(), given


def main() -> None:
    """Write both models and what LiteRT computes."""
    rng = np.random.default_rng(20261128)
    ROOT.mkdir(parents=True, exist_ok=True)
    layer, given = pointwise(rng)
    for name, data, sample in (
        ("requantizer", requantizer(rng), np.full((1, 1, 1, 1), 3, np.int8)),
        ("pointwise", layer, given),
    ):
        path = ROOT / f"{name}.tflite"
        path.write_bytes(data)
        tflq.record(str(path), "litert-ref", inputs=[[sample]], output=str(ROOT / f"{name}.npz"))


if __name__ == "__main__":
    main()
