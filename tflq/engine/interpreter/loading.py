"""Files that a runtime refuses to load, before it prepares an operator.

Source: LiteRT 2.3 interpreter_builder.cc ParseQuantization, Subgraph::SetTensorParametersReadOnly; TensorFlow 2.7 to
2.14, the same. TensorFlow Lite Micro looks at neither.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import SCALES_ELSEWHERE
from tflq.engine.kernels.validity import SPEC, tflite
from tflq.engine.profiles import Profile
from tflq.errors import UnsupportedError
from tflq.model.ir import GraphView, Model, TensorSpec
from tflq.model.ir.constants import stored, surplus

#: Releases that want a buffer to hold the bytes of its tensor and no more.
_WHOLE_BUFFERS = tflite("tf-1.15", "tflite-2.14")


def check_loading(graph: GraphView, profile: Profile) -> None:
    """Refuse tensors whose quantization or buffer the profile's runtime refuses to load."""
    runtime = profile.runtime
    if runtime.library not in ("", SPEC):
        return
    whole = _WHOLE_BUFFERS.holds(runtime)
    for spec in graph.tensors:
        reason = _misfit(spec) or _misfit_of_bytes(graph.model, spec, whole)
        if reason:
            raise UnsupportedError("tensor", reason=f"{spec.name!r}: {reason}", profile=profile.name)


def _misfit_of_bytes(model: Model, spec: TensorSpec, whole: bool) -> str:
    """Return why a tensor's buffer does not fit its elements. Constants with too few bytes are refused when read."""
    more = surplus(model, spec)
    if more < 0 and stored(model, spec) is None:
        return f"its buffer has data of 0 bytes, not {-more}; only in buffer 0 this stands for no constant"
    return "the buffer holds more bytes than the tensor" if whole and more > 0 else ""


def _misfit(spec: TensorSpec) -> str:
    """Return why a tensor's scales do not fit its shape; empty if they do. A tensor without dimensions takes any."""
    q = spec.quantization
    if q is None or not len(q.scale) or (q.details is not None and q.details.table in SCALES_ELSEWHERE):
        return ""
    if q.quantized_dimension < 0 or (spec.shape and q.quantized_dimension >= len(spec.shape)):
        return f"quantized dimension {q.quantized_dimension} of {len(spec.shape)}"
    if len(q.scale) != 1 and spec.shape and len(q.scale) != spec.shape[q.quantized_dimension]:
        return f"{len(q.scale)} scales along a dimension of {spec.shape[q.quantized_dimension]}"
    return ""
