"""The drop-in for `ai_edge_litert.interpreter.Interpreter` and `tf.lite.Interpreter`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex

from tflq.display import display_by
from tflq.engine.api.arguments import model_of, shape_of
from tflq.engine.api.custom import CustomOperator, custom_operators, with_custom_operators
from tflq.engine.api.details import Details, operator_details, tensor_details
from tflq.engine.api.exclusion import Exclusion, exclusive
from tflq.engine.api.files import Source
from tflq.engine.api.lending import Lending
from tflq.engine.api.options import check_delegates, check_threads, profile_of
from tflq.engine.api.session import Session
from tflq.engine.api.signature import SignatureRunner, by_name
from tflq.engine.api.values import give
from tflq.engine.interpreter.limits import DEFAULT_MEMORY, DEFAULT_WORK, Limits
from tflq.engine.kernels.exactness import Exactness
from tflq.engine.profiles import Profile
from tflq.errors import InputError, StateError, UnknownNameError
from tflq.model.ir import Model, SignatureDef
from tflq.model.ir.structure import check_structure
from tflq.typing import Array


@display_by("inspect.cards:interpreter_card")
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
        self._sessions: dict[int, Session] = {}
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
            key: {"inputs": by_name(signature.inputs), "outputs": by_name(signature.outputs)}
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

    def _session(self, index: int) -> Session:
        session = self._sessions.get(index)
        if session is None:
            if not 0 <= index < self.num_subgraphs():
                error = UnknownNameError("subgraph", index, range(self.num_subgraphs()))
                raise error.opening(f"Invalid subgraph index {index} exceeds max subgraph index {self.num_subgraphs()}")
            shared = self._keep_all, self._limits, self._resources, self._strict
            session = self._sessions[index] = Session(self._model, self._profile, index, *shared)
        return session
