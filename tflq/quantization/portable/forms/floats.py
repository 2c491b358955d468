"""Rewrite a float model to operators on which all runtimes agree once they are quantized; its function stays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflq.ir import Model
from tflq.profiles import Profile
from tflq.quantization.portable.forms.editing import Form, composed, replaced
from tflq.quantization.portable.forms.pools import average_pool_form, mean_form
from tflq.quantization.portable.forms.resizing import resize_form
from tflq.quantization.portable.forms.rewrite import Rewritten
from tflq.quantization.portable.forms.shapes import with_shapes_folded


def portable_form(model: Model, runtimes: Sequence[Profile]) -> Rewritten:
    """Return a float model without operators that have another form for these runtimes, and what was rewritten.

    Operators without one stay; `obstacles` names them.
    """
    forms: dict[str, Form] = {
        "AVERAGE_POOL_2D": partial(average_pool_form, runtimes),
        "MEAN": partial(mean_form, runtimes),
        "RESIZE_BILINEAR": resize_form,
    }
    folded = with_shapes_folded(model)
    return composed(folded, replaced(folded.model, forms))
