"""Foreign systems behind the interface of tflq_drivers: one function for each, by the name of its adapter.

A function imports its system, and returns a function that loads a model by its path and returns a function from inputs
to outputs, both lists. An exception is a refusal of the model. docs/targets.md describes the systems.
"""
# ruff: noqa: B905 (Python 3.8 has no strict zip)

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Optional  # noqa: UP035

import numpy as np

#: Seconds that one call of a program may take.
_SECONDS = 120
#: Characters of an error that are kept.
_KEPT = 200
#: Where this Python's environment keeps its programs.
_BIN = os.path.dirname(sys.executable)


def _program(name: str) -> str:
    """Return the path of a program of this environment; raise an ImportError if there is none."""
    found = shutil.which(name, path=_BIN)
    if found is None:
        raise ImportError(f"no program {name} beside {sys.executable}")
    return found


def _call(*words: str) -> Any:
    """Run a program, which finds those of this environment only; return what it printed.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, env={"PATH": _BIN})
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[:_KEPT]
        raise RuntimeError(f"{os.path.basename(words[0])}: {said or f'exit status {done.returncode}'}")
    return done.stdout


class Foreign:
    """A model that a foreign system has loaded. It has no signatures, and no state between runs."""

    def __init__(self, load: Any, model: Any) -> None:
        """Load `model`, a path or the bytes of a file, which stays until this object ends."""
        self.folder = None
        if not isinstance(model, str):
            self.folder = tempfile.TemporaryDirectory()
            path = os.path.join(self.folder.name, "model.tflite")
            with open(path, "wb") as file:
                file.write(model)
            model = path
        self.path = model
        self.run = load(model)

    def step(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Run the model; return outputs by position."""
        if signature is not None:
            raise NotImplementedError("a foreign system runs the first subgraph, not signatures")
        stage("invoking")
        return {str(i): value for i, value in enumerate(self.run(self.given(inputs)))}

    def given(self, inputs: Any) -> Any:
        """Return inputs that are named by position, in order."""
        return [inputs[name] for name in sorted(inputs, key=int)]

    def poison(self, signature: Optional[str], inputs: Any, names: Any, stage: Any) -> None:  # noqa: UP045
        """Do nothing: outputs are arrays of the system's own."""

    def bound(self, signature: Optional[str], inputs: Any, stage: Any) -> Any:  # noqa: UP045
        """Return a function that does nothing, and one that runs the model: see Desktop.bound."""
        values = self.given(inputs)
        return (lambda: None), (lambda: self.run(values))

    def delegated(self) -> int:
        """Return 0: there are no delegates."""
        return 0


def ready(adapter: str, settings: Any) -> Any:
    """Import a system; return the function that loads a model.

    The model that was loaded last is not loaded again, because it has no state.
    """
    load_path = SYSTEMS[adapter](settings)
    latest: Any = [None, None]

    def load(model: Any, job: Any) -> Any:
        if latest[0] != model:
            latest[:] = [None, None]
            latest[:] = [model, Foreign(load_path, model)]
        return latest[1]

    return load


