"""Functions of one element: ABS, NEG, SIGN, EXP, LOG, SIN, COS, ELU, GELU, roundings.

ABS: y = |x|.

| operand | shape | types                            | quantization                          |
|---------|-------|----------------------------------|---------------------------------------|
| x       | any   | float32, int32, int8, int16      | per tensor; int16 also none           |
| y       | as x  | as x                             | as x; int16: zero point 0             |

Source: LiteRT 2.3, elementwise.cc GenericPrepare, AbsEval, AbsEvalQuantized, AbsInt16EvalImpl.

NEG: y = -x, wrapping where integers overflow.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | float32, float16, int8, int16, int32, int64, not quantized |
| y       | as x  | as x |

Source: LiteRT 2.3, neg.cc Prepare, Eval.

SIGN: y = 1, 0 or -1, as x is above, at or below 0.

| operand | shape | types                   |
|---------|-------|-------------------------|
| x       | any   | float32, float64, int32 |
| y       | as x  | as x                    |

Source: LiteRT 2.3, sign.cc.

EXP: y = exp(x).

| operand | shape | types                | quantization                    |
|---------|-------|----------------------|---------------------------------|
| x       | any   | float32, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                 | per tensor; int16: zero point 0 |

Up to 2.14, int8 results beyond int32 are refused.
Source: LiteRT 2.3, exp.cc Prepare, Eval; reference/exp.h Exp.

LOG: y = natural logarithm of x; the lowest code where x <= 0.

| operand | shape | types                | quantization                    |
|---------|-------|----------------------|---------------------------------|
| x       | any   | float32, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                 | per tensor; int16: zero point 0 |

Source: LiteRT 2.3, elementwise.cc GenericPrepare, LogLUTPrepare, LogEval.

SIN, COS: by the host's libm.

| operand | shape | types            |
|---------|-------|------------------|
| x       | any   | float32, float16 |
| y       | as x  | as x             |

Source: LiteRT 2.3, elementwise.cc SinEval, CosEval.

CEIL, FLOOR, ROUND: the smallest integer >= x, the largest integer <= x, the nearest integer with half to even.

| operand | shape | CEIL    | FLOOR            | ROUND                      |
|---------|-------|---------|------------------|----------------------------|
| x       | any   | float32 | float32, float16 | float32, float16, bfloat16 |
| y       | as x  | as x    | as x             | as x                       |

ROUND of numbers in [-1/2, 0) gives +0, as the source adds 1 to their floor. BUILTIN_REF lacks CEIL and ROUND: their
kernels are those of the full resolver.
Optimized CEIL and FLOOR up to 2.14: zeros in whole groups of four elements are +0; the rest keep their sign.
XNNPACK: see tflq/engine/kernels/families/xnnpack.py.
Source: LiteRT 2.3, ceil.cc; optimized_ops::Ceil; reference/floor.h Floor; round.cc; reference/round.h RoundToNearest.
TensorFlow 2.14 optimized_ops.h Ceil, Floor, by Eigen's pceil and pfloor without SSE4.1.

ELU: y = x for x >= 0, exp(x) - 1 below.

| operand | shape | types         | quantization |
|---------|-------|---------------|--------------|
| x       | any   | float32, int8 | per tensor   |
| y       | as x  | as x          | per tensor   |

Not in BUILTIN_REF: the kernel is that of the full resolver.
Exactness: exact on the same libm (expm1f).
Source: LiteRT 2.3, activations.cc EluPrepare, EluEval; reference/elu.h Elu.

GELU: y = x * Phi(x), exactly or by its tanh approximation.

| operand | shape | types                                | quantization |
|---------|-------|--------------------------------------|--------------|
| x       | any   | float32, float16, uint8, int8, int16 | per tensor   |
| y       | as x  | as x                                 | per tensor   |

Options: approximate. Floats go through Eigen's functions, in every resolver. The erf and tanh of the Eigen that
releases up to 2.14 have are not reproduced.
Exactness: exact on the same libm.
Source: LiteRT 2.3, activations.cc GeluPrepare, GeluEval; reference/gelu.h GeluTransform, GeluTransformApproximate,
Gelu. TensorFlow 2.14, gelu.cc, reference/gelu.h Gelu.

Operators from complex numbers to reals: what their kernel files share.

Source: LiteRT 2.3, complex_support.cc Prepare, ExtractData.

REAL, IMAG, COMPLEX_ABS: real parts, imaginary parts and absolute values of complex numbers.

| operand | shape | types                 |
|---------|-------|-----------------------|
| x       | any   | complex64, complex128 |
| y       | as x  | float32, float64      |

Exactness: COMPLEX_ABS is exact on the same libm (hypotf; hypot for complex128).
Source: LiteRT 2.3, complex_support.cc EvalReal, EvalImag, EvalAbs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.activation import by_first_scales
from tflq.engine.kernels.families.unary import (
    check_elementwise,
    eval_function,
    narrow_floats,
    prepare_function,
    prepare_tabulated,
    prepare_unary,
    same_type,
)
from tflq.engine.kernels.families.xnnpack import Operation, applying, computing, tabulated
from tflq.engine.kernels.kernel import EXACT, SAME_LIBM, Call, Exactness, Kernel, Node, Prepared, close, filling, valid
from tflq.engine.kernels.validity import micro, opt, tflite, xnnpack
from tflq.engine.numerics import xnnpack as xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.eigen import erfc, single_erfc, tanh
from tflq.engine.numerics.estimates import MultiplyAdd
from tflq.engine.numerics.libm import Elementwise, cosf, erfcf, expf, expm1f, hypotf, logf, over, sinf, tanhf
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    stage: OutputStage | None  # LSB of input -> LSB of output; None if the scales are equal
    clamp: Clamp  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by scale(x) / scale(y). int16 without quantization is plain."""
    x, y = same_type(node)
    if x.type == TensorType.INT16 and not x.is_quantized:
        return prepare_function(np.abs)(node, arithmetic)
    check_elementwise(node)
    stage = None if x.scale == y.scale else arithmetic.requantize(arithmetic.real_of_scales(x.scale, over=y.scale))
    data = OpData(x.zero_point, y.zero_point, stage, type_range(x.type.label))
    return prepare_unary(node, data, eval_quantized, np.dtype(x.type.label))


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: AbsEvalQuantized. Rounding: once, by the stage. Overflow: none."""
    magnitude = np.abs(x.astype(np.int32) - np.int32(data.input_zero_point))
    scaled = magnitude if data.stage is None else data.stage(magnitude)
    codes = scaled + np.int32(data.output_zero_point)
    return np.asarray(np.clip(codes, *data.clamp).astype(x.dtype))


_ABS = (
    Kernel("ABS", "float32 -> float32", prepare_function(np.abs), (1, 5)),
    Kernel("ABS", "int32 -> int32", prepare_function(np.abs), (1, 5)),
    Kernel("ABS", "int8 -> int8", by_first_scales(prepare_quantized), (1, 5)),
    Kernel("ABS", "int16 -> int16", by_first_scales(prepare_quantized), (1, 5)),
)


_REFERENCE = tuple(
    Kernel("NEG", f"{t} -> {t}", prepare_function(np.negative), (1, 1))
    for t in ("float32", "float16", "int8", "int16", "int32", "int64")
)


_NEG = (*_REFERENCE, *valid(xnnpack("litert-2.1", cpu="x86-64"), computing("NEG", _REFERENCE, Operation.NEGATE, 1)))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, eval_sign)


@filling(lambda _, x: (x.shape, x.dtype))
def eval_sign(data: None, out: Array, x: Array) -> Call:
    """Source: Sign::Eval. A NaN stays; both zeros give +0."""
    return _sign_into.bound(np.asarray(x, order="C").reshape(-1), out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _sign_into(x: Array, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(x.size):
        if x[i] != x[i]:
            out[i] = x[i]
        elif x[i] > 0:
            out[i] = 1
        elif x[i] < 0:
            out[i] = -1
        else:
            out[i] = 0


_SIGN = tuple(Kernel("SIGN", f"{t} -> {t}", prepare, (1, 2)) for t in ("float32", "float64", "int32"))


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, expf)


def prepare_int8_unclamped(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse results beyond int32. Source: TensorFlow 2.14 common.h LUTPopulate."""
    return prepare_tabulated(node, expf, is_clamped=False)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 513 samples."""
    require_zero_point_zero(node, node.input(0), node.outputs[0])
    return prepare_tabulated(node, expf, arithmetic.multiply_add)


ROWS = (
    Kernel("EXP", "float32 -> float32", prepare_function(expf), (1, 2), exactness=SAME_LIBM),
    Kernel("EXP", "int8 -> int8", prepare_int8, (1, 2)),
    Kernel("EXP", "int16 -> int16", prepare_int16, (1, 2)),
)

_EXP = (
    *ROWS,
    *valid(tflite(until="tflite-2.14"), Kernel("EXP", "int8 -> int8", prepare_int8_unclamped, (1, 2))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), applying("EXP", ROWS, lambda *_: xnnpack_functions.EXP)),
    *valid(
        xnnpack("litert-2.1", "litert-2.2", cpu="x86-64"), applying("EXP", ROWS, lambda *_: xnnpack_functions.EXP_2_2)
    ),
)


def prepare_quantized_log(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes or 513 samples."""
    x, y = same_type(node)
    check_elementwise(node)
    lowest = np.float32(type_range(x.type.label)[0] - y.zero_point) * y.scale

    def transform(real: Array) -> Array:
        return np.where(real <= 0, lowest, logf(np.where(real <= 0, np.float32(1), real)))

    return prepare_tabulated(node, transform, arithmetic.multiply_add)


