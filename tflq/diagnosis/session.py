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
from tflq.errors import UnknownNameError
from tflq.ir import Model
from tflq.profiles import Profile, by_name
from tflq.verification.inputs import InputSource

#: A path, arrays by tensor name or index, or a dump that was read.
DumpSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, NDArray[Any]] | Mapping[int, NDArray[Any]] | Dump"

_MODES = ("isolated", "cumulative")


def explain(
    model: Source | Model,
    dump: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    op: int | None = None,
    mode: str = "isolated",
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
    return investigate(target, samples, chosen, op=op, mode=mode, element=element)


def fit(
    model: Source | Model, dump: DumpSource, *, inputs: InputSource = None, sample: int | None = None
) -> dict[str, tuple[tuple[int, int] | None, ...]]:
    """Hold every operator under every profile against a dump.

    Returns:
        By profile, for every operator: (elements that agree, elements compared), or None where nothing was compared.

    Raises:
        InputError: The dump does not fit the model.
    """
    target = subject(model).model
    return fitting.fit(target, _samples(target, dump, inputs, sample))


def _samples(model: Model, dump: DumpSource, inputs: InputSource, sample: int | None) -> tuple[Dump, ...]:
    if isinstance(dump, Dump):
        return (dump,)
    return (dump_of(model, dump),) if isinstance(dump, Mapping) else load_dumps(model, dump, sample, inputs)
