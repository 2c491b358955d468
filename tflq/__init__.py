"""Bit-exact execution, verification and debugging of quantized .tflite models.

The public names are stated in `__init__.pyi` and are loaded on first use, so `import tflq` is fast.
"""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any

from tflq.interrupts import import_whole

with open(f"{__file__.removesuffix('c')}i", encoding="utf-8") as _stub:
    #: The module of each public name.
    _HOMES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _stub.read(), re.M)}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("tflq")
    elif name in _HOMES:
        value = getattr(import_whole(_HOMES[name]), name)
        if isinstance(value, FunctionType):
            from tflq.errors import checking_arguments

            value = checking_arguments(value)
    else:
        raise AttributeError(f"module 'tflq' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
