"""An answer of a device to a question, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.devices.conformance.draft import Draft
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A device's answer to a draft: outputs by sample, or the reason why there are none.

    `refused` is true if the device stated that it does not support the model.
    """

    draft: Draft
    outputs: tuple[tuple[Array, ...], ...] = ()
    reason: str = ""
    refused: bool = False

    @property
    def elements(self) -> int:
        """The number of output elements."""
        return sum(output.size for sample in self.outputs for output in sample)

    @property
    def is_answered(self) -> bool:
        """True if the device left outputs."""
        return bool(self.outputs)

    def same(self, other: Answer) -> bool:
        """Return whether the outputs of both answers have the same bits."""
        return _bits(self.outputs) == _bits(other.outputs)


def _bits(outputs: Sequence[Sequence[Array]]) -> list[bytes]:
    return [output.tobytes() for sample in outputs for output in sample]


def empty_outputs(draft: Draft) -> tuple[Array, ...]:
    """Return zeros of the types and shapes of a draft's outputs."""
    return tuple(np.zeros(tuple(t.shape), CARRIER[TensorType[t.type.upper()]]) for t in draft.outputs)