LOG_ROWS = (
    Kernel("LOG", "float32 -> float32", prepare_function(logf), (1, 2), exactness=SAME_LIBM),
    Kernel("LOG", "int8 -> int8", by_first_scales(prepare_quantized_log), (1, 2)),
    Kernel("LOG", "int16 -> int16", by_first_scales(prepare_quantized_log), (1, 2)),
)

_LOG = (
    *LOG_ROWS,
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("LOG", LOG_ROWS, lambda _, arithmetic: arithmetic.xnnpack_functions.log),
    ),
)


def sin_half(x: Array) -> Array:
    """Compute in float32 and round back."""
    return sinf(x).astype(np.float16)


def cos_half(x: Array) -> Array:
    """Compute in float32 and round back."""
    return cosf(x).astype(np.float16)


SINUSOIDS_ROWS = (
    Kernel("SIN", "float32 -> float32", prepare_function(sinf), (1, 2), exactness=SAME_LIBM),
    Kernel("SIN", "float16 -> float16", prepare_function(sin_half), (1, 2), exactness=SAME_LIBM),
    Kernel("COS", "float32 -> float32", prepare_function(cosf), (1, 2), exactness=SAME_LIBM),
    Kernel("COS", "float16 -> float16", prepare_function(cos_half), (1, 2), exactness=SAME_LIBM),
)

