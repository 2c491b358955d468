"""numerics against golden vectors made by the original C++ sources: one test a file, every array of it."""

from __future__ import annotations

from functools import partial

import numpy as np

from support.vectors import each, each_or_abort
from tflq.engine.numerics import elementary, multiplier, tables
from tflq.engine.numerics import elementary as tf1
from tflq.engine.numerics import multiplier as scaling
from tflq.engine.numerics import rounding as fixedpoint
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.libm import with_constants
from tflq.engine.numerics.rounding import clamp, wrap
from tflq.engine.numerics.stage_roundings import DoubleRounding, SingleRounding
from tflq.engine.numerics.stages import OutputPipeline, type_range

STAGES = {"double": DoubleRounding, "single": SingleRounding}


def test_quantize_multiplier(vectors):
    file = vectors("quantize_multiplier.npz")
    real = file["real_multiplier"]
    for source, quantize in (
        ("r115", multiplier.quantize_multiplier),
        ("cur", multiplier.quantize_multiplier),
        ("cur_single", multiplier.quantize_multiplier_single_rounding),
    ):
        for name, function in (
            ("qm", quantize),
            ("smaller_than_one_exp", partial(multiplier.quantize_multiplier_smaller_than_one_exp, quantize=quantize)),
            ("greater_than_one", partial(multiplier.quantize_multiplier_greater_than_one, quantize=quantize)),
        ):
            mantissa, shift, status = each_or_abort(function, real, results=2)
            file.expect(f"{source}_{name}_quantized", mantissa)
            file.expect(f"{source}_{name}_shift", shift)
            file.expect(f"{source}_{name}_status", status)
    for source, quantize in (
        ("cur", multiplier.quantize_multipliers),
        ("cur_single", multiplier.quantize_multipliers_single_rounding),
    ):
        known = file[f"{source}_qm_status"] == 0
        mantissas, shifts = quantize(real[known])
        np.testing.assert_array_equal(mantissas, file[f"{source}_qm_quantized"][known])
        np.testing.assert_array_equal(shifts, file[f"{source}_qm_shift"][known])
    fraction, shift = zip(*map(tf1.integer_frexp, real.tolist()), strict=True)
    file.expect("integer_frexp_fraction", fraction)
    file.expect("integer_frexp_shift", shift)


def test_quantization_util(vectors):
    file = vectors("quantization_util.npz")
    inputs = [file[f"softmax_{name}"] for name in ("beta", "input_scale", "input_integer_bits")]
    double = {"largest": scaling.MAX_DOUBLE_ROUNDING, "quantize": multiplier.quantize_multiplier}
    single = {"largest": 2.0**30 - 1.0, "quantize": multiplier.quantize_multiplier_single_rounding}
    for source, build in (("r115", double), ("cur", double), ("cur_single", single)):
        softmax = partial(scaling.preprocess_softmax_scaling, **build)
        for name, column in zip(
            ("quantized", "left_shift", "status"), each_or_abort(softmax, *inputs, results=2), strict=True
        ):
            file.expect(f"{source}_softmax_{name}", column)

        def log_softmax(*given, build=build):
            return sum(scaling.preprocess_log_softmax_scaling(*given, **build), ())

        for name, column in zip(
            ("quantized", "left_shift", "rev_divisor", "rev_shift", "status"),
            each_or_abort(log_softmax, *inputs, results=4),
            strict=True,
        ):
            file.expect(f"{source}_logsoftmax_{name}", column)

    radius = [file[f"radius_{name}"] for name in ("input_integer_bits", "input_left_shift", "total_signed_bits")]
    file.expect("radius", each(scaling.calculate_input_radius, *radius))

    exponent, is_pot = zip(*map(scaling.check_log2, file["log2_x"]), strict=True)
    file.expect("log2_result", exponent)
    file.expect("cur_log2_is_pot", is_pot)
    strict = partial(scaling.check_log2, tolerance=1e-3)
    file.expect("r115_log2_is_pot", [strict(x)[1] for x in file["log2_x"]])

    ranges = zip(file["nudge_min"], file["nudge_max"], file["nudge_quant_min"], file["nudge_quant_max"], strict=True)
    nudged = zip(*(scaling.nudge_quantization_range(a, b, int(c), int(d)) for a, b, c, d in ranges), strict=True)
    for name, column in zip(("min", "max", "scale"), nudged, strict=True):
        file.expect(f"nudge_out_{name}", column)


