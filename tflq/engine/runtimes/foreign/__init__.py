"""Foreign systems that run .tflite models: compilers and runtimes with arithmetics of their own, ready to be named.

Each has one module here, which the program in child.py loads by its path in the environment of the system. It defines
`ready(settings, tools)`, which imports the system and returns a function that loads a model by its path and returns a
function from inputs to outputs, both lists. An exception is a refusal of the model. docs/targets.md describes the
systems.
"""

from tflq.engine.runtimes.process import ProcessRuntime

#: Settings of a system: name -> its values, the default first. Only a value `...` in the list: any text.
Takes = tuple[tuple[str, tuple[str, ...]], ...]

_TOSA = "tosa-converter-for-tflite tosa-tools"


def _system(name: str, package: str, adapter: str, takes: Takes = ()) -> ProcessRuntime:
    return ProcessRuntime(name, package, adapter, "", signatures=False, takes=takes)


#: Every foreign system, by name.
FOREIGN: dict[str, ProcessRuntime] = {
    system.name: system
    for system in (
        _system("openvino", "openvino", "openvino", (("precision", ("f32", "bf16", "f16", "default")),)),
        _system("onnxruntime", "onnxruntime tf2onnx tensorflow", "onnxruntime", (("opset", ("18", "...")),)),
        _system("opencv", "opencv-python-headless", "opencv", (("engine", ("classic", "new", "auto", "default")),)),
        _system("tvm", "apache-tvm tflite", "tvm"),
        _system("iree", f"iree-base-compiler iree-base-runtime {_TOSA}", "iree"),
        _system("tosa-reference", _TOSA, "tosa_reference"),
        _system("tract", "tract tf2onnx tensorflow", "tract", (("opset", ("18", "...")),)),
        _system("micro-program", "numpy", "micro_program", (("program", ("", "...")),)),
    )
}
