"""The float function of an integer model: its constants as the numbers that their codes represent.

Every tensor's scale and zero point are prescribed, so constants get the same codes again. Such a model differs from the
integer model only by the rounding of activations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tflq.errors import ModelError
from tflq.model.ir import Buffer, Model, Operator, Subgraph, TensorSpec, TensorType, view, with_graph
from tflq.quantization.params import Params, real
from tflq.quantization.recipe.recipe import Mode
from tflq.quantization.scheme.float_graph import FloatModel, stored_params
from tflq.typing import Array

#: Types of activations -> a model's mode.
_MODES = {TensorType.INT8: Mode.INT8, TensorType.UINT8: Mode.UINT8, TensorType.INT16: Mode.INT16X8}
_BIASES = (TensorType.INT32, TensorType.INT64)


def widen(model: Model) -> tuple[FloatModel, Mode]:
    """Return the float model that an integer model was rounded from, and its mode; lost bits of constants stay lost.

    Tensors keep their indices and names. QUANTIZE and DEQUANTIZE at its edges are removed.

    Raises:
        ModelError: It is not integer throughout, in one type; it requantizes; or its weights have other types.
    """
    graph = view(model)
    params = {t: p for t, spec in enumerate(graph.tensors) if (p := stored_params(spec.type, spec.quantization))}
    constants = dict(graph.constants())
    mode = _mode(model, {t: p for t, p in params.items() if t not in constants})
    kept, instead = _without_conversions(model, params)
    values = {t: wide for t, codes in constants.items() if (wide := _wide(graph.tensors[t], codes, params)) is not None}
    tensors, buffers = list(graph.tensors), list(model.buffers)
    for t in {*params, *values}:
        tensors[t] = replace(tensors[t], type=TensorType.FLOAT32, quantization=None)
    for t, value in values.items():
        buffers.append(Buffer(np.ascontiguousarray(value).reshape(-1).view(np.uint8)))
        tensors[t] = replace(tensors[t], buffer=len(buffers) - 1)
    wide_graph = Subgraph(
        tuple(tensors),
        tuple(instead.get(t, t) for t in graph.inputs),
        tuple(instead.get(t, t) for t in graph.outputs),
        tuple(operator for _, operator in kept),
        graph.record.name,
    )
    changed = replace(with_graph(model, wide_graph), buffers=tuple(buffers))
    prescribed = {instead.get(t, t): p for t, p in params.items()}
    return (
        FloatModel(
            model=changed,
            origins=tuple(index for index, _ in kept),
            params=MappingProxyType(prescribed),
            ranges=MappingProxyType({}),
            codes=MappingProxyType({}),
            constants=MappingProxyType({**constants, **values}),
        ),
        mode,
    )


def _mode(model: Model, activations: Mapping[int, Params]) -> Mode:
    """Return the mode that a model's activations imply."""
    graph = view(model)
    kinds = Counter(p.type for p in activations.values())
    if len(model.subgraphs) != 1:
        raise ModelError("its operators run subgraphs, whose biases are not corrected")
    if len(kinds) != 1:
        raise ModelError(
            "its activations are not all of one integer type", expected="int8", got=sorted(kind.label for kind in kinds)
        )
    for operator in graph.ops:
        index, name = operator.index, operator.builtin
        present = [t for t in (*operator.inputs, *operator.outputs) if t >= 0]
        if name not in ("QUANTIZE", "DEQUANTIZE") and any(graph.tensors[t].type == TensorType.FLOAT32 for t in present):
            raise ModelError("computes with floats: quantize without --requantize completes it", op=name, index=index)
        if operator.record.intermediates or any(graph.tensors[t].is_variable for t in present):
            raise ModelError("has a state whose scales belong to its inside", op=name, index=index)
        if any(graph.tensors[t].type == TensorType.INT4 for t in present):
            raise ModelError("has weights of four bits", op=name, index=index)
    return _MODES[next(iter(kinds))]


def _without_conversions(
    model: Model, params: Mapping[int, Params]
) -> tuple[list[tuple[int, Operator]], dict[int, int]]:
    """Return the operators that compute, with their indices, and the replacements of removed tensors."""
    graph, kept = view(model), list[tuple[int, Operator]]()
    instead: dict[int, int] = {}
    for operator in graph.ops:
        index, name = operator.index, operator.builtin
        if name in ("QUANTIZE", "DEQUANTIZE"):
            source, result = operator.inputs[0], operator.outputs[0]
            if source in params and result in params:
                raise ModelError("requantizes, so that a tensor has two scales", op=name, index=index)
            edge, inner = (source, result) if result in params else (result, source)
            if edge not in (*graph.inputs, *graph.outputs):
                raise ModelError("is not a conversion at the model's edge", op=name, index=index)
            instead[edge] = inner
        else:
            kept.append((index, operator.record))
    return kept, instead


def _wide(spec: TensorSpec, codes: Array, params: Mapping[int, Params]) -> Array | None:
    """Return the values of codes, float32; None for other contents."""
    quantized = spec.quantization is not None and spec.quantization.scale.size > 0
    known = stored_params(spec.type, spec.quantization)
    if known is not None:
        return known.decode(codes)
    return real(spec, codes).astype(np.float32) if quantized and spec.type in _BIASES else None
