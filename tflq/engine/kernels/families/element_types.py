"""Signature alternatives by the width of an element: operators that only move elements are the same for all of them.

Source: LiteRT 2.3 kernel_util.cc TfLiteTypeGetSizeBits.
"""

from __future__ import annotations

BITS_4 = "int4|uint4"
BITS_8 = "bool|int8|uint8|float8_e4m3fn|float8_e5m2"
BITS_16 = "int16|uint16|float16|bfloat16"
BITS_32 = "float32|int32|uint32"
BITS_64 = "int64|uint64|float64|complex64"

#: Every type whose elements fill one, two, four or eight bytes.
SIZED = f"{BITS_8}|{BITS_16}|{BITS_32}|{BITS_64}"

#: Types of shapes, axes and indices.
INDEX = "int32|int64"
