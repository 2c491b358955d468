"""One subgraph of one interpreter: its input shapes, its plan, and the values that its tensors have now."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tflq.api.values import blank, store
from tflq.errors import InputError, ModelError, ShapeError, StateError, UnknownNameError
from tflq.interpreter import Plan, State, Trace, make_plan, run
from tflq.interpreter.constants import constant_of
from tflq.interpreter.limits import Limits
from tflq.interpreter.state import variable
from tflq.ir import Model, TensorSpec, TensorType
from tflq.kernels.exactness import EXACT, Exactness
from tflq.kernels.kernel import Array, Shape
from tflq.profiles import Profile

_NOT_ALLOCATED = "has no memory yet: call allocate_tensors() first"


class Session:
    """Values belong to the session: what callers hand in is copied, and a run sees a copy of the graph's inputs.

    `resources` (variables that have handles, hash tables) belong to the interpreter and outlive allocations.
    """

    def __init__(
        self, model: Model, profile: Profile, index: int, keep_all: bool, limits: Limits, resources: dict[Hashable, Any]
    ) -> None:
        self.model, self.profile, self.index = model, profile, index
        self.keep_all, self.limits = keep_all, limits
        self.graph = model.subgraphs[index]
        self.plan: Plan | None = None
        self._resized: dict[int, Shape] = {}
        self._inputs: dict[int, Array] = {}
        self._resources = resources
        self._state = State(resources=resources)
        self._trace: Trace | None = None

    def spec(self, tensor: int) -> TensorSpec:
        """The tensor of that index."""
        if not 0 <= tensor < len(self.graph.tensors):
            raise UnknownNameError("tensor", tensor, range(len(self.graph.tensors)))
        return self.graph.tensors[tensor]

    def type(self, tensor: int) -> TensorType:
        """The tensor's element type."""
        type_ = self.spec(tensor).type
        if not isinstance(type_, TensorType):
            raise ModelError(f"unknown element type {type_}", tensor=self.name(tensor))
        return type_

    def name(self, tensor: int) -> str:
        """The tensor's name, or its number where it has none."""
        return self.spec(tensor).name or f"#{tensor}"

    def shape(self, tensor: int) -> Shape:
        """The tensor's shape as far as it is known now."""
        spec = self.spec(tensor)
        if self._trace is not None and tensor in self._trace.values:
            return self._trace.values[tensor].shape
        if tensor in self._resized:
            return self._resized[tensor]
        return self.plan.operands[tensor].shape if self.plan is not None else spec.shape

    def promise(self, tensor: int) -> Exactness:
        """What the tensor is promised to be, from the graph's inputs on."""
        self.spec(tensor)
        if self.plan is None:
            raise StateError(f"{self.name(tensor)}: {_NOT_ALLOCATED}")
        return self.plan.promises.get(tensor, EXACT)

    def resize(self, tensor: int, shape: Shape, strict: bool) -> None:
        """Give a graph input another shape, from the next allocation on."""
        spec = self.spec(tensor)
        if tensor not in self.graph.inputs:
            raise InputError("only inputs can be resized", name=self.name(tensor))
        if any(extent < 0 for extent in shape):
            raise InputError("a dimension is negative", name=self.name(tensor), got=list(shape))
        if strict:
            _check_strictly(self.name(tensor), spec.shape_signature or self.shape(tensor), shape)
        if self.plan is not None and shape == self._inputs[tensor].shape:
            return
        self._resized[tensor] = shape
        self.plan = self._trace = None

    def allocate(self) -> None:
        """Plan for the present input shapes, and give inputs and variables memory; nothing to do if that is done."""
        if self.plan is not None:
            return
        plan = make_plan(self.model, self.profile, self.index, self._resized, self.limits.memory, self.limits.work)
        inputs = {tensor: self._input(plan, tensor) for tensor in plan.inputs}
        self._state = State(resources=self._resources)
        self._trace, self._inputs, self.plan = None, inputs, plan

    def invoke(self) -> None:
        """Run the plan once."""
        if self.plan is None:
            raise StateError("the model is not ready to run: call allocate_tensors() first")
        self._trace = None  # its memory can be reused while the plan runs
        inputs = {tensor: value.copy() for tensor, value in self._inputs.items()}
        self._trace = run(self.plan, inputs, self._state, keep_all=self.keep_all)

    def reset_variables(self) -> None:
        """Set the variable tensors back to what they are after an allocation."""
        self._state.variables.clear()

    def set(self, tensor: int, value: object) -> None:
        """Copy `value` into an input or a variable."""
        self.type(tensor)
        store(self._writable(tensor), self.type(tensor), value, self.name(tensor))

    def view(self, tensor: int) -> Array:
        """The array that holds the tensor now: to write to for inputs and variables, else read-only."""
        if tensor in self.graph.inputs or self.spec(tensor).is_variable:
            return self._writable(tensor).view()  # whose type and shape a caller may change, but not the tensor's
        value = self.value(tensor).view()
        value.flags.writeable = False
        return value

    def value(self, tensor: int) -> Array:
        """The array that holds the tensor now; not to be written to."""
        spec = self.spec(tensor)
        self.type(tensor)
        if self.plan is not None and tensor in self._inputs:
            return self._inputs[tensor]
        if self.plan is not None and spec.is_variable:
            return variable(self.plan, self._state, tensor)
        if self._trace is not None and tensor in self._trace.values:
            return self._trace.values[tensor]
        constant = constant_of(self.model, spec)
        if constant is not None:
            return constant
        raise self._missing(tensor)

    def _missing(self, tensor: int) -> StateError:
        name = self.name(tensor)
        if self.plan is None:
            return StateError(f"{name}: {_NOT_ALLOCATED}")
        if self._trace is None:
            return StateError(f"{name}: has no value yet: call invoke() first")
        return StateError(f"{name}: is not kept after a run: ask for experimental_preserve_all_tensors=True")

    def _writable(self, tensor: int) -> Array:
        if self.plan is None:
            raise StateError(f"{self.name(tensor)}: {_NOT_ALLOCATED}")
        if tensor in self._inputs:
            return self._inputs[tensor]
        if not self.plan.operands[tensor].is_variable:
            raise InputError("is neither an input nor a variable, so it cannot be set", name=self.name(tensor))
        # A copy, because a kernel's result may be an output too.
        value = self._state.variables[tensor] = variable(self.plan, self._state, tensor).copy()
        return value

    def _input(self, plan: Plan, tensor: int) -> Array:
        """A fresh input, with the value it had before where shape allows, or what the file stores for it."""
        operand, before = plan.operands[tensor], self._inputs.get(tensor)
        if before is not None and before.shape == operand.shape:
            return before
        stored = constant_of(self.model, plan.subgraph.tensors[tensor])
        if stored is not None and stored.shape == operand.shape:
            return stored.copy()
        return blank(operand.type, operand.shape)


def _check_strictly(name: str, signature: Shape, shape: Shape) -> None:
    fits = len(signature) == len(shape) and all(s in (-1, d) for s, d in zip(signature, shape, strict=True))
    if not fits:
        raise ShapeError(name, signature, shape)
