"""Values that are certain before the model runs: those that operators compute from shapes and constants alone.

Exporters write a shape with an open batch as operators: SHAPE, STRIDED_SLICE and PACK before a RESHAPE. Once the shapes
of the inputs are planned, these values cannot change. They are computed when an operator needs one of them to be
prepared, by the operators' own kernels, so that their bits are those of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tflq.engine.interpreter.evaluation import evaluate
from tflq.engine.interpreter.memory import size_of
from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.kernel import Operand, Prepared
from tflq.errors import TflqError
from tflq.model.ir import GraphView
from tflq.typing import Array

#: Operators whose results depend on the shape of their operand, and not on its elements.
_OF_SHAPES = frozenset(("SHAPE", "RANK"))
#: Maximum bytes of a tensor that is computed in advance, or that such an operator reads.
_LARGEST = 1 << 12
#: Maximum passes of the innermost loop of such an operator, and maximum bytes of its working memory.
_MOST_WORK, _MOST_SCRATCH = 1 << 16, 1 << 16


class Folding:
    """Steps of one plan that can run in advance, and the values that they gave so far, by tensor.

    A step can run in advance if it reads shapes, constants and results of such steps alone, has no state, and all its
    tensors are small. It runs when `value` first needs it. If `is_off`, none can. `early` are the tensors whose shapes
    depend on such values: a runtime may know them only when it runs.
    """

    def __init__(self, graph: GraphView, operands: Sequence[Operand], is_off: bool = False) -> None:
        writes = Counter(tensor for op in graph.ops for tensor in op.outputs)
        given = {*graph.inputs, *(operand.index for operand in operands if operand.is_variable)}
        self._made_once = set() if is_off else {tensor for tensor, count in writes.items() if count == 1} - given
        self._constants = {o.index: o.value for o in operands if o.value is not None and _is_small(o.value)}
        self._makers: dict[int, Step] = {}
        self._values: dict[int, Array] = {}
        self.early: set[int] = set()

    def everything(self) -> Mapping[int, Array]:
        """Return all values that are certain, by tensor, also those that no operator needs to be prepared."""
        for tensor in tuple(self._makers):
            self.value(tensor)
        return self._values

    def add(self, step: Step) -> None:
        """Take the next step, which may make values that are certain."""
        prepared = step.prepared
        if prepared is None:
            return
        shapes = {step.inputs[position] for position in step.kernel.shape_operands if position < len(step.inputs)}
        if not self._values.keys().isdisjoint(shapes) or not self.early.isdisjoint(step.inputs):
            self.early.update(step.outputs)
        if step.kernel.session or not step.outputs or not self._made_once.issuperset(step.outputs):
            return
        reads_known = all(tensor in self._constants or tensor in self._makers for tensor in self._read(step))
        if reads_known and _is_bounded(step, prepared):
            self._makers.update(dict.fromkeys(step.outputs, step))

    def value(self, tensor: int) -> Array | None:
        """Return the value of a computed tensor; None if it is not certain, or if its computation fails."""
        needed, pending, is_certain = dict[int, Step](), [tensor], True
        while pending:
            read = pending.pop()
            step = self._makers.get(read)
            if read in self._values or read in self._constants:
                continue
            if step is None:
                is_certain = False  # its computation failed before
            elif step.index not in needed:
                needed[step.index] = step
                pending += self._read(step)
        steps = [needed[index] for index in sorted(needed)]
        done = next((n for n, step in enumerate(steps) if not self._run(step)), len(steps)) if is_certain else 0
        for step in steps[done:]:  # a run reports the error
            for output in step.outputs:
                self._makers.pop(output, None)
        return self._values.get(tensor)

    def _read(self, step: Step) -> list[int]:
        """Return the tensors whose elements a step reads."""
        return [] if step.op in _OF_SHAPES else [tensor for tensor in step.inputs if tensor >= 0]

    def _run(self, step: Step) -> bool:
        """Compute the results of a step; return False if its kernel refuses the values."""
        assert step.prepared is not None  # see `add`
        if step.op in _OF_SHAPES:
            arguments: list[Array | None] = [None] * len(step.inputs)
        else:
            arguments = [self._values.get(tensor, self._constants.get(tensor)) for tensor in step.inputs]
        try:
            with np.errstate(all="ignore"):
                results = evaluate(step.prepared, step, arguments)
        except TflqError:
            return False
        for tensor, result in zip(step.outputs, results, strict=True):
            self._values[tensor] = result.copy()
        return True


def _is_bounded(step: Step, prepared: Prepared) -> bool:
    """Return whether a step without updates has small results of known shapes, little work and little memory."""
    if prepared.updates or None in prepared.shapes or any(dtype.hasobject for dtype in step.dtypes):
        return False
    if not isinstance(prepared.scratch, int) or prepared.scratch > _MOST_SCRATCH:
        return False
    outputs = zip(step.node.outputs, prepared.shapes, strict=True)
    sizes = [size_of(operand, shape) for operand, shape in outputs if shape is not None]
    return max(sizes, default=0) <= _LARGEST and (prepared.work or 0) <= _MOST_WORK


def _is_small(value: Array) -> bool:
    return not value.dtype.hasobject and value.nbytes <= _LARGEST
