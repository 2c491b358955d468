"""Rules about what runtimes refuse when they load a model.

Sources: LiteRT 2.3 tflite/core/interpreter_builder.cc ParseQuantization; tflite/core/subgraph.cc
SetTensorParametersReadOnly.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.model.ir.constants import surplus


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
    """Yield tensors whose buffer in the file has fewer bytes than their shape and type need."""
    for tensor in site.operands():
        spec = site.spec(tensor)
        data = None if spec is None else site.model.buffers[spec.buffer].data
        if spec is not None and data is not None and (more := surplus(site.model, spec)) < 0:
            yield Breach(tensor, f"{data.size - more} bytes", f"{data.size}")


RULES = (
    Rule("scale-count", Level.ERROR, "LiteRT refuses another number of scales", scale_count),
    Rule("buffer-size", Level.ERROR, "LiteRT refuses a buffer smaller than its tensor", buffer_size),
)
