"""`explain`, `fit` and `reduce`: where a device differs, and what reproduces it.

`explain`: where a device's dump differs from a profile, and the arithmetic that reproduces it.

`fit`: every operator under every profile, compared with a device's dump.

`reduce`: the smallest part of a model that still shows a difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.goldens.stored import check_model
from tflq.comparison.inputs.prepare import Numbers, preparation
from tflq.comparison.inputs.read import InputSource, make_inputs
from tflq.comparison.results import CompareMode, InputFacts
from tflq.devices.learning.joint import causes_of_dump
from tflq.diagnosis.apart import Discrimination, profiles_apart
from tflq.diagnosis.apart import discriminate as _discriminate
from tflq.diagnosis.findings import Findings, Worked, gravest, investigate, work_out
from tflq.diagnosis.localization import dumps_by_signature, in_order, only_dumps
from tflq.diagnosis.profile_fit import Fit
from tflq.diagnosis.profile_fit import fit as fit_profiles
from tflq.diagnosis.reduction import Check, Reduced, reduce_check, reduce_dump
from tflq.engine.api.files import Source, subject
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError, UnknownNameError
from tflq.model.ir import Model, only_signed, view
from tflq.typing import Array

#: A path, arrays by tensor name or index, or a dump that was read.
DumpSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, Array] | Mapping[int, Array] | Dump"

_MODES = tuple(mode.value for mode in CompareMode)


def explain(
    model: Source | Model,
    evidence: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    op: int | None = None,
    mode: str | CompareMode = CompareMode.ISOLATED,
    element: tuple[int, ...] | None = None,
    inputs: InputSource = None,
    sample: int | None = None,
    signature: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    bgr: bool = False,
    search_inputs: bool = False,
) -> Findings:
    """Find the first operator whose results in a dump differ from a profile's, and the causes that reproduce them.

    Where no cause reproduces an operator, arithmetics that all differing operators share are searched as well.

    Args:
        model: A path, the bytes of a file, or a Model.
        evidence: Any part of the device's tensors: a path, or arrays by tensor name or index.
        profile: The arithmetic that the dump is compared with.
        op: The operator to explain. None: the first that differs.
        mode: "isolated" feeds each operator the dump's own inputs; "cumulative" runs end to end.
        element: The element to trace. None: the first that differs.
        inputs: The device's inputs, if a dump at a path lacks them.
        sample: The number of one of several samples at a path. None: all of them.
        signature: The signature that the dump is of. None: all that it names; the result is the gravest, whose
            `signatures` holds all.
        mean: With `std`: `inputs` are stored numbers, (number - mean) / std the real values. One, or one per channel.
        std: See `mean`.
        bgr: Channels of images are in the order blue, green, red.
        search_inputs: Also search inputs that distinguish the causes, where several fit: `discrimination`.

    Raises:
        GoldenError: The dump is a recording of another model.
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
    chosen, target = by_name(profile), check_subject(model, evidence)
    how = preparation(mean, std, bgr=bgr)
    if op is None and element is None and not search_inputs:
        held = dumps_by_signature(target, evidence, sample, inputs, signature, how)
    else:
        held = [only_dumps(target, evidence, sample, inputs, signature, how)]
    found = []
    held = [(part, in_order(part.model, samples, chosen)) for part, samples in held]
    for part, samples in held:
        one = investigate(part.model, samples, chosen, op=op, mode=CompareMode(mode), element=element)
        joint = causes_of_dump(part.model, samples, chosen, one)
        found.append(replace(one, signature=part.name, joint=joint, faults=(*one.faults, *joint.faults)))
    findings = gravest(found)
    if search_inputs:
        ((part, samples),) = held
        return _discriminated(part.model, samples, findings, chosen)
    return findings


