"""Operators that reduce, pool, search or transform."""

from __future__ import annotations

from tflq.engine.kernels.facts import counts
from tflq.engine.kernels.facts.fact import (
    COMPUTES_CODES,
    FREE,
    LOG_PROBABILITY,
    MOVES,
    ONLY_FLOATS,
    PROBABILITY,
    SINCE_2_1,
    UNIT_8BIT,
    Fact,
    Needs,
)

# fmt: off
FACTS = (
    Fact("AVERAGE_POOL_2D", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1, passes=counts.pool),  # pooling.h AveragePool
    Fact("AudioSpectrogram", room="audio_spectrogram", passes=counts.transform),  # spectrogram.cc ProcessCoreFFT
    Fact("CUMSUM", opt="2.5:1", ref="2.0:1", micro="taken"),
    Fact("L2_NORMALIZATION", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", by_rows=True, traced=False, quantize=FREE,
         needs=Needs(2, 1), output=UNIT_8BIT),
    Fact("L2_POOL_2D", both="1.15:1", micro="taken", passes=counts.pool),  # pooling.h L2Pool
    # reference_ops.h LocalResponseNormalization
    Fact("LOCAL_RESPONSE_NORMALIZATION", both="1.15:1", passes=counts.neighbours),
    Fact("LOG_SOFTMAX", room="softmax", opt="1.15:2", ref="1.15:1 2.5:2", micro="taken", by_rows=True, traced=False,
         quantize=FREE, needs=Needs(2, 1), output=LOG_PROBABILITY),
    # lsh_projection.cc RunningSignBit
    Fact("LSH_PROJECTION", both="1.15:1", kept_float="its kernel hashes bytes", passes=counts.hashes),
    Fact("MAX_POOL_2D", opt="1.15:2 2.3:3", ref="1.15:1 2.5:3", micro="taken", quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1, passes=counts.pool),  # pooling.h MaxPool
    Fact("MEAN", room="mean_sum", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int32 -int64", sums=True,
         quantize=FREE, needs=Needs(2, 3), xnnpack_floats=SINCE_2_1),
    Fact("Mfcc"),
    # non_max_suppression.h NonMaxSuppression
    Fact("NON_MAX_SUPPRESSION_V4", room="non_max_suppression", opt="2.3:1", ref="2.5:1", passes=counts.overlaps),
    Fact("NON_MAX_SUPPRESSION_V5", room="non_max_suppression", opt="2.3:1", ref="2.5:1", passes=counts.overlaps),
    Fact("REDUCE_ALL", room="reduce_all_any", both="2.7:1", micro="taken"),
    Fact("REDUCE_ANY", room="reduce_all_any", both="1.15:1"),
    Fact("REDUCE_MAX", room="reduce_max_min", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int16 -int32 -int64",
         later="2.14 bool", rounds_once=True, traced=False, quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("REDUCE_MIN", room="reduce_max_min", opt="1.15:2 2.5:3", ref="1.15:1 2.5:3", micro="-int16 -int32 -int64",
         later="2.14 bool", rounds_once=True, traced=False, quantize=MOVES, needs=Needs(2, 3),
         xnnpack_floats=SINCE_2_1),
    Fact("REDUCE_PROD", both="1.15:1 2.7:2", traced=False, quantize=FREE, needs=Needs(2, 2)),
    # stablehlo_reduce_window.cc StridedReduce
    Fact("REDUCE_WINDOW", both="1.0:1", traced=False, kept_float=COMPUTES_CODES, passes=counts.windows),
    Fact("RESIZE_BILINEAR", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="-int16", traced=False, quantize=MOVES,
         needs=Needs(2, 4), xnnpack_floats=SINCE_2_1),
    Fact("RESIZE_NEAREST_NEIGHBOR", opt="1.15:2 2.3:3 2.5:4", ref="1.15:1 2.5:4", micro="taken",
         later="2.0 bool uint16 int32 uint32 float16", rounds_once=True, moves=(0,), quantize=MOVES, needs=Needs(2, 4)),
    Fact("RFFT2D", opt="2.5:1", ref="2.0:1", passes=counts.transform),  # rfft2d.cc Rfft2dImpl
    Fact("SEGMENT_SUM", room="segments", opt="2.3:1"),
    Fact("SKIP_GRAM", both="1.15:1"),
    Fact("SOFTMAX", opt="1.15:2 2.3:3 2.1:4", ref="1.15:1 2.5:3", micro="taken", later="2.0 float16", by_rows=True,
         traced=False, quantize=FREE, needs=Needs(2, 3), output=PROBABILITY, xnnpack_floats=SINCE_2_1),
    Fact("STABLEHLO_REDUCE_WINDOW", room="reduce_window", both="1.0:1", kept_float=COMPUTES_CODES,
         passes=counts.stablehlo_windows),
    Fact("SUM", room="mean_sum", opt="1.15:2", ref="1.15:1 2.5:2", micro="-int32 -int64", sums=True,
         traced=False, quantize=FREE, needs=Needs(2, 1),
         broken={"int8": "LiteRT's reference kernel reads int8 codes as uint8",
                 "int16": "LiteRT's kernel reads and writes int16 codes as uint8"},
         xnnpack_floats=SINCE_2_1),
    # detection_postprocess.cc NonMaxSuppressionMultiClassHelper
    Fact("TFLite_Detection_PostProcess", room="detection_postprocess", micro="taken",
         kept_float="its quantized kernel returns float values", passes=counts.detections),
    Fact("UNSORTED_SEGMENT_MAX", room="segments", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_MIN", room="segments", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_PROD", room="segments", both="2.11:1"),
    Fact("UNSORTED_SEGMENT_SUM", room="segments", both="2.11:1"),
    Fact("MaxPoolingWithArgmax2D", room="mediapipe_pools", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("MaxUnpooling2D", room="mediapipe_pools", kept_float=ONLY_FLOATS, delegated="litert-1.0"),
    Fact("aeq.hadamard_rotation", room="hadamard_rotation", opt="1.4:1", kept_float="its kernel transforms floats"),
)
# fmt: on
