"""A row whose device does not look at an option of the operator: it computes as if the option had its default.

Source of fields: tosa-converter-for-tflite 2026.2.0 (drops the fused activation of pools), OpenVINO 2026.4
(half_pixel_centers of RESIZE_NEAREST_NEIGHBOR), ESP-NN d45b843 called directly (dilation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stated_fields import check_fields

#: Values that options of the schema get, by the name of what is ignored.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "activation": {"fused_activation_function": 0},
    "dilation": {"dilation_h_factor": 1, "dilation_w_factor": 1},
    "align_corners": {"align_corners": False},
    "half_pixel_centers": {"half_pixel_centers": False},
    "align_corners and half_pixel_centers": {"align_corners": False, "half_pixel_centers": False},
}
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {"option": tuple(DEFAULTS)}


@dataclass(frozen=True, slots=True)
class Ignored:
    """The option that is not looked at. The field is spelled as files of profiles spell it."""

    option: str = "activation"


def ignored_of(stated: Mapping[str, Any]) -> Ignored:
    """Return the point with the field in `stated`.

    Raises:
        UnknownNameError: The field or the value does not exist.
    """
    check_fields(stated, FIELDS, "an ignored option")
    return Ignored(**stated)


def ignoring(row: Kernel, point: Ignored) -> Kernel:
    """Return the row that computes as if an option had its default."""
    changed = DEFAULTS[point.option]

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        for name in changed:
            node.check(name in tuple(node.options.fields), f"has no option {name} to ignore")
        options = replace(node.options, fields={**node.options.fields, **changed})
        return row.prepare(replace(node, options=options), arithmetic)

    return replace(row, prepare=prepare, takes=None)
