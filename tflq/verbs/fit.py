"""`fit`: every operator under every profile, compared with a device's dump."""

from __future__ import annotations

from dataclasses import replace

from tflq.comparison.verification.inputs import InputSource
from tflq.comparison.verification.preparation import Numbers, preparation
from tflq.diagnosis.localization import in_order
from tflq.diagnosis.profile_fit import Fit
from tflq.diagnosis.profile_fit import fit as fit_profiles
from tflq.diagnosis.profiles_apart import profiles_apart
from tflq.diagnosis.signatures import only_dumps
from tflq.engine.api.files import Source
from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import Model
from tflq.verbs.explain import DumpSource, check_subject


def fit(
    model: Source | Model,
    dump: DumpSource,
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
        dump: The device's tensors, as for `explain`.
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
    target = check_subject(model, dump)
    part, samples = only_dumps(target, dump, sample, inputs, signature, preparation(mean, std, bgr=bgr))
    samples = in_order(part.model, samples, by_name(profile))
    result = fit_profiles(part.model, samples, profile)
    if search_inputs and len(result.fitting) > 1:
        return replace(result, discrimination=profiles_apart(part.model, samples[0], result.fitting))
    return result
