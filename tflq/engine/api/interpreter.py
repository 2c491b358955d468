"""The drop-in for LiteRT's and TensorFlow's interpreter.

The constructor's options: those of LiteRT that tflq honours, and the profiles that they mean.

The drop-in for `ai_edge_litert.interpreter.Interpreter` and `tf.lite.Interpreter`.

LiteRT's delegates by name: scripts that request one get a clear error.

Interfaces below LiteRT's Python interpreter that other packages call.

These are the native interpreter, with LiteRT's names, and ai-edge-quantizer's calibration, which is native code in
LiteRT.

Source: LiteRT 2.3, interpreter_wrapper_pybind11.cc; tfl_calibration_wrapper.cc, tfl_tensor_stats_profiler.cc.

Time the operators of an interpreter.
"""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from statistics import median
from time import perf_counter
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from tflq.engine.api.custom import CustomOperator, custom_operators, with_custom_operators
from tflq.engine.api.files import Source
from tflq.engine.api.session import (
    Details,
    Exclusion,
    Lending,
    SubgraphSession,
    exclusive,
    give,
    model_of,
    operator_details,
    shape_of,
    tensor_details,
)
from tflq.engine.api.signature import Owner, SignatureRunner, signature_by_name
from tflq.engine.interpreter.execution import Times
from tflq.engine.interpreter.plan import DEFAULT_MEMORY, DEFAULT_WORK, Called, Limits
from tflq.engine.kernels.kernel import Exactness
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError, StateError, UnknownNameError
from tflq.model.ir import Model, SignatureDef, TensorType
from tflq.model.ir.graph import check_structure
from tflq.texts import display_by
from tflq.typing import Array


@unique
class OpResolverType(Enum):
    """LiteRT's names for its op resolvers. AUTO means BUILTIN, as it does in LiteRT.

    Example:
        >>> model = "golden/models/digits_lstm_int8.tflite"
        >>> tflq.Interpreter(model, experimental_op_resolver_type=tflq.OpResolverType.BUILTIN).profile.name
        'litert-xnnpack'
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


#: The profile of each resolver of LiteRT 2.3 on x86-64.
PROFILE_OF = {
    OpResolverType.AUTO: "litert-xnnpack",
    OpResolverType.BUILTIN: "litert-xnnpack",
    OpResolverType.BUILTIN_REF: "litert-ref",
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES: "litert-opt",
}
#: The profile if neither a resolver nor a profile is given.
DEFAULT_PROFILE = "litert-ref"


def profile_of(resolver: object, profile: str | Profile | None) -> Profile:
    """Return the profile that the two options mean together.

    An explicit profile wins; if a resolver contradicts it, a warning names the resolver.

    Args:
        resolver: An OpResolverType (LiteRT's and TensorFlow's own are understood), its number, or None for no
            preference.
        profile: A profile or its name, or None for the resolver's.

    Raises:
        OptionError: `resolver` is not a resolver.
        UnknownNameError: There is no profile of that name.
    """
    meant = None if resolver is None else _resolver(resolver)
    if profile is None:
        return by_name(DEFAULT_PROFILE if meant is None else PROFILE_OF[meant])
    chosen = by_name(profile)
    if meant not in (None, OpResolverType.AUTO) and meant.name != chosen.source.resolver:
        warnings.warn(
            f"experimental_op_resolver_type={meant.name} means profile {PROFILE_OF[meant]!r}, but "
            f"profile={chosen.name!r} was requested and is used",
            stacklevel=3,
        )
    return chosen


def _resolver(value: object) -> OpResolverType:
    """Read an enum of that name from any package, or LiteRT's number for it."""
    if isinstance(value, Enum) and value.name in OpResolverType.__members__:
        return OpResolverType[value.name]
    if isinstance(value, int) and not isinstance(value, (bool, Enum)) and 0 <= value < len(OpResolverType):
        return OpResolverType(value)
    names = ", ".join(OpResolverType.__members__)
    raise OptionError(
        "not an op resolver type", name="experimental_op_resolver_type", expected=f"one of {names}", got=value
    ).opening(f"Unrecognized passed in op resolver type: {value}")


