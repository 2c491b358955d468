"""Further tests of the device: on inputs from explain that distinguish fitting causes, and on every input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.operators import compute, data
from device.planting import Case, Subject, profile_of
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.apart import Discrimination, SeparatingTrial, discriminate
from tflq.diagnosis.causes import Explanation
from tflq.diagnosis.hypotheses import results
from tflq.diagnosis.localization import operator_alone
from tflq.engine.interpreter import make_plan, run
from tflq.model.ir import view
from tflq.model.surgery.tap import single_operator

Array = NDArray[Any]


def remaining_causes(case: Case, chosen: Subject, dump: Dump, explanation: Explanation) -> tuple[tuple[str, ...], ...]:
    """Return the causes that fit the device's answers; causes that no input distinguishes are grouped."""
    told = discriminate(chosen.model, dump, explanation, profile_of(case.profile))
    groups = (tuple(told.causes[c] for c in group if _fits(c, case, chosen, told)) for group in told.groups)
    return tuple(names for names in groups if names)


def _fits(cause: int, case: Case, chosen: Subject, told: Discrimination) -> bool:
    """Return whether the cause gives the device's results on all inputs."""
    output = case.site.output.tensor
    for trial in told.trials:
        answer = compute(case.site, case.device, _values(case, chosen, told, trial))
        if not np.array_equal(trial.expected[cause].get(output, np.empty(0)), answer):
            return False
    return True


#: Operators whose elements each depend on one code, or on one code of each operand.
_BY_ELEMENT = ("ADD", "SUB", "MUL", "LEAKY_RELU", "QUANTIZE", "LOGISTIC", "TANH")


def is_proved_equal(case: Case, chosen: Subject, dump: Dump, explanation: Explanation) -> bool:
    """Return whether the first cause equals the device on every input of an 8-bit operator by element.

    Both compute all codes, or all pairs of codes, each at two places of operands with the result's shape; codes of a
    smaller operand are repeated. The result is False if there are too many, or for other operators.
    """
    site, alone = case.site, operator_alone(chosen.model, dump, explanation.index, profile_of(case.profile))
    places = list(alone.inputs)
    if site.op not in _BY_ELEMENT or any(x.dtype.itemsize > 1 for x in alone.inputs.values()):
        return False
    if len(places) != len(data(site)):
        return False
    shape = site.output.shape
    size, device = int(np.prod(shape)), explanation.exact[0].members[0].device
    codes = np.indices((256,) * len(places)).reshape(len(places), -1).astype(np.uint8)
    for order in (slice(None), slice(None, None, -1)):
        turned = codes[:, order]
        for start in range(0, turned.shape[1], size):
            chunk = np.resize(turned[:, start : start + size], (len(places), size))
            given = {p: x.view(alone.inputs[p].dtype).reshape(shape) for p, x in zip(places, chunk, strict=True)}
            answer = compute(site, case.device, {alone.tensors[p]: x for p, x in given.items()})
            found = results(device, replace(alone, inputs=given))
            if not np.array_equal(found.get(site.output.tensor, np.empty(0)), answer):
                return False
    return True


def _values(case: Case, chosen: Subject, told: Discrimination, trial: SeparatingTrial) -> Mapping[int, Array]:
    """Return tensors before the operator, by index, for inputs of the whole model or of the operator alone."""
    if told.of_model:
        given = dict(zip(view(chosen.model).inputs, trial.inputs, strict=True))
        return run(make_plan(chosen.model, profile_of(case.profile)), given, keep_all=True).values
    alone, tensors = single_operator(chosen.model, case.site.index)
    return {tensors[p]: value for p, value in zip(view(alone).inputs, trial.inputs, strict=True)}
