"""Tables with a class of their own in the vocabulary, and the correspondence of the two, in one table.

`load` builds a value from a table's fields (by schema name) and its unknown fields; `store` returns the fields. The
place of bytes in a file is not part of the vocabulary: `load` reads those outside the tables, `store` hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tflq.model import ir
from tflq.model.flatbuf.contract import Binding, Fields, Pair, Sink, Source, Unknown, indices
from tflq.model.flatbuf.tensors import load_quantization, load_tensor, store_quantization, store_tensor
from tflq.model.ir.schema import enum, enum_names
from tflq.typing import Array

# --- operator codes -------------------------------------------------------------------------------------------------


def _load_operator_code(f: Fields, unknown: Unknown, source: Source) -> ir.OperatorCode:
    # Source: LiteRT 2.3 GetBuiltinCode: old files fill the byte, new ones both, and the larger is valid.
    code = max(f["builtin_code"], f["deprecated_builtin_code"])
    return ir.OperatorCode(code, _operator_name(code), f["version"], f["custom_code"], unknown)


def _operator_name(code: int) -> str:
    return enum_names("BuiltinOperator").get(code, f"BUILTIN_{code}")


def _store_operator_code(code: ir.OperatorCode, sink: Sink) -> Fields:
    if code.name != _operator_name(code.builtin_code):  # the file holds only the number
        raise ValueError(f"{code.builtin_code} is {_operator_name(code.builtin_code)}")
    placeholder = enum("BuiltinOperator")["PLACEHOLDER_FOR_GREATER_OP_CODES"]
    return {
        "deprecated_builtin_code": min(code.builtin_code, placeholder),
        "custom_code": code.custom_code,
        "version": code.version,
        "builtin_code": code.builtin_code,
    }


# --- operators and subgraphs ----------------------------------------------------------------------------------------


def _load_operator(f: Fields, unknown: Unknown, source: Source) -> ir.Operator:
    custom_options = None if f["custom_options"] is None else memoryview(f["custom_options"])
    external = custom_options is None and f["large_custom_options_offset"] > _NO_OFFSET
    if external:
        place = f["large_custom_options_offset"], f["large_custom_options_size"]
        custom_options = source.outside(*place, "Operator", "large_custom_options_offset")
    return ir.Operator(
        opcode_index=f["opcode_index"],
        inputs=indices(f["inputs"], source) or (),
        outputs=indices(f["outputs"], source) or (),
        options=f["builtin_options"],
        options_2=f["builtin_options_2"],
        custom_options=custom_options,
        custom_options_format=f["custom_options_format"],
        custom_options_external=external,
        mutating_variable_inputs=_flags(f["mutating_variable_inputs"], source),
        intermediates=indices(f["intermediates"], source),
        debug_metadata_index=f["debug_metadata_index"],
        unknown=unknown,
    )


def _store_operator(op: ir.Operator, sink: Sink) -> Fields:
    external = op.custom_options_external and op.custom_options is not None
    offset, size = sink.outside(op.custom_options) if external else (0, 0)
    return {
        "opcode_index": op.opcode_index,
        "inputs": op.inputs,
        "outputs": op.outputs,
        "builtin_options": op.options,
        "custom_options": None if external else op.custom_options,
        "custom_options_format": op.custom_options_format,
        "mutating_variable_inputs": op.mutating_variable_inputs,
        "intermediates": op.intermediates,
        "large_custom_options_offset": offset,
        "large_custom_options_size": size,
        "builtin_options_2": op.options_2,
        "debug_metadata_index": op.debug_metadata_index,
    }


def _load_subgraph(f: Fields, unknown: Unknown, source: Source) -> ir.Subgraph:
    return ir.Subgraph(
        tensors=f["tensors"] or (),
        inputs=indices(f["inputs"], source) or (),
        outputs=indices(f["outputs"], source) or (),
        operators=f["operators"] or (),
        name=f["name"],
        debug_metadata_index=f["debug_metadata_index"],
        unknown=unknown,
    )


def _store_subgraph(s: ir.Subgraph, sink: Sink) -> Fields:
    return {
        "tensors": s.tensors,
        "inputs": s.inputs,
        "outputs": s.outputs,
        "operators": s.operators,
        "name": s.name,
        "debug_metadata_index": s.debug_metadata_index,
    }


# --- the model ------------------------------------------------------------------------------------------------------


def _load_buffer(f: Fields, unknown: Unknown, source: Source) -> ir.Buffer:
    # Source: LiteRT 2.3 InterpreterBuilder::ParseTensors: bytes in the table come first, then an offset above 1.
    if f["data"] is None and f["offset"] > _NO_OFFSET:
        data = source.outside(f["offset"], f["size"], "Buffer", "offset")
        return ir.Buffer(np.frombuffer(data, np.uint8), external=True, unknown=unknown)
    return ir.Buffer(f["data"], unknown=unknown)


def _store_buffer(b: ir.Buffer, sink: Sink) -> Fields:
    if b.data is None or sink.inside(b):
        return {"data": b.data}
    offset, size = sink.outside(b.data)
    return {"offset": offset, "size": size}


def _load_pair(first: str, second: str) -> Callable[[Fields, Unknown, Source], Pair]:
    return lambda f, unknown, source: Pair(f[first], f[second], unknown)


def _store_pair(first: str, second: str) -> Callable[[Pair, Sink], Fields]:
    return lambda pair, sink: {first: pair.first, second: pair.second}


def _load_signature(f: Fields, unknown: Unknown, source: Source) -> ir.SignatureDef:
    # Source: LiteRT 2.3 GetMapFromTensorMap: an entry without a name is skipped.
    inputs, outputs = f["inputs"] or (), f["outputs"] or ()
    return ir.SignatureDef(
        signature_key=f["signature_key"],
        inputs=tuple((p.first, p.second) for p in inputs if p.first is not None),
        outputs=tuple((p.first, p.second) for p in outputs if p.first is not None),
        subgraph_index=f["subgraph_index"],
        deprecated_tag=f["deprecated_tag"],
        unknown=unknown + _of_pairs(inputs) + _of_pairs(outputs),
    )


def _store_signature(s: ir.SignatureDef, sink: Sink) -> Fields:
    if any(name is None for name, _ in (*s.inputs, *s.outputs)):
        raise ValueError("readers skip an entry without a name")
    return {
        "inputs": _pairs(s.inputs),
        "outputs": _pairs(s.outputs),
        "signature_key": s.signature_key,
        "deprecated_tag": s.deprecated_tag,
        "subgraph_index": s.subgraph_index,
    }


def _load_model(f: Fields, unknown: Unknown, source: Source) -> ir.Model:
    metadata = f["metadata"]
    return ir.Model(
        version=f["version"],
        operator_codes=f["operator_codes"] or (),
        subgraphs=f["subgraphs"] or (),
        buffers=f["buffers"] or (),
        description=f["description"],
        metadata_buffer=indices(f["metadata_buffer"], source),
        metadata=None if metadata is None else tuple((p.first, p.second) for p in metadata),
        signature_defs=f["signature_defs"],
        external_buffer_groups=f["external_buffer_groups"],
        external_buffers=f["external_buffers"],
        unknown=unknown + _of_pairs(metadata or ()),
    )


def _store_model(m: ir.Model, sink: Sink) -> Fields:
    return {
        "version": m.version,
        "operator_codes": m.operator_codes,
        "subgraphs": m.subgraphs,
        "description": m.description,
        "buffers": m.buffers,
        "metadata_buffer": m.metadata_buffer,
        "metadata": None if m.metadata is None else _pairs(m.metadata),
        "signature_defs": m.signature_defs,
        "external_buffer_groups": m.external_buffer_groups,
        "external_buffers": m.external_buffers,
    }


# --- parts ----------------------------------------------------------------------------------------------------------

#: Offsets up to this one mean "not stored outside"; converters write 1 before they know the place.
_NO_OFFSET = 1


def _flags(vector: Array | None, source: Source) -> tuple[bool, ...] | None:
    return None if vector is None else tuple(map(bool, source.integers(vector)))


def _pairs(values: tuple[tuple[str | None, int], ...]) -> tuple[Pair, ...]:
    return tuple(Pair(first, second, ()) for first, second in values)


def _of_pairs(pairs: tuple[Pair, ...]) -> Unknown:
    return tuple(field for pair in pairs for field in pair.unknown)


#: Every table with a class of its own, by its schema name.
BINDINGS: Mapping[str, Binding] = MappingProxyType(
    {
        "OperatorCode": Binding(ir.OperatorCode, _load_operator_code, _store_operator_code),
        "QuantizationParameters": Binding(ir.Quantization, load_quantization, store_quantization),
        "Tensor": Binding(ir.TensorSpec, load_tensor, store_tensor),
        "Operator": Binding(ir.Operator, _load_operator, _store_operator),
        "SubGraph": Binding(ir.Subgraph, _load_subgraph, _store_subgraph),
        "Buffer": Binding(ir.Buffer, _load_buffer, _store_buffer),
        "TensorMap": Binding(Pair, _load_pair("name", "tensor_index"), _store_pair("name", "tensor_index")),
        "Metadata": Binding(Pair, _load_pair("name", "buffer"), _store_pair("name", "buffer")),
        "SignatureDef": Binding(ir.SignatureDef, _load_signature, _store_signature),
        "Model": Binding(ir.Model, _load_model, _store_model),
    }
)