def test_gemmlowp_primitives(vectors):
    file = vectors("gemmlowp_primitives.npz")
    a, b = file["srdhm32_a"], file["srdhm32_b"]
    file.expect("srdhm32", each(fixedpoint.saturating_rounding_doubling_high_mul, a, b))
    file.expect("rhs32", each(fixedpoint.rounding_half_sum, a, b))
    a, b = file["int16_a"], file["int16_b"]
    file.expect("srdhm16", each(fixedpoint.doubling_high_mul, a, b, 16))
    file.expect("rhs16", each(fixedpoint.rounding_half_sum, a, b))
    file.expect("satadd16", each(fixedpoint.saturating_add, a, b, 16))

    codes = np.arange(-(2**15), 2**15)
    divide, multiply = fixedpoint.rounding_divide_by_pot, fixedpoint.saturating_rounding_multiply_by_pot
    file.expect("rdbpot32", each(divide, file["rdbpot32_x"], file["rdbpot32_exponent"]))
    file.expect("rdbpot16_table", each(divide, codes, np.arange(16)[:, None]))
    file.expect("srmbp32", each(multiply, file["srmbp32_x"], file["srmbp32_exponent"], 32))
    file.expect("srmbp16_table", each(multiply, codes, file["srmbp16_exponents"][:, None], 16))


def test_multiply_by_quantized_multiplier(vectors):
    file = vectors("multiply_by_quantized_multiplier.npz")
    x, mantissa, shift = (file[name] for name in ("x", "multiplier", "shift"))
    double = each(multiplier.multiply_double_rounding, x, mantissa, shift)
    single = each(multiplier.multiply_single_rounding, x, mantissa, shift)
    file.expect("r115_y", double)
    file.expect("cur_double_y", double)
    file.expect("cur_single_y", single)
    for name, function in (
        ("smaller_than_one_exp", multiplier.multiply_smaller_than_one),
        ("greater_than_one", multiplier.multiply_greater_than_one),
    ):
        rows = file[f"r115_{name}_rows"]
        file.expect(f"r115_{name}_y", each(function, x[rows], mantissa[rows], shift[rows]))
        file.expect(f"cur_single_{name}_y", single[rows])
    wide = [file[f"int64_{name}"] for name in ("x", "multiplier", "shift")]
    file.expect("int64_y", each(multiplier.multiply_wide, *wide))

    # What the flags claim, from the formulas.
    shifted = [int(v) << max(int(s), 0) for v, s in zip(x, shift, strict=True)]
    file.expect("left_shift_overflow", [not -(2**31) <= v < 2**31 for v in shifted])
    file.expect("multiplier_negative", mantissa < 0)
    total = [
        (int(v) * int(m) + (1 << (30 - int(s)))) >> (31 - int(s)) for v, m, s in zip(x, mantissa, shift, strict=True)
    ]
    file.expect("single_out_of_int32", [not -(2**31) <= v < 2**31 for v in total])
    reduced = [min((int(m) + 2**15) >> 16, 0x7FFF) for m in wide[1]]
    total = [
        (int(v) * m + (1 << (14 - int(s)))) >> (15 - int(s)) for v, m, s in zip(wide[0], reduced, wide[2], strict=True)
    ]
    file.expect("int64_out_of_int32", [not -(2**31) <= v < 2**31 for v in total])