def check_threads(num_threads: object) -> None:
    """Refuse the numbers of threads that LiteRT refuses. Others change nothing."""
    if num_threads is None:
        return
    if not isinstance(num_threads, int) or isinstance(num_threads, bool):
        error = OptionError("has the wrong type", name="num_threads", expected="an int", got=num_threads)
        raise error.opening("type of num_threads should be int")
    if num_threads < 1:
        error = OptionError("is too small", name="num_threads", expected="1 or more", got=num_threads)
        raise error.opening("num_threads should >= 1")


def check_delegates(delegates: Sequence[object] | None, latest_features: object) -> None:
    """Refuse delegates: they have arithmetic of their own."""
    if delegates:
        reason = "a delegate is native code, which tflq cannot run; leave it out, or choose a profile"
        raise OptionError(reason, name="experimental_delegates")
    if latest_features:
        reason = "tflq has no profile of XNNPACK with its latest features"
        raise OptionError(reason, name="experimental_default_delegate_latest_features")


@display_by("cards:interpreter_card")
class Interpreter:
    """An interpreter of `.tflite` models with the arithmetic of `profile`, bit by bit.

    Calls, dictionaries, arrays and errors are those of LiteRT's Python interpreter; docs/drop-in.md lists the
    differences. A plain `Interpreter(path)` computes `litert-ref`: the reference kernels have the same arithmetic on
    every processor. `experimental_op_resolver_type` or `profile` selects another.

    * A tensor that a run did not keep reads as zeros, with a warning; LiteRT returns the contents of its memory. With
      `strict=True` it is an error, and so is writing to a tensor that is neither an input nor a variable. Intermediate
      tensors are kept with `experimental_preserve_all_tensors=True`.
    * An unsupported operator is refused by `allocate_tensors()`, not by the constructor.
    * A call while another thread is in a call of the same interpreter raises a StateError. Different interpreters may
      run in different threads, also of the same Model.

    Every error is a `tflq.TflqError`, and also a ValueError, RuntimeError or NotImplementedError if LiteRT raises one.

    Example:
        >>> interpreter = tflq.Interpreter("golden/models/digits_mobilenet_int8.tflite", profile="litert-xnnpack")
        >>> interpreter.allocate_tensors()
        >>> (details,) = interpreter.get_input_details()
        >>> interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
        >>> interpreter.invoke()
        >>> interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape
        (1, 10)
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: Source | Model | None = None,
        experimental_delegates: Sequence[object] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: object = None,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        custom_op_registerers: Mapping[str, CustomOperator] | Sequence[object] | None = None,
        *,
        profile: str | Profile | None = None,
        strict: bool = False,
        memory_limit: int = DEFAULT_MEMORY,
        work_limit: int = DEFAULT_WORK,
    ) -> None:
        """Load a model from a path, or from the bytes of a file (or a Model) in `model_content`.

        Args:
            model_path: A `.tflite` file.
            model_content: The bytes of one, or a Model.
            experimental_delegates: Refused unless empty.
            num_threads: Accepted, and changes nothing: an operator is computed in one thread.
            experimental_op_resolver_type: An OpResolverType, of tflq, LiteRT or TensorFlow, or its number: BUILTIN and
                AUTO mean profile `litert-xnnpack`, BUILTIN_WITHOUT_DEFAULT_DELEGATES `litert-opt`, BUILTIN_REF
                `litert-ref`. None leaves it to `profile`.
            experimental_preserve_all_tensors: Keep intermediate tensors, for get_tensor and tensor.
            experimental_disable_delegate_clustering, experimental_disable_delegate_node_fusion: Accepted.
            experimental_default_delegate_latest_features: Refused if true: no profile has them.
            experimental_compress_quantization_zero_points: Accepted; changes LiteRT's memory only.
            experimental_force_delegate_node_profiling: Accepted; there are none.
            custom_op_registerers: Custom operators as Python callables, by name: `{"MyOp": function}`, where
                `function(*inputs, options: bytes)` gives the outputs; or functions that fill a `CustomOperators`.
            profile: The arithmetic: a name (see `profiles.PROFILES`), the path of a profile's YAML file, or a
                Profile. It overrides a resolver.
            strict: Refuse to read tensors without a value and to write tensors that are not inputs.
            memory_limit: Bytes of tensors and of operators' working memory at the same time; constants do not count.
            work_limit: Passes of the operators' innermost loops that one `invoke` may take, of subgraphs, too.

        Raises:
            FileAccessError: The path cannot be read.
            FormatError: The bytes are not a valid `.tflite` file.
            OptionError: An option cannot be honoured.
            ModelError: The graph refers to a part that it does not have.
        """
        chosen = profile_of(experimental_op_resolver_type, profile)
        check_delegates(experimental_delegates, experimental_default_delegate_latest_features)
        check_threads(num_threads)
        self._custom_op_registerers = custom_op_registerers or []
        self._profile = with_custom_operators(chosen, custom_operators(custom_op_registerers))
        self._delegates: list[object] = []
        self._strict = bool(strict)
        self._compress = experimental_compress_quantization_zero_points
        self._keep_all = bool(experimental_preserve_all_tensors)
        self._limits = Limits(operator.index(memory_limit), operator.index(work_limit))
        self._model = model_of(model_path, model_content)
        check_structure(self._model)
        self._sessions: dict[int, SubgraphSession] = {}
        self._resources: dict[Hashable, Any] = {}
        self._exclusion, self._lending = Exclusion(), Lending()
        self._session(0)
        self._signature_defs = self.get_signature_list()

    @property
    def profile(self) -> Profile:
        """The profile whose arithmetic is reproduced."""
        return self._profile

    @property
    def model(self) -> Model:
        """The model in its file's form."""
        return self._model

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's option."""
        return self._compress

    @exclusive
    def allocate_tensors(self) -> None:
        """Bind every operator to the present input shapes. Needed before `invoke`, and after a resize.

        Raises:
            UnsupportedError: The profile has no kernel for an operator; names it, and the nearest form.
            ModelError: An operator cannot accept its operands.
            LimitError: The model exceeds `memory_limit` or `work_limit`.
        """
        self._lending.check()
        self._session(0).allocate()

    @exclusive
    def invoke(self) -> None:
        """Run the model on the present inputs.

        Raises:
            LimitError: It exceeds `memory_limit` or `work_limit`, which depends on the values.
        """
        self._lending.check()
        self._invoke(0)

    @exclusive
    def reset_all_variables(self) -> None:
        """Set the variable tensors back to their values after an allocation."""
        for session in self._sessions.values():
            session.reset_variables()

    @exclusive
    def resize_tensor_input(
        self, input_index: SupportsIndex, tensor_size: Sequence[int] | Array, strict: bool = False
    ) -> None:
        """Give an input another shape, from the next `allocate_tensors` on.

        `strict` allows that only for dimensions that are -1 in `shape_signature`.
        """
        self._lending.check()
        self._session(0).resize(operator.index(input_index), shape_of(tensor_size), strict)

    @exclusive
    def set_tensor(self, tensor_index: SupportsIndex, value: Any) -> None:
        """Copy `value`, an array of exactly the tensor's type and shape, into an input or a variable."""
        self._session(0).set(operator.index(tensor_index), value)

    @exclusive
    def get_tensor(self, tensor_index: SupportsIndex, subgraph_index: SupportsIndex = 0) -> Any:
        """Return a copy of the tensor's present value."""
        session, tensor = self._session(operator.index(subgraph_index)), operator.index(tensor_index)
        return give(session.value(tensor), session.type(tensor))

    @exclusive
    def promise(self, tensor_index: SupportsIndex) -> Exactness:
        """Return a tensor's promise for equal inputs: the runtime's bits, its bits on the same libm, or close values.

        Known from `allocate_tensors` on.
        """
        return self._session(0).promise(operator.index(tensor_index))

    def tensor(self, tensor_index: SupportsIndex) -> Callable[[], Array]:
        """Return a function that returns the array of the tensor at the time of the call, without a copy.

        Such an array is writable, unless it belongs to a constant. While one is held, `allocate_tensors`, `invoke` and
        `resize_tensor_input` raise a RuntimeError.
        """
        index = operator.index(tensor_index)
        return lambda: self._view(index)

    @exclusive
    def get_input_details(self) -> list[Details]:
        """Return details of the input tensors."""
        return [tensor_details(self._session(0), tensor) for tensor in self._session(0).graph.inputs]

    @exclusive
    def get_output_details(self) -> list[Details]:
        """Return details of the output tensors."""
        return [tensor_details(self._session(0), tensor) for tensor in self._session(0).graph.outputs]

    @exclusive
    def get_tensor_details(self, subgraph_index: SupportsIndex = 0) -> list[Details]:
        """Return details of all tensors of a subgraph."""
        index, count = operator.index(subgraph_index), self.num_subgraphs()
        if not 0 <= index < count:
            opening = f"subgraph_index is out of range: {index} for the model, which has {count} subgraphs."
            raise UnknownNameError("subgraph", index, range(count)).opening(opening)
        return [
            tensor_details(self._session(index), tensor) for tensor in range(len(self._session(index).graph.tensors))
        ]

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs of the model."""
        return len(self._model.subgraphs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return names of the inputs and outputs, by signature key."""
        signatures = self._get_full_signature_list().items()
        return {key: {side: list(tensors) for side, tensors in sides.items()} for key, sides in signatures}

    @exclusive
    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a callable that runs a signature; the key is optional if the model has only one."""
        if signature_key is None:
            signatures = self._signatures()
            if len(signatures) != 1:
                raise InputError(
                    f"SignatureDef signature_key is None and model has {len(signatures)} Signatures. None is only "
                    "allowed when the model has 1 SignatureDef",
                    expected=f"one of {', '.join(signatures) or 'none: use set_tensor and invoke'}",
                    got=None,
                )
            signature_key = next(iter(signatures))
        return SignatureRunner(self, signature_key)

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            key: {"inputs": signature_by_name(signature.inputs), "outputs": signature_by_name(signature.outputs)}
            for key, signature in self._signatures().items()
        }

    @exclusive
    def _get_tensor_details(self, tensor_index: SupportsIndex, subgraph_index: SupportsIndex) -> Details:
        return tensor_details(self._session(operator.index(subgraph_index)), operator.index(tensor_index))

    def _safe_to_run(self) -> bool:
        return self._lending.is_over

    def _ensure_safe(self) -> None:
        self._lending.check()

    def _native_handle(self) -> NoReturn:
        raise StateError("tflq has no native interpreter, and so no address of one")

    @exclusive
    def _get_ops_details(self) -> list[Details]:
        session = self._session(0)
        return [operator_details(session, position) for position in range(len(session.graph.ops))]

    @exclusive
    def _get_op_details(self, op_index: SupportsIndex) -> Details:
        return operator_details(self._session(0), operator.index(op_index))

    @exclusive
    def _view(self, index: int) -> Array:
        return self._lending.lend(self._session(0).view(index))

    def _invoke(self, subgraph: int) -> None:
        trace = self._session(subgraph).invoke()
        if trace.called:
            for index, called in trace.called.items():
                self._session(index).note_call(called)

    def _signatures(self) -> dict[str, SignatureDef]:
        return {s.signature_key or "": s for s in self._model.signature_defs or ()}

    def _session(self, index: int) -> SubgraphSession:
        session = self._sessions.get(index)
        if session is None:
            if not 0 <= index < self.num_subgraphs():
                error = UnknownNameError("subgraph", index, range(self.num_subgraphs()))
                raise error.opening(f"Invalid subgraph index {index} exceeds max subgraph index {self.num_subgraphs()}")
            shared = self._keep_all, self._limits, self._resources, self._strict
            session = self._sessions[index] = SubgraphSession(self._model, self._profile, index, *shared)
        return session


class Delegate:
    """LiteRT's wrapper of a delegate in a shared library. Creating one is refused: it is native code."""

    def __init__(self, library: str, options: Mapping[str, object] | None = None) -> None:
        raise OptionError(
            "tflq loads no native code; run without the delegate, or choose the profile with its arithmetic",
            name="load_delegate",
            got=library,
        )