_SINUSOIDS = (
    *SINUSOIDS_ROWS,
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("SIN", SINUSOIDS_ROWS, lambda *_: xnnpack_functions.SIN),
        applying("COS", SINUSOIDS_ROWS, lambda *_: xnnpack_functions.COS),
    ),
    *valid(
        xnnpack("litert-2.1", "litert-2.2", cpu="x86-64"),
        applying("COS", SINUSOIDS_ROWS, lambda *_: xnnpack_functions.COS_2_2),
    ),
)


CEIL = (Kernel("CEIL", "float32 -> float32", prepare_function(np.ceil), (1, 1)),)
FLOOR = tuple(Kernel("FLOOR", f"{t} -> {t}", prepare_function(np.floor), (1, 1)) for t in ("float32", "float16"))


def nearest(x: Array) -> Array:
    """Source: RoundToNearest, in float32. Rounding: half to even."""
    below = np.floor(x)
    with np.errstate(invalid="ignore"):  # infinities give NaN, which is neither below nor at a half
        rest = x - below
    stays = (rest < 0.5) | ((rest == 0.5) & (np.fmod(below, 2) == 0))
    return np.where(stays, below, below + np.float32(1))


@compiled
def _nearest(x: Real) -> Real:
    """Return `nearest` of one element."""
    below = np.floor(x)
    rest, half = x - below, below * np.float32(0.5)
    stays = (rest < np.float32(0.5)) | ((rest == np.float32(0.5)) & (half == np.floor(half)))
    return below if stays else below + np.float32(1)


