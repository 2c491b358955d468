"""Compile in advance: compile the code that a model's runs need, and keep it for all processes of this user."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tflq.engine.api.files import Source, load
from tflq.engine.api.values import blank
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.jit.code_cache import code_folder
from tflq.engine.jit.compilations import Compilations, heard
from tflq.engine.kernels.kernel import Operand
from tflq.engine.profiles import Profile, by_name
from tflq.errors import UndefinedResultError
from tflq.model.ir import Model
from tflq.typing import Array

#: Number of runs of each plan: the first without a routine, the second bound to arrays.
_RUNS = 2


@dataclass(frozen=True, slots=True)
class Warmed:
    """The result of compilation: numbers of models and functions (by argument types), seconds, and the folder."""

    models: int
    functions: int
    seconds: float
    folder: str


def warm(
    models: Iterable[Source | Model | str | os.PathLike[str]],
    profile: str | Profile = "litert-ref",
    tell: Callable[[Compilations], None] | None = None,
) -> Warmed:
    """Run each model on random inputs, so that everything it needs is compiled and kept.

    `tell` is called when the compilation of a function begins or ends.

    Raises:
        UnsupportedError, ModelError, LimitError: See Interpreter.allocate_tensors and invoke.

    Example:
        >>> tflq.warm(["golden/models/digits_mobilenet_int8.tflite"]).models
        1
    """
    chosen, count = by_name(profile), 0
    with heard(tell) as compilations:
        for model in models:
            plan, state = make_plan(load(model), chosen), State()
            for _ in range(_RUNS):
                try:
                    run(plan, _inputs(plan), state)
                except UndefinedResultError:  # these inputs have no defined result; others may
                    continue
            count += 1
    return Warmed(count, compilations.functions, compilations.seconds, str(code_folder().path))


def _inputs(plan: Plan) -> Mapping[int, Array]:
    random = np.random.default_rng(0)
    return {tensor: _sample(random, plan.operands[tensor]) for tensor in plan.inputs}


def _sample(random: np.random.Generator, operand: Operand) -> Array:
    """Return reals around 0, or codes; zeros for operands that may be an index or a length."""
    value = blank(operand.type, operand.shape)
    if value.dtype.kind == "f":
        value[...] = random.standard_normal(value.shape)
    elif value.dtype.kind in "iu" and operand.is_quantized:
        span = np.iinfo(value.dtype)
        value[...] = random.integers(max(span.min, -(2**15)), min(span.max, 2**15), value.shape)
    return value
