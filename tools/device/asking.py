"""A second question to the device: the inputs that explain searched to tell fitting causes apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.operators import compute
from device.planting import Case, Subject, profile_of
from tflq.diagnosis.discrimination import Discrimination, Trial, discriminate
from tflq.diagnosis.explanation import Explanation
from tflq.interpreter import make_plan, run
from tflq.surgery.tap import single_operator
from tflq.verification.dump import Dump

Array = NDArray[Any]


def left_over(case: Case, chosen: Subject, dump: Dump, explanation: Explanation) -> tuple[tuple[str, ...], ...]:
    """The causes that the device's answers leave; names together that none of the inputs tells apart."""
    told = discriminate(chosen.model, dump, explanation, profile_of(case.profile))
    groups = (tuple(told.causes[c] for c in group if _fits(c, case, chosen, told)) for group in told.groups)
    return tuple(names for names in groups if names)


def _fits(cause: int, case: Case, chosen: Subject, told: Discrimination) -> bool:
    """Whether the cause gives what the device does, on all inputs."""
    output = case.site.output.tensor
    for trial in told.trials:
        answer = compute(case.site, case.device, _values(case, chosen, told, trial))
        if not np.array_equal(trial.expected[cause].get(output, np.empty(0)), answer):
            return False
    return True


def _values(case: Case, chosen: Subject, told: Discrimination, trial: Trial) -> Mapping[int, Array]:
    """Tensors before the operator, by index, for inputs of the whole model or of the operator alone."""
    if told.of_model:
        given = dict(zip(chosen.model.subgraphs[0].inputs, trial.inputs, strict=True))
        return run(make_plan(chosen.model, profile_of(case.profile)), given, keep_all=True).values
    alone, tensors = single_operator(chosen.model, case.site.index)
    return {tensors[p]: value for p, value in zip(alone.subgraphs[0].inputs, trial.inputs, strict=True)}