_LANES = 4


def in_lanes(function: Callable[[Array], Array], x: Array) -> Array:
    """Add 0 in whole vectors: -0 + 0 is +0."""
    out = np.array(function(x), order="C")
    out.reshape(-1)[: x.size // _LANES * _LANES] += np.float32(0)
    return out


ROUND = narrow_floats("ROUND", Elementwise(over(_nearest, 1), nearest), (1, 1), EXACT)

_ROUNDING = (
    *CEIL,
    *FLOOR,
    *ROUND,
    *valid(
        opt(until="tflite-2.14", cpu="x86-64"),
        Kernel("CEIL", "float32 -> float32", prepare_function(partial(in_lanes, np.ceil)), (1, 1)),
        Kernel("FLOOR", "float32 -> float32", prepare_function(partial(in_lanes, np.floor)), (1, 1)),
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        computing("CEIL", CEIL, Operation.CEIL, 1),
        computing("FLOOR", FLOOR, Operation.FLOOR, 1),
        computing("ROUND", ROUND, Operation.RINT, 1),
    ),
)


def elu(x: Array) -> Array:
    """Source: Elu. Rounding: libm's."""
    return np.where(x < 0, expm1f(np.minimum(x, np.float32(0))), x)


def prepare_int8_elu(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, elu)


def prepare_unclamped(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes; refuse results that are converted before they are clamped."""
    return prepare_tabulated(node, elu, is_clamped=False)


ELU_ROWS = (
    Kernel("ELU", "float32 -> float32", prepare_function(elu), (1, 1), exactness=SAME_LIBM),
    Kernel("ELU", "int8 -> int8", prepare_int8_elu, (1, 1)),
)

_ELU = (
    *ELU_ROWS,
    *valid(micro(), Kernel("ELU", "int8 -> int8", prepare_unclamped, (1, 1))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *tabulated("ELU", ("int8",), elu)),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("ELU", ELU_ROWS, lambda _, arithmetic: arithmetic.xnnpack_functions.elu),
    ),
)


_HALF, _ONE = np.float32(0.5), np.float32(1)
_MINUS_SQRT_HALF = np.float32(-np.sqrt(0.5))
_SQRT_2_OVER_PI = np.float32(1.12837916709551257390 * 0.70710678118654752440)


def gelu(x: Array) -> Array:
    """Return x/2 * erfc(-x / sqrt(2)), float32, left to right."""
    return np.asarray(_HALF * x * erfcf(x * _MINUS_SQRT_HALF))


def gelu_approximate(x: Array, multiply_add: MultiplyAdd) -> Array:
    """Return x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), float32, left to right."""
    argument = _SQRT_2_OVER_PI * multiply_add(np.float32(0.044715) * x * x, x, x)
    return np.asarray(_HALF * x * (_ONE + tanhf(argument)))


def gelu_vector(x: Array) -> Array:
    """Compute the first formula over float32 arrays."""
    flat = np.ascontiguousarray(x).reshape(-1)
    return np.asarray(_HALF * x * erfc(flat * _MINUS_SQRT_HALF).reshape(x.shape))


def gelu_approximate_vector(x: Array) -> Array:
    """Compute the second formula over float32 arrays: the cube comes first."""
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * (x * (x * x)))
    return np.asarray(_HALF * x * (_ONE + tanh(inner)))


def gelu_half(x: Array) -> Array:
    """Compute the first formula over float16, rounded after every step."""
    inner = (x * np.float16(_MINUS_SQRT_HALF)).astype(np.float32)
    return np.asarray(np.float16(_HALF) * x * single_erfc(inner).astype(np.float16))


def gelu_approximate_half(x: Array) -> Array:
    """Compute the second formula over float16, rounded after every step."""
    inner = np.float16(_SQRT_2_OVER_PI) * (x + np.float16(0.044715) * (x * x * x))
    curve = tanhf(inner.astype(np.float32)).astype(np.float16)
    return np.asarray(np.float16(_HALF) * x * (np.float16(_ONE) + curve))


def prepare_gelu(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes or 513 samples."""
    transform = partial(gelu_approximate, multiply_add=arithmetic.multiply_add) if node.options["approximate"] else gelu
    return prepare_tabulated(node, transform, arithmetic.multiply_add, is_clamped=False)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose the formula."""
    x, _ = same_type(node)
    exact, approximate = _FLOAT[x.type.label]
    return Prepared((x.shape,), approximate if node.options["approximate"] else exact, eval_function)


_FLOAT = {"float32": (gelu_vector, gelu_approximate_vector), "float16": (gelu_half, gelu_approximate_half)}

GELU_ROWS = (
    *(Kernel("GELU", f"{t} -> {t}", prepare_float, (1, 3), exactness=SAME_LIBM) for t in _FLOAT),
    *(Kernel("GELU", f"{t} -> {t}", prepare_gelu, (1, 3)) for t in ("uint8", "int8", "int16")),
)

UNCLAIMED = close("erf and tanh of an Eigen of that time, which are not reproduced")


def _by_xnnpack(node: Node, arithmetic: Arithmetic) -> Elementwise:
    """Choose the formula."""
    return xnnpack_functions.GELU_APPROXIMATE if node.options["approximate"] else xnnpack_functions.GELU


_GELU = (
    *GELU_ROWS,
    *valid(xnnpack("litert-2.1", cpu="x86-64"), applying("GELU", GELU_ROWS, _by_xnnpack)),
    *valid(
        tflite(until="tflite-2.14"),
        *(replace(row, versions=(1, 2), exactness=UNCLAIMED) for row in GELU_ROWS if row.signature.is_float),
    ),
)


_TYPES = {"complex64": "float32", "complex128": "float64"}


def kernels(op: str, function: Callable[[Array], Array], exactness: Exactness = EXACT) -> tuple[Kernel, ...]:
    """Return the kernels of a function of one complex number."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return Prepared((node.input(0).shape,), function, eval_function)

    return tuple(
        Kernel(op, f"{source} -> {target}", prepare, (1, 1), exactness=exactness) for source, target in _TYPES.items()
    )


def absolute(x: Array) -> Array:
    """Source: std::abs. Rounding: libm's, which is NumPy's for float64."""
    return hypotf(x.real, x.imag) if x.dtype == np.complex64 else np.hypot(x.real, x.imag)


_COMPLEX_NUMBERS = (*kernels("REAL", np.real), *kernels("IMAG", np.imag), *kernels("COMPLEX_ABS", absolute, SAME_LIBM))

#: The rows of all operators above.
KERNELS = (*_ABS, *_NEG, *_SIGN, *_EXP, *_LOG, *_SINUSOIDS, *_ROUNDING, *_ELU, *_GELU, *_COMPLEX_NUMBERS)
