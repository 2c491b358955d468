"""Models made by hand for these tests: small, deterministic, and each with what the suites' files lack."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.model.flatbuf.layout import Field, FieldKind, layout, members
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    SignatureDef,
    Subgraph,
    TensorSpec,
    TensorType,
)
from tflq.model.ir.model import enum


def data(*values: int) -> Buffer:
    return Buffer(np.array(values, np.uint8))


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def record(table: str, **fields: Any) -> Record:
    """A record whose other fields are at their defaults, as the reader gives it."""
    return Record(table, {**layout(table).defaults, **fields})


def code(name: str, version: int = 1, custom_code: str | None = None) -> OperatorCode:
    return OperatorCode(enum("BuiltinOperator")[name], name, version, custom_code)


def leaky_relu() -> Model:
    """One int8 LEAKY_RELU, which LiteRT runs."""
    quantization = Quantization(floats(0.5), longs(-3))
    tensors = tuple(TensorSpec(n, TensorType.INT8, (1, 4), quantization=quantization) for n in ("x", "y"))
    operator = Operator(0, (0,), (1,), options=record("LeakyReluOptions", alpha=0.25))
    signature = SignatureDef("serving_default", (("input", 0),), (("output", 1),))
    return Model(
        version=3,
        operator_codes=(code("LEAKY_RELU", 2),),
        subgraphs=(Subgraph(tensors, (0,), (1,), (operator,), name="main"),),
        buffers=(Buffer(), data(*range(40))),
        description="made by hand",
        metadata=(("min_runtime_version", 1),),
        signature_defs=(signature,),
    )


def convolution() -> Model:
    """A per-axis int8 convolution with constants, between two others: a file in which most bytes are structure."""
    weights = np.arange(2 * 3 * 3 * 1, dtype=np.uint8)
    bias = np.array([7, -7], "<i4").view(np.uint8)
    per_axis = Quantization(floats(0.1, 0.2), longs(0, 0), 0, min=floats(-1, -2), max=floats(1, 2))
    tensors = (
        TensorSpec("in", TensorType.INT8, (1, 5, 5, 1), 0, Quantization(floats(0.1), longs(3)), has_rank=True),
        TensorSpec("weights", TensorType.INT8, (2, 3, 3, 1), 1, per_axis),
        TensorSpec("bias", TensorType.INT32, (2,), 2, Quantization(floats(0.01, 0.02), longs(0, 0))),
        TensorSpec("conv", TensorType.INT8, (1, 3, 3, 2), 0, Quantization(floats(0.3), longs(-1))),
        TensorSpec("flat", TensorType.INT8, (1, 18), 0, Quantization(floats(0.3), longs(-1)), shape_signature=(-1, 18)),
        TensorSpec("shape", TensorType.INT32, (2,), 3),
    )
    options = record("Conv2DOptions", padding=enum("Padding")["VALID"], stride_w=1, stride_h=1)
    operators = (
        Operator(0, (0, 1, 2), (3,), options=options),
        Operator(1, (3, 5), (4,), options=record("ReshapeOptions", new_shape=np.array([1, 18], np.int32))),
    )
    return Model(
        version=3,
        operator_codes=(code("CONV_2D", 3), code("RESHAPE")),
        subgraphs=(Subgraph(tensors, (0,), (4,), operators, name="main"),),
        buffers=(Buffer(), Buffer(weights), Buffer(bias), Buffer(np.array([1, 18], "<i4").view(np.uint8)), Buffer()),
    )


def rich() -> Model:
    """Everything else: all kinds of tensors, quantization details, sparsity, both option unions, several subgraphs."""
    blockwise = record("BlockwiseQuantization", scales=2, zero_points=-1, block_size=32)
    multi_axis = record("MultiAxisQuantization", scales=2, quantized_dimensions=np.array([0, 1], np.int32))
    custom = record("CustomQuantization", custom=np.array([1, 2, 3], np.uint8))
    strings = np.frombuffer(np.array([1, 12, 15], "<i4").tobytes() + b"abc", np.uint8)
    tensors = (
        TensorSpec("int4", TensorType.INT4, (4,), 1, Quantization(floats(), longs(), 0, details=blockwise)),
        TensorSpec("int2", TensorType.INT2, (8,), 1, Quantization(floats(), longs(), 1, details=multi_axis)),
        TensorSpec("scales", TensorType.FLOAT16, (1, 2), 1, Quantization(floats(1), longs(0), details=custom)),
        TensorSpec("strings", TensorType.STRING, (1,), 2),
        TensorSpec("variant", TensorType.VARIANT, (), variant_tensors=(_variant(2, 3), record("VariantSubType"))),
        TensorSpec("sparse", TensorType.FLOAT32, (2, 2), 1, sparsity=_sparsity()),
        TensorSpec("state", TensorType.INT16, (1, 2), is_variable=True, shape_signature=(), has_rank=True),
        TensorSpec(None, TensorType.RESOURCE, (), quantization=Quantization(floats(), longs())),
        TensorSpec("", TensorType.UINT4, (1,), external_buffer=1, variant_tensors=()),
        TensorSpec("bytes that are no text: \udcff", 113, (1,)),
    )
    operators = (
        Operator(0, (0, -1), (1,), options_2=_gather(), debug_metadata_index=3),
        Operator(1, (), (), custom_options=b"\x01\x02\x03", mutating_variable_inputs=(True, False), intermediates=()),
        Operator(1, (0,), (1,), custom_options=b"", intermediates=(1, 2), mutating_variable_inputs=()),
        Operator(2, (0,), (1,), options=record("LeakyReluOptions", alpha=-0.0)),
        Operator(3, (0,), (1,), options=record("ResizeBilinearOptions", new_height=4, align_corners=True)),
        Operator(4, (0,), (1,), options=record("IfOptions", then_subgraph_index=1, else_subgraph_index=2)),
        Operator(5, (0,), (1,), options=record("VarHandleOptions", container="", shared_name="w")),
        Operator(6, (0,), (1,)),
    )
    codes = (
        code("STABLEHLO_GATHER"),
        code("CUSTOM", 1, "MyOp"),
        code("LEAKY_RELU"),
        code("RESIZE_BILINEAR"),
        code("IF"),
        code("VAR_HANDLE"),
        OperatorCode(100_000, "BUILTIN_100000", 7),
    )
    branch = Subgraph((), (), (), (), name=None)
    signatures = (
        SignatureDef("first", (("a", 0),), (("b", 1), ("c", 2)), 0),
        SignatureDef(None, (), (), 2, deprecated_tag="serve"),
    )
    return Model(
        version=3,
        operator_codes=codes,
        subgraphs=(
            Subgraph(tensors, (0, 3), (1,), operators, "main", debug_metadata_index=0),
            branch,
            Subgraph((), (), (), (), "else"),
        ),
        buffers=(Buffer(), data(0x21, 0x43), Buffer(strings), Buffer(np.zeros(0, np.uint8)), data(9)),
        description="",
        metadata_buffer=(4,),
        metadata=(("first", 4), (None, 3)),
        signature_defs=signatures,
        external_buffer_groups=(record("ExternalBufferGroup", name="weights.bin"),),
        external_buffers=(record("ExternalBuffer", id=1, offset=1 << 40, length=16, packing="int4"),),
    )


def outside() -> Model:
    """Constants and custom options stored behind the tables."""
    first, second = np.arange(100, dtype=np.uint8), np.arange(7, dtype=np.uint8)
    operator = Operator(0, (), (), custom_options=b"options", custom_options_external=True)
    buffers = (Buffer(), Buffer(first, external=True), data(1), Buffer(second, external=True), Buffer(second[:0], True))
    return Model(3, (code("CUSTOM", 1, "MyOp"),), (Subgraph((), (), (), (operator,)),), buffers)


def filled(table: str) -> Record:
    """A record in which no field is absent or at its default."""
    return Record(table, {field.name: _filling(field) for field in layout(table).fields.values()})


def option_models() -> list[Model]:
    """One model for each of the two option unions, with an operator for every member, all fields filled."""
    first = tuple(Operator(0, (), (), options=filled(table)) for table in members("BuiltinOptions")[1:])
    second = tuple(Operator(0, (), (), options_2=filled(table)) for table in members("BuiltinOptions2")[1:])
    graphs = (Subgraph((), (), (), operators) for operators in (first, second))
    return [Model(3, (code("ADD"),), (graph,), (Buffer(),)) for graph in graphs]


def _filling(field: Field) -> Any:
    if field.kind is FieldKind.STRING:
        return f"text of {field.name}"
    assert field.number is not None, "option tables hold no tables"
    if field.kind is FieldKind.NUMBERS:
        return np.array([1, 0, 1], field.number.dtype)
    return not field.default if field.number.name == "bool" else type(field.default)(field.default + 1 + field.id)


def _variant(*shape: int) -> Record:
    return record("VariantSubType", shape=np.array(shape, np.int32), type=int(TensorType.INT8), has_rank=True)


def _sparsity() -> Record:
    indices = [
        record("Int32Vector", values=np.array([0, 2], np.int32)),
        record("Uint16Vector", values=np.array([0, 65535], np.uint16)),
        record("Uint8Vector", values=np.array([255], np.uint8)),
    ]
    dims = (
        record("DimensionMetadata", dense_size=2),
        record("DimensionMetadata", format=1, array_segments=indices[0], array_indices=indices[1]),
        record("DimensionMetadata", format=1, array_segments=indices[2]),
    )
    order = np.array([0, 1, 2], np.int32)
    return record("SparsityParameters", traversal_order=order, block_map=order[:0], dim_metadata=dims)


def _gather() -> Record:
    return record("StablehloGatherOptions", offset_dims=longs(1, 2), index_vector_dim=-5, indices_are_sorted=True)
