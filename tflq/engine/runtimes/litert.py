"""LiteRT (ai-edge-litert), with its three resolvers."""

from tflq.engine.runtimes.process import ProcessRuntime

RUNTIMES = (
    ProcessRuntime("litert-ref", "ai-edge-litert", "litert", "BUILTIN_REF"),
    ProcessRuntime("litert-opt", "ai-edge-litert", "litert", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    ProcessRuntime("litert-xnnpack", "ai-edge-litert", "litert", "BUILTIN", delegate="XNNPACK"),
)
