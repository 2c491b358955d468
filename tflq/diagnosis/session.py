"""`explain`, `fit`, `reduce` and `discriminate`: from a model and a device's dump to findings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from tflq.comparison.verification.evidence.dumps import Dump
from tflq.comparison.verification.inputs import InputSource, make_inputs
from tflq.comparison.verification.results import Mode
from tflq.diagnosis import profile_fit as fitting
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.discrimination import discriminate as _discriminate
from tflq.diagnosis.findings import Findings, gravest, investigate
from tflq.diagnosis.profile_fit import Fit
from tflq.diagnosis.reduction import Check, Reduced, reduce_check, reduce_dump
from tflq.diagnosis.signatures import dumps_by_signature, only_dumps
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError, UnknownNameError
from tflq.model.ir import Model, only_signed
from tflq.typing import Array

#: A path, arrays by tensor name or index, or a dump that was read.
DumpSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, Array] | Mapping[int, Array] | Dump"

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
    signature: str | None = None,
) -> Findings:
    """Find the first operator whose results in a dump differ from a profile's, and the causes that reproduce them.

    Args:
        model: A path, the bytes of a file, or a Model.
        dump: Any part of the device's tensors: a path, or arrays by tensor name or index.
        profile: The arithmetic that the dump is compared with.
        op: The operator to explain. None: the first that differs.
        mode: "isolated" feeds each operator the dump's own inputs; "cumulative" runs end to end.
        element: The element to trace. None: the first that differs.
        inputs: The device's inputs, if a dump at a path lacks them.
        sample: The number of one of several samples at a path. None: all of them.
        signature: The signature that the dump is of. None: all that it names; the result is the gravest, whose
            `signatures` holds all.

    Raises:
        InputError: The dump does not fit the model, or does not show which signature it is of.
        OptionError: There is no such operator, element or sample.
        UnknownNameError: No mode or profile has that name.

    Example:
        >>> model = "golden/models/digits_mobilenet_int8.tflite"
        >>> device = tflq.Interpreter(model, profile="litert-opt", experimental_preserve_all_tensors=True)
        >>> device.allocate_tensors()
        >>> device.set_tensor(0, np.full((1, 8, 8, 1), 100, np.int8))
        >>> device.invoke()
        >>> dump = {detail["index"]: device.get_tensor(detail["index"]) for detail in device.get_tensor_details()}
        >>> tflq.explain(model, dump)
        DIFFERS in 2 of 20 operators compared (20 in the model)
        First divergent operator: 11 CONV_2D: 1 of 1,536 elements differ, by up to 1 LSB: 1 above, 0 below, ...
        Cause. Likely, not certain (2 telling elements ...
    """
    if mode not in _MODES:
        raise UnknownNameError("mode", mode, _MODES)
    chosen, target = by_name(profile), subject(model).model
    found = [
        replace(investigate(part.model, samples, chosen, op=op, mode=Mode(mode), element=element), signature=part.name)
        for part, samples in dumps_by_signature(target, dump, sample, inputs, signature)
    ]
    return gravest(found)


def fit(
    model: Source | Model,
    dump: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    inputs: InputSource = None,
    sample: int | None = None,
    signature: str | None = None,
) -> Fit:
    """Compare every operator under every profile with a dump.

    Args:
        model: A path, the bytes of a file, or a Model.
        dump: The device's tensors, as for `explain`.
        profile: The assumed profile: if several explain as much, the nearest to it is the best.
        inputs: The device's inputs, if a dump at a path lacks them.
        sample: The number of one of several samples at a path. None: all of them.
        signature: The signature that the dump is of, if it may be of several.

    Returns:
        `best` profile, `fitting` ones, `mix` by type of operator, and the `matrix` of explained elements.

    Raises:
        InputError: The dump does not fit the model.
        UnknownNameError: No profile has that name.

    Example:
        >>> model = "golden/models/digits_autoencoder_int8.tflite"
        >>> device = tflq.Interpreter(model, profile="tflm", experimental_preserve_all_tensors=True)
        >>> device.allocate_tensors()
        >>> device.invoke()
        >>> dump = {detail["index"]: device.get_tensor(detail["index"]) for detail in device.get_tensor_details()}
        >>> "tflm" in tflq.fit(model, dump).fitting
        True
    """
    target = subject(model).model
    part, samples = only_dumps(target, dump, sample, inputs, signature)
    return fitting.fit(part.model, samples, profile)


def reduce(
    model: Source | Model,
    dump: DumpSource | None = None,
    profile: str | Profile = "litert-ref",
    *,
    check: Check | None = None,
    inputs: InputSource = None,
    sample: int | None = None,
    seed: int = 0,
    signature: str | None = None,
) -> Reduced:
    """Shrink a model to the operators, then the element, then the values that still show a difference.

    Args:
        model: A path, the bytes of a file, or a Model.
        dump: A device's tensors, as for `explain`: the first operator that differs from the profile is kept.
        profile: The arithmetic that the device differs from.
        check: Instead of a dump, a function: `check(model, sample)` is True if a candidate still shows the difference.
        inputs: With a dump the device's inputs; with a check the source of inputs. None: generated from `seed`.
        sample: The number of one of several samples. None: the first that differs in a dump; the first with a check.
        seed: The seed of generated inputs.
        signature: The signature that the dump is of, or the check is about, if the model has several.

    Raises:
        InputError: There is no difference.
        OptionError: Not exactly one of `dump` and `check` is given, or there is no such sample.

    Example:
        >>> from tflq.model.ir import view
        >>> model = "golden/models/digits_mobilenet_int8.tflite"
        >>> device = tflq.Interpreter(model, experimental_preserve_all_tensors=True)
        >>> device.allocate_tensors()
        >>> device.invoke()
        >>> dump = {detail["index"]: device.get_tensor(detail["index"]) for detail in device.get_tensor_details()}
        >>> dump[view(tflq.load(model)).op(1).outputs[0]][0, 4, 4, 3] ^= 1
        >>> reduced = tflq.reduce(model, dump)
        >>> reduced.operators, reduced.expected[0].shape
        ((1,), (1, 1, 1, 1))
    """
    target, chosen = subject(model).model, by_name(profile)
    if (dump is None) == (check is None):
        raise OptionError("give either a dump or a check")
    if check is not None:
        target = only_signed(target, signature).model
        made = make_inputs(target, inputs, 1, seed).samples
        if not 0 <= (sample or 0) < len(made):
            raise OptionError(f"sample {sample}: there are samples 0 to {len(made) - 1}")
        return reduce_check(target, chosen, made[sample or 0], check)
    assert dump is not None  # as there is no check
    part, (*others, last) = only_dumps(target, dump, sample, inputs, signature)
    for one in others:
        try:
            return reduce_dump(part.model, chosen, one)
        except InputError:
            continue
    return reduce_dump(part.model, chosen, last)


def discriminate(
    model: Source | Model,
    dump: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    op: int | None = None,
    inputs: InputSource = None,
    sample: int | None = None,
    signature: str | None = None,
) -> Discrimination | None:
    """Search inputs that distinguish causes which explain a dump's first difference equally well.

    Arguments and errors are those of `explain`. The result can be written as inputs of a device: `numpy.savez(path,
    **found.arrays())`. It is None unless several causes fit.

    Example:
        >>> model = "golden/models/digits_mobilenet_int8.tflite"
        >>> device = tflq.Interpreter(model, profile="litert-opt", experimental_preserve_all_tensors=True)
        >>> device.allocate_tensors()
        >>> device.set_tensor(0, np.full((1, 8, 8, 1), 100, np.int8))
        >>> device.invoke()
        >>> dump = {detail["index"]: device.get_tensor(detail["index"]) for detail in device.get_tensor_details()}
        >>> found = tflq.discriminate(model, dump)
        >>> "litert-opt" in found.causes
        True
    """
    target, chosen = subject(model).model, by_name(profile)
    part, samples = only_dumps(target, dump, sample, inputs, signature)
    found = investigate(part.model, samples, chosen, op=op)
    return discriminated(part.model, samples, found, chosen).discrimination


def discriminated(model: Model, samples: tuple[Dump, ...], found: Findings, profile: Profile) -> Findings:
    """Return the findings, with inputs that distinguish their causes if several fit."""
    fitting = () if found.explanation is None else found.explanation.fitting
    if found.explanation is None or sum(1 + len(cause.also) for cause in fitting) < 2:
        return found
    discrimination = _discriminate(model, samples[found.sample or 0], found.explanation, profile)
    return replace(found, discrimination=discrimination)
