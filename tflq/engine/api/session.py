"""One subgraph of one interpreter: its input shapes, its plan, and the present values of its tensors.

Arguments that callers pass to the interpreter: one model, and shapes.

Conversion of arrays between callers and kernels.

Descriptions of tensors and operators as in LiteRT's Python interpreter: dictionaries with the same keys.

Mutual exclusion: two threads must not use one interpreter at once, as in LiteRT.

Memory lent to callers as arrays, and the check whether any of them is still in use.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.engine.api.files import Source, load
from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.interpreter.evaluation import OUTSIDE, admit, variable
from tflq.engine.interpreter.execution import time_operators
from tflq.engine.interpreter.plan import Called, Limits
from tflq.engine.kernels.kernel import EXACT, Exactness, Shape
from tflq.engine.profiles import Profile
from tflq.errors import (
    FileAccessError,
    FormatError,
    InputError,
    LimitError,
    ModelError,
    ResizeError,
    ShapeError,
    StateError,
    TypeMismatchError,
    UnknownNameError,
    out_of_memory,
)
from tflq.model.ir import CARRIER, Model, Quantization, Record, TensorSpec, TensorType, view
from tflq.model.ir.constants import constant_of
from tflq.typing import Array


def model_of(path: str | os.PathLike[str] | None, content: Source | Model | None) -> Model:
    """Return the model at `path` or in `content`; exactly one of them must be given.

    Error texts begin as LiteRT's: interpreter.py Interpreter.__init__, model_builder.cc.
    """
    if path is not None and content is not None:
        raise InputError("Can't both provide `model_path` and `model_content`")
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"model_path must be a path, not {type(path).__name__}")
        try:
            return load(path)
        except FileAccessError as error:
            raise error.opening(f"Could not open '{error.path}'") from error.__cause__
        except LimitError:
            raise
        except FormatError as error:
            raise error.opening("The model is not a valid Flatbuffer file") from error.__cause__
    if content is not None:
        if isinstance(content, (str, os.PathLike)):
            raise TypeError("model_content must be bytes; a path goes into model_path")
        try:
            return load(content)
        except LimitError:
            raise
        except FormatError as error:
            raise error.opening("The model is not a valid Flatbuffer buffer") from error.__cause__
    raise InputError("`model_path` or `model_content` must be specified.")


def shape_of(size: Sequence[int] | Array) -> tuple[int, ...]:
    """Return a shape from a list or an array of integers."""
    try:
        array = np.asarray(size)
    except (ValueError, OverflowError) as error:
        raise InputError(f"not a shape: {error}") from error
    if array.ndim != 1:
        raise InputError("a shape is a list of integers", got=size)
    if array.size and array.dtype.kind not in "iu":
        raise InputError("a shape is a list of integers", got=size)
    return tuple(int(extent) for extent in array)


def outside_type(type_: TensorType) -> type[np.generic]:
    """Return the NumPy scalar type that LiteRT names for a tensor type; raw bits if NumPy has none."""
    return OUTSIDE.get(type_, CARRIER[type_].type)


def blank(type_: TensorType, shape: Shape) -> Array:
    """Return a writable array for a tensor that has no value yet: zeros, or empty strings."""
    if type_ == TensorType.STRING:
        return np.full(shape, b"", CARRIER[type_])
    return np.zeros(shape, CARRIER[type_])


def store(buffer: Array, type_: TensorType, value: object, name: str) -> None:
    """Copy a caller's value into `buffer`, without conversion: type and shape must be the tensor's."""
    np.copyto(buffer, admit(value, type_, buffer.shape, name))


def give(value: Array, type_: TensorType) -> Array:
    """Return a copy that belongs to the caller; tensors without dimensions become NumPy scalars, as in LiteRT."""
    copy = np.array(value, order="C")
    if type_ in OUTSIDE and type_ != TensorType.STRING:
        copy = copy.view(OUTSIDE[type_])
    return copy if copy.ndim or type_ == TensorType.STRING else copy[()]


#: Types of string inputs: besides LiteRT's arrays, Python's own.
_TEXTS = (np.ndarray, np.generic, list, tuple, str, bytes)
_NOT_ALLOCATED = "has no memory yet: call allocate_tensors() first"
#: LiteRT's text for a tensor without memory (interpreter_wrapper.cc CheckGetTensorArgs).
_NULL = "Tensor data is null. Run allocate_tensors() first"


class SubgraphSession:
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


Details = dict[str, Any]


def tensor_details(session: SubgraphSession, tensor: int) -> Details:
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


def operator_details(session: SubgraphSession, position: int) -> Details:
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


def _parameters(session: SubgraphSession, quantization: Quantization | None) -> Details:
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


def _elements(session: SubgraphSession, tensor: int, dtype: type[np.float16 | np.int32]) -> Array:
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


P = ParamSpec("P")
R = TypeVar("R")


class Exclusion:
    """A lock that one thread at a time can enter, also repeatedly.

    Another thread does not wait, but gets a StateError: if two threads alternated, one would read the results of the
    other's inputs.
    """

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire, self.leave = lock.acquire, lock.release

    def enter(self) -> None:
        """Enter, until `leave`."""
        if not self._acquire(False):
            raise StateError(
                "another thread is using this interpreter: give each thread one of its own, or hold a lock from "
                "set_tensor to get_tensor"
            )


class Exclusive(Protocol):
    """An object whose methods exclude each other."""

    _exclusion: Exclusion


S = TypeVar("S", bound=Exclusive)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method during which no other thread can call an exclusive method of the same object.

    If memory runs out, it raises a LimitError.
    """

    @functools.wraps(method)
    def alone(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        exclusion = self._exclusion
        exclusion.enter()
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise out_of_memory(method.__name__, error) from error
        finally:
            exclusion.leave()

    return alone


class _Lent:
    """The base of a lent array. Slices keep their array alive, and the array keeps this object alive."""

    def __init__(self, array: Array) -> None:
        self._array, self.__array_interface__ = array, array.__array_interface__


class Lending:
    """The arrays of one interpreter that `tensor()` has lent."""

    def __init__(self) -> None:
        self._lent: list[weakref.ref[_Lent]] = []

    def lend(self, array: Array) -> Array:
        """Return a view of `array` that counts as lent until its last reference is gone. Strings do not count."""
        if array.dtype.hasobject:
            return array
        lent = _Lent(array)
        self._lent.append(weakref.ref(lent))
        return np.asarray(lent)

    @property
    def is_over(self) -> bool:
        """True if no lent array is in use."""
        self._lent = [lent for lent in self._lent if lent() is not None]
        return not self._lent

    def check(self) -> None:
        """Raise if a lent array is still in use.

        Source: LiteRT 2.3 interpreter.py Interpreter._ensure_safe.
        """
        if self._lent and not self.is_over:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or "
                "slice: keep the function that tensor() returned, not its array, or copy the array"
            )