def test_gemmlowp_fixedpoint_int32(vectors):
    file = vectors("gemmlowp_fixedpoint_int32.npz")
    file.expect("exp_quarter_y", each(elementary.exp_on_quarter_interval, file["exp_quarter_x"], 32))
    for name in ("one_over_one_plus_x", "one_minus_x_over_one_plus_x"):
        file.expect(f"{name}_y", each(getattr(elementary, name), file["unit_x"], 32))
    for bits in range(8):
        x = file[f"exp_neg_ib{bits}_x"]
        file.expect(f"exp_neg_ib{bits}_y", filled(with_constants(elementary.exp_on_negative_values, 40), x, bits, 32))
    for bits in range(7):
        x = file[f"sigtanh_ib{bits}_x"]
        file.expect(f"logistic_ib{bits}_y", filled(elementary.logistic_into, x, bits, 32))
        file.expect(f"tanh_ib{bits}_y", filled(elementary.tanh_into, x, bits, 32))


def test_gemmlowp_fixedpoint_int16(vectors):
    file = vectors("gemmlowp_fixedpoint_int16.npz")
    file.expect("exp_quarter_table", each(elementary.exp_on_quarter_interval, np.arange(-8192, 0), 16))
    for name in ("one_over_one_plus_x", "one_minus_x_over_one_plus_x"):
        file.expect(f"{name}_table", each(getattr(elementary, name), np.arange(2**15), 16))
    codes = np.arange(-(2**15), 2**15, dtype=np.int16)
    for k, bits in enumerate(file["integer_bits_exp"].tolist()):
        file.expect(
            "exp_neg_table",
            filled(with_constants(elementary.exp_on_negative_values, 40), codes[: 2**15 + 1], bits, 16),
            k,
        )
    for k, bits in enumerate(file["integer_bits_logistic_tanh"].tolist()):
        file.expect("logistic_table", filled(elementary.logistic_into, codes, bits, 16), k)
        file.expect("tanh_table", filled(elementary.tanh_into, codes, bits, 16), k)


def test_integer_ops_logistic_tanh(vectors):
    file = vectors("integer_ops_logistic_tanh_current.npz")
    for rounding, stage_type in STAGES.items():
        for k, zero_point in enumerate(file["int8_input_zero_point"].tolist()):
            centred = file["int8_x"].astype(np.int32) - np.int32(zero_point)
            rescale = stage_type.of_fixed(file["int8_input_multiplier"][k], file["int8_input_left_shift"][k])
            radius = int(file["int8_input_range_radius"][k])
            for name in ("logistic", "tanh"):
                got = getattr(tables, f"{name}_int8")(centred, radius, rescale)
                file.expect(f"int8_{name}_y_{rounding}", got, k)
    derived = [scaled_input(scale) for scale in file["int8_input_scale"]]
    for name, column in zip(("multiplier", "left_shift", "range_radius"), zip(*derived, strict=True), strict=True):
        file.expect(f"int8_input_{name}", column)
    codes = np.arange(-(2**15), 2**15, dtype=np.int16)
    for k, pair in enumerate(
        zip(file["int16_input_multiplier"].tolist(), file["int16_input_left_shift"].tolist(), strict=True)
    ):
        file.expect("int16_logistic_y", filled(tables.logistic_int16_into, codes, *pair), k)
        file.expect("int16_tanh_y", filled(tables.tanh_int16_into, codes, *pair), k)


def scaled_input(scale):
    """Multiplier, left shift and radius of the int8 LOGISTIC and TANH of r1.15."""
    mantissa, shift = multiplier.quantize_multiplier_greater_than_one(float(scale) * 2.0**27)
    return mantissa, shift, scaling.calculate_input_radius(4, shift)


def test_relux(vectors):
    file = vectors("relux.npz")
    for kind in ("u8", "i8", "i16"):
        plain_clamp(file, kind)
    for kind, dtype in (("u8", np.uint8), ("i8", np.int8)):
        clamp_in_output_quantization(file, kind, dtype)
    for kind, dtype in (("u8", np.uint8), ("i8", np.int8), ("i16", np.int16)):
        for prefix, stage in (("cur", DoubleRounding), ("cur_single", SingleRounding)):
            requantizing_relu(file, prefix, kind, dtype, stage)