def _openvino(settings: Any) -> Any:
    """Import OpenVINO; return a function that compiles a model for one thread.

    OpenVINO's CPU plugin. By default it computes in bfloat16 where the processor can; here float32 is the default.
    """
    import openvino

    core = openvino.Core()
    config = {"NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1}
    if settings["precision"] != "default":
        config["INFERENCE_PRECISION_HINT"] = settings["precision"]

    def load(path: str) -> Any:
        compiled = core.compile_model(core.read_model(path), "CPU", config)

        def run(inputs: Any) -> Any:
            results = compiled(inputs)
            return [results[output] for output in compiled.outputs]

        return run

    return load


def _onnxruntime(settings: Any) -> Any:
    """Import ONNX Runtime and tf2onnx; return a function that converts a model to ONNX and loads it.

    It runs on the CPU with one thread.
    """
    import onnxruntime
    import tf2onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3

    def load(path: str) -> Any:
        converted, _ = tf2onnx.convert.from_tflite(path, opset=int(settings["opset"]))
        session = _plainly(
            lambda: onnxruntime.InferenceSession(converted.SerializeToString(), options, ["CPUExecutionProvider"])
        )
        names = [value.name for value in session.get_inputs()]
        return lambda inputs: _plainly(lambda: session.run(None, dict(zip(names, inputs))))

    return load


def _plainly(call: Any) -> Any:
    """ONNX Runtime over tf2onnx, on the CPU with one thread.

    Call a function of ONNX Runtime; its errors are raised without their code and state.
    """
    try:
        return call()
    except Exception as error:
        text = str(error).split(" : ", 3)[-1].replace("This is an invalid model. ", "")
        raise RuntimeError(text) from error


_NCHW, _NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def _opencv(settings: Any) -> Any:
    """Import OpenCV; return a function that reads a model.

    Quantized models need the classic engine of OpenCV's dnn module, which is the default here. Images are in the order
    NCHW there, so tensors of four axes are transposed on the way in and out. Several inputs are set by the names of
    their tensors, which are in0, in1 ... in suites; other models of several inputs are refused.
    """
    import cv2

    cv2.setNumThreads(1)
    engine = settings["engine"]
    words = {} if engine == "default" else {"engine": getattr(cv2.dnn, f"ENGINE_{engine.upper()}")}

    def turned(value: Any, axes: Any) -> Any:
        return np.ascontiguousarray(value.transpose(axes)) if value.ndim == len(axes) else value

    def load(path: str) -> Any:
        try:
            net = cv2.dnn.readNetFromTFLite(path, **words)
            names = net.getUnconnectedOutLayersNames()
        except cv2.error as error:
            raise RuntimeError(said(error)) from error

        def run(inputs: Any) -> Any:
            try:
                for number, value in enumerate(inputs):
                    net.setInput(turned(value, _NCHW), "" if len(inputs) == 1 else f"in{number}")
                return [turned(net.forward(name), _NHWC) for name in names]
            except cv2.error as error:
                raise RuntimeError(said(error)) from error

        return run

    def said(error: Any) -> str:
        """Return an error's text without the place in OpenCV's source."""
        return f"{error.func}: {error.err or error}"

    return load


def _tvm(settings: Any) -> Any:
    """Import TVM; return a function that imports, compiles and loads a model.

    Apache TVM: its importer into relax, compiled by LLVM for this processor.
    """
    import tflite
    import tvm
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite

    def load(path: str) -> Any:
        with open(path, "rb") as file:
            model = tflite.Model.GetRootAsModel(file.read(), 0)
        module = relax.transform.DecomposeOpsForInference()(from_tflite(model))
        machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())

        def run(inputs: Any) -> Any:
            result = machine["main"](*[tvm.runtime.tensor(value) for value in inputs])
            results = [result] if hasattr(result, "numpy") else result
            return [value.numpy() for value in results]

        return run

    return load


_IREE = (
    "--iree-input-type=tosa",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


def _iree(settings: Any) -> Any:
    """Import IREE; return a function that converts a model to TOSA, compiles it and loads it.

    IREE over the converter to TOSA, compiled for this processor.
    """
    import iree.runtime as rt

    converter, printer, compiler = map(_program, ("tosa-converter-for-tflite", "tosa-opt", "iree-compile"))

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            bytecode, text, binary = (os.path.join(folder, name) for name in ("model.bc", "model.mlir", "model.vmfb"))
            _call(converter, path, "-o", bytecode, "--bytecode")
            with open(text, "w") as file:
                file.write(_call(printer, "--mlir-print-op-generic", bytecode))
            _call(compiler, *_IREE, text, "-o", binary)
            with open(binary, "rb") as compiled:
                data = compiled.read()
        config = rt.Config("local-sync")
        module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, data), config)

        def run(inputs: Any) -> Any:
            result = module["main"](*inputs)
            results = result if isinstance(result, (tuple, list)) else [result]
            return [value.to_host() for value in results]

        return run

    return load