def load_delegate(library: str, options: Mapping[str, object] | None = None) -> NoReturn:
    """Raise the ValueError that LiteRT raises for a delegate that it cannot load; scripts then fall back to the CPU."""
    try:
        Delegate(library, options)
    except OptionError as error:
        raise error.opening(f"Failed to load delegate from {library}") from None
    raise AssertionError("a Delegate is never made")


#: Types of tensors whose values a calibration counts.
_CALIBRATED = (TensorType.FLOAT32, TensorType.INT32)


class NativeInterpreter:
    """Subgraphs of an interpreter by number, with the methods of LiteRT's native interpreter."""

    def __init__(self, interpreter: Owner) -> None:
        self._interpreter = interpreter
        self._exclusion: Exclusion = interpreter._exclusion

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> int:  # noqa: N802
        """Return the subgraph that a signature runs."""
        signatures = self._interpreter._signatures()
        if signature_key not in signatures:
            raise UnknownNameError("signature", signature_key, tuple(signatures))
        return signatures[signature_key].subgraph_index

    @exclusive
    def ResizeInputTensor(  # noqa: N802
        self, i: int, value: Sequence[int] | Array, strict: bool = False, subgraph_index: int = 0
    ) -> None:
        """Give an input another shape, from the next allocation on."""
        self._session(subgraph_index).resize(int(i), shape_of(value), strict)

    @exclusive
    def AllocateTensors(self, subgraph_index: int = 0) -> None:  # noqa: N802
        """Bind the operators of a subgraph."""
        self._session(subgraph_index).allocate()

    @exclusive
    def SetTensor(self, i: int, value: Any, subgraph_index: int = 0) -> None:  # noqa: N802
        """Copy an array into a tensor."""
        self._session(subgraph_index).set(int(i), value)

    @exclusive
    def GetTensor(self, i: int, subgraph_index: int = 0) -> Array:  # noqa: N802
        """Return a copy of a tensor's value."""
        session = self._session(subgraph_index)
        return give(session.value(int(i)), session.type(int(i)))

    @exclusive
    def Invoke(self, subgraph_index: int = 0) -> None:  # noqa: N802
        """Run a subgraph."""
        self._interpreter._invoke(max(int(subgraph_index), 0))

    @exclusive
    def calibrate(self, subgraph_index: int) -> dict[str, NativeRange]:
        """Run a subgraph and return the range of every tensor in it and in subgraphs below it, by name."""
        session = self._session(subgraph_index)
        ranges: dict[str, NativeRange] = {}
        trace = session.invoke(keep_all=True)
        assert session.plan is not None  # it has just run
        for name, array in _activations((Called(session.plan.operands, trace.values), *trace.called.values())):
            low, high = float(np.float32(array.min())), float(np.float32(array.max()))
            before = ranges.get(name, NativeRange(low, high))
            ranges[name] = NativeRange(min(low, before.min), max(high, before.max))
        return dict(sorted(ranges.items()))

    def _session(self, subgraph_index: int) -> SubgraphSession:
        return self._interpreter._session(max(int(subgraph_index), 0))  # -1 means the first, as in LiteRT


