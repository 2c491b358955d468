"""Recordings of several installed runtimes side by side: inputs are prepared first, and then threads may run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tflq.comparison.verification.feeding import Feed, make_feeds
from tflq.comparison.verification.golden import Golden
from tflq.comparison.verification.observation import observe
from tflq.comparison.verification.preparation import Preparation
from tflq.comparison.verification.signed import runnable
from tflq.engine.api.subject import Subject
from tflq.engine.runtimes import named
from tflq.errors import OptionError, RuntimeFailed
from tflq.model.ir import signed


def outputs_recorder(
    target: Subject, against: str, inputs: Feed, samples: int, how: Preparation, signature: str | None = None
) -> Callable[[], Golden]:
    """Return what runs an installed runtime and returns its outputs, in any thread; the inputs are prepared here.

    What keeps this runtime alone from running is raised by what is returned, so that others are not affected.

    Raises:
        InputError: The inputs do not fit the model.
    """
    runtime = named(against)
    if runtime.is_absent:
        return partial(_refuse, runtime.missing("it is not installed"))
    parts = signed(target.model, signature)
    try:
        parts = runnable(parts, runtime)
    except OptionError as error:
        return partial(_refuse, RuntimeFailed(against, str(error)))
    fed = make_feeds(parts, inputs, samples, 0, how)
    return partial(observe, target, runtime, fed, all_tensors=False)


def _refuse(error: Exception) -> Golden:
    raise error
