"""One subgraph of one interpreter: its input shapes, its plan, and the present values of its tensors."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np

from tflq.engine.api.values import blank, store
from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.interpreter.limits import Limits
from tflq.engine.interpreter.state import variable
from tflq.engine.interpreter.timing import time_operators
from tflq.engine.interpreter.trace import Called
from tflq.engine.kernels.exactness import EXACT, Exactness
from tflq.engine.kernels.kernel import Shape
from tflq.engine.profiles import Profile
from tflq.errors import InputError, ModelError, ResizeError, ShapeError, StateError, TypeMismatchError, UnknownNameError
from tflq.model.ir import Model, TensorSpec, TensorType, view
from tflq.typing import Array

#: Types of string inputs: besides LiteRT's arrays, Python's own.
_TEXTS = (np.ndarray, np.generic, list, tuple, str, bytes)
_NOT_ALLOCATED = "has no memory yet: call allocate_tensors() first"
#: LiteRT's text for a tensor without memory (interpreter_wrapper.cc CheckGetTensorArgs).
_NULL = "Tensor data is null. Run allocate_tensors() first"


class Session:
    """Values belong to the session: inputs from callers are copied, and a run sees a copy of the graph's inputs.

    `resources` (variables with handles, hash tables) belong to the interpreter and outlive allocations. A tensor that a
    run did not keep reads as zeros, and outputs can be written to, as in LiteRT's memory; with `strict` both are
    errors.
    """

    def __init__(
        self,
        model: Model,
        profile: Profile,
        index: int,
        keep_all: bool,
        limits: Limits,
        resources: dict[Hashable, Any],
        strict: bool = False,
    ) -> None:
        self.model, self.profile, self.index = model, profile, index
        self.keep_all, self.limits, self.strict = keep_all, limits, strict
        self.graph = view(model, index)
        self.plan: Plan | None = None
        self._resized: dict[int, Shape] = {}
        self._inputs: dict[int, Array] = {}
        self._resources = resources
        self._state = State(resources=resources)
        self._trace: Trace | None = None
        self._called: Called | None = None  # by another subgraph, since this one last ran
        self._scratch: dict[int, Array] = {}  # replaces the memory of other tensors until the next run

    def spec(self, tensor: int) -> TensorSpec:
        """Return the tensor of that index."""
        if not 0 <= tensor < len(self.graph.tensors):
            count = len(self.graph.tensors)
            error = UnknownNameError("tensor", tensor, range(count))
            raise error.opening(f"Invalid tensor index {tensor} exceeds max tensor index {count}")
        return self.graph.tensors[tensor]

    def type(self, tensor: int) -> TensorType:
        """Return the tensor's element type.

        It is the type in the file, until an operator has been bound that makes another.
        """
        declared, bound = self.spec(tensor).type, self._called or self.plan
        type_ = declared if bound is None else bound.operands[tensor].type
        if not isinstance(type_, TensorType):
            raise ModelError(f"unknown element type {type_}", tensor=self.name(tensor))
        return type_

    def name(self, tensor: int) -> str:
        """Return the tensor's name, or its number if it has none."""
        return self.spec(tensor).name or f"#{tensor}"

    def shape(self, tensor: int) -> Shape:
        """Return the tensor's shape as far as it is known."""
        spec = self.spec(tensor)
        if self._called is not None and tensor in self._called.values:
            return self._called.values[tensor].shape
        if self._trace is not None and tensor in self._trace.values:
            return self._trace.values[tensor].shape
        if tensor in self._resized:
            return self._resized[tensor]
        return spec.shape if self.plan is None or self._is_open(tensor) else self.plan.operands[tensor].shape

    def _is_open(self, tensor: int) -> bool:
        """Return whether a tensor has the shape in the file until the first run, as LiteRT's dynamic tensors have."""
        return self._trace is None and self.plan is not None and tensor in self.plan.folding.early

    def promise(self, tensor: int) -> Exactness:
        """Return the tensor's promise, relative to the graph's inputs."""
        self.spec(tensor)
        if self.plan is None:
            raise StateError(f"{self.name(tensor)}: {_NOT_ALLOCATED}")
        return self.plan.promises.get(tensor, EXACT)

    def resize(self, tensor: int, shape: Shape, strict: bool) -> None:
        """Give a graph input another shape, from the next allocation on."""
        if tensor not in self.graph.inputs:
            error = ResizeError("only inputs can be resized", expected=f"one of {list(self.graph.inputs)}", got=tensor)
            raise error.opening("Attempting to resize a fixed-size tensor.")
        spec = self.spec(tensor)
        if any(extent < 0 for extent in shape):
            raise ResizeError("a dimension is negative", name=self.name(tensor), expected="0 or more", got=list(shape))
        if strict:
            self._check_strictly(tensor, spec.shape_signature or self.shape(tensor), shape)
        if self.plan is not None and shape == self._inputs[tensor].shape:
            return
        self._resized[tensor] = shape
        self.plan = self._trace = None

    def allocate(self) -> None:
        """Plan for the present input shapes, and give inputs and variables memory, unless that is done."""
        if self.plan is not None:
            return
        plan = make_plan(self.model, self.profile, self.index, self._resized, self.limits)
        inputs = {tensor: self._input(plan, tensor) for tensor in plan.inputs}
        self._state = State(resources=self._resources, inputs=inputs)
        self._trace, self._inputs, self.plan, self._scratch = None, inputs, plan, {}

    def invoke(self, keep_all: bool = False) -> Trace:
        """Run the plan once; `keep_all` keeps every tensor, even if the session does not."""
        if self.plan is None:
            raise StateError("Invoke called on model that is not ready.: call allocate_tensors() first")
        self._trace, self._called, self._scratch = None, None, {}  # their memory can be reused while the plan runs
        state, keep = self._state, self.keep_all or keep_all
        if state.routine and not keep and state.routine.admits(state):  # the routine gives the result of `run`
            trace: Trace = state.routine.run(self._inputs, state)
            self._trace = trace
            return trace
        self._trace = run(self.plan, self._inputs, state, keep_all=keep, keep_called=keep, copy_inputs=True)
        return self._trace

    def time_operators(self) -> dict[int, float]:
        """Run the plan once on the present inputs; return the seconds of each operator by its index."""
        if self.plan is None:
            raise StateError(_NOT_ALLOCATED)
        return time_operators(self.plan, self._inputs, self._state)

    def note_call(self, called: Called) -> None:
        """Show the results of a call by another subgraph, until this one runs by itself."""
        self._called = called

    def reset_variables(self) -> None:
        """Set the variable tensors back to their values after an allocation."""
        self._state.variables.clear()

    def set(self, tensor: int, value: object) -> None:
        """Copy `value` into an input or a variable; unless `strict`, also into any tensor that a run overwrites."""
        type_, name = self.type(tensor), self.name(tensor)
        if type_ == TensorType.STRING and not isinstance(value, _TEXTS):
            error = InputError("strings must be a NumPy array or a list", name=name, got=type(value).__name__)
            raise error.opening(f"Passed in value type is not a numpy array, got type {type(value).__name__}.")
        try:
            store(self._writable(tensor), type_, value, name)
        except TypeMismatchError as error:
            raise error.opening(
                f"Cannot set tensor: Got value of type {_numpy_name(error.got)} but expected type "
                f"{_numpy_name(error.expected)} for input {tensor}, name: {name}"
            ) from None
        except ShapeError as error:
            raise error.opening(_mismatch(tensor, error)) from None

    def view(self, tensor: int) -> Array:
        """Return the array that holds the tensor now: writable for inputs and variables, else read-only."""
        if not self.strict or tensor in self.graph.inputs or self.spec(tensor).is_variable:
            if not self.strict and self._constant(tensor) is not None:
                return _read_only(self.value(tensor))
            return self._writable(tensor).view()  # a caller may change the view's type and shape, but not the tensor's
        return _read_only(self.value(tensor))

    def value(self, tensor: int) -> Array:
        """Return the array that holds the tensor now; do not write to it."""
        spec = self.spec(tensor)
        self.type(tensor)
        if self._called is not None and tensor in self._called.values:
            return self._called.values[tensor]
        if self.plan is not None and tensor in self._inputs:
            return self._inputs[tensor]
        if self.plan is not None and spec.is_variable:
            return variable(self.plan, self._state, tensor)
        if tensor in self._scratch:
            return self._scratch[tensor]
        if self._trace is not None and tensor in self._trace.values:
            return self._trace.values[tensor]
        constant = self._constant(tensor)
        if constant is not None:
            return constant
        return self._blank(tensor)

    def _constant(self, tensor: int) -> Array | None:
        """Return the file's value for a tensor that is neither an input nor a variable."""
        return None if tensor in self._inputs else self.graph.constant(tensor)

    def _blank(self, tensor: int) -> Array:
        """Return zeros for a tensor that LiteRT would read from arbitrary memory.

        Raise if `strict`, or if the tensor has no memory.
        """
        name = self.name(tensor)
        if self.plan is None:
            raise StateError(f"{name}: {_NOT_ALLOCATED}").opening(_NULL)
        if self.strict and self._trace is None:
            raise StateError(f"{name}: has no value yet: call invoke() first")
        not_kept = f"{name}: is not kept after a run: use experimental_preserve_all_tensors=True"
        if self.strict:
            raise StateError(not_kept)
        if not self.plan.known[tensor] or self._is_open(tensor):
            raise StateError(f"{name}: its shape is known after invoke()").opening(_NULL)
        if self._trace is not None:
            warnings.warn(f"{not_kept}; zeros replace the arbitrary contents of LiteRT's memory", stacklevel=2)
        self._scratch[tensor] = blank(self.type(tensor), self.plan.operands[tensor].shape)
        return self._scratch[tensor]

    def _writable(self, tensor: int) -> Array:
        if self.plan is None:
            raise StateError(f"{self.name(tensor)}: {_NOT_ALLOCATED}").opening(
                "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
            )
        if tensor in self._inputs:
            return self._inputs[tensor]
        if not self.plan.operands[tensor].is_variable:
            if self.strict:
                raise InputError("is neither an input nor a variable, so it cannot be set", name=self.name(tensor))
            if self._constant(tensor) is not None:
                raise InputError("is a constant of the file, so it cannot be set", name=self.name(tensor))
            if tensor not in self._scratch:
                self._scratch[tensor] = self.value(tensor).copy()
            return self._scratch[tensor]
        # A copy, because a kernel's result may also be an output.
        value = self._state.variables[tensor] = variable(self.plan, self._state, tensor).copy()
        return value

    def _input(self, plan: Plan, tensor: int) -> Array:
        """Return a fresh input, with its value from before if the shape allows, or the file's."""
        operand, before = plan.operands[tensor], self._inputs.get(tensor)
        if before is not None and before.shape == operand.shape:
            return before
        stored = plan.graph.constant(tensor)
        if stored is not None and stored.shape == operand.shape:
            return stored.copy()
        return blank(operand.type, operand.shape)

    def _check_strictly(self, tensor: int, signature: Shape, shape: Shape) -> None:
        """Refuse to change dimensions that the signature fixes.

        Source: LiteRT 2.3 subgraph.cc ResizeInputTensorStrict.
        """
        error = ResizeError(
            "only dimensions that the signature leaves open can be resized",
            name=self.name(tensor),
            expected=list(signature),
            got=list(shape),
        )
        if len(signature) != len(shape):
            raise error
        for axis, (before, extent) in enumerate(zip(signature, shape, strict=True)):
            if before not in (-1, extent):
                raise error.opening(
                    f"Attempting to resize dimension {axis} of tensor {tensor} with value {before} to {extent}. "
                    "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
                )


def _read_only(value: Array) -> Array:
    view = value.view()
    view.flags.writeable = False
    return view


def _numpy_name(type_: object) -> str:
    """Return the type's name as TfLiteTypeGetName spells it, in capitals."""
    return str(getattr(type_, "name", type_)).upper()


def _mismatch(tensor: int, error: ShapeError) -> str:
    """Return LiteRT's text for a mismatch. Source: LiteRT 2.3 interpreter_wrapper.cc SetTensor."""
    expected, got = list(error.expected), list(error.got)  # type: ignore[call-overload]
    if len(expected) != len(got):
        return f"Cannot set tensor: Dimension mismatch. Got {len(got)} but expected {len(expected)} for input {tensor}"
    axis = next(axis for axis, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b)
    return (
        f"Cannot set tensor: Dimension mismatch. Got {got[axis]} but expected {expected[axis]} for dimension {axis} of "
        f"input {tensor}"
    )
