"""Name the operators of a float model that have no portable form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import CONVERSIONS, READS_SHAPES
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, OperatorView, TensorType
from tflq.quantization.portable.forms.absorbing import LINEAR
from tflq.quantization.portable.forms.chains import chains
from tflq.quantization.portable.forms.floats import portable_form
from tflq.quantization.portable.forms.lookups import LOOKUPS, lookup_for, takes
from tflq.quantization.portable.forms.pools import pools_agree
from tflq.quantization.portable.forms.rewrite import Obstacle
from tflq.quantization.scheme.float_graph import prepare

#: Operators on two activations with portable scales; MUL needs tables for its operands.
_PAIRS = frozenset({"ADD", "SUB", "MUL"})
#: Operators that copy codes in some places and compute with them in others, or compute though they share scales.
_COMPUTING = frozenset({"AVERAGE_POOL_2D", "RESIZE_BILINEAR"})

_CELL = "its gates round intermediate results in ways of each library's own"
_CELL_INSTEAD = "unroll it into FULLY_CONNECTED, LOGISTIC, TANH and MUL before conversion"
_SUMS = "a sum of products of two activations has ties, and no weights that could exclude them"
#: Operator -> why runtimes differ, and what to do instead.
_REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "AVERAGE_POOL_2D": (
            "windows at the border hold fewer elements, so it is not one filter",
            "pad the image and use VALID, or choose a stride and size without padding",
        ),
        "BATCH_MATMUL": (_SUMS, "use constant weights (FULLY_CONNECTED), or end the portable part before it"),
        "L2_NORMALIZATION": (
            "it divides by a root that each runtime rounds in its own way",
            "spell it with SQUARE, SUM, RSQRT and MUL",
        ),
        "LOG_SOFTMAX": ("runtimes sum and divide exponentials in different ways", "output the logits"),
        "LSTM": (_CELL, _CELL_INSTEAD),
        "MEAN": ("its axes are not neighbours, or its shape changes", "split it in two, or fix the shapes"),
        "REDUCE_PROD": ("products are rescaled one after the other", "spell it as a chain of MUL"),
        "RESIZE_BILINEAR": (
            "the size does not grow by a whole factor, so weights differ from pixel to pixel",
            "resize by a whole factor, or use RESIZE_NEAREST_NEIGHBOR",
        ),
        "SOFTMAX": (
            "runtimes sum and divide exponentials in different ways",
            "at the end: output the logits; inside: use RELU attention or HARD_SWISH gates",
        ),
        "SUM": ("its axes are not neighbours, or its shape changes", "split it in two, or fix the shapes"),
        "SVDF": (_CELL, "use DEPTHWISE_CONV_2D over time"),
        "UNIDIRECTIONAL_SEQUENCE_LSTM": (_CELL, _CELL_INSTEAD),
    }
)
_UNKNOWN = "no form is known on which runtimes agree", "end the portable part before it"
_AT_END = "as the last operator: all before it stays portable, and the outputs differ in their last bits"
_INSIDE = "in float or int16: everything behind it differs in its last bits; what does not read it stays portable"


def obstacles(model: Model, runtimes: Sequence[Profile]) -> tuple[Obstacle, ...]:
    """Return the operators of a float model that keep it from being portable, by their indices in the model."""
    form = portable_form(model, runtimes)
    floats = prepare(form.model)
    origins = [form.origins[origin] for origin in floats.origins]
    tabulated = {index for chain in chains(floats.graph, floats.is_float, floats.is_float) for index in chain.operators}
    tableless = _tableless(runtimes)
    found = list[Obstacle]()
    for operator in floats.graph.ops:
        if operator.index in tabulated:
            reason = tableless
        else:
            reason = None if _is_portable(operator, runtimes) else _REASONS.get(operator.name, _UNKNOWN)
        if reason is not None:
            found.append(_obstacle(operator, origins[operator.index], *reason))
    return tuple(sorted(found, key=lambda obstacle: obstacle.index))


def _tableless(runtimes: Sequence[Profile]) -> tuple[str, str] | None:
    """Return why no operator becomes a table, and what to do instead; None if the runtimes take tables."""
    if lookup_for(runtimes) is not None:
        return None
    without = [runtime.name for runtime in runtimes if not any(takes(lookup, runtime) for lookup in LOOKUPS)]
    named = f"{', '.join(without)} takes" if without else "the runtimes together take"
    why = f"it needs a table, and {named} no form of one ({', '.join(LOOKUPS[0].operators)})"
    return why, "use RELU or RELU6, which are clamps of the operator before, or leave that runtime out"


def _obstacle(operator: OperatorView, index: int, why: str, instead: str) -> Obstacle:
    graph, name = operator.graph, operator.output().name or ""
    is_last = all(t in graph.outputs and not graph.readers(t) for t in operator.outputs)
    return Obstacle(index, operator.name, name, why, _AT_END if is_last else _INSIDE, instead)


def _is_portable(operator: OperatorView, runtimes: Sequence[Profile]) -> bool:
    """Return whether all runtimes agree on an operator once the grid has chosen its scales."""
    graph, name = operator.graph, operator.name
    tensors = (t for t in (*operator.inputs, *operator.outputs) if t >= 0)
    if name in CONVERSIONS | READS_SHAPES or all(graph.tensors[t].type != TensorType.FLOAT32 for t in tensors):
        return True
    if name in LINEAR:
        return graph.constant(operator.inputs[1]) is not None
    if name == "AVERAGE_POOL_2D" and operator.options is not None:
        window = int(operator.options["filter_height"]), int(operator.options["filter_width"])
        return pools_agree(window, tuple(runtimes))
    fact = OPERATORS.get(name)
    tied = None if fact is None or fact.quantize is None else fact.quantize.tied
    return name in _PAIRS or (tied is not None and name not in _COMPUTING)
