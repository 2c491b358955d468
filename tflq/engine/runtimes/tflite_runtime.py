"""tflite-runtime (up to 2.14), with its three resolvers. It needs NumPy 1: name a Python that has both."""

from tflq.engine.runtimes.process import ProcessRuntime

RUNTIMES = (
    ProcessRuntime("tflite-runtime-ref", "tflite-runtime", "tflite_runtime", "BUILTIN_REF"),
    ProcessRuntime("tflite-runtime-opt", "tflite-runtime", "tflite_runtime", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    ProcessRuntime("tflite-runtime-xnnpack", "tflite-runtime", "tflite_runtime", "BUILTIN", delegate="XNNPACK"),
)
