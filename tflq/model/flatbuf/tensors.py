"""The bindings of tensors and of their quantization."""

from __future__ import annotations

import numpy as np

from tflq.model import ir
from tflq.model.flatbuf.contract import Fields, Sink, Source, Unknown, indices

_NO_FLOATS = np.zeros(0, np.float32)
_NO_INTEGERS = np.zeros(0, np.int64)
_NO_FLOATS.flags.writeable = _NO_INTEGERS.flags.writeable = False
_TENSOR_TYPES = {int(t): t for t in ir.TensorType}


def load_quantization(f: Fields, unknown: Unknown, source: Source) -> ir.Quantization:
    """Return a Quantization from the fields of a QuantizationParameters."""
    return ir.Quantization(
        scale=_NO_FLOATS if f["scale"] is None else f["scale"],
        zero_point=_NO_INTEGERS if f["zero_point"] is None else f["zero_point"],
        quantized_dimension=f["quantized_dimension"],
        min=f["min"],
        max=f["max"],
        details=f["details"],
        unknown=unknown,
    )


def store_quantization(q: ir.Quantization, sink: Sink) -> Fields:
    """Return the fields of a QuantizationParameters; empty scales and zero points are absent."""
    return {
        "min": q.min,
        "max": q.max,
        "scale": q.scale if np.size(q.scale) else None,
        "zero_point": q.zero_point if np.size(q.zero_point) else None,
        "details": q.details,
        "quantized_dimension": q.quantized_dimension,
    }


def load_tensor(f: Fields, unknown: Unknown, source: Source) -> ir.TensorSpec:
    """Return a TensorSpec from the fields of a Tensor."""
    return ir.TensorSpec(
        name=f["name"],
        type=_tensor_type(f["type"]),
        shape=indices(f["shape"], source) or (),
        buffer=f["buffer"],
        quantization=f["quantization"],
        is_variable=f["is_variable"],
        sparsity=f["sparsity"],
        shape_signature=indices(f["shape_signature"], source),
        has_rank=f["has_rank"],
        variant_tensors=f["variant_tensors"],
        external_buffer=f["external_buffer"],
        unknown=unknown,
    )


def store_tensor(t: ir.TensorSpec, sink: Sink) -> Fields:
    """Return the fields of a Tensor."""
    return {
        "shape": t.shape,
        "type": int(t.type),
        "buffer": t.buffer,
        "name": t.name,
        "quantization": t.quantization,
        "is_variable": t.is_variable,
        "sparsity": t.sparsity,
        "shape_signature": t.shape_signature,
        "has_rank": t.has_rank,
        "variant_tensors": t.variant_tensors,
        "external_buffer": t.external_buffer,
    }


def _tensor_type(number: int) -> ir.TensorType | int:
    return _TENSOR_TYPES.get(number, number)