def discriminate(
    model: Source | Model,
    evidence: DumpSource,
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
    how: dict[str, Any] = {"op": op, "inputs": inputs, "sample": sample, "signature": signature}
    return explain(model, evidence, profile, **how, search_inputs=True).discrimination


def explain_element(
    model: Source | Model,
    element: tuple[int, ...],
    profile: str | Profile = "litert-ref",
    *,
    op: int | None = None,
    inputs: InputSource = None,
    seed: int = 0,
    signature: str | None = None,
) -> tuple[Worked, InputFacts]:
    """Work out one element of an operator's output step by step, as a profile computes it; no device is needed.

    Args:
        model: A path, the bytes of a file, or a Model.
        element: The index of the element.
        profile: The arithmetic.
        op: The operator. None: the last one.
        inputs: The source of inputs. None: generated from `seed`.
        seed: The seed of generated inputs.
        signature: The signature, if the model has several.

    Returns:
        The steps, and facts about the inputs.

    Raises:
        OptionError: There is no such operator or element.

    Example:
        >>> worked, facts = tflq.explain_element("golden/models/digits_mobilenet_int8.tflite", (0, 1, 1, 1), op=1)
        >>> worked.index, facts.source
        (1, 'random')
    """
    target = only_signed(subject(model).model, signature).model
    drawn = make_inputs(target, inputs, 1, seed)
    sample = dict(zip(view(target).inputs, drawn.samples[0], strict=True))
    return work_out(target, sample, by_name(profile), element, op), drawn.facts


def check_subject(model: Source | Model, dump: DumpSource) -> Model:
    """Return the model; a dump at a path must not be a recording of another one.

    Raises:
        GoldenError: It is.
    """
    whole = subject(model)
    if isinstance(dump, (str, os.PathLike)):
        check_model(os.fspath(dump), whole.facts.sha256)
    return whole.model


def _discriminated(model: Model, samples: tuple[Dump, ...], found: Findings, profile: Profile) -> Findings:
    """Return the findings, with inputs that distinguish their causes if several fit."""
    fitting = () if found.explanation is None else found.explanation.fitting
    if found.explanation is None or sum(1 + len(cause.also) for cause in fitting) < 2:
        return found
    discrimination = _discriminate(model, samples[found.sample or 0], found.explanation, profile)
    return replace(found, discrimination=discrimination)


def fit(
    model: Source | Model,
    evidence: DumpSource,
    profile: str | Profile = "litert-ref",
    *,
    inputs: InputSource = None,
    sample: int | None = None,
    signature: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    bgr: bool = False,
    search_inputs: bool = False,
) -> Fit:
    """Compare every operator under every profile with a dump.

    Args:
        model: A path, the bytes of a file, or a Model.
        evidence: The device's tensors, as for `explain`.
        profile: The assumed profile: if several explain as much, the nearest to it is the best.
        inputs: The device's inputs, if a dump at a path lacks them.
        sample: The number of one of several samples at a path. None: all of them.
        signature: The signature that the dump is of, if it may be of several.
        mean: With `std`: `inputs` are stored numbers, (number - mean) / std the real values. One, or one per channel.
        std: See `mean`.
        bgr: Channels of images are in the order blue, green, red.
        search_inputs: Also search inputs that distinguish the profiles that fit: `discrimination`.

    Returns:
        `best` profile, `fitting` ones, `mix` by type of operator, and the `matrix` of explained elements.

    Raises:
        GoldenError: The dump is a recording of another model.
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
    target = check_subject(model, evidence)
    part, samples = only_dumps(target, evidence, sample, inputs, signature, preparation(mean, std, bgr=bgr))
    samples = in_order(part.model, samples, by_name(profile))
    result = fit_profiles(part.model, samples, profile)
    if search_inputs and len(result.fitting) > 1:
        return replace(result, discrimination=profiles_apart(part.model, samples[0], result.fitting))
    return result


def reduce(
    model: Source | Model,
    evidence: DumpSource | None = None,
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
        evidence: A device's tensors, as for `explain`: the first operator that differs from the profile is kept.
        profile: The arithmetic that the device differs from.
        check: Instead of a dump, a function: `check(model, sample)` is True if a candidate still shows the difference.
        inputs: With a dump the device's inputs; with a check the source of inputs. None: generated from `seed`.
        sample: The number of one of several samples. None: the first that differs in a dump; the first with a check.
        seed: The seed of generated inputs.
        signature: The signature that the dump is of, or the check is about, if the model has several.

    Raises:
        InputError: There is no difference.
        OptionError: Not exactly one of `evidence` and `check` is given, or there is no such sample.

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
    chosen = by_name(profile)
    if (evidence is None) == (check is None):
        raise OptionError("give either evidence or a check")
    if check is not None:
        target = only_signed(subject(model).model, signature).model
        made = make_inputs(target, inputs, 1, seed).samples
        if not 0 <= (sample or 0) < len(made):
            raise OptionError(f"sample {sample}: there are samples 0 to {len(made) - 1}")
        return reduce_check(target, chosen, made[sample or 0], check)
    assert evidence is not None  # as there is no check
    part, (*others, last) = only_dumps(check_subject(model, evidence), evidence, sample, inputs, signature)
    for one in others:
        try:
            return reduce_dump(part.model, chosen, one)
        except InputError:
            continue
    return reduce_dump(part.model, chosen, last)