def plain_clamp(file, kind):
    """ReluX takes its limits in the element type: a limit that does not fit is cut first."""
    x, low, high = file[f"{kind}_x"], file[f"{kind}_min"], file[f"{kind}_max"]
    narrow = [limit.astype(x.dtype).astype(np.int64)[:, None] for limit in (low, high)]
    file.expect(f"{kind}_y", each(lambda x, low, high: high if x > high else max(x, low), x, *narrow))
    fits = [(limit >= np.iinfo(x.dtype).min) & (limit <= np.iinfo(x.dtype).max) for limit in (low, high)]
    file.expect(f"{kind}_limits_narrowed", ~(fits[0] & fits[1]))
    file.expect(f"{kind}_min_gt_max", low > high)


def limits(dtype, scale, zero_point, low, high):
    """Activation limits in codes: zero point + round(limit / scale) in float32, inside the type."""
    first, last = type_range(dtype)
    with np.errstate(over="ignore"):
        codes = [
            None if np.isinf(v) else zero_point + multiplier.rounding_half_away(float(np.float32(v) / scale))
            for v in (low, high)
        ]
    return (
        first if codes[0] is None else max(first, min(codes[0], 2**31 - 1)),
        last if codes[1] is None else min(last, codes[1]),
    )


def clamp_in_output_quantization(file, kind, dtype):
    """r1.15 RELU6 and RELU_N1_TO_1: codes are kept, only clamped to the output's limits."""
    codes = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    for k, (scale, zero_point) in enumerate(
        zip(file["r115_relu_output_scale"], file[f"r115_relu_{kind}_output_zero_point"].tolist(), strict=True)
    ):
        for name, low, high in (("relu6", 0.0, 6.0), ("relu1", -1.0, 1.0)):
            bounds = limits(dtype, scale, zero_point, low, high)
            file.expect(f"r115_{name}_{kind}_y", each(clamp, codes, *bounds), k)


def requantizing_relu(file, prefix, kind, dtype, stage_type):
    part = {
        name: file[f"cur_relu_{kind}_{name}"]
        for name in ("input_scale", "input_zero_point", "output_scale", "output_zero_point", "act_min", "act_max")
    }
    real = (part["input_scale"] / part["output_scale"]).astype(np.float64)
    stage = stage_type.of(real)
    file.expect(f"{prefix}_relu_{kind}_multiplier", stage.mantissa)
    file.expect(f"{prefix}_relu_{kind}_shift", stage.shift)
    x = file[f"cur_relu_{kind}_x"].astype(np.int32)
    for k in range(len(real)):
        zero_point = int(part["output_zero_point"][k])
        low, high = limits(dtype, part["output_scale"][k], zero_point, part["act_min"][k], part["act_max"][k])
        pipeline = OutputPipeline(stage_type.of(real[k]), ZeroPoint(zero_point), Clamp(low, high), np.dtype(dtype))
        file.expect(f"{prefix}_relu_{kind}_y", pipeline(x - part["input_zero_point"][k]), k)


def test_leaky_relu_r115_uint8(vectors):
    file = vectors("leaky_relu_r115_uint8.npz")
    columns = ("input_scale", "input_zero_point", "output_scale", "output_zero_point", "alpha")
    rows = list(zip(*(file[name] for name in columns), strict=True))

    def prepared(k):
        input_scale, input_zero_point, output_scale, output_zero_point, alpha = rows[k]
        return tf1.LeakyRelu.of(input_scale, int(input_zero_point), output_scale, int(output_zero_point), alpha)

    def constants(k):
        node = prepared(k)
        return node.code_of_alpha, node.mantissa, node.shift

    everything = np.arange(len(rows))
    code, mantissa, shift, status = each_or_abort(constants, everything, results=3)
    file.expect("prepare_status", status)
    runs = np.flatnonzero(status == 0)
    file.expect("q_alpha", code[runs], runs)
    file.expect("output_multiplier", mantissa[runs], runs)
    file.expect("output_shift", shift[runs], runs)
    for k in everything:
        got = prepared(k)(file["x"]) if status[k] == 0 else np.zeros(256)
        file.expect("y", got, k)
    real = file["input_scale"] * file["input_scale"] / file["output_scale"]
    file.expect("real_multiplier", real.astype(np.float64))

    chosen = file["same_process_rows"].tolist()
    first = prepared(chosen[0]).centred_alpha
    file.expect("same_process_y", [prepared(k)(file["x"], first) for k in chosen])


