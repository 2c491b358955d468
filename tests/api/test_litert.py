"""The module that stands in for other packages' interpreters, and what it offers besides the Interpreter."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.toys import graph, tensor
from tflq import litert
from tflq.errors import OperatorFailed, OptionError, UnknownNameError, UnsupportedError
from tflq.ir import TensorType

PATH = str(next((suites.ROOT / "golden" / "singleop").rglob("add_i8_0.tflite")))


def custom_model() -> Any:
    floats = [tensor(TensorType.FLOAT32, shape=(3,)) for _ in range(2)]
    return graph(floats, [("Scale", [0], [1])], [0], [1])


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_has_the_names_of_litert() -> None:
    original = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    for name in ("Interpreter", "InterpreterWithCustomOps", "SignatureRunner", "OpResolverType", "Delegate"):
        assert hasattr(original, name)
        assert hasattr(litert, name)
    assert litert.experimental.OpResolverType is tflq.OpResolverType
    assert litert.experimental.load_delegate is litert.load_delegate


def test_it_computes_what_litert_does_by_default() -> None:
    assert litert.Interpreter(PATH).profile.name == "litert-xnnpack"
    reference = tflq.OpResolverType.BUILTIN_REF
    assert litert.Interpreter(PATH, experimental_op_resolver_type=reference).profile.name == "litert-ref"
    assert litert.Interpreter(PATH, None, None, None, reference).profile.name == "litert-ref"
    assert litert.Interpreter(PATH, profile="tflm").profile.name == "tflm"


@pytest.mark.parametrize("package", ["tflite_runtime", "ai_edge_litert"])
def test_it_stands_in_for_a_package(package: str) -> None:
    code = f"""
import tflq
tflq.install_as({package!r})
import {package}.interpreter as one
from {package} import interpreter as other
from {package}.interpreter import Interpreter, load_delegate, OpResolverType
assert one is other
i = Interpreter({PATH!r}, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
i.allocate_tensors(); i.invoke()
print(type(i).__module__, i.profile.name)
"""
    assert run(code) == "tflq.litert litert-ref"


def test_it_stands_in_with_a_profile_of_its_own() -> None:
    code = f"""
import tflq
tflq.install_as("tflite_runtime", profile="tflite-2.14-ref")
from tflite_runtime.interpreter import Interpreter, InterpreterWithCustomOps
print(Interpreter({PATH!r}).profile.name, InterpreterWithCustomOps(model_path={PATH!r}).profile.name)
"""
    assert run(code) == "tflite-2.14-ref tflite-2.14-ref"


def test_an_unknown_package_names_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="tflite_runtime"):
        tflq.install_as("onnxruntime")


def test_a_delegate_cannot_be_loaded() -> None:
    with pytest.raises(ValueError, match=r"^Failed to load delegate from libedgetpu\.so\.1: .* native code"):
        litert.load_delegate("libedgetpu.so.1")


def scale(x: Any, options: bytes) -> Any:
    assert options == b""
    return x * np.float32(2)


def test_custom_operators_are_python_callables() -> None:
    def register(operators: litert.CustomOperators) -> None:
        operators.add_custom("Scale", scale)

    for registerers in ({"Scale": scale}, [{"Scale": scale}], [register]):
        interpreter = litert.InterpreterWithCustomOps(custom_op_registerers=registerers, model_content=custom_model())
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([1, 2, 3], np.float32))
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == [2, 4, 6]


def test_a_custom_operator_without_a_callable_is_refused() -> None:
    interpreter = tflq.Interpreter(model_content=custom_model())
    with pytest.raises(UnsupportedError, match="Scale"):
        interpreter.allocate_tensors()
    with pytest.raises(OptionError, match=r"^Looking up symbol 'Register' failed"):
        litert.InterpreterWithCustomOps(custom_op_registerers=["Register"], model_content=custom_model())


@pytest.mark.parametrize("result", [np.zeros(3, np.int32), (np.zeros(3, np.float32),) * 2])
def test_what_a_custom_operator_makes_is_checked(result: Any) -> None:
    interpreter = tflq.Interpreter(
        model_content=custom_model(), custom_op_registerers={"Scale": lambda x, options: result}
    )
    interpreter.allocate_tensors()
    with pytest.raises((tflq.TflqError, OperatorFailed), match="Scale output 0"):
        interpreter.invoke()
