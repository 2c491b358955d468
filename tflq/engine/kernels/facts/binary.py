"""Operators on pairs of elements, whole or broadcast."""

from __future__ import annotations

from tflq.engine.kernels.facts.fact import COMPUTES_CODES, FREE, JOINS, SINCE_2_1, Fact, Needs

# fmt: off
FACTS = (
    Fact("ADD", room="add_sub", opt="1.15:2 2.5:3 2.7:4 2.13:5 2.1:6", ref="1.15:1 2.5:4 2.13:5", micro="taken",
         later="2.14 float16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("ATAN2", both="2.11:1", later="2.14 float16"),
    Fact("BITWISE_XOR", room="logic", both="2.13:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("DIV", room="division", opt="1.15:1 2.3:2", ref="1.15:1 2.5:2", micro="taken",
         later="2.14 int8 int16, 1.15 int8", pointwise=True, rounds_once=True, traced=False, quantize=FREE,
         xnnpack_floats=SINCE_2_1),
    Fact("EQUAL", room="comparisons", opt="1.15:2 2.3:3 2.13:4 2.1:5", ref="1.15:1 2.5:3 2.13:4 2.1:5", micro="taken",
         later="2.14 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 5)),
    Fact("FLOOR_DIV", room="division", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken", pointwise=True,
         kept_float=COMPUTES_CODES),
    Fact("FLOOR_MOD", room="division", both="1.15:1 2.13:2", micro="taken", pointwise=True, kept_float=COMPUTES_CODES),
    Fact("GREATER", room="comparisons", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken",
         later="2.14 int16 float16, 2.0 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 1)),
    Fact("GREATER_EQUAL", room="comparisons", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken",
         later="2.14 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3)),
    Fact("LESS", room="comparisons", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken",
         later="2.14 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3)),
    Fact("LESS_EQUAL", room="comparisons", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken",
         later="2.14 int16 float16, 2.0 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 1)),
    Fact("LOGICAL_AND", room="logic", both="1.15:1", micro="taken"),
    Fact("LOGICAL_OR", room="logic", both="1.15:1", micro="taken"),
    Fact("MAXIMUM", room="maximum_minimum", opt="1.15:2 2.3:4", ref="1.15:1 2.5:4", micro="taken", later="2.14 float16",
         pointwise=True, rounds_once=True, quantize=JOINS, needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("MINIMUM", room="maximum_minimum", opt="1.15:2 2.3:4", ref="1.15:1 2.5:4", micro="taken", later="2.14 float16",
         pointwise=True, rounds_once=True, quantize=JOINS, needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("MUL", opt="1.15:3 2.3:4 2.7:5 2.11:6 2.13:7 2.1:8", ref="1.15:1 2.5:4 2.7:5 2.11:6 2.13:7",
         micro="uint8 -uint8", later="2.14 float16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 4),
         xnnpack_floats=SINCE_2_1),
    Fact("NOT_EQUAL", room="comparisons", opt="1.15:2 2.3:3 2.1:4", ref="1.15:1 2.5:3 2.1:4", micro="taken",
         later="2.14 int16 float16, 2.0 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 4)),
    Fact("POW", both="1.15:1"),
    Fact("RIGHT_SHIFT", room="logic", both="2.13:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("SQUARED_DIFFERENCE", both="1.15:1 2.5:2", micro="taken", pointwise=True, traced=False, quantize=FREE,
         needs=Needs(2, 1), xnnpack_floats=SINCE_2_1),
    Fact("STABLEHLO_ADD", room="stablehlo_arithmetic", both="1.0:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_AND", room="logic", opt="1.4:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MAXIMUM", room="stablehlo_arithmetic", both="1.0:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MINIMUM", room="stablehlo_arithmetic", both="1.0:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MULTIPLY", room="stablehlo_arithmetic", both="1.0:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_SHIFT_LEFT", room="logic", opt="1.4:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("SUB", room="add_sub", opt="1.15:2 2.3:3 2.5:5", ref="1.15:1 2.5:5", micro="taken", pointwise=True,
         rounds_once=True, quantize=FREE, needs=Needs(2, 5), xnnpack_floats=SINCE_2_1),
)
# fmt: on
