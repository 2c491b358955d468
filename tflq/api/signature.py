"""Running a subgraph by the names that a signature gives its inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.api.details import Details, tensor_details
from tflq.api.exclusion import Exclusion, exclusive
from tflq.api.session import Session
from tflq.api.values import give
from tflq.errors import InputError, UnknownNameError
from tflq.ir import SignatureDef
from tflq.kernels.kernel import Array


class SignatureRunner:
    """A callable: arrays by input name in, arrays by output name out.

    It is part of its interpreter: a call while another thread is in a call of either is a StateError.
    """

    def __init__(self, session: Session, signature: SignatureDef, exclusion: Exclusion) -> None:
        self._session, self._inputs, self._outputs = session, by_name(signature.inputs), by_name(signature.outputs)
        self._exclusion = exclusion

    @exclusive
    def __call__(self, /, **inputs: Any) -> dict[str, Array]:
        """Resize the inputs to the arrays' shapes, allocate, run, and give copies of the outputs."""
        if len(inputs) != len(self._inputs):
            raise InputError("number of inputs", expected=len(self._inputs), got=len(inputs))
        for name in inputs:
            if name not in self._inputs:
                raise UnknownNameError("input", name, tuple(self._inputs))
        session = self._session
        for name, value in inputs.items():
            session.resize(self._inputs[name], np.shape(value), strict=False)
        session.allocate()
        for name, value in inputs.items():
            session.set(self._inputs[name], value)
        session.invoke()
        return {name: give(session.value(tensor), session.type(tensor)) for name, tensor in self._outputs.items()}

    @exclusive
    def get_input_details(self) -> dict[str, Details]:
        """Details of the input tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._inputs.items()}

    @exclusive
    def get_output_details(self) -> dict[str, Details]:
        """Details of the output tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._outputs.items()}


def by_name(pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Tensor indices by name, in alphabetical order (LiteRT keeps them in a std::map)."""
    return dict(sorted(pairs, key=lambda pair: pair[0].encode(errors="surrogateescape")))
