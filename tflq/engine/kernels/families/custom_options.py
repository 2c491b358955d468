"""Options of custom operators, and those that hold compiled code.

Options of custom operators: numbers in a FlexBuffers map, read as the C++ reader's conversions read them.

A value is looked at when it is asked for, and must be a number: what else the map holds, or points to, costs nothing.
Source: FlexBuffers flexbuffers.h Map::operator[] (a binary search), Reference::AsInt64, AsDouble, AsBool.

Options of custom operators that the file holds as a C structure of 32-bit integers, as MediaPipe writes them.

Members that the file lacks are 0; bytes beyond the structure are ignored.
Source: LiteRT xnnpack_delegate.cc SafeCopyCustomData.

Custom operators that hold code for one accelerator: only that accelerator computes their results.

Sources: ethos-u-vela 4 (tflite_writer.py, CustomType), Coral Edge TPU compiler's output (edgetpu.h, kCustomOp).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flatbuffers import flexbuffers

from tflq.engine.kernels.kernel import Node
from tflq.errors import UnsupportedError
from tflq.model.ir import GraphView

#: Errors that the reader of FlexBuffers raises for malformed bytes.
_MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The map of one node's options."""

    node: Node
    map: flexbuffers.Map

    def get(self, name: str) -> int | float | None:
        """Return the number of that name; None if there is none."""
        try:
            value = self.map[name]
            return float(value.AsFloat) if value.IsFloat else _whole(value)
        except KeyError:
            return None
        except _MALFORMED as error:
            self.node.refuse(f"custom option {name} is no number: {error or type(error).__name__}")


def _whole(value: flexbuffers.Ref) -> int:
    if not (value.IsInt or value.IsBool or value.IsNull):
        raise TypeError("of another type")
    return int(value.AsInt)


def options_of(node: Node) -> Options:
    """Return the node's options by name."""
    try:
        return Options(node, flexbuffers.GetRoot(node.custom_options).AsMap)
    except _MALFORMED as error:
        node.refuse(f"custom options are no FlexBuffers map: {type(error).__name__}: {error}")


def option_integer(options: Options, name: str, default: int = 0) -> int:
    """Read AsInt64: fractions are cut off; `default` if there is no such option."""
    value = options.get(name)
    if value is not None and not math.isfinite(value):
        options.node.refuse(f"custom option {name}", expected="an integer", got=value)
    return default if value is None else int(value)


def real(options: Options, name: str) -> float:
    """Read AsDouble; 0 if there is no such option."""
    value = options.get(name)
    return 0.0 if value is None else float(value)


def flag(options: Options, name: str) -> bool:
    """Read AsBool; false if there is no such option."""
    return bool(options.get(name))


#: Paddings of TfLitePadding: 0 is unknown.
SAME, VALID = 1, 2


def integers(node: Node, names: Sequence[str]) -> dict[str, int]:
    """Return the structure's members by these names, in order."""
    size = 4 * len(names)
    data = node.custom_options[:size].ljust(size, b"\0")
    return {name: int(value) for name, value in zip(names, np.frombuffer(data, "<i4"), strict=True)}


#: Custom operator -> who compiled the operators in it, and for what.
COMPILED: Mapping[str, str] = {
    "ethos-u": "Vela compiled operators into it for an Arm Ethos-U NPU",
    "edgetpu-custom-op": "the Edge TPU compiler compiled operators into it for a Coral Edge TPU",
}


def refuse_compiled(graph: GraphView) -> None:
    """Raise an UnsupportedError if a custom operator holds compiled code."""
    for op in graph.ops:
        if op.code.custom_code in COMPILED:
            reason = f"a custom operator: {COMPILED[op.name]}, which alone runs it; use the model from before that"
            raise UnsupportedError(op.name, index=op.index, reason=reason)
