"""Build CMSIS-NN for this machine, run a model's convolutions and additions with it, and write a dump.

The library's portable C is compiled by gcc, as firmware would compile it for a core without vector extensions, and
called as tflite-micro calls it. Multipliers are prepared here, everything else is the library's. Its results are those
of Cortex-M4 and M55; `--single-rounding` is its option CMSIS_NN_USE_SINGLE_ROUNDING. SOURCES is a checkout of
github.com/ARM-software/CMSIS-NN.

    python tools/make_cmsis_dump.py SOURCES --single-rounding -o golden/dumps/digits_mobilenet_int8.cmsis_single.npz

The dump holds the images in the form of the first convolution's input, and the result of every CONV_2D,
DEPTHWISE_CONV_2D and ADD before the first operator that the library lacks.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tflq
from tflq.model.ir import Model, OperatorView, TensorSpec, view

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "golden/models/digits_mobilenet_int8.tflite"
IMAGES = ROOT / "golden/models/digits_test.npz"
FLAGS = ("-O2", "-fwrapv", "-shared", "-fPIC")
Array = NDArray[Any]


def built(sources: Path, folder: Path, *, single: bool) -> ctypes.CDLL:
    """Return the library's integer kernels as a shared object."""
    files = [p for p in sorted((sources / "Source").glob("*/*.c")) if not p.stem.endswith(("_f16", "_f32", "_flt"))]
    define = ["-DCMSIS_NN_USE_SINGLE_ROUNDING"] if single else []
    library = folder / "cmsis_nn.so"
    subprocess.run(
        ["gcc", *FLAGS, f"-I{sources / 'Include'}", *define, *map(str, files), "-lm", "-o", str(library)], check=True
    )
    return ctypes.CDLL(str(library))


