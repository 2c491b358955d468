"""What devices get wrong, each expressed once and tried on any operator that it can befall.

| module            | mistakes in                                                                                  |
|-------------------|----------------------------------------------------------------------------------------------|
| `requantizing.py` | roundings, multipliers, shifts, channels' multipliers, widths of what is scaled              |
| `constants.py`    | prepared constants: clamps, zero points, windows, tables, multipliers that are no stage      |
| `tensors.py`      | the operator's own model: zero points, biases, filters, activations                          |
| `layouts.py`      | memory: orders of axes, signedness of codes, padding that is stored                          |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from tflq.errors import TflqError
from tflq.interpreter import Plan
from tflq.ir import CARRIER, Model, TensorType
from tflq.profiles import Profile
from tflq.verification.localize import Alone
from tflq.verification.mistakes.constants import mistaken_constants
from tflq.verification.mistakes.layouts import Device, mistaken_layouts
from tflq.verification.mistakes.requantizing import mistaken_profiles, mistaken_stages
from tflq.verification.mistakes.tensors import mistaken_models

__all__ = ["Device", "mistakes"]


def mistakes(alone: Alone, profile: Profile) -> Iterator[tuple[str, Device]]:
    """Devices that compute the operator as the profile does but for one mistake, and the mistake's name."""
    for name, model in mistaken_models(alone.model):
        yield name, _of_model(profile, model)
    plan = alone.plan(profile)
    for name, wrong in mistaken_profiles(profile):
        yield name, _of_profile(wrong)
    if plan.steps[0].prepared is not None:
        data = plan.steps[0].prepared.data
        for name, changed in chain(mistaken_constants(data, _type_of_results(plan)), mistaken_stages(data)):
            yield name, _of_data(profile, changed)
    yield from mistaken_layouts(alone, profile)


def _type_of_results(plan: Plan) -> Any:
    type_ = plan.steps[0].node.outputs[0].type
    return CARRIER[type_] if isinstance(type_, TensorType) else None


def _of_profile(profile: Profile) -> Device:
    return lambda alone: alone.run(alone.plan(profile))


def _of_model(profile: Profile, model: Model) -> Device:
    return lambda alone: alone.run(alone.plan(profile, model))


def _of_data(profile: Profile, data: Any) -> Device:
    def device(alone: Alone) -> Any:
        plan = alone.plan(profile)
        step = plan.steps[0]
        if step.prepared is None:
            raise TflqError("the operator is bound when it runs")
        return alone.run(replace(plan, steps=(replace(step, prepared=replace(step.prepared, data=data)),)))

    return device