@dataclass(frozen=True, slots=True)
class NativeRange:
    """Smallest and largest value of a tensor, as float32."""

    min: float
    max: float


def invoke_with_calibration(interpreter_handle: NativeInterpreter, subgraph_index: int) -> dict[str, NativeRange]:
    """Run a subgraph and return the range of each float32 and int32 tensor except constants, by name.

    If a subgraph is called several times, its last call counts. `interpreter_handle` is the result of tflq's
    `_native_handle()`.
    """
    if not isinstance(interpreter_handle, NativeInterpreter):
        raise InputError("takes tflq's interpreters only", got=type(interpreter_handle).__name__)
    return interpreter_handle.calibrate(subgraph_index)


def _activations(subgraphs: Iterable[Called]) -> Iterator[tuple[str, Array]]:
    """Yield names and values of the inputs and results of subgraphs."""
    for subgraph in subgraphs:
        for tensor, value in subgraph.values.items():
            operand = subgraph.operands[tensor]
            if operand.type in _CALIBRATED and not operand.is_variable and value.size:
                yield operand.name, value


#: Least and largest number of runs.
_LEAST, _MOST = 3, 1000


def operator_times(interpreter: Interpreter, subgraph: int, seconds: float) -> list[tuple[int, float]]:
    """Run a subgraph on its present inputs for about `seconds`; return operators with the median of their seconds.

    The subgraph must have run twice, so that it is timed in the form in which it is invoked again and again.

    Raises:
        TflqError: See Interpreter.invoke.
    """
    session = interpreter._session(subgraph)
    runs: list[Times] = []
    end = perf_counter() + seconds
    while len(runs) < _LEAST or (perf_counter() < end and len(runs) < _MOST):
        runs.append(session.time_operators())
    return [(index, median(run[index] for run in runs)) for index in runs[0]]
