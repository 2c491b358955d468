"""A streaming model after its quantization, over steps in a row: compared from its own states, and verified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tflq.comparison.verification import verify
from tflq.engine.runtimes import Step
from tflq.errors import RuntimeFailed, RuntimeMissing, TflqError, UnsupportedError
from tflq.model.ir import Model, input_names, output_names, rooted, view
from tflq.quantization.judge.check import RUNTIMES, Check
from tflq.quantization.judge.fidelity import Fidelity
from tflq.quantization.params import codes_of, real
from tflq.quantization.runner import Sample, executor
from tflq.quantization.streams import Stream

#: Steps in a row that the check runs.
STEPS = 20


@dataclass(frozen=True, slots=True)
class Streamed:
    """Steps in a row, of how many sequences, number of variables, and the worst output's ratio over all steps, dB."""

    steps: int
    sequences: int
    variables: int
    sqnr: float


def compare_steps(stream: Stream, made: Model, sequences: Sequence[Sequence[Sample]], profile: str) -> Streamed:
    """Run both models over all steps, in each sequence from the first values of their own variables."""
    step = rooted(made, stream.root)
    wide, narrow = view(stream.step), view(step)
    names = [input_names(stream.step), output_names(stream.step)]
    if stream.root.signature is None:
        names = [tuple(map(str, range(len(edge)))) for edge in names]
    outputs = [Fidelity(name, "", -1) for name in names[1]]
    for sample, begins in ((sample, not k) for steps in sequences for k, sample in enumerate(steps)):
        if begins:
            floats, integers = stream.begin(stream.model, "litert-ref"), stream.begin(made, executor(made, profile))
        given = dict(zip(names[0], (sample[t] for t in wide.inputs), strict=True))
        pairs = zip(names[0], wide.inputs, narrow.inputs, strict=True)
        codes = {name: codes_of(narrow.tensors[new], sample[old]) for name, old, new in pairs}
        one = floats.run(Step(stream.root.signature, given)).outputs
        other = integers.run(Step(stream.root.signature, codes)).outputs
        for sums, tensor in zip(outputs, narrow.outputs, strict=True):
            sums.add(one[sums.name], real(narrow.tensors[tensor], other[sums.name]))
    worst = min((sums.sqnr for sums in outputs), default=math.inf)
    return Streamed(sum(map(len, sequences)), len(sequences), len(stream.variables), worst)


def check_steps(model: Model) -> Check:
    """Verify a model with variables over steps in a row, operator by operator."""
    failure: TflqError | None = None
    for runtime in RUNTIMES:
        try:
            return Check(verify(model, runtime, samples=STEPS))
        except RuntimeMissing as error:
            return Check(None, error)
        except (RuntimeFailed, UnsupportedError) as error:
            failure = error
    return Check(None, failure)
