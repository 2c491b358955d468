"""Rewrite a float model to operators on which all runtimes agree once they are quantized; its function stays."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tflq.ir import Model
from tflq.quantization.portable.forms.editing import Form, composed, replaced
from tflq.quantization.portable.forms.pools import average_pool_form, mean_form
from tflq.quantization.portable.forms.resizing import resize_form
from tflq.quantization.portable.forms.rewrite import Rewritten
from tflq.quantization.portable.forms.shapes import with_shapes_folded

_FORMS: Mapping[str, Form] = MappingProxyType(
    {"AVERAGE_POOL_2D": average_pool_form, "MEAN": mean_form, "RESIZE_BILINEAR": resize_form}
)


def portable_form(model: Model) -> Rewritten:
    """Return a float model without operators that have a portable form, and what was rewritten.

    Operators without one stay; `obstacles` names them.
    """
    folded = with_shapes_folded(model)
    return composed(folded, replaced(folded.model, _FORMS))
