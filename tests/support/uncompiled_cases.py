"""Small runs of everything compiled in numerics, by name: `python uncompiled_cases.py OUT.npz` writes their results."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from tflq.engine.jit.compiled import Compiled
from tflq.engine.numerics import elementary, libm, multiplier, rounding, tables
from tflq.engine.numerics import rounding as bits
from tflq.engine.numerics import rounding as fixedpoint
from tflq.engine.numerics import tables as sigmoid_int16
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.libm import with_constants
from tflq.engine.numerics.products import Contraction, PairContraction, centre_into
from tflq.engine.numerics.stage_roundings import DoubleRounding, FloatRounding, SingleRounding, WideRounding
from tflq.engine.numerics.stages import OutputPipeline

Case = Callable[[np.random.Generator], object]
WORDS = [-(2**31), -(2**30), -1, 0, 1, 7, 2**30, 2**31 - 1]


def over(function: Compiled[..., object], *domains: list[int]) -> Case:
    """`function` at every point of the product of `domains`."""

    def run(rng: np.random.Generator) -> object:
        grid = [axis.reshape(-1).tolist() for axis in np.meshgrid(*domains)]
        return [function(*point) for point in zip(*grid, strict=True)]

    return run


def filled(function: Compiled[..., None], x: np.ndarray, *constants: int) -> Case:
    def run(rng: np.random.Generator) -> object:
        out = np.zeros_like(x)
        function(x, *constants, out)
        return out

    return run


def pipeline(stage_type: type, dtype: type, channels: int) -> Case:
    def run(rng: np.random.Generator) -> object:
        stage = stage_type.of(rng.uniform(2.0**-9, 2.0**-6, channels))
        accumulator = rng.integers(-(2**15), 2**15, (4, 5)).astype(dtype)
        into = OutputPipeline(stage, ZeroPoint(3), Clamp(-128, 127), np.dtype(np.int8))
        return np.stack([into(accumulator), into(accumulator, rng.integers(-9, 9, 5).astype(np.int32))])

    return run


def contraction(length: int, low: int, high: int) -> Case:
    def run(rng: np.random.Generator) -> object:
        weights = rng.integers(-127, 128, (length, 3))
        made = Contraction.of(weights, (low, high))
        return made(rng.integers(low, high, (4, length)).astype(made.real))

    return run


def pairs(rng: np.random.Generator) -> object:
    made = PairContraction.of(600, (-255, 255), (-255, 255))
    return made(*(rng.integers(-255, 256, shape).astype(made.real) for shape in ((2, 600), (600, 3))))


def centred(rng: np.random.Generator) -> object:
    out = np.empty(256, np.float32)
    centre_into(np.arange(256, dtype=np.uint8), 77, out)
    return out


def table(rng: np.random.Generator) -> object:
    made = tables.table_8bit(libm.tanhf, np.int8, np.float32(0.05), 3, np.float32(1 / 128), 0)
    return tables.look_up_8bit(made, np.arange(-128, 128, dtype=np.int8))


def wide_table(rng: np.random.Generator) -> object:
    made = tables.table_16bit(libm.expf, np.float32(1e-4), 0, np.float32(1e-3), 0)
    return tables.look_up_16bit(made, np.arange(-32768, 32768, 97, dtype=np.int16))


def float_function(function: libm.FloatFunction) -> Case:
    return lambda rng: function(*rng.uniform(0.01, 3, (function.arguments, 1500)).astype(np.float32))


FLOAT_FUNCTIONS = (
    libm.expf,
    libm.expm1f,
    libm.logf,
    libm.tanhf,
    libm.sinf,
    libm.cosf,
    libm.erff,
    libm.erfcf,
    libm.powf,
)
CODES = np.arange(-32768, 32768, 331, dtype=np.int16)
RAW = np.linspace(-(2**31), 2**31 - 1, 150).astype(np.int64).astype(np.int32)
NEGATIVE = RAW[RAW <= 0]

CASES: dict[str, Case] = {
    "wrap_int32": over(rounding.wrap_int32, [*WORDS, 2**31, 2**40 + 5]),
    "divide_half_away": over(rounding.divide_by_pot_half_away, WORDS, [0, 1, 7, 31]),
    "divide_half_up": over(rounding.divide_by_pot_half_up, WORDS, [0, 1, 7, 31]),
    "round_half_away": lambda rng: [rounding.round_half_away(x) for x in rng.integers(-9, 9, 40) / 4],
    "float_to_int32": lambda rng: [rounding.float_to_int32(x) for x in (0.0, -5.0, 2.0**31, np.nan, np.inf)],
    "high_mul": over(fixedpoint.saturating_rounding_doubling_high_mul, WORDS, WORDS),
    "multiply_by_pot": over(fixedpoint.saturating_rounding_multiply_by_pot, WORDS, [-31, -1, 0, 1, 30], [32]),
    "half_sum": over(fixedpoint.rounding_half_sum, WORDS, WORDS),
    "saturating": over(fixedpoint.saturating_sub, WORDS, WORDS, [32]),
    "leading_sign_bits": over(bits.count_leading_sign_bits, WORDS, [32]),
    "double": over(multiplier.multiply_double_rounding, WORDS, [2**30, 2**31 - 1, 1234567890], [-31, -1, 0, 5, 30, 40]),
    "single": over(multiplier.multiply_single_rounding, WORDS, [2**30, 2**31 - 1, 1234567890], [-31, -1, 0, 5, 30]),
    "wide": over(multiplier.multiply_wide, [*WORDS, 2**46], [2**30, 2**31 - 1, 1234567890], [-31, -1, 0, 7, 20]),
    "exp_32": filled(with_constants(elementary.exp_on_negative_values, 40), NEGATIVE, 5, 32),
    "exp_16": filled(with_constants(elementary.exp_on_negative_values, 40), CODES[CODES <= 0], 6, 16),
    "logistic_32": filled(elementary.logistic_into, RAW, 4, 32),
    "logistic_16": filled(elementary.logistic_into, CODES, 3, 16),
    "tanh_32": filled(elementary.tanh_into, RAW, 4, 32),
    "tanh_16": filled(elementary.tanh_into, CODES, 3, 16),
    "log": over(elementary.log_x_for_x_greater_than_or_equal_to_1, [2**19, 2**20 + 7, 3 << 25, 2**31 - 1], [12], [5]),
    "reciprocal": over(elementary.reciprocal, [1, 5, 2**19, 2**31 - 1], [12]),
    "inverse_sqrt": over(elementary.inverse_sqrt, [0, 1, 2, 3, 1000, 2**29, 2**31 - 1]),
    "sigmoid_table_logistic": filled(sigmoid_int16.logistic_int16_into, CODES, 24576, 3),
    "sigmoid_table_tanh": filled(sigmoid_int16.tanh_int16_into, CODES, 0, 1),
    "table": table,
    "wide_table": wide_table,
    "contraction": contraction(40, -128, 127),
    "contraction_cut": contraction(900, -255, 255),
    "contraction_wide": contraction(40, -32768, 32767),
    "pairs": pairs,
    "centred": centred,
    **{
        f.name: float_function(f)
        for f in (libm.expf, libm.logf, libm.tanhf, libm.sinf, libm.cosf, libm.erff, libm.powf)
    },
    **{
        f"{stage.__name__}_{np.dtype(dtype).name}_{channels}": pipeline(stage, dtype, channels)
        for stage in (DoubleRounding, SingleRounding, WideRounding, FloatRounding)
        for dtype in (np.int32, np.int64, np.float32)
        for channels in (1, 5)
    },
}


def results() -> dict[str, np.ndarray]:
    return {name: np.asarray(case(np.random.default_rng(7))) for name, case in CASES.items()}


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
