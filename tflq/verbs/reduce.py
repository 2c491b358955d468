"""`reduce`: the smallest part of a model that still shows a difference."""

from __future__ import annotations

from tflq.comparison.verification.inputs import InputSource, make_inputs
from tflq.diagnosis.reduction import Check, Reduced, reduce_check, reduce_dump
from tflq.diagnosis.signatures import only_dumps
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError
from tflq.model.ir import Model, only_signed
from tflq.verbs.explain import DumpSource, check_subject


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
    chosen = by_name(profile)
    if (dump is None) == (check is None):
        raise OptionError("give either a dump or a check")
    if check is not None:
        target = only_signed(subject(model).model, signature).model
        made = make_inputs(target, inputs, 1, seed).samples
        if not 0 <= (sample or 0) < len(made):
            raise OptionError(f"sample {sample}: there are samples 0 to {len(made) - 1}")
        return reduce_check(target, chosen, made[sample or 0], check)
    assert dump is not None  # as there is no check
    part, (*others, last) = only_dumps(check_subject(model, dump), dump, sample, inputs, signature)
    for one in others:
        try:
            return reduce_dump(part.model, chosen, one)
        except InputError:
            continue
    return reduce_dump(part.model, chosen, last)
