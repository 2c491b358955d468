"""Operators that sum products."""

from __future__ import annotations

from tflq.engine.kernels.facts import counts
from tflq.engine.kernels.facts.fact import FREE, NO_INTEGERS, ONLY_FLOATS, SINCE_2_1, Fact, Needs, Rule, Weights

# fmt: off
FACTS = (
    Fact("BATCH_MATMUL", opt="2.3:2 2.5:4", ref="2.5:3", micro="-hybrid", by_rows=True,
         quantize=Rule(weights=Weights(0, 1, None)), needs=Needs(2, 3, hybrid=(4, 4)), xnnpack_floats=SINCE_2_1,
         products=counts.matrices),  # batch_matmul.h BatchMatMul
    Fact("BIDIRECTIONAL_SEQUENCE_LSTM", room="lstm", opt="1.15:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(*range(1, 9), 16, *range(18, 26), 33, *range(40, 48))),  # lstm_eval.cc
    Fact("BIDIRECTIONAL_SEQUENCE_RNN", room="rnn", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(1, 2, 5, 6, 10, 11)),  # kernel_utils.cc RnnBatchStep
    # conv.h ConvPerChannel
    Fact("CONV_2D", opt="1.15:3 2.3:4 2.5:5 2.9:6 2.12:7 1.0:8", ref="1.15:1 2.5:5 2.9:6 1.0:8", micro="-hybrid",
         by_rows=True, by_channel=True, quantize=Rule(weights=Weights(0, 1, 0, 2)),
         needs=Needs(3, 1, hybrid=(2, 5), int4=7), xnnpack_floats=SINCE_2_1, products=counts.convolution),
    Fact("CONV_3D", both="2.5:1", products=counts.convolution_3d),  # conv3d.h Conv3D
    Fact("CONV_3D_TRANSPOSE", both="2.7:1", products=counts.transpose_3d),  # conv3d_transpose.h Conv3DTranspose
    Fact("DEPTHWISE_CONV_2D", opt="1.15:3 2.3:5 2.5:6 2.13:7", ref="1.15:2 2.5:6", micro="-hybrid", by_channel=True,
         quantize=Rule(weights=Weights(0, 1, 3, 2)), needs=Needs(3, 1, hybrid=(4, 6), int4=7), xnnpack_floats=SINCE_2_1,
         products=counts.depthwise),  # depthwise_conv.h DepthwiseConvPerChannel
    Fact("EMBEDDING_LOOKUP_SPARSE", both="1.15:1", products=counts.weighted_rows),  # embedding_lookup_sparse.cc Eval
    # fully_connected.h FullyConnected
    Fact("FULLY_CONNECTED", opt="1.15:6 2.3:8 2.5:9 2.13:10 1.0:13 2.1:14", ref="1.15:2 2.5:9 1.0:11 2.1:14",
         micro="-hybrid", by_rows=True, by_channel=True, quantize=Rule(weights=Weights(0, 1, 0, 2)),
         needs=Needs(4, 1, hybrid=(9, 12), int4=10, hybrid_int4=13), xnnpack_floats=SINCE_2_1, products=counts.dense),
    # lstm_eval.cc LstmStepFloat; optimized_ops.h LstmCell
    Fact("LSTM", opt="1.15:3 2.5:4", ref="1.15:2 2.5:4", traced=False, quantize=FREE, products=counts.lstm),
    # kernel_utils.cc RnnBatchStep
    Fact("RNN", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS, products=counts.recurrent(1, 2)),
    Fact("SVDF", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="-hybrid", traced=False, quantize=FREE,
         needs=Needs(3, 1), products=counts.svdf),  # svdf.h EvalFloatSVDF, ApplyTimeWeightsBiasAndActivation
    Fact("TRANSPOSE_CONV", opt="1.15:1 2.3:3 2.12:4 1.0:5", ref="1.15:1 2.5:3 1.0:5", micro="-hybrid", by_rows=True,
         by_channel=True, quantize=Rule(weights=Weights(2, 1, 0, 3)), needs=Needs(2, 2), xnnpack_floats=SINCE_2_1,
         products=counts.transpose),  # transpose_conv.h TransposeConv
    Fact("Convolution2DTransposeBias", room="transpose_conv", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("UNIDIRECTIONAL_SEQUENCE_LSTM", room="lstm", opt="1.15:2 2.5:3 2.12:4", ref="1.15:1 2.5:3", micro="-hybrid",
         traced=False, quantize=FREE, products=counts.recurrent(*range(1, 9), 16)),  # lstm_eval.cc LstmStepFloat
    Fact("UNIDIRECTIONAL_SEQUENCE_RNN", room="rnn", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", kept_float=NO_INTEGERS,
         products=counts.recurrent(1, 2)),  # kernel_utils.cc RnnBatchStep
)
# fmt: on
