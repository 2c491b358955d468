"""Facts of all operators, one row each.

Operators on pairs of elements, whole or broadcast.

Operators on each element of one tensor.

Operators that move elements.

Operators that sum products.

Operators that reduce, pool, search or transform.

Operators that keep state, draw numbers, call subgraphs, make shapes from values, or move codes of StableHLO.
"""

from __future__ import annotations

from tflq.engine.kernels.facts import counts
from tflq.engine.kernels.facts.fact import (
    ALL,
    COMPUTES_CODES,
    COPIES_CODES,
    FREE,
    JOINS,
    LOG_PROBABILITY,
    MOVES,
    NO_INTEGERS,
    ONLY_FLOATS,
    PROBABILITY,
    SIGNED_UNIT,
    SINCE_2_1,
    UNIT_8BIT,
    Fact,
    Needs,
    VersionRule,
    Weights,
)

# fmt: off
FACTS = (
    Fact("ADD", room="add_sub", opt="1.15:2 2.5:3 2.7:4 2.13:5 2.1:6", ref="1.15:1 2.5:4 2.13:5", micro="taken",
         later="2.0 float16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("ATAN2", room="division", both="2.11:1", later="1.0 float16"),
    Fact("BITWISE_XOR", room="pairs", both="2.13:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("DIV", room="division", opt="1.15:1 2.3:2", ref="1.15:1 2.5:2", micro="taken",
         later="1.4 int16, 1.0 int8, 1.15 int8", pointwise=True, rounds_once=True, traced=False, quantize=FREE,
         xnnpack_floats=SINCE_2_1),
    Fact("EQUAL", room="pairs", opt="1.15:2 2.3:3 2.13:4 2.1:5", ref="1.15:1 2.5:3 2.13:4 2.1:5", micro="taken",
         later="2.0 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 5)),
    Fact("FLOOR_DIV", room="division", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken", pointwise=True,
         kept_float=COMPUTES_CODES),
    Fact("FLOOR_MOD", room="division", both="1.15:1 2.13:2", micro="taken", pointwise=True, kept_float=COMPUTES_CODES),
    Fact("GREATER", room="pairs", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", later="2.0 int16 float16",
         pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 1)),
    Fact("GREATER_EQUAL", room="pairs", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken",
         later="2.0 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3)),
    Fact("LESS", room="pairs", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken",
         later="1.0 float16, 2.12 int16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3)),
    Fact("LESS_EQUAL", room="pairs", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", later="2.0 int16 float16",
         pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 1)),
    Fact("LOGICAL_AND", room="pairs", both="1.15:1", micro="taken"),
    Fact("LOGICAL_OR", room="pairs", both="1.15:1", micro="taken"),
    Fact("MAXIMUM", room="pairs", opt="1.15:2 2.3:4", ref="1.15:1 2.5:4", micro="taken", later="1.0 float16",
         pointwise=True, rounds_once=True, quantize=JOINS, needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("MINIMUM", room="pairs", opt="1.15:2 2.3:4", ref="1.15:1 2.5:4", micro="taken", later="1.0 float16",
         pointwise=True, rounds_once=True, quantize=JOINS, needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("MUL", opt="1.15:3 2.3:4 2.7:5 2.11:6 2.13:7 2.1:8", ref="1.15:1 2.5:4 2.7:5 2.11:6 2.13:7",
         micro="uint8 -uint8", later="2.0 float16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 4),
         xnnpack_floats=SINCE_2_1),
    Fact("NOT_EQUAL", room="pairs", opt="1.15:2 2.3:3 2.1:4", ref="1.15:1 2.5:3 2.1:4", micro="taken",
         later="2.0 int16 float16", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 4)),
    Fact("POW", room="division", both="1.15:1"),
    Fact("RIGHT_SHIFT", room="pairs", both="2.13:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("SQUARED_DIFFERENCE", room="pairs", both="1.15:1 2.5:2", micro="taken", pointwise=True, traced=False,
         quantize=FREE,
         needs=Needs(2, 1), xnnpack_floats=SINCE_2_1),
    Fact("STABLEHLO_ADD", room="pairs", both="1.0:1", later="1.0 bool", traced=False,
         kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_AND", room="pairs", opt="1.4:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MAXIMUM", room="pairs", both="1.0:1", later="1.0 bool", traced=False,
         kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MINIMUM", room="pairs", both="1.0:1", later="1.0 bool", traced=False,
         kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_MULTIPLY", room="pairs", both="1.0:1", later="1.0 bool", traced=False,
         kept_float=COMPUTES_CODES),
    Fact("STABLEHLO_SHIFT_LEFT", room="pairs", opt="1.4:1", traced=False, kept_float=COMPUTES_CODES),
    Fact("SUB", room="add_sub", opt="1.15:2 2.3:3 2.5:5", ref="1.15:1 2.5:5", micro="taken", pointwise=True,
         rounds_once=True, quantize=FREE, needs=Needs(2, 5), xnnpack_floats=SINCE_2_1),
)
# fmt: on


# fmt: off
UNARY_FACTS = (
    Fact("ABS", room="functions", opt="1.15:1 2.5:3 2.7:4 2.12:5", ref="1.15:1 2.5:3", micro="taken", pointwise=True,
         rounds_once=True,
         quantize=FREE, needs=Needs(2, 3, uint8_too=True)),
    Fact("ADD_N", room="add_sub", both="1.15:1", micro="taken"),
    Fact("ARG_MAX", room="ranking", opt="1.15:2 2.9:3", ref="1.15:1 2.5:2", micro="taken", rounds_once=True,
         quantize=FREE, needs=Needs(2, 1)),
    Fact("ARG_MIN", room="ranking", opt="1.15:2 2.9:3", ref="1.15:1 2.5:2", micro="taken", rounds_once=True,
         quantize=FREE, needs=Needs(2, 1)),
    Fact("BITCAST", room="reshaping", both="2.13:1", rounds_once=True, traced=False, kept_float=COMPUTES_CODES),
    Fact("BUCKETIZE", room="conversions", both="2.9:1"),
    Fact("CAST", room="conversions", opt="1.15:1 2.7:2 2.9:4 2.13:5 1.0:6 1.4:7 2.1:8",
         ref="1.15:1 2.7:2 2.9:4 1.4:7 2.1:8", micro="taken",
         pointwise=True, rounds_once=True, traced=False, kept_float=COMPUTES_CODES),
    Fact("CEIL", room="functions", opt="1.15:1", ref="1.15:1 2.5:0", micro="taken", pointwise=True,
         xnnpack_floats=SINCE_2_1),
    Fact("COMPLEX_ABS", room="functions", both="2.5:1"),
    Fact("COS", room="functions", opt="1.15:1 2.1:2", ref="1.15:1", micro="taken", later="2.0 float16", pointwise=True,
         xnnpack_floats=SINCE_2_1),
    Fact("DEQUANTIZE", opt="1.15:4 2.7:5 1.0:6 2.1:8", ref="1.15:2 2.5:4 1.4:6 2.1:8", micro="uint8", pointwise=True,
         rounds_once=True, converts=True),
    Fact("ELU", room="functions", opt="1.15:1", ref="1.15:1 2.5:0", micro="taken", pointwise=True, quantize=FREE,
         xnnpack_floats=SINCE_2_1),
    Fact("EXP", room="functions", both="1.15:1 2.13:2", micro="taken", pointwise=True, quantize=FREE, needs=Needs(2, 2),
         xnnpack_floats=SINCE_2_1),
    Fact("FAKE_QUANT", room="conversions", opt="1.15:2", ref="1.15:1 2.5:2"),
    Fact("FLOOR", room="functions", both="1.15:1", micro="taken", later="1.0 float16", pointwise=True,
         xnnpack_floats=SINCE_2_1),
    Fact("GELU", room="functions", opt="2.9:2 2.1:3", ref="2.9:2", later="2.0 float16, 1.0 int16", pointwise=True,
         quantize=FREE,
         needs=Needs(2, 1, uint8_too=True), xnnpack_floats=SINCE_2_1),
    Fact("HARD_SWISH", both="1.15:1", micro="taken", pointwise=True, quantize=FREE, xnnpack_floats=SINCE_2_1),
    Fact("IMAG", room="functions", both="2.5:1"),
    Fact("LEAKY_RELU", opt="1.15:1 2.3:2", ref="1.15:1 2.5:2", micro="taken", later="1.15 int8", pointwise=True,
         quantize=FREE, needs=Needs(1, 2), xnnpack_floats=SINCE_2_1),
    Fact("LOG", room="functions", both="1.15:1 1.0:2", micro="taken", later="2.14 int8 int16", pointwise=True,
         quantize=FREE,
         needs=Needs(2, 2), xnnpack_floats=SINCE_2_1),
    Fact("LOGICAL_NOT", room="pairs", both="1.15:1", micro="taken"),
    Fact("LOGISTIC", room="sigmoids", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", later="1.0 float16",
         pointwise=True, quantize=FREE, needs=Needs(2, 3), output=PROBABILITY, xnnpack_floats=SINCE_2_1),
    Fact("NEG", room="functions", both="1.15:1", micro="taken", later="1.0 int8 int16 float16", pointwise=True,
         rounds_once=True,
         traced=False, quantize=FREE, xnnpack_floats=SINCE_2_1),
    Fact("NumericVerify", room="dequantize", kept_float="it compares with float values"),
    Fact("PRELU", room="rectifiers", both="1.15:1", micro="taken", later="1.15 int8", pointwise=True, by_channel=True,
         traced=False, quantize=VersionRule(narrow=(1,)), xnnpack_floats=SINCE_2_1),
    Fact("QUANTIZE", opt="1.15:2 2.7:3 2.1:6", ref="1.15:1 2.5:2 1.4:3 2.1:6", micro="taken", pointwise=True,
         converts=True),
    Fact("REAL", room="functions", both="2.5:1"),
    Fact("RELU", room="rectifiers", opt="1.15:1 2.3:2 2.5:3", ref="1.15:1 2.5:3", micro="taken",
         later="1.15 uint8 int8", pointwise=True, rounds_once=True, quantize=FREE, needs=Needs(2, 3, uint8_too=True),
         xnnpack_floats=SINCE_2_1),
    Fact("RELU6", room="rectifiers", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="taken", pointwise=True,
         rounds_once=True, quantize=FREE, needs=Needs(2, 3), xnnpack_floats=SINCE_2_1),
    Fact("RELU_0_TO_1", room="rectifiers", both="2.11:1", pointwise=True, rounds_once=True, quantize=FREE),
    Fact("RELU_N1_TO_1", room="rectifiers", both="1.15:1", pointwise=True, rounds_once=True, quantize=FREE,
         xnnpack_floats=SINCE_2_1),
    Fact("ROUND", room="functions", opt="1.15:1", ref="1.15:1 2.5:0", micro="taken", later="1.0 float16",
         rounds_once=True, xnnpack_floats=SINCE_2_1),
    Fact("RSQRT", room="roots", both="1.15:1 2.5:2 1.0:3", micro="taken", later="2.14 int16", pointwise=True,
         traced=False, quantize=FREE, needs=Needs(2, 3), xnnpack_floats=SINCE_2_1),
    Fact("SIGN", room="functions", opt="2.11:1 2.12:2", ref="2.11:1 1.4:2", pointwise=True, rounds_once=True),
    Fact("SIN", room="functions", opt="1.15:1 2.1:2", ref="1.15:1", micro="taken", later="2.0 float16", pointwise=True,
         xnnpack_floats=SINCE_2_1),
    Fact("SQRT", room="roots", both="1.15:1 2.0:2", micro="taken", later="1.4 int8 int16", pointwise=True,
         rounds_once=True, traced=False, quantize=FREE, needs=Needs(2, 2), xnnpack_floats=SINCE_2_1),
    Fact("SQUARE", room="roots", both="1.15:1", micro="taken", pointwise=True, rounds_once=True,
         xnnpack_floats=SINCE_2_1),
    Fact("TANH", room="sigmoids", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", later="1.0 float16",
         pointwise=True, quantize=FREE, needs=Needs(2, 3), output=SIGNED_UNIT, xnnpack_floats=SINCE_2_1),
)
# fmt: on


# fmt: off
MOVES_FACTS = (
    Fact("BATCH_TO_SPACE_ND", room="blocks", opt="1.15:2 2.3:3 2.13:4", ref="1.15:1 2.5:3 2.13:4", micro="taken",
         later="2.0 bool uint16 uint32 uint64 float16 float64 complex64", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(2, 4)),
    Fact("BROADCAST_TO", room="joining", both="2.5:3", micro="uint8", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(3, 3)),
    Fact("CONCATENATION", room="joining", opt="1.15:2 2.3:3 2.14:4 2.1:6", ref="1.15:1 2.5:3 2.1:5", micro="taken",
         later="2.0 int4, 1.0 float16", rounds_once=True, quantize=JOINS, needs=Needs(2, 3)),
    Fact("DEPTH_TO_SPACE", room="blocks", opt="1.15:1 2.5:2", ref="1.15:1", micro="taken", rounds_once=True, moves=(0,),
         quantize=MOVES, needs=Needs(2, 1)),
    Fact("DILATE", room="padding", both="1.0:1", traced=False, kept_float=COPIES_CODES),
    Fact("DYNAMIC_UPDATE_SLICE", room="slicing", opt="2.9:1 1.0:2 1.4:4 2.1:6", ref="2.9:1 2.1:6", micro="taken",
         later="2.1 uint8 uint16 uint32 uint64 float64 complex64, 2.0 int4, 1.0 int16 float16", rounds_once=True,
         moves=(0, 1), quantize=VersionRule(tied=(0, 1)), needs=Needs(1, 4)),
    Fact("EMBEDDING_LOOKUP", room="lookups", opt="1.15:3 1.0:4 2.1:5", ref="1.15:1 2.5:3 2.1:5", micro="taken",
         later="2.0 float16 int4 bool int16 uint16 int32 uint32 int64 uint64 float64 complex64", rounds_once=True,
         traced=False, quantize=VersionRule(tied=(1,)), needs=Needs(hybrid=(1, 4)), table=1),
    Fact("EXPAND_DIMS", room="reshaping", both="1.15:1", micro="taken", rounds_once=True, moves=(0,), quantize=MOVES),
    Fact("FILL", room="filling_in", opt="1.15:1 2.3:2 2.5:3 2.12:4", ref="1.15:1 2.5:3", micro="taken",
         later="2.0 uint8 uint16 uint32 uint64 float64 complex64", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(1,)), needs=Needs(3, 3)),
    Fact("GATHER", room="gathering", opt="1.15:3 2.5:5 2.13:6 1.0:7", ref="1.15:1 2.5:4 2.13:6", micro="taken",
         later="1.0 float16, 2.14 int4", rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(2, 4), table=0),
    Fact("GATHER_ND", room="gathering", opt="1.15:1 2.3:2 2.5:3 2.13:4 1.0:5", ref="2.5:3 2.13:4 1.0:5", micro="taken",
         later="1.0 float16, 2.14 bool", rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(1, 3)),
    Fact("MATRIX_DIAG", room="filling_in", opt="1.15:1", ref="2.5:1", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(0,), fills=True)),
    Fact("MATRIX_SET_DIAG", room="filling_in", opt="1.15:1", ref="2.5:1", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(0, 1))),
    Fact("MIRROR_PAD", room="padding", opt="1.15:1 2.3:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", micro="taken",
         later="2.0 bool uint16 uint32 uint64 float16 float64 complex64", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(2, 3)),
    Fact("ONE_HOT", room="filling_in", both="1.15:1", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(2, 3))),
    Fact("PACK", room="reshaping", opt="1.15:2 2.3:3 2.14:4", ref="1.15:1 2.5:3", micro="taken", rounds_once=True,
         moves=ALL, quantize=JOINS, needs=Needs(2, 3)),
    Fact("PAD", room="padding", opt="1.15:2 2.5:3 2.7:4 2.0:5", ref="1.15:1 2.5:3 2.7:4", micro="taken",
         later="1.4 bool, 1.0 float16",
         rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(2, 3)),
    Fact("PADV2", room="padding", opt="1.15:2 2.5:3 2.7:4 2.0:5", ref="1.15:1 2.5:3 2.7:4", micro="taken",
         later="1.4 bool, 1.0 float16", rounds_once=True, moves=(0, 2), quantize=VersionRule(tied=(0, 2)),
         needs=Needs(2, 3)),
    Fact("RESHAPE", room="reshaping", both="1.15:1", micro="uint8", rounds_once=True, moves=(0,), quantize=MOVES),
    Fact("REVERSE_SEQUENCE", room="filling_in", both="1.15:1", rounds_once=True, moves=(0,), quantize=MOVES),
    Fact("REVERSE_V2", room="filling_in", opt="1.15:1 2.3:2 2.5:3", ref="1.15:1 2.5:2", micro="uint8",
         later="1.0 float16",
         rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(3, 1)),
    Fact("SCATTER_ND", room="gathering", opt="2.3:1", ref="2.5:1", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(1,), fills=True)),
    Fact("SELECT", room="pairs", opt="1.15:2 2.12:3 2.14:4", ref="1.15:1 2.5:2",
         later="2.0 uint16 uint64 float16 float64 complex64",
         rounds_once=True, moves=(1, 2), quantize=VersionRule(tied=(1, 2)), needs=Needs(2, 1)),
    Fact("SELECT_V2", room="pairs", opt="2.3:1 2.14:2", ref="2.5:1", micro="taken",
         later="2.0 uint16 uint64 float16 float64 complex64", rounds_once=True, moves=(1, 2),
         quantize=VersionRule(tied=(1, 2))),
    Fact("SLICE", room="slicing", opt="1.15:3 2.5:5 2.14:6 2.1:8", ref="1.15:1 2.5:5 2.1:7", micro="taken",
         later="2.0 int4 uint16 uint64 float64 complex64, 1.0 float16", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(2, 4)),
    Fact("SPACE_TO_BATCH_ND", room="blocks", opt="1.15:2 2.3:3 2.13:4", ref="1.15:1 2.5:3 2.13:4", micro="taken",
         later="2.0 bool uint16 uint32 uint64 float16 float64 complex64", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(2, 4)),
    Fact("SPACE_TO_DEPTH", room="blocks", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", rounds_once=True, moves=(0,),
         quantize=MOVES, needs=Needs(2, 1)),
    Fact("SPARSE_TO_DENSE", room="filling_in", opt="1.15:3", ref="1.15:1 2.5:3", rounds_once=True, traced=False,
         quantize=VersionRule(tied=(2, 3)), needs=Needs(3, 1, uint8_too=True)),
    Fact("SPLIT", room="reshaping", opt="1.15:3 2.3:4", ref="1.15:1 2.5:4", micro="taken", later="2.14 int64",
         rounds_once=True, moves=(1,), quantize=VersionRule(tied=(1,)), needs=Needs(2, 4)),
    Fact("SPLIT_V", room="reshaping", opt="1.15:1 2.3:2", ref="1.15:1 2.5:2", micro="taken", rounds_once=True,
         moves=(0,), quantize=MOVES, needs=Needs(2, 1)),
    Fact("SQUEEZE", room="reshaping", opt="1.15:1 2.5:2", ref="1.15:1", micro="uint8", rounds_once=True, moves=(0,),
         quantize=MOVES),
    Fact("STRIDED_SLICE", room="slicing", opt="1.15:2 2.3:4 2.5:5 2.7:6 2.14:8", ref="1.15:1 2.5:4", micro="taken",
         later="2.0 uint16 uint64 float64 complex64, 1.0 float16", rounds_once=True, moves=(0,), traced=False,
         quantize=MOVES, needs=Needs(2, 1)),
    Fact("TILE", room="joining", opt="1.15:1 2.3:2 2.9:3", ref="1.15:1 2.5:2",
         later="2.0 int16 uint16 uint32 uint64 float16 float64 complex64", rounds_once=True, moves=(0,), quantize=MOVES,
         needs=Needs(3, 1)),
    Fact("TRANSPOSE", room="reshaping", opt="1.15:3 2.3:4 2.5:5 2.12:6 1.4:7 2.1:9", ref="1.15:1 2.5:5 2.1:8",
         micro="taken", later="2.0 uint16 uint32 uint64 float16 float64 complex64", rounds_once=True,
         moves=(0,), quantize=MOVES, needs=Needs(2, 5)),
    Fact("UNPACK", room="reshaping", opt="1.15:2 2.3:4 2.1:5", ref="1.15:1 2.5:4", micro="taken",
         later="2.0 float16", rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(2, 4, uint8_too=True)),
    Fact("ZEROS_LIKE", room="reshaping", both="1.15:1", micro="taken", rounds_once=True),
)
# fmt: on