def quantized(real: float) -> tuple[int, int]:
    """Return mantissa Q31 and shift, to the left if > 0; see QuantizeMultiplier (quantization_util.cc)."""
    fraction, shift = math.frexp(real)
    mantissa = math.floor(fraction * 2**31 + 0.5)
    return (mantissa // 2, shift + 1) if mantissa == 2**31 else (mantissa, shift)


def ints(*values: int) -> Any:
    """Return a struct of int32 fields, or an array of them."""
    return (ctypes.c_int32 * len(values))(*values)


def pointer(array: Array) -> ctypes.c_void_p:
    """Return a pointer to the array's elements."""
    return ctypes.c_void_p(array.ctypes.data)


class Device:
    """The library under one model. `values` are tensors by index."""

    def __init__(self, library: ctypes.CDLL, model: Model) -> None:
        self._library, self._graph = library, view(model)
        self._scratch = np.zeros(1 << 20, np.int8)

    def run(self, operator: OperatorView, values: Mapping[int, Array]) -> Array | None:
        """Return the library's result of an operator; None for operators that it does not run."""
        name = operator.builtin
        if name == "ADD":
            return self._add(operator, values)
        return self._convolution(operator, values, name) if name in ("CONV_2D", "DEPTHWISE_CONV_2D") else None

    def _spec(self, tensor: int) -> TensorSpec:
        return self._graph.tensors[tensor]

    def _convolution(self, operator: OperatorView, values: Mapping[int, Array], name: str) -> Array:
        x, w, y = (self._spec(t) for t in (*operator.inputs[:2], *operator.outputs))
        weights, bias = (self._constant(t) for t in operator.inputs[1:3])
        image = np.ascontiguousarray(values[operator.inputs[0]])
        out = np.zeros((image.shape[0], *y.shape[1:]), np.int8)
        options = operator.options
        assert options is not None
        assert options["dilation_h_factor"] == options["dilation_w_factor"] == 1
        stride = int(options["stride_w"]), int(options["stride_h"])
        sizes = [(weights.shape[2], image.shape[2], out.shape[2]), (weights.shape[1], image.shape[1], out.shape[1])]
        same = int(options["padding"]) == 0
        padding = [max(0, (o - 1) * s + k - i) // 2 if same else 0 for (k, i, o), s in zip(sizes, stride, strict=True)]
        deep = name == "DEPTHWISE_CONV_2D"
        multiple = [weights.shape[3] // image.shape[3]] if deep else []
        limits = self._limits(y, int(options["fused_activation_function"]))
        fields = [-_zero(x), _zero(y), *multiple, *stride, *padding, 1, 1, *limits]
        scales = np.broadcast_to(_scales(w), (out.shape[3],)).astype(np.float64)
        prepared = [quantized(float(_scales(x)[0]) * s / float(_scales(y)[0])) for s in scales.tolist()]
        multipliers, shifts = (ints(*column) for column in zip(*prepared, strict=True))
        context = (ctypes.c_void_p * 2)(self._scratch.ctypes.data, self._scratch.nbytes)
        call = self._library.arm_depthwise_conv_wrapper_s8 if deep else self._library.arm_convolve_wrapper_s8
        status = call(
            context,
            ints(*fields),
            (ctypes.c_void_p * 2)(ctypes.addressof(multipliers), ctypes.addressof(shifts)),
            ints(*image.shape),
            pointer(image),
            ints(*weights.shape),
            pointer(weights),
            ints(1, 1, 1, out.shape[3]),
            pointer(bias),
            ints(*out.shape),
            pointer(out),
        )
        assert status == 0, f"{name}: status {status}"
        return out

    def _add(self, operator: OperatorView, values: Mapping[int, Array]) -> Array:
        a, b, y = (self._spec(t) for t in (*operator.inputs, *operator.outputs))
        first, second = (np.ascontiguousarray(values[t]) for t in operator.inputs)
        assert first.shape == second.shape
        twice = 2 * max(float(_scales(a)[0]), float(_scales(b)[0]))
        left = 20
        (m1, s1), (m2, s2) = (quantized(float(_scales(spec)[0]) / twice) for spec in (a, b))
        mantissa, shift = quantized(twice / (2**left * float(_scales(y)[0])))
        out = np.zeros(first.shape, np.int8)
        options = operator.options
        low, high = self._limits(y, 0 if options is None else int(options["fused_activation_function"]))
        given = pointer(first), pointer(second), -_zero(a), m1, s1, -_zero(b), m2, s2, left, pointer(out)
        status = self._library.arm_elementwise_add_s8(*given, _zero(y), mantissa, shift, low, high, out.size)
        assert status == 0, f"ADD: status {status}"
        return out

    def _constant(self, tensor: int) -> Array:
        value = self._graph.constant(tensor)
        assert value is not None
        return np.ascontiguousarray(value)

    def _limits(self, y: TensorSpec, activation: int) -> tuple[int, int]:
        """Return the codes that NONE, RELU and RELU6 allow; see CalculateActivationRangeQuantized."""
        low = max(-128, _zero(y)) if activation else -128
        six = math.floor(float(np.float32(6) / _scales(y)[0]) + 0.5) + _zero(y)
        assert activation in (0, 1, 3)
        return low, min(127, six) if activation == 3 else 127


def _scales(spec: TensorSpec) -> Array:
    assert spec.quantization is not None
    return spec.quantization.scale


def _zero(spec: TensorSpec) -> int:
    assert spec.quantization is not None
    return int(spec.quantization.zero_point[0])


def dumped(library: ctypes.CDLL, model: Model, images: Sequence[Array]) -> dict[str, Array]:
    """Return tensors by sample and index."""
    device, entries = Device(library, model), {}
    operators = view(model).ops[1:]  # the first scales the images
    for sample, image in enumerate(images):
        values = {operators[0].inputs[0]: image}
        for operator in operators:
            made = device.run(operator, values)
            if made is None:
                break
            values[operator.outputs[0]] = made
        entries |= {f"s{sample}_t{tensor}": value for tensor, value in values.items()}
    return entries


def main() -> int:
    """Build, run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES")
    parser.add_argument("--single-rounding", action="store_true", help="build with CMSIS_NN_USE_SINGLE_ROUNDING")
    parser.add_argument("--samples", type=int, default=2, help="number of images of digits_test.npz (default: 2)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    model = tflq.load(MODEL)
    graph = view(model)
    first = graph.tensors[graph.op(1).inputs[0]]
    scale, zero = float(_scales(first)[0]), _zero(first)
    with np.load(IMAGES) as entries:
        digits = entries["images"][: args.samples] / 16
    doubled = digits.reshape(-1, 8, 8, 1).repeat(2, 1).repeat(2, 2)
    images = np.clip(np.rint(doubled / scale) + zero, -128, 127).astype(np.int8)
    assert images.shape[1:] == first.shape[1:], (images.shape, first.shape)
    with TemporaryDirectory() as folder:
        library = built(args.sources, Path(folder), single=args.single_rounding)
        made: Any = dumped(library, model, [image[None] for image in images])
        np.savez_compressed(args.output, **made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
