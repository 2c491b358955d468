"""The check that the real runtime computes a quantized model with the same bits as tflq."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from tflq.comparison.verification import Report, verify
from tflq.errors import RuntimeFailed, RuntimeMissing, TflqError, UnsupportedError
from tflq.model.ir import Model, view
from tflq.quantization.params import codes_of
from tflq.quantization.runner import Sample, executor

#: Samples that the check runs.
SAMPLES = 2
#: Runtimes; the second has operators that the first lacks.
RUNTIMES = ("litert-ref", "litert-opt")

#: Runtimes that read weights with block scales directly.
OF_BLOCKS = ("litert-xnnpack",)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """The verification, or the error that prevented it."""

    report: Report | None
    error: TflqError | None = None


def check(model: Model, source: Model, samples: Iterable[Sample]) -> Check:
    """Verify `model` on some of the samples, which are float arrays by the inputs of `source`, operator by operator."""
    graph, floats = view(model), view(source)
    pairs = list(zip(floats.inputs, graph.inputs, strict=True))
    inputs = [[codes_of(graph.tensors[new], s[old]) for old, new in pairs] for s in islice(samples, SAMPLES)]
    failure: TflqError | None = None
    blocks = executor(model, "litert-ref") == "litert-xnnpack"
    for runtime in OF_BLOCKS if blocks else RUNTIMES:
        try:
            return Check(verify(model, runtime, inputs))
        except RuntimeMissing as error:
            return Check(None, error)
        except (RuntimeFailed, UnsupportedError) as error:
            failure = error
    return Check(None, failure)
