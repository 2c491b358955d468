"""Description of a device as a value. The defaults are those of the reference kernels; a mistake changes one field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Point = Literal["right", "ignored", "negated"]
Type = Literal["right", "other"]


@dataclass(frozen=True)
class Device:
    """The computation of one operator. Fields that do not apply to an operator change nothing."""

    #: zero points: as in the file, 0, or negated
    x_zero: Point = "right"
    second_zero: Point = "right"  # of the second input of ADD, SUB and MUL
    w_zero: Point = "right"
    y_zero: Point = "right"
    #: "other": int8 codes are read as uint8 and vice versa; the output's codes have their highest bit flipped
    x_type: Type = "right"
    w_type: Type = "right"
    y_type: Type = "right"
    #: the value of taps outside the image: left out, code 0, or the code of the negated zero point
    padding: Literal["left out", "code 0", "negated"] = "left out"
    #: odd SAME padding: its larger part is after the image, or before it
    larger_padding: Literal["after", "before"] = "after"
    counts_padding: bool = False  # AVERAGE_POOL_2D divides by the whole window
    #: the assumed order of memory
    x_order: Literal["NHWC", "NCHW"] = "NHWC"
    y_order: Literal["NHWC", "NCHW"] = "NHWC"
    filter_order: Literal["right", "HWIO", "OIHW", "OWHI", "rotated", "CHW", "WHC", "transposed"] = "right"
    bias: Literal["right", "missing", "doubled", "halved", "missing in the second half"] = "right"
    #: windows whose taps are adjacent for any dilation, or that move by one pixel for any stride
    ignores_dilation: bool = False
    stride: int = 0  # 0: its own
    #: one channel, modulo their number: an offset added to its codes, and whether its weights are shifted by one place
    channel: int = 0
    offset: int = 0
    shifts_weights: bool = False
    #: the accumulator: its bits; its behaviour beyond its ends, after each tap or only for the whole sum
    bits: int = 32
    saturates: Literal["never", "at the end", "at each tap"] = "never"
    bias_first: bool = False  # the bias is in the register before the first tap
    #: the channel whose weight scale is used
    scales: Literal["own", "first", "largest", "mean", "next", "previous"] = "own"
    #: the precision of the real multiplier, and the number of bits kept of its mantissa (31: all of Q31)
    arithmetic: Literal["operator's", "float64", "float32 product", "float32"] = "operator's"
    mantissa: int = 31
    shift: int = 0  # bits by which the result is too large
    #: the rounding of a product with the multiplier; "operator's" is that of the reference kernel
    rounding: str = "operator's"
    block: int = 0  # channels beyond the last whole block of this size are rounded as in the reference kernel
    clamp: Literal["right", "type", "wraps", "other type", "RELU", "RELU6"] = "right"
    #: tables: steps by which the index, or the value, is off
    index_step: int = 0
    value_step: int = 0
    #: unexpected mistakes: multipliers too large by a factor, the filter's last row left out
    gain: float = 1.0
    drops_last_row: bool = False
    sums: Literal["reference", "xnnpack"] = "reference"  # how ADD and SUB convert their inputs to one scale
    only_first_item: bool = False  # of a batch: the others hold 0
    averages_codes: bool = False  # MEAN divides the sum of codes by their number and ignores scales and zero points
    reads_bytes: bool = True  # SUM of int8 reads and writes bytes as unsigned, like the reference kernel


RIGHT = Device()
