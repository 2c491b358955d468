"""Rewrite a float model to operators on which all runtimes agree once they are quantized; its function stays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import Model, OperatorView
from tflq.quantization.portable.forms.absorbing import with_constants_absorbed
from tflq.quantization.portable.forms.activations import transpose_conv_form
from tflq.quantization.portable.forms.channels import leaky_relu_form, prelu_form, product_form
from tflq.quantization.portable.forms.editing import Editing, Form, compose, replaced
from tflq.quantization.portable.forms.pairs import quotient_form, squared_difference_form
from tflq.quantization.portable.forms.pools import average_pool_form, mean_form
from tflq.quantization.portable.forms.resizing import resize_form
from tflq.quantization.portable.forms.rewrite import Rewrite, Rewritten
from tflq.quantization.portable.forms.shapes import with_shapes_folded


def _either(first: Form, second: Form) -> Form:
    """Return a form that is the first of two where that applies."""
    return lambda editing, operator: first(editing, operator) or second(editing, operator)


def _forms(runtimes: Sequence[Profile], shrinking: Collection[int]) -> dict[str, Form]:
    return {
        "AVERAGE_POOL_2D": partial(average_pool_form, runtimes),
        "DIV": _either(product_form, quotient_form),
        "LEAKY_RELU": leaky_relu_form,
        "MEAN": partial(mean_form, runtimes, shrinking),
        "MUL": product_form,
        "PRELU": prelu_form,
        "RESIZE_BILINEAR": resize_form,
        "SQUARED_DIFFERENCE": squared_difference_form,
        "SUM": partial(mean_form, runtimes, shrinking),
        "TRANSPOSE_CONV": transpose_conv_form,
    }


#: Operators that turn logits into probabilities.
PROBABILITIES = ("SOFTMAX", "LOG_SOFTMAX")
_DROPPED = "its results are not portable; the order of logits is the same"


def portable_form(
    model: Model,
    runtimes: Sequence[Profile] = (),
    inside: Collection[int] | None = None,
    shrinking: Collection[int] = (),
    *,
    drop_softmax: bool = False,
) -> Rewritten:
    """Return a float model without operators that have a portable form, and what was rewritten.

    Operators that are the same on all `runtimes` stay as they are; without any, everything that could differ changes.
    Only operators `inside` get another form; None: all. Means that are `shrinking`, whose results span much less than
    their inputs, become no pools. Operators without another form stay; `obstacles` names them. With `drop_softmax`,
    outputs that SOFTMAX or LOG_SOFTMAX makes become its inputs, the logits.

    Raises:
        ModelError, UnsupportedError: LiteRT's kernels refuse an operator.
    """
    make_plan(model, by_name("litert-ref"))
    changed = with_shapes_folded(model)
    changed = compose(changed, with_constants_absorbed(changed.model))
    chosen = None if inside is None else {i for i, origin in enumerate(changed.origins) if origin in inside}
    small = frozenset(i for i, origin in enumerate(changed.origins) if origin in shrinking)
    changed = compose(changed, replaced(changed.model, _forms(runtimes, small), chosen))
    changed = compose(changed, with_constants_absorbed(changed.model))
    return compose(changed, _without_probabilities(changed.model)) if drop_softmax else changed


def _without_probabilities(model: Model) -> Rewritten:
    return replaced(model, dict.fromkeys(PROBABILITIES, _drop))


def _drop(editing: Editing, operator: OperatorView) -> Rewrite | None:
    (output,) = operator.outputs
    if output not in editing.graph.outputs or editing.graph.readers(output):
        return None
    editing.replace(output, editing.new(operator.inputs[0]))
    name = editing.graph.tensors[output].name or ""
    return Rewrite(operator.index, operator.name, name, "nothing", _DROPPED, 0, "outputs are logits")
