"""OpenVINO's CPU plugin. By default it computes in bfloat16 where the processor can; here float32 is the default."""

from __future__ import annotations

from typing import Any


def ready(settings: Any, tools: Any) -> Any:
    """Import OpenVINO; return a function that compiles a model for one thread."""
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
