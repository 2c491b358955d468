"""Operators of the user's own: callables as rows of a kernel table, and files and packages that hold them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from tflq.engine.api.session import outside_type
from tflq.engine.interpreter.evaluation import admit
from tflq.engine.kernels.kernel import EXACT, Kernel, Node, Prepared
from tflq.engine.kernels.table import Rows, table
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import OwnKernels, Profile
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import TensorType
from tflq.model.storage.kinds import read_bytes
from tflq.typing import Array

#: `function(*inputs, options: bytes)` returns an array for each output; an absent optional input is None.
CustomOperator: TypeAlias = "Callable[..., Any]"
_ANY = "any* -> any*"


class CustomOperators(dict[str, CustomOperator]):
    """The custom operators from registerers: the callable of each, by the operator's name in the file."""

    def add_custom(self, name: str, function: CustomOperator) -> None:
        """Let `function` compute the custom operator `name`."""
        if not callable(function):
            raise OptionError(f"{name} is not callable", name="custom_op_registerers", got=type(function).__name__)
        self[name] = function


def custom_operators(registerers: Mapping[str, CustomOperator] | Sequence[object] | None) -> CustomOperators:
    """Return the custom operators of `registerers`, each a mapping or a function.

    A mapping maps names to callables; a function is called with a CustomOperators to fill.

    Raises:
        OptionError: One is the name of a native function, which tflq cannot call.
    """
    operators = CustomOperators()
    if isinstance(registerers, Mapping):
        for name, function in registerers.items():
            operators.add_custom(name, function)
        return operators
    for registerer in registerers or ():
        if isinstance(registerer, Mapping):
            operators.update(custom_operators(registerer))
        elif callable(registerer):
            registerer(operators)
        else:
            raise OptionError(
                "tflq loads no native code; give the operators as Python callables, custom_op_registerers="
                '[{"MyOp": my_function}]',
                name="custom_op_registerers",
                got=repr(registerer),
            ).opening(_litert_wording(registerer))
    return operators


def _litert_wording(name: object) -> str:
    """Return LiteRT's wording. Source: LiteRT 2.3 interpreter_wrapper.cc RegisterCustomOpByName."""
    library, dot, _ = str(name).partition(".")
    if dot and library == "pywrap_genai_ops":
        return f"Loading library '{library}.so' failed with error"
    return f"Looking up symbol '{name}' failed with error"


def with_custom_operators(profile: Profile, operators: Mapping[str, CustomOperator]) -> Profile:
    """Return the profile with rows that call Python for the custom operators; they replace its own rows."""
    return profile.derive(profile.name, kernels=_rows(operators)) if operators else profile


def _rows(operators: Mapping[str, CustomOperator]) -> dict[str, Rows]:
    return {name: (Kernel(name, _ANY, _prepare(function), exactness=EXACT),) for name, function in operators.items()}


#: The group of entry points by which packages offer operators: each is a module, or an object with its names.
GROUP = "tflq.kernels"


def load_kernels(word: str) -> OwnKernels:
    """Run the user's own code, and return the kernels that it states.

    A module has `KERNELS`, rows as an operator's module of tflq has, or `OPERATORS`, callables by the operator's name
    as `custom_op_registerers` takes them, or both.

    Args:
        word: A file, FILE.py, or the name of an entry point of the group `tflq.kernels`.

    Raises:
        FileAccessError: The file cannot be read.
        UnknownNameError: No installed package has such an entry point.
        OptionError: The code raises, or states no kernels.
    """
    if "+" in word:
        raise OptionError(f"{word}: + ends the name of a profile before it; choose a path without +")
    try:
        module = _run_file(word) if word.endswith(".py") else _entry_point(word)
        kernels, operators = getattr(module, "KERNELS", ()), getattr(module, "OPERATORS", {})
        if not kernels and not operators:
            raise OptionError(f"{word}: states neither KERNELS, rows, nor OPERATORS, callables by name")
        return OwnKernels(word, table(kernels).overlaid(_rows(custom_operators(operators))))
    except (OptionError, OSError, UnknownNameError):
        raise
    except (Exception, SystemExit) as error:
        raise OptionError(f"{word}: {type(error).__name__}: {error}") from error


def _run_file(path: str) -> ModuleType:
    """Run a file as a module of its own, and write no compiled file."""
    module = ModuleType(f"tflq_kernels:{path}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses look for the names of annotations
    exec(compile(read_bytes(path), path, "exec"), module.__dict__)
    return module


def is_offered(name: str) -> bool:
    """Return whether an installed package has an entry point of that name; nothing of it is imported."""
    return name in entry_points(group=GROUP).names


def _entry_point(name: str) -> object:
    known = entry_points(group=GROUP)
    if name not in known.names:
        raise UnknownNameError(f"file FILE.py or entry point of {GROUP}", name, sorted(known.names))
    return known[name].load()


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The data of a call: the function, its options, and the types and names of the operands."""

    function: CustomOperator
    options: bytes
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]
    names: tuple[str, ...]


def _prepare(function: CustomOperator) -> Callable[[Node, Arithmetic], Prepared]:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        """Prepare a call; only the function knows the shapes of its results."""
        data = OpData(
            function,
            node.custom_options,
            tuple(None if operand is None else operand.type for operand in node.inputs),
            tuple(operand.type for operand in node.outputs),
            tuple(f"{node.op} output {position}" for position in range(len(node.outputs))),
        )
        return Prepared((None,) * len(node.outputs), data, eval_custom)

    return prepare


def eval_custom(data: OpData, *inputs: Array | None) -> tuple[Array, ...]:
    """Call the function with copies of the inputs; its results must have the types of the outputs."""
    operands = zip(inputs, data.inputs, strict=True)
    arguments = [None if x is None or type_ is None else _outside(x, type_) for x, type_ in operands]
    result = data.function(*arguments, options=data.options)
    arrays = result if isinstance(result, tuple) else (result,)
    if len(arrays) != len(data.outputs):
        raise OptionError("number of returned arrays", name=data.names[0], expected=len(data.outputs), got=len(arrays))
    return tuple(admit(np.asarray(x), t, None, n) for x, t, n in zip(arrays, data.outputs, data.names, strict=True))


def _outside(value: Array, type_: TensorType) -> Array:
    copy = np.array(value)
    return copy if type_ == TensorType.STRING else copy.view(outside_type(type_))
