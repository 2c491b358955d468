"""Options of custom operators: a FlexBuffers map, read as the C++ reader's conversions read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from tflq.kernels.kernel import Node


def options_of(node: Node) -> Mapping[str, Any]:
    """The node's options by name."""
    try:
        options = flexbuffers.Loads(node.custom_options)
    except Exception as error:
        node.refuse(f"custom options are no FlexBuffers map: {error}")
    if not isinstance(options, dict):
        node.refuse("custom options are no FlexBuffers map", got=type(options).__name__)
    return options


def integer(options: Mapping[str, Any], name: str, default: int = 0) -> int:
    """AsInt64: fractions are cut off; `default` where there is no such option."""
    value = options.get(name)
    return default if value is None else int(value)


def real(options: Mapping[str, Any], name: str) -> float:
    """AsDouble; 0 where there is no such option."""
    value = options.get(name)
    return 0.0 if value is None else float(value)


def flag(options: Mapping[str, Any], name: str) -> bool:
    """AsBool; false where there is no such option."""
    return bool(options.get(name))
