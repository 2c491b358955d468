"""RESIZE_NEAREST_NEIGHBOR by other rules: the input row and column that each output row and column copies.

Every hypothesis is a point of the grammar of positions (`kernels/families/nearest_positions`) on the model with the
operator's own options, or with other ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.mistakes.device import Mistaken, Under
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.nearest_positions import ROUNDED
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import with_rows
from tflq.model.surgery.edit import with_option

_PLAIN, _CORNERS, _CENTRES, _FROM_FIRST = "plain", "align_corners", "from the edge", "from the first pixel's centre"
#: Rules by name. Those of half_pixel_centers are two.
_RULES = {
    "half_pixel_centers ignored": _PLAIN,
    "half_pixel_centers taken": _CENTRES,
    "half_pixel_centers taken, from the first pixel's centre": _FROM_FIRST,
    "align_corners taken": _CORNERS,
}


def mistaken_positions(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every rule of positions with every rounding, named by how it differs from the model's options."""
    options = alone.op.options
    if alone.op.builtin != "RESIZE_NEAREST_NEIGHBOR" or options is None:
        return
    align, half = bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False))
    own = _CORNERS if align else _CENTRES if half else _PLAIN
    for rule, key in _RULES.items():
        text = "" if key == own else _rule_name(rule, align=align, half=half)
        is_centred = key in (_CENTRES, _FROM_FIRST)
        model = with_option(alone.model, "align_corners", key == _CORNERS)
        model = with_option(model, "half_pixel_centers", is_centred)
        for rounding in ROUNDED:
            point = {"half_pixel_centers": f"{key}, {rounding}"} if is_centred else {key: rounding}
            changed = with_rows(profile, [{"op": alone.op.name, "nearest": point}])
            yield f"position of the nearest pixel: {text}{rounding}", Under(changed, model)


def _rule_name(rule: str, *, align: bool, half: bool) -> str:
    """Return the rule's name, in terms of the options that it ignores or uses."""
    if rule == "half_pixel_centers ignored":
        ignored = [option for option, is_on in (("align_corners", align), ("half_pixel_centers", half)) if is_on]
        return f"{' and '.join(ignored)} ignored, "
    if align and not rule.startswith("align_corners"):
        return f"align_corners ignored, {rule}, "
    return f"{rule}, "
