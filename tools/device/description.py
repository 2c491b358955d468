"""What a device does: a value. The default is what the reference kernels do; a mistake is one field changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Point = Literal["right", "ignored", "negated"]
Type = Literal["right", "other"]


@dataclass(frozen=True)
class Device:
    """How one operator is computed. Fields that an operator has no use for change nothing."""

    #: zero points: as the file says, 0, or with the other sign
    x_zero: Point = "right"
    second_zero: Point = "right"  # of the second input of ADD, SUB and MUL
    w_zero: Point = "right"
    y_zero: Point = "right"
    #: "other": int8 codes are read as uint8 and the reverse; the output's have their highest bit flipped
    x_type: Type = "right"
    w_type: Type = "right"
    y_type: Type = "right"
    #: what taps outside the image are: left out, code 0, or the code of the negated zero point
    padding: Literal["left out", "code 0", "negated"] = "left out"
    #: SAME padding that does not halve: its larger part lies after the image, or before it
    larger_padding: Literal["after", "before"] = "after"
    counts_padding: bool = False  # AVERAGE_POOL_2D divides by the whole window
    #: the order in which memory is taken to lie
    x_order: Literal["NHWC", "NCHW"] = "NHWC"
    y_order: Literal["NHWC", "NCHW"] = "NHWC"
    filter_order: Literal["right", "HWIO", "OIHW", "OWHI", "rotated", "CHW", "WHC", "transposed"] = "right"
    bias: Literal["right", "missing", "doubled", "halved", "missing in the second half"] = "right"
    #: windows whose taps lie side by side whatever the dilation, or that move by one pixel whatever the stride
    ignores_dilation: bool = False
    stride: int = 0  # 0: its own
    #: one channel, modulo their number: what is added to its codes, and whether its weights lie one place further on
    channel: int = 0
    offset: int = 0
    shifts_weights: bool = False
    #: the sums' register: bits; what it does beyond its ends, and whether after each tap or with the whole sum only
    bits: int = 32
    saturates: Literal["never", "at the end", "at each tap"] = "never"
    bias_first: bool = False  # the bias is in the register before the first tap
    #: which channel's scale of the weights
    scales: Literal["own", "first", "largest", "mean", "next", "previous"] = "own"
    #: how the real multiplier is made, and how many bits of its mantissa are kept (31: all of Q31)
    arithmetic: Literal["operator's", "float64", "float32 product", "float32"] = "operator's"
    mantissa: int = 31
    shift: int = 0  # bits by which the result is too large
    #: how a product with the multiplier becomes an integer; "operator's" is what the reference kernel does
    rounding: str = "operator's"
    block: int = 0  # channels beyond the last whole block of so many are rounded as the reference kernel does
    clamp: Literal["right", "type", "wraps", "other type", "RELU", "RELU6"] = "right"
    #: tables: steps by which the index, or the value, is off
    index_step: int = 0
    value_step: int = 0
    #: what nobody expects: multipliers too large by a factor, the filter's last row left out
    gain: float = 1.0
    drops_last_row: bool = False
    sums: Literal["reference", "xnnpack"] = "reference"  # how ADD and SUB bring their inputs to one scale
    only_first_item: bool = False  # of a batch: the others hold 0
    averages_codes: bool = False  # MEAN divides the sum of codes by their number, whatever the scales and zero points
    reads_bytes: bool = True  # SUM of int8 reads and writes bytes as unsigned, as the reference kernel does


RIGHT = Device()