def test_leaky_relu_current(vectors):
    file = vectors("leaky_relu_current.npz")
    for kind in ("uint8", "int8", "int16", "int16full"):
        for rounding in STAGES:
            leaky_relu(file, kind, rounding)


def leaky_relu(file, kind, rounding):
    """Two stages, one for each side of the zero point; |alpha| is scaled and the sign applied afterwards.

    Before March 2026 the multiplier itself was negative, so that ties of a negative alpha went the other way.
    """
    part = {
        name: file[f"{kind}_{name}"]
        for name in ("input_scale", "input_zero_point", "output_scale", "output_zero_point", "alpha", "x")
    }
    identity = (part["input_scale"] / part["output_scale"]).astype(np.float64)
    alpha = (part["input_scale"] * part["alpha"] / part["output_scale"]).astype(np.float64)
    stage_type = STAGES[rounding]
    slope, straight = stage_type.of(abs(alpha)), stage_type.of(identity)
    file.expect(f"{kind}_multiplier_alpha_{rounding}", np.where(alpha < 0, -slope.mantissa, slope.mantissa))
    file.expect(f"{kind}_shift_alpha_{rounding}", slope.shift)
    file.expect(f"{kind}_multiplier_identity_{rounding}", straight.mantissa)
    file.expect(f"{kind}_shift_identity_{rounding}", straight.shift)
    file.expect(f"{kind}_left_shift_overflow_{rounding}", np.zeros(len(alpha), bool))
    dtype = part["x"].dtype
    low, high = type_range(dtype)
    for k in range(len(alpha)):
        centred = part["x"].astype(np.int32) - part["input_zero_point"][k]
        above = stage_type.of(identity[k])(centred)
        sign = -1 if alpha[k] < 0 else 1
        below = sign * stage_type.of(abs(alpha[k]))(centred)
        signed = stage_type.of_fixed(sign * slope.mantissa[k], slope.shift[k])(centred)

        def codes(negative, above=above, centred=centred, k=k):
            return np.clip(np.where(centred >= 0, above, negative) + part["output_zero_point"][k], low, high)

        file.expect(f"{kind}_y_{rounding}", codes(below), k)
        earlier = f"{kind}_y_{rounding}_before_negative_alpha_fix"
        if earlier in file.names():
            file.expect(earlier, codes(signed), k)


def test_no_file_of_vectors_is_left_out(shared):
    tested = {
        "quantize_multiplier",
        "quantization_util",
        "gemmlowp_primitives",
        "multiply_by_quantized_multiplier",
        "gemmlowp_fixedpoint_int32",
        "gemmlowp_fixedpoint_int16",
        "integer_ops_logistic_tanh_current",
        "relux",
        "leaky_relu_r115_uint8",
        "leaky_relu_current",
    }
    foreign = {"nnlib_quantize_adjust_range"}  # of a library that tflq does not model
    assert {path.stem for path in (shared / "vectors").glob("*.npz")} == tested | foreign


def filled(function, x, *constants):
    """The output that a compiled loop over `x` fills in."""
    out = np.empty_like(x)
    function(x, *constants, out)
    return out


def test_wrapping_is_what_a_register_does():
    values = np.array([2**31, -(2**31) - 1, 2**32, 5, -5, 2**63 - 1])
    assert each(wrap, values, 32).tolist() == values.astype(np.int32).tolist()
