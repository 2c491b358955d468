"""The module that stands in for other packages' interpreters, and what it offers besides the Interpreter."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import graphs as g
from support import suites
from support.single_op import T
from support.toys import graph, tensor
from tflq import litert
from tflq.engine.api.interpreter import invoke_with_calibration
from tflq.errors import InputError, OperatorFailed, OptionError, UnknownNameError, UnsupportedError
from tflq.model.ir import SignatureDef, TensorType

PATH = str(next((suites.ROOT / "golden" / "singleop").rglob("add_i8_0.tflite")))


def custom_model() -> Any:
    floats = [tensor(TensorType.FLOAT32, shape=(3,)) for _ in range(2)]
    return graph(floats, [("Scale", [0], [1])], [0], [1])


def run(code: str) -> str:
    return run_script(code)


def run_script(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, check=False
    )
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


CALIBRATE = """
import sys
import numpy as np
if sys.argv[1] == "ours":
    import tflq
    tflq.install_as("ai_edge_litert")
from ai_edge_litert import _pywrap_tfl_calibration as calibration
from ai_edge_litert import interpreter as tfl
interpreter = tfl.Interpreter(
    model_content=open(sys.argv[2], "rb").read(),
    experimental_op_resolver_type=tfl.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
)
native = interpreter._interpreter
index = native.GetSubgraphIndexFromSignature("serving_default")
inputs = interpreter._get_full_signature_list()["serving_default"]["inputs"]
for name in sorted(inputs):
    native.ResizeInputTensor(inputs[name], np.array([2, 3], np.int32), strict=False, subgraph_index=index)
native.AllocateTensors(index)
for k, name in enumerate(sorted(inputs)):
    native.SetTensor(inputs[name], np.linspace(-k - 1, 5, 6, dtype=np.float32).reshape(2, 3), index)
ranges = calibration.InvokeWithCalibration(interpreter._native_handle(), index)
print({name: (found.min, found.max) for name, found in ranges.items()})
outputs = interpreter._get_full_signature_list()["serving_default"]["outputs"]
print({name: native.GetTensor(tensor, index).tolist() for name, tensor in sorted(outputs.items())})
"""


def test_ranges_of_a_calibration_are_litert_s(tmp_path: Path) -> None:
    """ai-edge-quantizer asks the native interpreter for them, subgraphs that are called included."""
    pytest.importorskip("ai_edge_litert._pywrap_tfl_calibration", reason="ai-edge-litert is not installed")
    x, attributes = T("float32", (2, 3)), b"\x00\x00\x01\x00\x00$\x01"
    options = ("StableHLOCompositeOptions", {"name": "f", "decomposition_subgraph_index": 1})
    options[1]["composite_attributes"] = attributes
    add = ("AddOptions", {})
    main = [g.Op("ADD", (0, 1), (2,), add), g.Op("STABLEHLO_COMPOSITE", (2,), (3,), options)]
    inner = g.Graph([x] * 3, (0,), (2,), [g.Op("ADD", (0, 0), (1,), add), g.Op("NEG", (1,), (2,))])
    model = tflq.load(g.build(g.Graph([x] * 4, (0, 1), (3,), main), inner))
    signature = SignatureDef("serving_default", (("a", 0), ("b", 1)), (("out", 3),))
    path = tmp_path / "model.tflite"
    tflq.save(replace(model, signature_defs=(signature,)), path)
    told = [run_script(CALIBRATE, who, str(path)) for who in ("ours", "theirs")]
    assert told[0] == told[1]
    assert "g1t1" in told[0]


def test_a_calibration_takes_no_other_interpreter() -> None:
    with pytest.raises(InputError, match="tflq's interpreters only"):
        invoke_with_calibration(1234, 0)  # type: ignore[arg-type]


FAKE = {
    "tensorflow/__init__.py": "from tensorflow import lite",
    "tensorflow/lite/__init__.py": "from tensorflow.lite.python.interpreter import Interpreter",
    "tensorflow/lite/python/__init__.py": "",
    "tensorflow/lite/python/lite.py": "",
    "tensorflow/lite/python/interpreter.py": """
class SignatureRunner:
    def __init__(self, interpreter=None, signature_key=None):
        self.made_for = interpreter
class Interpreter:
    def get_signature_runner(self, signature_key=None):
        return SignatureRunner(interpreter=self, signature_key=signature_key)
""",
}


def test_tensorflow_s_own_calibrator_keeps_its_runners(tmp_path: Path) -> None:
    """It holds the native interpreter, and asks that one for the runner of a signature."""
    for name, text in FAKE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
from tensorflow.lite.python.interpreter import Interpreter as Native
import tflq
tflq.install_as("tensorflow")
import tensorflow as tf
from tensorflow.lite.python.interpreter import SignatureRunner
native = Native()
assert native.get_signature_runner("a").made_for is native
print(tf.lite.Interpreter.__module__)
try:
    SignatureRunner(tf.lite.Interpreter({PATH!r}), "nothing")
except ValueError as error:
    print(error)
"""
    told = run(code).splitlines()
    assert told[0] == "tflq.litert"
    assert told[1].startswith('Invalid signature_key provided: "nothing".')
