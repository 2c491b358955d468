"""`explain` and `fit`: from a model and a device's dump to what is found of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.api.files import Source
from tflq.api.subject import subject
from tflq.diagnosis import profile_fit as fitting
from tflq.diagnosis.dump import Dump, dump_of, load_dumps
from tflq.diagnosis.findings import Findings, investigate
from tflq.diagnosis.profile_fit import Fit
from tflq.errors import UnknownNameError
from tflq.ir import Model
from tflq.profiles import Profile, by_name
from tflq.verification.inputs import InputSource
from tflq.verification.results import Mode

#: A path, arrays by tensor name or index, or a dump that was read.
DumpSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, NDArray[Any]] | Mapping[int, NDArray[Any]] | Dump"

_MODES = tuple(mode.value for mode in Mode)


def explain(
    model: Source | Model,
    dump: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    op: int | None = None,
    mode: str | Mode = Mode.ISOLATED,
    element: tuple[int, ...] | None = None,
    inputs: InputSource = None,
    sample: int | None = None,
) -> Findings:
    """Find the first operator whose results in a dump differ from a profile's, and what reproduces them.

    Args:
        model: A path, the bytes of a file, or a Model.
        dump: Where the device's tensors are, any part of them: a path, or arrays by tensor name or index.
        profile: Whose arithmetic the dump is held against.
        op: The operator to explain. None: the first that differs.
        mode: "isolated" feeds each operator the dump's own inputs; "cumulative" runs end to end.
        element: The element to work out. None: the first that differs.
        inputs: The inputs that the device was fed, where a dump at a path lacks them.
        sample: Which of several samples at a path. None: all of them.

    Raises:
        InputError: The dump does not fit the model.
        OptionError: There is no such operator, element or sample.
        UnknownNameError: No mode or profile has that name.
    """
    if mode not in _MODES:
        raise UnknownNameError("mode", mode, _MODES)
    chosen, target = by_name(profile), subject(model).model
    samples = _samples(target, dump, inputs, sample)
    return investigate(target, samples, chosen, op=op, mode=Mode(mode), element=element)


def fit(
    model: Source | Model,
    dump: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    inputs: InputSource = None,
    sample: int | None = None,
) -> Fit:
    """Hold every operator under every profile against a dump.

    Args:
        model: A path, the bytes of a file, or a Model.
        dump: Where the device's tensors are, as for `explain`.
        profile: What you run first: of profiles that explain as much, the nearest to it is the best.
        inputs: The inputs that the device was fed, where a dump at a path lacks them.
        sample: Which of several samples at a path. None: all of them.

    Returns:
        `best` profile, `fitting` ones, `mix` by type of operator, and the `matrix` of what each explains.

    Raises:
        InputError: The dump does not fit the model.
        UnknownNameError: No profile has that name.
    """
    target = subject(model).model
    return fitting.fit(target, _samples(target, dump, inputs, sample), profile)


def _samples(model: Model, dump: DumpSource, inputs: InputSource, sample: int | None) -> tuple[Dump, ...]:
    if isinstance(dump, Dump):
        return (dump,)
    return (dump_of(model, dump),) if isinstance(dump, Mapping) else load_dumps(model, dump, sample, inputs)
