"""TensorFlow's `tf.lite.Interpreter`, with its three resolvers."""

from tflq.engine.runtimes.process import ProcessRuntime

RUNTIMES = (
    ProcessRuntime("tensorflow-ref", "tensorflow", "tensorflow", "BUILTIN_REF"),
    ProcessRuntime("tensorflow-opt", "tensorflow", "tensorflow", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    ProcessRuntime("tensorflow-xnnpack", "tensorflow", "tensorflow", "BUILTIN", delegate="XNNPACK"),
)
