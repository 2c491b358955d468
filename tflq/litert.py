"""A replacement for `ai_edge_litert.interpreter`, `tflite_runtime.interpreter` and `tf.lite`.

    import tflq
    tflq.install_as("tflite_runtime")

    from tflite_runtime.interpreter import Interpreter  # tflq's

Its Interpreter is `tflq.Interpreter` with LiteRT's default: without a resolver it uses AUTO, profile `litert-xnnpack`.
docs/drop-in.md lists the differences.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from tflq.engine.api.custom import CustomOperator, CustomOperators
from tflq.engine.api.interpreter import (
    Delegate,
    NativeInterpreter,
    NativeRange,
    OpResolverType,
    invoke_with_calibration,
    load_delegate,
)
from tflq.engine.api.interpreter import Interpreter as _Interpreter
from tflq.engine.api.signature import SignatureRunner
from tflq.engine.profiles import Profile, by_name
from tflq.errors import UnknownNameError

__all__ = [
    "CustomOperators",
    "Delegate",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "SignatureRunner",
    "experimental",
    "install_as",
    "load_delegate",
]

#: The names from these that tf.lite.experimental holds.
experimental = SimpleNamespace(OpResolverType=OpResolverType, load_delegate=load_delegate)


class Interpreter(_Interpreter):
    """`tflq.Interpreter` with LiteRT's default: AUTO, unless a profile or a resolver is given."""

    _default_profile: str | Profile | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if options.get("profile") is None:
            options["profile"] = self._default_profile
        if options["profile"] is None and len(arguments) < _RESOLVER:
            options.setdefault("experimental_op_resolver_type", OpResolverType.AUTO)
        super().__init__(*arguments, **options)
        self._interpreter = NativeInterpreter(self)

    def _native_handle(self) -> NativeInterpreter:  # type: ignore[override]
        """Return the native interpreter, not an address: calibration of `install_as("ai_edge_litert")` takes it."""
        return self._interpreter


#: The position of experimental_op_resolver_type among the constructor's positional arguments, counted from 1.
_RESOLVER = 5


class InterpreterWithCustomOps(Interpreter):
    """An Interpreter with custom operators; the registerers come first, as in LiteRT."""

    def __init__(
        self, custom_op_registerers: Mapping[str, CustomOperator] | Sequence[object] | None = None, **options: Any
    ) -> None:
        super().__init__(custom_op_registerers=custom_op_registerers, **options)


#: Packages that the module can replace.
PACKAGES = ("tflite_runtime", "ai_edge_litert", "tensorflow")


def install_as(package: str, profile: str | Profile | None = None) -> ModuleType:
    """Replace another package's interpreter by tflq's, for later imports in this process.

    Args:
        package: "tflite_runtime", "ai_edge_litert" or "tensorflow" (also "tf.lite"). An installed package keeps the
            rest of its modules; only tensorflow must be installed.
        profile: The default profile of its Interpreter; None for those of LiteRT's resolvers.

    Returns:
        The module that replaces the package's interpreter.

    Raises:
        UnknownNameError: There is no such package or profile.

    Example:
        >>> module = tflq.install_as("tflite_runtime", profile="tflite-2.14-ref")
        >>> from tflite_runtime.interpreter import Interpreter
        >>> Interpreter("golden/models/digits_mobilenet_int8.tflite").profile.name
        'tflite-2.14-ref'
    """
    name = "tensorflow" if package in ("tf", "tf.lite") else package.partition(".")[0]
    if name not in PACKAGES:
        raise UnknownNameError("package to replace", package, PACKAGES)
    module = _module(name, profile)
    if name == "tensorflow":
        _install_in_tensorflow(module)
        return module
    parent = sys.modules.get(name)
    if parent is None:
        parent = import_module(name) if find_spec(name) is not None else _package(name)
    sys.modules[name] = parent
    modules = {"interpreter": module}
    if name == "ai_edge_litert":
        modules[_CALIBRATION] = _calibration(f"{name}.{_CALIBRATION}")
    for part, stand_in in modules.items():
        sys.modules[f"{name}.{part}"] = stand_in
        setattr(parent, part, stand_in)
    return module


#: LiteRT's native module with which ai-edge-quantizer observes ranges.
_CALIBRATION = "_pywrap_tfl_calibration"


def _calibration(name: str) -> ModuleType:
    module = ModuleType(name, "Ranges of tensors while a model runs, of tflq's interpreters.")
    vars(module).update(InvokeWithCalibration=invoke_with_calibration, Range=NativeRange)
    return module


def _module(package: str, profile: str | Profile | None) -> ModuleType:
    """Return this module, or a copy whose interpreters compute `profile`."""
    if profile is None:
        return sys.modules[__name__]
    default = {"_default_profile": by_name(profile), "__module__": f"{package}.interpreter"}
    module = ModuleType(f"{package}.interpreter", __doc__)
    vars(module).update({name: globals()[name] for name in __all__}, __all__=__all__)
    plain = type("Interpreter", (Interpreter,), {**default, "__doc__": Interpreter.__doc__})
    vars(module)["Interpreter"] = plain
    vars(module)["InterpreterWithCustomOps"] = type("InterpreterWithCustomOps", (InterpreterWithCustomOps,), default)
    return module


def _package(name: str) -> ModuleType:
    package = ModuleType(name, "Replaces a package that is not installed; see tflq.litert.")
    package.__path__ = []
    return package


def _install_in_tensorflow(module: ModuleType) -> None:
    """Replace the names in TensorFlow's own modules and in its public API.

    Its calibrator keeps the native interpreter, which makes its own runners.
    """
    tensorflow = import_module("tensorflow")
    original = import_module("tensorflow.lite.python.interpreter").SignatureRunner

    class Runner(SignatureRunner):
        __doc__ = SignatureRunner.__doc__

        def __new__(cls, interpreter: Any = None, signature_key: str | None = None) -> Any:
            if interpreter is None or isinstance(interpreter, _Interpreter):
                return super().__new__(cls)
            return original(interpreter, signature_key)

    stand_ins = {**vars(module), "SignatureRunner": Runner}
    homes = [import_module(f"tensorflow.lite.python.{name}") for name in ("interpreter", "lite")]
    for home in (*homes, tensorflow.lite):
        for name in ("Interpreter", "InterpreterWithCustomOps", "SignatureRunner"):
            if hasattr(home, name):
                setattr(home, name, stand_ins[name])
