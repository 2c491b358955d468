"""Run a subgraph by the names that a signature gives its inputs and outputs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tflq.engine.api.details import Details, tensor_details
from tflq.engine.api.exclusion import Exclusion, exclusive
from tflq.engine.api.session import Session
from tflq.engine.api.values import give
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import SignatureDef
from tflq.typing import Array


class Owner(Protocol):
    """The interface of the interpreter that a runner needs."""

    _exclusion: Exclusion

    def _signatures(self) -> dict[str, SignatureDef]: ...

    def _session(self, index: int) -> Session: ...

    def _invoke(self, subgraph: int) -> None: ...


class SignatureRunner:
    """A callable: arrays by input name in, arrays by output name out.

    It is part of its interpreter: a call while another thread is in a call of either raises a StateError.
    """

    def __init__(self, interpreter: Owner | None = None, signature_key: str | None = None) -> None:
        if interpreter is None:
            raise InputError("None interpreter provided.")
        if signature_key is None:
            raise InputError("None signature_key provided.")
        signatures = interpreter._signatures()
        if signature_key not in signatures:
            error = UnknownNameError("signature", signature_key, tuple(signatures))
            raise error.opening(f'Invalid signature_key provided: "{signature_key}".')
        signature = signatures[signature_key]
        self._interpreter, self._signature_key = interpreter, signature_key
        self._subgraph_index = signature.subgraph_index
        self._session = interpreter._session(signature.subgraph_index)
        self._inputs, self._outputs = by_name(signature.inputs), by_name(signature.outputs)
        self._exclusion = interpreter._exclusion

    @exclusive
    def __call__(self, /, **inputs: Any) -> dict[str, Array]:
        """Resize the inputs to the arrays' shapes, allocate, run, and return copies of the outputs."""
        if len(inputs) != len(self._inputs):
            raise InputError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}",
                expected=list(self._inputs),
                got=list(inputs),
            )
        for name in inputs:
            if name not in self._inputs:
                error = UnknownNameError("input", name, tuple(self._inputs))
                raise error.opening(f"Invalid Input name ({name}) for SignatureDef")
        session = self._session
        for name, value in inputs.items():
            session.resize(self._inputs[name], _shape_of(name, value), strict=False)
        session.allocate()
        for name, value in inputs.items():
            session.set(self._inputs[name], value)
        self._interpreter._invoke(self._subgraph_index)
        return {name: give(session.value(tensor), session.type(tensor)) for name, tensor in self._outputs.items()}

    @exclusive
    def get_input_details(self) -> dict[str, Details]:
        """Return details of the input tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._inputs.items()}

    @exclusive
    def get_output_details(self) -> dict[str, Details]:
        """Return details of the output tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._outputs.items()}


def by_name(pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return tensor indices by name, in alphabetical order (LiteRT keeps them in a std::map)."""
    return dict(sorted(pairs, key=lambda pair: pair[0].encode(errors="surrogateescape")))


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    """Return the shape of a value that NumPy converts to an array. Raises InputError if its rows differ in length."""
    try:
        return np.shape(value)
    except ValueError as error:
        raise InputError("is no array: its rows differ in length", name=name) from error
