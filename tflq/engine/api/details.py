"""Descriptions of tensors and operators as in LiteRT's Python interpreter: dictionaries with the same keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.api.session import Session
from tflq.engine.api.values import outside_type
from tflq.errors import UnknownNameError
from tflq.model.ir import Quantization, Record
from tflq.model.ir.constants import constant_of
from tflq.typing import Array

Details = dict[str, Any]


def tensor_details(session: Session, tensor: int) -> Details:
    """Return name, index, shapes, element type and quantization of one tensor.

    Source: LiteRT 2.3 interpreter.py Interpreter._get_tensor_details.
    """
    spec = session.spec(tensor)
    shape = session.shape(tensor)
    return {
        "name": spec.name or "",
        "index": tensor,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(spec.shape_signature or shape, np.int32),
        "dtype": outside_type(session.type(tensor)),
        "quantization": _per_tensor(spec.quantization),
        "quantization_parameters": _parameters(session, spec.quantization),
        "sparsity_parameters": _sparsity(spec.sparsity),
    }


def operator_details(session: Session, position: int) -> Details:
    """Return name, operands and their element types of one operator.

    Source: LiteRT 2.3 interpreter.py Interpreter._get_op_details.
    """
    operators = session.graph.ops
    if not 0 <= position < len(operators):
        raise UnknownNameError("operator", position, range(len(operators))).opening("Invalid node index")
    operator = operators[position]
    code = operator.code
    return {
        "index": position,
        "op_name": (code.custom_code or "UnknownCustomOp") if code.name == "CUSTOM" else code.name,
        "inputs": np.array(operator.inputs, np.int32),
        "outputs": np.array(operator.outputs, np.int32),
        "operand_types": [outside_type(session.type(t)) for t in operator.inputs if t >= 0],
        "result_types": [outside_type(session.type(t)) for t in operator.outputs if t >= 0],
    }


def _per_tensor(quantization: Quantization | None) -> tuple[float, int]:
    """Return (scale, zero point), or (0.0, 0) unless there is exactly one scale.

    Source: LiteRT 2.3 subgraph.cc GetLegacyQuantization.
    """
    if quantization is None or len(quantization.scale) != 1:
        return 0.0, 0
    return float(quantization.scale[0]), int(_zero_points(quantization)[0])


def _parameters(session: Session, quantization: Quantization | None) -> Details:
    """Return the parameters; without scales a tensor is not quantized.

    Source: LiteRT 2.3 interpreter_builder.cc ParseQuantization.
    """
    details = None if quantization is None else quantization.details
    if quantization is not None and details is not None and details.table == "BlockwiseQuantization":
        zero_points = int(details["zero_points"])
        return {
            "scales": _elements(session, int(details["scales"]), np.float16),
            "zero_points": np.empty(0, np.int32) if zero_points == -1 else _elements(session, zero_points, np.int32),
            "quantized_dimension": quantization.quantized_dimension,
            "block_size": int(details["block_size"]),
        }
    known = quantization is not None and len(quantization.scale) > 0
    if quantization is None or not known:
        return {
            "scales": np.empty(0, np.float32),
            "zero_points": np.empty(0, np.int32),
            "quantized_dimension": 0,
            "block_size": 0,
        }
    return {
        "scales": np.array(quantization.scale, np.float32),
        "zero_points": _zero_points(quantization),
        "quantized_dimension": quantization.quantized_dimension,
        "block_size": 0,
    }


def _elements(session: Session, tensor: int, dtype: type[np.float16 | np.int32]) -> Array:
    """Return the bytes of a constant as numbers of that type, flat; empty if the tensor is computed.

    Source: LiteRT 2.3 interpreter_wrapper.cc TensorQuantizationParameters.
    """
    value = constant_of(session.model, session.spec(tensor))
    content = b"" if value is None else value.tobytes()
    size = np.dtype(dtype).itemsize
    return np.frombuffer(content[: len(content) // size * size], dtype).copy()


def _zero_points(quantization: Quantization) -> NDArray[np.int32]:
    if len(quantization.zero_point) == 0:
        return np.zeros(len(quantization.scale), np.int32)
    return quantization.zero_point.astype(np.int32)


def _sparsity(sparsity: Record | None) -> Details:
    """Return traversal order, block map and the format of each dimension; empty for dense tensors."""
    if sparsity is None:
        return {}
    details: Details = {"traversal_order": _ints(sparsity.get("traversal_order"))}
    if sparsity.get("block_map") is not None:
        details["block_map"] = _ints(sparsity["block_map"])
    details["dim_metadata"] = [_dimension(d) for d in sparsity.get("dim_metadata") or ()]
    return details


def _dimension(dimension: Record) -> Details:
    if int(dimension["format"]) == 0:
        return {"format": 0, "dense_size": int(dimension["dense_size"])}
    segments, indices = dimension["array_segments"], dimension["array_indices"]
    return {
        "format": 1,
        "array_segments": _ints(None if segments is None else segments["values"]),
        "array_indices": _ints(None if indices is None else indices["values"]),
    }


def _ints(values: Any) -> NDArray[np.int32]:
    return np.array([] if values is None else values, np.int32)
