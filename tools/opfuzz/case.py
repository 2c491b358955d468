"""One drawn model with its inputs. All of it is plain data, so that it can be shrunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opfuzz.one_operator import T, build

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An operator, its operands and options. `samples` holds the values of the fed inputs (those without a value)."""

    op: str
    inputs: tuple[T | None, ...]
    outputs: tuple[T, ...]
    samples: tuple[tuple[Array, ...], ...]
    options: tuple[str, Mapping[str, Any]] | None = None
    version: int = 1
    intermediates: tuple[T, ...] = field(default=())
    body: str = ""  # the one operator of a second subgraph

    def model(self) -> bytes:
        """Return the `.tflite` file."""
        return build(self.op, self.inputs, self.outputs, self.options, self.version, self.intermediates, self.body)

    @property
    def types(self) -> str:
        """Operand types as kernel tables write them; `-` for an absent operand."""
        left = " ".join("-" if t is None else t.type for t in self.inputs)
        return f"{left} -> {' '.join(t.type for t in self.outputs)}"

    def __str__(self) -> str:
        lines = [f"{self.op} version {self.version}: {self.types}"]
        lines += [f"  in  {_tensor(t)}" for t in self.inputs]
        lines += [f"  out {_tensor(t)}" for t in self.outputs]
        if self.options:
            lines.append(f"  {self.options[0]} {dict(self.options[1])}")
        for number, sample in enumerate(self.samples):
            lines += [f"  sample {number}, {_array(value)}" for value in sample]
        return "\n".join(lines)


def fed(inputs: Sequence[T | None]) -> list[T]:
    """Return the operands that are the model's inputs."""
    return [t for t in inputs if t is not None and t.value is None and not t.variable]


def _tensor(tensor: T | None) -> str:
    if tensor is None:
        return "absent"
    text = f"{tensor.type} {list(tensor.shape)}"
    if tensor.scale is not None:
        text += f" scale {_array(np.asarray(tensor.scale))} zero point {tensor.zero_point}"
        text += f" axis {tensor.axis}" if np.ndim(tensor.scale) else ""
    if tensor.variable:
        text += " variable"
    return text if tensor.value is None else f"{text} = {_array(np.asarray(tensor.value))}"


def _array(array: Array) -> str:
    shown = ", ".join(_exact(v) for v in array.reshape(-1)[:12])
    if array.ndim == 0:
        return shown
    return f"{list(array.shape)} [{shown}{', ...' if array.size > 12 else ''}]"


def _exact(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
