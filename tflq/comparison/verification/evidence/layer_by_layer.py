"""Dumps of tflite-micro's layer_by_layer tool: the inputs of a run and the results of every operator.

Source: tflite-micro (October 2026) tensorflow/lite/micro/tools/layer_by_layer.cc, StoreLayerByLayerData.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflq.errors import FormatError, InputError
from tflq.model.flatbuf import read_record
from tflq.model.ir import CARRIER, Model, Record, TensorType, view
from tflq.model.storage.reading import read_bytes
from tflq.typing import Array


def layer_by_layer_tensors(model: Model, path: Path) -> dict[int, Array]:
    """Return tensors of the first subgraph, in the dump's types and shapes.

    If the model was fed in steps, it has its last inputs.

    Raises:
        InputError: The file is not such a dump, or belongs to another model.
    """
    try:
        data = read_bytes(path)
        record = read_record(data, "layer_by_layer")
    except FormatError as error:
        kinds = "an .npz, an .npy, a C file, a folder or .zip of tensors, or what tflite-micro's layer by layer writes"
        raise InputError(f"is not a dump ({error})", name=str(path), expected=kinds, got=path.name) from error
    graph = view(model)
    tensors: dict[int, Array] = {}
    for entry in record["input_data"] or ():
        position = int(entry["input_index"])
        if position >= len(graph.inputs):
            raise InputError("inputs", name=str(path), expected=len(graph.inputs), got=position + 1)
        tensors[graph.inputs[position]] = _array(entry, path)
    for part in record["subgraph_data"] or ():
        if part["subgraph_index"] == 0:
            for entry in part["outputs"] or ():
                tensors[_tensor(model, entry, path)] = _array(entry, path)
    if not tensors:
        raise InputError("holds no tensor", name=str(path))
    return tensors


def _tensor(model: Model, entry: Record, path: Path) -> int:
    """Return the entry's tensor, if the same operator produces it in this model."""
    operators, index, layer = view(model).ops, int(entry["tensor_index"]), int(entry["layer_number"])
    if layer >= len(operators) or index not in operators[layer].outputs:
        raise InputError(f"is for another model: operator {layer} makes no tensor {index}", name=str(path))
    return index


def _array(entry: Record, path: Path) -> Array:
    number = int(entry["dtype"])
    if number not in TensorType.__members__.values():
        raise InputError("element type", name=str(path), expected="one of the schema", got=number)
    kind, carrier = TensorType(number), CARRIER[TensorType(number)]
    data = np.asarray(entry["data"] if entry["data"] is not None else (), np.uint8).tobytes()
    shape = tuple(entry["shape"].tolist()) if entry["shape"] is not None else ()
    if carrier.hasobject or len(data) != int(np.prod(shape, dtype=np.int64)) * carrier.itemsize:
        raise InputError(f"bytes of {kind.label} {list(shape)}", name=str(path), got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier).reshape(shape)