# fmt: off
PRODUCTS_FACTS = (
    Fact("BATCH_MATMUL", opt="2.3:2 2.5:4", ref="2.5:3", micro="-hybrid", by_rows=True,
         quantize=VersionRule(weights=Weights(0, 1, None)), needs=Needs(2, 3, hybrid=(4, 4)), xnnpack_floats=SINCE_2_1,
         products=counts.matrices),  # batch_matmul.h BatchMatMul
    Fact("BIDIRECTIONAL_SEQUENCE_LSTM", room="lstm", opt="1.15:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(*range(1, 9), 16, *range(18, 26), 33, *range(40, 48))),  # lstm_eval.cc
    Fact("BIDIRECTIONAL_SEQUENCE_RNN", room="rnn", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(1, 2, 5, 6, 10, 11)),  # kernel_utils.cc RnnBatchStep
    # conv.h ConvPerChannel
    Fact("CONV_2D", opt="1.15:3 2.3:4 2.5:5 2.9:6 2.12:7 1.0:8", ref="1.15:1 2.5:5 2.9:6 1.0:8", micro="-hybrid",
         by_rows=True, by_channel=True, quantize=VersionRule(weights=Weights(0, 1, 0, 2)),
         needs=Needs(3, 1, hybrid=(2, 5), int4=7), xnnpack_floats=SINCE_2_1, products=counts.convolution),
    Fact("CONV_3D", both="2.5:1", products=counts.convolution_3d),  # conv3d.h Conv3D
    Fact("CONV_3D_TRANSPOSE", room="conv_3d", both="2.7:1",
         products=counts.transpose_3d),  # conv3d_transpose.h Conv3DTranspose
    Fact("DEPTHWISE_CONV_2D", opt="1.15:3 2.3:5 2.5:6 2.13:7", ref="1.15:2 2.5:6", micro="-hybrid", by_channel=True,
         quantize=VersionRule(weights=Weights(0, 1, 3, 2)), needs=Needs(3, 1, hybrid=(4, 6), int4=7),
         xnnpack_floats=SINCE_2_1,
         products=counts.depthwise),  # depthwise_conv.h DepthwiseConvPerChannel
    Fact("EMBEDDING_LOOKUP_SPARSE", room="lookups", both="1.15:1",
         products=counts.weighted_rows),  # embedding_lookup_sparse.cc Eval
    # fully_connected.h FullyConnected
    Fact("FULLY_CONNECTED", opt="1.15:6 2.3:8 2.5:9 2.13:10 1.0:13 2.1:14", ref="1.15:2 2.5:9 1.0:11 2.1:14",
         micro="-hybrid", by_rows=True, by_channel=True, quantize=VersionRule(weights=Weights(0, 1, 0, 2)),
         needs=Needs(4, 1, hybrid=(9, 12), int4=10, hybrid_int4=13), xnnpack_floats=SINCE_2_1, products=counts.dense),
    # lstm_eval.cc LstmStepFloat; optimized_ops.h LstmCell
    Fact("LSTM", opt="1.15:3 2.5:4", ref="1.15:2 2.5:4", traced=False, quantize=FREE, products=counts.lstm),
    # kernel_utils.cc RnnBatchStep
    Fact("RNN", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS, products=counts.recurrent(1, 2)),
    Fact("SVDF", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="-hybrid", traced=False, quantize=FREE,
         needs=Needs(3, 1), products=counts.svdf),  # svdf.h EvalFloatSVDF, ApplyTimeWeightsBiasAndActivation
    Fact("TRANSPOSE_CONV", opt="1.15:1 2.3:3 2.12:4 1.0:5", ref="1.15:1 2.5:3 1.0:5", micro="-hybrid", by_rows=True,
         by_channel=True, quantize=VersionRule(weights=Weights(2, 1, 0, 3)), needs=Needs(2, 2),
         xnnpack_floats=SINCE_2_1,
         products=counts.transpose),  # transpose_conv.h TransposeConv
    Fact("Convolution2DTransposeBias", room="transpose_conv", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("UNIDIRECTIONAL_SEQUENCE_LSTM", room="lstm", opt="1.15:2 2.5:3 2.12:4", ref="1.15:1 2.5:3", micro="-hybrid",
         traced=False, quantize=FREE, products=counts.recurrent(*range(1, 9), 16)),  # lstm_eval.cc LstmStepFloat
    Fact("UNIDIRECTIONAL_SEQUENCE_RNN", room="rnn", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(1, 2)),  # kernel_utils.cc RnnBatchStep
)
# fmt: on


# fmt: off
REDUCTIONS_FACTS = (
    Fact("AVERAGE_POOL_2D", room="pools", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", quantize=MOVES,
         needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1, passes=counts.pool),  # pooling.h AveragePool
    Fact("AudioSpectrogram", room="signals", passes=counts.transform),  # spectrogram.cc ProcessCoreFFT
    Fact("CUMSUM", room="reductions", opt="2.5:1", ref="2.0:1", micro="taken"),
    Fact("L2_NORMALIZATION", room="reductions", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", by_rows=True,
         traced=False, quantize=FREE,
         needs=Needs(2, 1), output=UNIT_8BIT),
    Fact("L2_POOL_2D", room="pools", both="1.15:1", micro="taken", passes=counts.pool),  # pooling.h L2Pool
    # reference_ops.h LocalResponseNormalization
    Fact("LOCAL_RESPONSE_NORMALIZATION", room="reductions", both="1.15:1", passes=counts.neighbours),
    Fact("LOG_SOFTMAX", room="softmax", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", by_rows=True, traced=False,
         quantize=FREE, needs=Needs(2, 1), output=LOG_PROBABILITY),
    # lsh_projection.cc RunningSignBit
    Fact("LSH_PROJECTION", room="lookups", both="1.15:1", kept_float="its kernel hashes bytes", passes=counts.hashes),
    Fact("MAX_POOL_2D", room="pools", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", quantize=MOVES,
         needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1, passes=counts.pool),  # pooling.h MaxPool
    Fact("MEAN", room="mean_sum", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int32 -int64", sums=True,
         quantize=FREE, needs=Needs(2, 3), xnnpack_floats=SINCE_2_1),
    Fact("Mfcc", room="signals"),
    # non_max_suppression.h NonMaxSuppression
    Fact("NON_MAX_SUPPRESSION_V4", room="boxes", opt="2.3:1", ref="2.5:1", passes=counts.overlaps),
    Fact("NON_MAX_SUPPRESSION_V5", room="boxes", opt="2.3:1", ref="2.5:1", passes=counts.overlaps),
    Fact("REDUCE_ALL", room="reductions", both="2.7:1", micro="taken"),
    Fact("REDUCE_ANY", room="reductions", both="1.15:1"),
    Fact("REDUCE_MAX", room="reductions", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int16 -int32 -int64",
         later="2.14 bool", rounds_once=True, traced=False, quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("REDUCE_MIN", room="reductions", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int16 -int32 -int64",
         later="2.14 bool", rounds_once=True, traced=False, quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("REDUCE_PROD", room="reductions", both="1.15:1 2.7:2", traced=False, quantize=FREE, needs=Needs(2, 2)),
    # stablehlo_reduce_window.cc StridedReduce
    Fact("REDUCE_WINDOW", room="reductions", both="1.0:1", traced=False, kept_float=COMPUTES_CODES,
         passes=counts.windows),
    Fact("RESIZE_BILINEAR", room="resizing", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="-int16",
         traced=False, quantize=MOVES,
         needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("RESIZE_NEAREST_NEIGHBOR", room="resizing", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="taken",
         later="2.0 bool uint16 int32 uint32 float16", rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(2, 4)),
    Fact("RFFT2D", room="signals", opt="2.5:1", ref="2.0:1", passes=counts.transform),  # rfft2d.cc Rfft2dImpl
    Fact("SEGMENT_SUM", room="gathering", opt="2.3:1"),
    Fact("SKIP_GRAM", room="lookups", both="1.15:1"),
    Fact("SOFTMAX", opt="1.15:2 2.3:3 2.1:4", ref="1.15:1 2.5:3", micro="taken", later="2.0 float16", by_rows=True,
         traced=False, quantize=FREE, needs=Needs(2, 3), output=PROBABILITY, xnnpack_floats=SINCE_2_1),
    Fact("STABLEHLO_REDUCE_WINDOW", room="reductions", both="1.0:1", kept_float=COMPUTES_CODES,
         passes=counts.stablehlo_windows),
    Fact("SUM", room="mean_sum", opt="1.15:2", ref="1.15:1 2.5:2", micro="-int32 -int64", sums=True,
         traced=False, quantize=FREE, needs=Needs(2, 1),
         broken={"int8": "LiteRT's reference kernel reads int8 codes as uint8",
                 "int16": "LiteRT's kernel reads and writes int16 codes as uint8"},
         xnnpack_floats=SINCE_2_1),
    # detection_postprocess.cc NonMaxSuppressionMultiClassHelper
    Fact("TFLite_Detection_PostProcess", room="boxes", micro="taken",
         kept_float="its quantized kernel returns float values", passes=counts.detections),
    Fact("UNSORTED_SEGMENT_MAX", room="gathering", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_MIN", room="gathering", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_PROD", room="gathering", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_SUM", room="gathering", both="2.11:1"),
    Fact("MaxPoolingWithArgmax2D", room="pools", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("MaxUnpooling2D", room="pools", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("aeq.hadamard_rotation", room="signals", opt="1.4:1", kept_float="its kernel transforms floats"),
)
# fmt: on


# fmt: off
STATE_FACTS = (
    Fact("ASSIGN_VARIABLE", room="control", opt="2.7:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("BROADCAST_ARGS", room="joining", both="2.7:1", micro="taken"),
    Fact("CALL_ONCE", room="control", opt="2.5:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("DENSIFY", room="conversions", opt="2.3:1", ref="2.5:1", rounds_once=True, converts=True),
    Fact("HASHTABLE", room="control", opt="2.5:1"),
    Fact("HASHTABLE_FIND", room="control", opt="2.5:1"),
    Fact("HASHTABLE_IMPORT", room="control", opt="2.5:1"),
    Fact("HASHTABLE_LOOKUP", room="control", both="1.15:1", traced=False, kept_float="its kernel copies bytes"),
    Fact("HASHTABLE_SIZE", room="control", opt="2.5:1"),
    Fact("IF", room="control", both="1.15:1", micro="uint8", rounds_once=True),
    Fact("MULTINOMIAL", room="random_numbers", both="2.9:1"),
    Fact("RANDOM_STANDARD_NORMAL", room="random_numbers", both="2.7:1"),
    Fact("RANDOM_UNIFORM", room="random_numbers", both="2.9:1"),
    Fact("RANGE", room="filling_in", opt="1.15:1 2.14:2", ref="1.15:1"),
    Fact("RANK", room="reshaping", opt="1.15:1", ref="2.5:1", reads_shapes=True),
    Fact("READ_VARIABLE", room="control", opt="2.7:1", ref="2.13:1", micro="uint8", rounds_once=True),
    Fact("SHAPE", room="reshaping", both="1.15:1", micro="uint8", reads_shapes=True),
    Fact("STABLEHLO_CASE", room="control", opt="1.4:1", rounds_once=True),
    Fact("STABLEHLO_COMPOSITE", room="composites", opt="1.0:1", ref="1.4:1", rounds_once=True),
    Fact("STABLEHLO_RNG_BIT_GENERATOR", room="random_numbers", both="1.0:1"),
    Fact("TOPK_V2", room="ranking", opt="1.15:2 2.13:3", ref="1.15:1 2.5:2 2.13:3", rounds_once=True, traced=False,
         quantize=MOVES,
         needs=Needs(2, 3), passes=counts.sorted),  # topk_v2.cc TopContainer
    Fact("UNIQUE", room="ranking", both="1.15:1", rounds_once=True, traced=False,
         kept_float="values that differ could share a code, and the output's shape depends on which do",
         passes=counts.sorted),  # unique.cc EvalImpl
    Fact("VAR_HANDLE", room="control", opt="2.7:1", ref="2.13:1", micro="uint8"),
    Fact("WHERE", room="ranking", both="1.15:1 2.9:2", rounds_once=True,
         kept_float="values near 0 could become 0, and the output's shape depends on which do"),
    Fact("WHILE", room="control", both="1.15:1", micro="uint8", rounds_once=True),
    Fact("STABLEHLO_GATHER", room="gathering", both="1.0:1", kept_float=COPIES_CODES),
    Fact("STABLEHLO_PAD", room="padding", both="1.0:1", traced=False, kept_float=COPIES_CODES),
    Fact("STABLEHLO_SCATTER", room="gathering", both="1.0:1", kept_float=COPIES_CODES),
)
# fmt: on
