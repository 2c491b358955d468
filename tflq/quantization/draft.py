"""A model under construction, and an integer model with its float origin.

A model under construction: tensors, constants stored once, operators with their codes.

An integer model built from a float model, and the correspondence of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np

from tflq.model.flatbuf.layout import layout
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, SignatureDef, Subgraph, TensorSpec, view
from tflq.model.ir.model import enum
from tflq.typing import Array


def code_index(code: OperatorCode, codes: list[OperatorCode]) -> int:
    """Return the position of an operator code, which is appended if it is new."""
    if code not in codes:
        codes.append(code)
    return codes.index(code)


class ModelDraft:
    """The first subgraph and the tables of a model under construction; other subgraphs are copied from `model`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.tensors: list[TensorSpec] = []
        self.operators: list[Operator] = []
        self.origins: list[int] = []  # for each operator its origin, -1 if it is new
        self._codes: list[OperatorCode] = []
        self._buffers: list[Buffer] = [Buffer()]
        self._stored: dict[bytes, int] = {}  # digest of a buffer's bytes -> its number
        self._names = {t.name for t in view(model).tensors}

    def tensor(self, spec: TensorSpec) -> int:
        """Add a tensor and return its number."""
        self.tensors.append(spec)
        return len(self.tensors) - 1

    def named(self, name: str) -> str:
        """Return `name`, with a number appended if it is already in use."""
        candidate, count = name, 0
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate

    def buffer(self, values: Array | None) -> int:
        """Return the number of the buffer that holds these values; 0 for None."""
        if values is None:
            return 0
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        key = sha256(data.data).digest()
        if key not in self._stored:
            self._buffers.append(Buffer(data))
            self._stored[key] = len(self._buffers) - 1
        return self._stored[key]

    def copied(self, buffer: int) -> int:
        """Return the number that a buffer of the model has in this draft."""
        return self.buffer(self._model.buffers[buffer].data if buffer else None)

    def append(self, operator: Operator, code: OperatorCode, origin: int) -> None:
        """Add an operator with this code."""
        self.operators.append(replace(operator, opcode_index=code_index(code, self._codes)))
        self.origins.append(origin)

    def convert(self, name: str, source: int, result: int, version: int) -> None:
        """Add a QUANTIZE or DEQUANTIZE."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, version)
        self.append(Operator(0, (source,), (result,), Record(f"{name.capitalize()}Options")), code, -1)

    def finished(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Model:
        """Return the model; its metadata stays, except for the runtime version that its operators need.

        `inputs` and `outputs` correspond to those of the model that it is made from, whose signatures name them.
        """
        first, *others = self._model.subgraphs
        first = replace(
            first, tensors=tuple(self.tensors), inputs=inputs, outputs=outputs, operators=tuple(self.operators)
        )
        subgraphs = (first, *map(self._take_over, others))
        kept = [(name, b) for name, b in self._model.metadata or () if name != "min_runtime_version"]
        metadata = tuple((name, self.copied(buffer)) for name, buffer in kept) or None
        return replace(
            self._model,
            operator_codes=tuple(self._codes),
            subgraphs=subgraphs,
            buffers=tuple(self._buffers),
            metadata=metadata,
            metadata_buffer=None,
            signature_defs=self._signatures(inputs, outputs),
        )

    def _signatures(self, inputs: Sequence[int], outputs: Sequence[int]) -> tuple[SignatureDef, ...] | None:
        graph, signatures = view(self._model), self._model.signature_defs
        given = dict(zip(graph.inputs, inputs, strict=True))
        taken = dict(zip(graph.outputs, outputs, strict=True))
        return signatures and tuple(
            s if s.subgraph_index else replace(s, inputs=_moved(s.inputs, given), outputs=_moved(s.outputs, taken))
            for s in signatures
        )

    def _take_over(self, graph: Subgraph) -> Subgraph:
        codes = self._model.operator_codes
        return replace(
            graph,
            tensors=tuple(replace(t, buffer=self.copied(t.buffer)) for t in graph.tensors),
            operators=tuple(
                replace(o, opcode_index=code_index(codes[o.opcode_index], self._codes)) for o in graph.operators
            ),
        )


def _moved(pairs: tuple[tuple[str, int], ...], new: Mapping[int, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, new.get(tensor, tensor)) for name, tensor in pairs)


def options(table: str, **fields: Any) -> Record:
    """Return an operator's options with these fields; others have their schema default."""
    return Record(table, MappingProxyType({**layout(table).defaults, **fields}))


def four_bits(codes: Array) -> Array:
    """Return int4 codes as a file stores them: two per byte, the first in the low bits; an odd last one alone."""
    flat = np.ascontiguousarray(codes).reshape(-1).view(np.uint8) & np.uint8(15)
    pairs = np.append(flat, np.zeros(flat.size % 2, np.uint8)).reshape(-1, 2)
    packed: Array = pairs[:, 0] | (pairs[:, 1] << np.uint8(4))
    return packed


@dataclass(frozen=True, slots=True, eq=False)
class IntegerModel:
    """An integer model; `operators` maps each of its operators to the float model's, -1 for a conversion."""

    model: Model
    operators: tuple[int, ...]
    tensors: Mapping[int, int]  # float model's tensor -> the integer model's tensor with its values as produced
