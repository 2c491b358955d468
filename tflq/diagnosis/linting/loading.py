"""Rules about what runtimes refuse when they load a model.

Sources: LiteRT 2.3 tflite/core/interpreter_builder.cc ParseQuantization; tflite/core/subgraph.cc
SetTensorParametersReadOnly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.model.ir import STORED_BITS, TensorType


def scale_count(site: Site) -> Iterator[Breach]:
    """Yield operands whose scales are neither one nor one for each index of their dimension."""
    for tensor in site.operands():
        spec = site.spec(tensor)
        quantization = None if spec is None else spec.quantization
        if spec is None or quantization is None or not quantization.scale.size or not spec.shape:
            continue
        count, axis = quantization.scale.size, quantization.quantized_dimension
        if not 0 <= axis < len(spec.shape):
            yield Breach(tensor, f"a dimension below {len(spec.shape)}", f"dimension {axis}")
        elif count not in (1, spec.shape[axis]):
            yield Breach(tensor, f"1 or {spec.shape[axis]} scales along dimension {axis}", f"{count}")


def buffer_size(site: Site) -> Iterator[Breach]:
    """Yield constants with fewer bytes in the file than their shape and type need. An empty buffer is no constant."""
    for tensor in site.operands():
        spec, data = site.spec(tensor), site.graph.data(tensor)
        if spec is None or data is None or not data.size or spec.sparsity is not None or spec.type not in STORED_BITS:
            continue
        needed = -(-math.prod(spec.shape) * STORED_BITS[TensorType(spec.type)] // 8)
        if data.size < needed:
            yield Breach(tensor, f"{needed} bytes", f"{data.size}")


RULES = (
    Rule("scale-count", Level.ERROR, "LiteRT refuses another number of scales", scale_count),
    Rule("buffer-size", Level.ERROR, "LiteRT refuses a buffer smaller than its tensor", buffer_size),
)
