"""Mistakes that can be combined: each is a model of the single operator and a profile, for inputs of any shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tflq.diagnosis.mistakes.channels import models_of_channels
from tflq.diagnosis.mistakes.constants import mistaken_constants
from tflq.diagnosis.mistakes.device import Change, Turn
from tflq.diagnosis.mistakes.requantization import mistaken_profiles
from tflq.diagnosis.mistakes.tensors import mistaken_models
from tflq.diagnosis.mistakes.unchecked import unchecked
from tflq.diagnosis.rows import row_of
from tflq.engine.api.part import Part
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import Profile
from tflq.errors import UnsupportedError
from tflq.typing import Array

#: Operators that devices compute by a table of 256 codes.
_TABLED = ("LOGISTIC", "TANH")


def changes(alone: Part, profile: Profile) -> Iterator[Change]:
    """Yield misread tensors and options, mistakes in every stage, and mistakes in prepared constants."""
    for name, model in (*mistaken_models(alone.model), *models_of_channels(alone, profile)):
        yield Change(name, model, unchecked(profile))
    yield from _tables_off_by_one(alone, profile)  # before those of prepared tables, which combine with less
    for name, wrong in mistaken_profiles(profile, alone.model):
        yield Change(name, alone.model, wrong)
    step = alone.plan(profile).steps[0]
    row = row_of(alone, profile)
    if step.prepared is not None and row is not None and not row.session:
        for name, _ in mistaken_constants(step.prepared.data, step.node):
            yield Change(name, alone.model, _with_row(profile, row, name))


def _tables_off_by_one(alone: Part, profile: Profile) -> Iterator[Change]:
    """Yield codes that are off by one at the input or output: the effect of a table that is off by one."""
    name = alone.op.builtin
    codes = [*alone.inputs.values(), *alone.got.values()]
    if name not in _TABLED or any(x.dtype.kind not in "iu" or x.dtype.itemsize > 1 for x in codes):
        return
    for step, way in ((1, "up"), (-1, "down")):
        turn = Turn(partial(_step, step), partial(_step, -step))
        yield Change(f"table index off by one {way}", alone.model, profile, dict.fromkeys(alone.inputs, turn))
        yield Change(f"table value off by one {way}", alone.model, profile, {}, turn)


def _step(step: int, codes: Array) -> Array:
    """Return codes moved by a step, saturated at the ends of their type."""
    limits = np.iinfo(codes.dtype)
    return np.clip(codes.astype(np.int64) + step, limits.min, limits.max).astype(codes.dtype)


def _with_row(profile: Profile, row: Kernel, mistake: str) -> Profile:
    """Return the profile with a row whose prepared constants have the named mistake."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        right = row.prepare(node, arithmetic)
        build = next((build for name, build in mistaken_constants(right.data, node) if name == mistake), None)
        if build is None:
            raise UnsupportedError(node.op, index=node.index, reason=f"has no constant for: {mistake}")
        return replace(right, data=build())

    return profile.derive(f"{profile.name}, {mistake}", kernels={row.op: (replace(row, prepare=prepared),)})