def _tosa_reference(settings: Any) -> Any:
    """Find the programs; return a function that converts a model to TOSA, which a run computes.

    The TOSA reference model over the converter to TOSA.
    """

    names = ("tosa-converter-for-tflite", "tosa-opt", "tosa_reference_model")
    converter, serializer, evaluator = map(_program, names)

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            bytecode, flatbuffer = (os.path.join(folder, name) for name in ("model.mlirbc", "model.tosa"))
            _call(converter, path, "--bytecode", "-o", bytecode)
            written = f"--tosa-flatbuffer-filename={flatbuffer}"
            _call(serializer, bytecode, "--tosa-serialize", written, "-o", os.devnull)
            with open(flatbuffer, "rb") as file:
                graph = file.read()
        return lambda inputs: evaluate(graph, inputs)

    def evaluate(graph: bytes, inputs: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "model.tosa"), "wb") as file:
                file.write(graph)
            given = [f"TosaInput_{number}" for number in range(len(inputs))]
            for name, value in zip(given, inputs):
                np.save(os.path.join(folder, f"{name}.npy"), value)
            files = ",".join(f"{name}.npy" for name in given)
            _call(
                evaluator,
                "--tosa_file=model.tosa",
                f"--flatbuffer_dir={folder}",
                f"--ifm_name={','.join(given)}",
                f"--ifm_file={files}",
                "--ofm_name=TosaOutput_0",
                "--ofm_file=out.npy",
                f"--output_dir={folder}",
            )
            return [np.load(os.path.join(folder, "out.npy"))]

    return load


def _tract(settings: Any) -> Any:
    """Import both; return a function that converts a model to ONNX and loads it.

    tract over tf2onnx.
    """
    import tf2onnx
    import tract

    reader = tract.onnx()

    def load(path: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "model.onnx")
            tf2onnx.convert.from_tflite(path, opset=int(settings["opset"]), output_path=place)
            model = reader.load(place)
        if hasattr(model, "into_model"):
            model = model.into_model()
        program = model.into_runnable()
        return lambda inputs: [value.to_numpy() for value in program.run(list(inputs))]

    return load


def _micro_program(settings: Any) -> Any:
    """Return a function that returns a function which runs the program once: arrays to bytes of arrays.

    tools/build_micro.py builds a program for this machine around TensorFlow Lite Micro with any kernels. Any program
    will do that gets a model's path, reads the bytes of all inputs from standard input, and writes a line of JSON with
    the sizes of the outputs in bytes ("bytes"), then the outputs. Outputs have no types, so that it can only be a
    target.
    """
    words = shlex.split(settings["program"])
    if not words:
        raise ImportError("name the program: micro-program program=PATH")

    def load(path: str) -> Any:
        def run(inputs: Any) -> Any:
            given = b"".join(np.ascontiguousarray(value).tobytes() for value in inputs)
            done = subprocess.run([*words, path], input=given, capture_output=True, timeout=_SECONDS)
            if done.returncode:
                said = done.stderr.decode(errors="replace").split("\n")[0]
                raise RuntimeError(f"exit code {done.returncode}: {said}")
            line, _, data = done.stdout.partition(b"\n")
            sizes = json.loads(line)["bytes"]
            if len(data) != sum(sizes):
                raise RuntimeError(f"{len(data)} bytes of outputs, not {sum(sizes)}")
            stream = io.BytesIO(data)
            return [stream.read(size) for size in sizes]

        return run

    return load


#: Every foreign system, by the name of its adapter.
SYSTEMS: Dict[str, Callable[[Any], Any]] = {  # noqa: UP006
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
    "opencv": _opencv,
    "tvm": _tvm,
    "iree": _iree,
    "tosa_reference": _tosa_reference,
    "tract": _tract,
    "micro_program": _micro_program,
}
