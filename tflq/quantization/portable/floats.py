"""Rewrite a float model to operators on which all runtimes agree once they are quantized; its function stays.

Rewrites that keep a model's function and leave it to operators on which all runtimes agree.

| operator | becomes |
|---|---|
| ADD, SUB, MUL, DIV by a constant behind a convolution | part of its weights and bias |
| MUL, DIV by one number for each channel | DEPTHWISE_CONV_2D |
| MEAN, SUM over neighbouring axes; AVERAGE_POOL_2D | DEPTHWISE_CONV_2D with equal weights, or AVERAGE_POOL_2D |
| RESIZE_BILINEAR by whole factors | RESIZE_NEAREST_NEIGHBOR, MIRROR_PAD, DEPTHWISE_CONV_2D |
| SHAPE and what computes with it | constants |
| PRELU, LEAKY_RELU | MAXIMUM of two products, or a sum of two halves |
| SQUARED_DIFFERENCE, DIV of activations | SUB and a table, MUL with a table |
| a chain of pointwise operators on one tensor | a table of 256 entries: CAST, ADD, GATHER |
| an operand of MUL | a table without codes that give ties |
| SOFTMAX at the end | stays; with `drop_softmax`, nothing |

`floats` rewrites the float model, `tables` the integer model, and `obstacles` names what has no form.

Means over windows as AVERAGE_POOL_2D, means and sums as DEPTHWISE_CONV_2D with equal weights.

Kernels of MEAN scale integer sums in as many ways as there are runtimes. Those of AVERAGE_POOL_2D divide them, which is
the same in all known ones: a trial proof decides. Where it is not, a convolution with the weight 1 / N, or 1 for SUM,
requantizes as every other convolution of the model does, at the price of N weights for each channel.

Operators with one constant for each channel, by DEPTHWISE_CONV_2D.

For slopes a from 0 to 1, PRELU and LEAKY_RELU are MAXIMUM(x, a * x). A table takes slopes of one value, too, but looks
up an entry at the cost of several multiplications.

Let a convolution or dense operator absorb the constants that are added to its result or multiplied with it.

Activations that some runtimes do not fuse, written as operators of their own.

Operators on two activations, spelled with ADD, SUB and MUL, which have portable scales, and tables.

RESIZE_BILINEAR to a multiple of the size: repeated pixels, then a mean over their neighbours.

Linear interpolation by a whole factor f is RESIZE_NEAREST_NEIGHBOR by f and a window over the repeated pixels. With
half-pixel centers the window is centered: f equal weights, or for an even f, f + 1 weights of which the ends are half.
Without, it begins at the pixel itself. Pixels beyond the border repeat those at the border, as MIRROR_PAD SYMMETRIC
gives, because the outermost f are equal. Aligned corners leave windows over the border out.

Fold what a model computes from the shapes of its tensors into constants.

The shapes are those in the file. If one of them is declared to change, as the number of images often is, it is fixed:
what is proved of a model holds for the shapes in the file.

Name the operators of a float model that have no portable form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from types import MappingProxyType

import numpy as np

from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import CONVERSIONS, READS_SHAPES, RULES
from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import Buffer, Model, OperatorView, Quantization, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.model import enum, enum_names
from tflq.model.surgery.cut import cut
from tflq.model.surgery.tap import with_tensors
from tflq.proof import Word
from tflq.proof.operator import BoundOperator, bind
from tflq.proof.proof import contrast
from tflq.quantization.portable.editing import (
    VALID,
    Editing,
    Form,
    Obstacle,
    Rewrite,
    Rewritten,
    compose,
    fits,
    replaced,
    reshaped,
    rewrite_of,
    write_depthwise,
    write_reshape,
)
from tflq.quantization.portable.tables import LOOKUPS, chains, lookup_for, takes
from tflq.quantization.scheme.float_graph import prepare
from tflq.typing import Array, Floats, Reals

POOLS_WHY = "runtimes scale its sums in different ways, but not those of what replaces it"


def mean_form(
    runtimes: Sequence[Profile], shrinking: Collection[int], editing: Editing, operator: OperatorView
) -> Rewrite | None:
    """Write a MEAN or SUM over neighbouring axes: [before, axes, behind] as an image, one window over the axes."""
    source, axes = operator.input_specs[0], editing.graph.constant(operator.inputs[1])
    if source is None or axes is None or source.type != TensorType.FLOAT32 or not is_known(source, 1):
        return None
    rank = len(source.shape)
    reduced = sorted({int(axis) % rank for axis in axes.reshape(-1)})
    if not reduced or reduced != list(range(reduced[0], reduced[-1] + 1)) or not (reduced[0] or is_known(source, 0)):
        return None
    first, last = reduced[0], reduced[-1] + 1
    height, width = (source.shape[first:last]) if len(reduced) == 2 else (1, prod(source.shape[first:last]))
    image = [prod(source.shape[:first]), height, width, prod(source.shape[last:])]
    if not fits(*image[1:]):
        return None
    is_mean = operator.name == "MEAN" and operator.index not in shrinking
    is_pool = is_mean and pools_agree((height, width), tuple(runtimes))
    made, steps = operator.output(), ["AVERAGE_POOL_2D" if is_pool else "DEPTHWISE_CONV_2D"]
    weight = 1 / (height * width) if operator.name == "MEAN" else 1.0

    def write(taken: int, result: int) -> None:
        if is_pool:
            _pool(editing, taken, result, operator.index, (height, width))
        else:
            _write_window(editing, operator, taken, result, (height, width), weight=weight)

    taken = editing.new(operator.inputs[0])
    if list(source.shape) != image:
        taken = reshaped(editing, operator, taken, image)
        steps.insert(0, "RESHAPE")
    result = editing.new(operator.outputs[0])
    if list(made.shape) == [image[0], 1, 1, image[3]]:
        write(taken, result)
    else:
        window = editing.tensor(made, "/window", shape=(image[0], 1, 1, image[3]))
        write(taken, window)
        write_reshape(editing, operator, window, result, made)
        steps.append("RESHAPE")
    return rewrite_of(operator, steps, POOLS_WHY, 0 if is_pool else height * width * image[3])


def average_pool_form(runtimes: Sequence[Profile], editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write an AVERAGE_POOL_2D whose windows all hold the same number of elements, if runtimes divide differently."""
    source, options, made = operator.input_specs[0], operator.options, operator.output()
    if source is None or options is None or source.type != TensorType.FLOAT32 or not is_known(source, 1):
        return None
    window = int(options["filter_height"]), int(options["filter_width"])
    strides = int(options["stride_h"]), int(options["stride_w"])
    if not is_unpadded(source, made, window, strides) or pools_agree(window, tuple(runtimes)):
        return None
    if not fits(*window, source.shape[3]):
        return None
    fused = int(options["fused_activation_function"])
    taken, result = editing.new(operator.inputs[0]), editing.new(operator.outputs[0])
    _write_window(editing, operator, taken, result, window, strides, fused, 1 / prod(window))
    return rewrite_of(operator, ["DEPTHWISE_CONV_2D"], POOLS_WHY, window[0] * window[1] * source.shape[3])


@cache
def pools_agree(window: tuple[int, int], runtimes: tuple[Profile, ...]) -> bool:
    """Return whether AVERAGE_POOL_2D over a window of int8 codes is proved equal on all runtimes that take it."""
    model = _trial(window)
    bound = [runtime for runtime in runtimes if isinstance(bind(model, 0, runtime), BoundOperator)]
    return bool(bound) and all(v.word == Word.EQUAL for v in contrast(model, 0, bound[0], bound[1:]))


def _trial(window: tuple[int, int]) -> Model:
    """Return a model that averages one window."""
    q = Quantization(np.ones(1, np.float32), np.zeros(1, np.int64))
    x, y = (
        TensorSpec(name, TensorType.INT8, (1, *size, 8), quantization=q)
        for name, size in (("x", window), ("y", (1, 1)))
    )
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    _pool(editing, editing.new(0), editing.new(1), -1, window, version=2)
    return editing.result()


def _pool(editing: Editing, taken: int, result: int, origin: int, window: tuple[int, int], version: int = 1) -> None:
    fields = {"filter_height": window[0], "filter_width": window[1], "stride_h": 1, "stride_w": 1}
    fields |= {"padding": VALID, "fused_activation_function": 0}
    editing.operator("AVERAGE_POOL_2D", [taken], [result], origin, "Pool2DOptions", version, **fields)


def is_unpadded(source: TensorSpec, made: TensorSpec, window: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether windows over the image lie inside it, so that all hold the same number of elements."""
    if len(source.shape) != 4 or len(made.shape) != 4 or 0 in strides:
        return False
    pairs = zip(source.shape[1:3], made.shape[1:3], window, strides, strict=True)
    return all((count - 1) * stride + width <= size for size, count, width, stride in pairs)


def _write_window(
    editing: Editing,
    operator: OperatorView,
    taken: int,
    result: int,
    window: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    fused: int = 0,
    weight: float = 1.0,
) -> None:
    channels = editing.spec(taken).shape[3]
    weights = np.full((1, *window, channels), weight, np.float32)
    write_depthwise(editing, operator, taken, result, weights, np.zeros(channels, np.float32), strides, fused)


def is_known(spec: TensorSpec, start: int) -> bool:
    """Return whether dimensions from `start` on are not 0 and cannot change at run time."""
    sizes = (*(spec.shape_signature or spec.shape)[start:], *spec.shape[start:])
    return len(spec.shape) > start and min(sizes, default=0) > 0


WHY_PRODUCT = "runtimes round a product with a constant in different ways; a convolution requantizes as all others do"
WHY_LEAKY = "runtimes round its kernel in different ways; a maximum does not round"
WHY_PRELU = "runtimes round its kernel in different ways; its halves are a table and a convolution"


def product_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a MUL or DIV by one number for each channel."""
    if len(operator.inputs) != 2 or operator.options is None:
        return None
    positions = (0, 1) if operator.name == "MUL" else (0,)
    for position in positions:
        factors = channels_of(operator, operator.inputs[1 - position], operator.inputs[position])
        if factors is None or factors.size == 1:
            continue
        with np.errstate(divide="ignore"):
            weights = factors if operator.name == "MUL" else (1 / factors).astype(np.float32)
        if not np.isfinite(weights).all():
            return None
        fused = int(operator.options["fused_activation_function"])
        taken = editing.new(operator.inputs[position])
        steps = _write_scaled(editing, operator, taken, weights, fused)
        return rewrite_of(operator, steps, WHY_PRODUCT, weights.size)
    return None


def prelu_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a PRELU with slopes a as MAXIMUM(x, a * x), or as RELU(x) + a * MINIMUM(x, 0); one slope as LEAKY_RELU."""
    slopes = channels_of(operator, operator.inputs[1], operator.inputs[0])
    if slopes is None:
        return None
    if (slopes >= 0).all() and (slopes <= 1).all() and len(operator.output().shape) == 4:
        return _write_maximum(editing, operator, slopes)
    taken, result, made = editing.new(operator.inputs[0]), editing.new(operator.outputs[0]), operator.output()
    if (slopes == slopes[0]).all():
        editing.operator("LEAKY_RELU", [taken], [result], operator.index, "LeakyReluOptions", alpha=float(slopes[0]))
        return rewrite_of(operator, ["LEAKY_RELU"], WHY_PRELU, 0)
    positive, negative, scaled = (editing.tensor(made, end) for end in ("/positive", "/negative", "/scaled"))
    zero = editing.constant("zero", np.zeros(1, np.float32))
    editing.operator("RELU", [taken], [positive], operator.index)
    editing.operator("MINIMUM", [taken, zero], [negative], operator.index, "MaximumMinimumOptions")
    steps = _write_scaled(editing, operator, negative, slopes, 0, scaled)
    editing.operator("ADD", [positive, scaled], [result], operator.index, "AddOptions", pot_scale_int16=False)
    return rewrite_of(operator, ["RELU", "MINIMUM", *steps, "ADD"], WHY_PRELU, slopes.size)


def leaky_relu_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a LEAKY_RELU of an image with a slope a from 0 to 1 as MAXIMUM(x, a * x)."""
    spec, alpha = operator.output(), 0.0 if operator.options is None else float(operator.options["alpha"])
    if spec.type != TensorType.FLOAT32 or len(spec.shape) != 4 or not is_known(spec, 1) or not 0 <= alpha <= 1:
        return None
    return _write_maximum(editing, operator, np.full(spec.shape[3], alpha, np.float32))


def _write_maximum(editing: Editing, operator: OperatorView, slopes: Floats) -> Rewrite:
    slopes = np.broadcast_to(slopes, operator.output().shape[3])
    taken, result = editing.new(operator.inputs[0]), editing.new(operator.outputs[0])
    scaled = editing.tensor(operator.output(), "/scaled")
    steps = _write_scaled(editing, operator, taken, slopes, 0, scaled)
    editing.operator("MAXIMUM", [taken, scaled], [result], operator.index, "MaximumMinimumOptions")
    return rewrite_of(operator, [*steps, "MAXIMUM"], WHY_LEAKY, 5 * slopes.size)


def channels_of(operator: OperatorView, constant: int, data: int) -> Floats | None:
    """Return the numbers that a constant has for the channels of a computed float tensor, [C] or [1].

    None if it is no constant, differs in other places than channels, or changes the shape of the data.
    """
    graph = operator.graph
    values, spec = graph.constant(constant), graph.tensors[data]
    if values is None or values.dtype != np.float32 or spec.type != TensorType.FLOAT32 or not is_known(spec, 1):
        return None
    if constant in graph.inputs or graph.maker(constant) is not None or graph.constant(data) is not None:
        return None
    fits = values.size == 1 or values.shape[-1] == values.size == spec.shape[-1]
    is_same = operator.output().shape == spec.shape and values.size > 0 and np.isfinite(values).all()
    return values.reshape(-1) if fits and is_same else None


def _write_scaled(
    editing: Editing, operator: OperatorView, taken: int, factors: Floats, fused: int, result: int | None = None
) -> list[str]:
    """Write a DEPTHWISE_CONV_2D that multiplies every channel, with a RESHAPE around where there is no image."""
    spec = editing.spec(taken)
    result = editing.new(operator.outputs[0]) if result is None else result
    weights = factors.reshape(1, 1, 1, -1).astype(np.float32)
    bias = np.zeros(factors.size, np.float32)
    if len(spec.shape) == 4:
        write_depthwise(editing, operator, taken, result, weights, bias, fused=fused)
        return ["DEPTHWISE_CONV_2D"]
    image = reshaped(editing, operator, taken, _image(spec))
    scaled = editing.tensor(editing.spec(image), "/scaled")
    write_depthwise(editing, operator, image, scaled, weights, bias, fused=fused)
    write_reshape(editing, operator, scaled, result, spec)
    return ["RESHAPE", "DEPTHWISE_CONV_2D", "RESHAPE"]


def _image(spec: TensorSpec) -> tuple[int, ...]:
    first, *inner, channels = spec.shape
    return first, 1, prod(inner), channels


WHY = "constants of a convolution need no rounding of their own"
#: Operator -> (position of weights, their dimension of output channels, position of the bias).
LINEAR: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        op: (rule.weights.weights, rule.weights.axis, rule.weights.bias)
        for op, rule in RULES.items()
        if rule.weights is not None and rule.weights.axis is not None and rule.weights.bias is not None
    }
)
_ABSORBED = frozenset({"ADD", "SUB", "MUL", "DIV"})


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """A linear operator with what it has absorbed: the result is activation(weights * data + bias)."""

    operator: OperatorView
    weights: Floats
    bias: Floats
    result: int
    fused: int
    absorbed: tuple[OperatorView, ...] = ()


def with_constants_absorbed(model: Model) -> Rewritten:
    """Return the model with ADD, SUB, MUL and DIV by constants folded into the linear operator before them."""
    editing, rewrites, gone = Editing(model), list[Rewrite](), set[int]()
    for operator in editing.graph.ops:
        linear = _linear(operator)
        linear = None if linear is None else _follow(linear)
        if linear is not None and linear.absorbed:
            _write(editing, linear)
            gone.update(other.index for other in linear.absorbed)
            rewrites.extend(_rewrite(operator, other) for other in linear.absorbed)
        elif operator.index not in gone:
            editing.copy(operator)
    if not rewrites:
        return Rewritten(model, (), tuple(range(len(view(model).ops))))
    return Rewritten(editing.result(), tuple(rewrites), editing.origins)


def _linear(operator: OperatorView) -> _Linear | None:
    """Return an operator with constant float weights and bias, and no activation; None for any other."""
    if operator.name not in LINEAR or operator.options is None:
        return None
    graph, (weights_at, axis, bias_at) = operator.graph, LINEAR[operator.name]
    if len(operator.inputs) <= weights_at or operator.options.get("fused_activation_function", 0):
        return None
    weights = graph.constant(operator.inputs[weights_at])
    if weights is None or weights.dtype != np.float32 or weights.ndim <= axis:
        return None
    count = weights.shape[axis]
    if operator.name == "TRANSPOSE_CONV" and not _has_bias(operator):  # a bias would need another version
        return None
    bias = graph.constant(operator.inputs[bias_at]) if _has_bias(operator) else np.zeros(count, np.float32)
    if bias is None or bias.dtype != np.float32 or bias.size != count:
        return None
    return _Linear(operator, weights, bias.reshape(-1), operator.outputs[0], 0)


def _has_bias(operator: OperatorView) -> bool:
    position = LINEAR[operator.name][2]
    return len(operator.inputs) > position and operator.inputs[position] >= 0


def _follow(linear: _Linear) -> _Linear:
    """Return the operator with all that it can absorb: what alone reads its result, until an activation."""
    graph = linear.operator.graph
    while not linear.fused and linear.result not in graph.outputs:
        readers = graph.readers(linear.result)
        further = _with(linear, readers[0]) if len(readers) == 1 else None
        if further is None:
            break
        linear = further
    return linear


def _with(linear: _Linear, operator: OperatorView) -> _Linear | None:
    """Return a linear operator that has absorbed the next one; None if it cannot."""
    if operator.name not in _ABSORBED or operator.options is None or len(operator.inputs) != 2:
        return None
    first = operator.inputs[0] == linear.result
    values = channels_of(operator, operator.inputs[1 if first else 0], linear.result)
    if values is None or (operator.name == "DIV" and (not first or not values.all())):
        return None
    scale, shift = _affine(operator.name, first, values)
    _, axis, _ = LINEAR[linear.operator.name]
    along = [-1 if d == axis else 1 for d in range(linear.weights.ndim)]
    return replace(
        linear,
        weights=(linear.weights * np.broadcast_to(scale, linear.bias.shape).reshape(along)).astype(np.float32),
        bias=(linear.bias * scale + shift).astype(np.float32),
        result=operator.outputs[0],
        fused=int(operator.options["fused_activation_function"]),
        absorbed=(*linear.absorbed, operator),
    )


def _affine(name: str, first: bool, values: Floats) -> tuple[Reals, Reals]:
    """Return scale and shift that an operator applies to its computed operand, which is the first one or not."""
    wide, one, zero = values.astype(np.float64), np.ones(1), np.zeros(1)
    if name in ("MUL", "DIV"):
        return (wide if name == "MUL" else 1 / wide), zero
    if name == "ADD":
        return one, wide
    return (one, -wide) if first else (-one, wide)


def _write(editing: Editing, linear: _Linear) -> None:
    operator = linear.operator
    weights_at, _, bias_at = LINEAR[operator.name]
    name = editing.graph.tensors[linear.result].name or operator.name
    inputs = [editing.new(t) for t in operator.inputs]
    inputs += [-1] * (bias_at + 1 - len(inputs))
    inputs[weights_at] = editing.constant(f"{name}/weights", linear.weights)
    inputs[bias_at] = editing.constant(f"{name}/bias", linear.bias)
    editing.copy(operator, None, inputs, [editing.new(linear.result)], fused_activation_function=linear.fused)


def _rewrite(operator: OperatorView, other: OperatorView) -> Rewrite:
    name = other.output().name or ""
    return Rewrite(other.index, other.name, name, f"part of {operator.name} {operator.index}", WHY, 0)


ACTIVATIONS_WHY = "some runtimes ignore the activation that it fuses"
_RECTIFIERS = ("RELU", "RELU_N1_TO_1", "RELU6")


def transpose_conv_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a TRANSPOSE_CONV with a fused activation as two operators."""
    options, made = operator.options, operator.output()
    number = 0 if options is None else int(options.get("fused_activation_function", 0))
    name = enum_names("ActivationFunctionType").get(number, "")
    if options is None or name not in _RECTIFIERS or made.type != TensorType.FLOAT32:
        return None
    inputs, sums = [editing.new(t) for t in operator.inputs], editing.tensor(made, "/sums")
    kept = {field: options[field] for field in ("padding", "stride_w", "stride_h")}
    version = 3 if len(inputs) > 3 and inputs[3] >= 0 else 1
    editing.operator("TRANSPOSE_CONV", inputs, [sums], operator.index, "TransposeConvOptions", version, **kept)
    editing.operator(name, [sums], [editing.new(operator.outputs[0])], operator.index)
    return rewrite_of(operator, ["TRANSPOSE_CONV", name], ACTIVATIONS_WHY, 0)


PAIRS_WHY = "runtimes round its kernel in different ways; the difference or product is portable, the rest is a table"


def squared_difference_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a SQUARED_DIFFERENCE of two activations as SUB and SQUARE."""
    if not _is_of_activations(operator):
        return None
    inputs, result = [editing.new(t) for t in operator.inputs], editing.new(operator.outputs[0])
    difference = editing.tensor(operator.output(), "/difference")
    editing.operator("SUB", inputs, [difference], operator.index, "SubOptions", pot_scale_int16=False)
    editing.operator("SQUARE", [difference], [result], operator.index, "SquareOptions")
    return rewrite_of(operator, ["SUB", "SQUARE"], PAIRS_WHY, 0)


def quotient_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a DIV of two activations as a product with the reciprocal."""
    if not _is_of_activations(operator) or operator.options is None:
        return None
    dividend, divisor = (editing.new(t) for t in operator.inputs)
    reciprocal = editing.tensor(editing.spec(divisor), "/reciprocal")
    one = editing.constant("one", np.ones(1, np.float32))
    editing.operator("DIV", [one, divisor], [reciprocal], operator.index, "DivOptions")
    fused = int(operator.options["fused_activation_function"])
    result, options = editing.new(operator.outputs[0]), "MulOptions"
    factors = [dividend, reciprocal]
    editing.operator("MUL", factors, [result], operator.index, options, fused_activation_function=fused)
    return rewrite_of(operator, ["DIV", "MUL"], PAIRS_WHY, 0)


def _is_of_activations(operator: OperatorView) -> bool:
    """Return whether an operator reads two computed float tensors."""
    graph = operator.graph
    specs = (graph.tensors[t] for t in operator.inputs)
    is_float = all(spec.type == TensorType.FLOAT32 for spec in specs)
    return is_float and len(operator.inputs) == 2 and all(graph.constant(t) is None for t in operator.inputs)


RESIZING_WHY = "runtimes interpolate codes in different ways; they repeat pixels and convolve alike"
#: The greatest factor that a form takes.
_MOST_FACTOR = 64


@dataclass(frozen=True, slots=True)
class _Axis:
    """One direction: the factor, repeated pixels before and after the image, and the window."""

    factor: int
    before: int
    after: int
    window: tuple[float, ...]


def resize_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a RESIZE_BILINEAR whose factors are whole numbers."""
    source, made = operator.input_specs[0], operator.output()
    if source is None or source.type != TensorType.FLOAT32 or not (is_known(source, 1) and is_known(made, 1)):
        return None
    pairs = zip(source.shape[1:3], made.shape[1:3], strict=True)
    axes = [_axis(operator, size, target) for size, target in pairs]
    if None in axes or len(source.shape) != 4:
        return None
    rows, columns = (axis for axis in axes if axis is not None)
    if not fits(rows.factor + 1, columns.factor + 1, source.shape[3]):
        return None
    tensor, steps = editing.new(operator.inputs[0]), list[str]()
    batch, height, width, channels = source.shape
    height, width = height * rows.factor, width * columns.factor
    if (height, width) != source.shape[1:3]:
        result = editing.tensor(editing.spec(tensor), "/repeated", shape=(batch, height, width, channels))
        size = editing.constant("size", np.array([height, width], np.int32))
        editing.operator(
            "RESIZE_NEAREST_NEIGHBOR", [tensor, size], [result], operator.index, "ResizeNearestNeighborOptions", 2
        )
        tensor = result
        steps.append("RESIZE_NEAREST_NEIGHBOR")
    padding = np.array([[0, 0], [rows.before, rows.after], [columns.before, columns.after], [0, 0]], np.int32)
    if padding.any():
        shape = tuple(int(n) for n in np.array([batch, height, width, channels]) + padding.sum(1))
        result = editing.tensor(editing.spec(tensor), "/bordered", shape=shape)
        mode = enum("MirrorPadMode")["SYMMETRIC"]
        operands = [tensor, editing.constant("border", padding)]
        editing.operator("MIRROR_PAD", operands, [result], operator.index, "MirrorPadOptions", mode=mode)
        tensor = result
        steps.append("MIRROR_PAD")
    window = np.outer(rows.window, columns.window).astype(np.float32)
    weights = np.repeat(window[None, :, :, None], channels, 3)
    bias = np.zeros(channels, np.float32)
    write_depthwise(editing, operator, tensor, editing.new(operator.outputs[0]), weights, bias)
    steps.append("DEPTHWISE_CONV_2D")
    return rewrite_of(operator, steps, RESIZING_WHY, weights.size)


def _axis(operator: OperatorView, size: int, target: int) -> _Axis | None:
    """Return how one direction is interpolated; None if its factor is not whole."""
    options = operator.options
    if options is None or size < 1:
        return None
    if options["align_corners"]:
        if size == 1 or (target - 1) % (size - 1):
            return _Axis(1, 0, 0, (1.0,)) if size == target else None
        factor = (target - 1) // (size - 1)
        return _Axis(factor, 0, 0, (1 / factor,) * factor) if 0 < factor <= _MOST_FACTOR else None
    factor, rest = divmod(target, size)
    if rest or not 0 < factor <= _MOST_FACTOR:
        return None
    if not options["half_pixel_centers"]:
        return _Axis(factor, 0, factor - 1, (1 / factor,) * factor)
    ends, inner = (0.5 / factor, factor - 1) if factor % 2 == 0 else (1 / factor, factor - 2)
    window = (1.0,) if factor == 1 else (ends, *[1 / factor] * inner, ends)
    return _Axis(factor, factor // 2, factor // 2, window)


_PROFILE = "litert-ref"
_INTEGERS = (TensorType.INT32, TensorType.INT64, TensorType.BOOL)
SHAPES_WHY = "it computes with shapes, which are fixed to those in the file"


def with_shapes_folded(model: Model) -> Rewritten:
    """Return the model without operators that compute with nothing but shapes and constants of integers or truths."""
    changed = Rewritten(model, (), tuple(range(len(view(model).ops))))
    if not any(operator.name == "SHAPE" for operator in view(model).ops):
        return changed
    while True:  # a folded shape makes the shapes behind a RESHAPE known
        folded = _fold_once(_with_fixed_shapes(changed.model))
        if not folded.rewrites:
            return changed
        changed = compose(changed, folded)


def _with_fixed_shapes(model: Model) -> Model:
    """Return the model whose tensors have the shapes that follow from those of its inputs, and no others."""
    plan, graph = make_plan(model, by_name(_PROFILE)), view(model)
    shapes = {t: tuple(plan.operands[t].shape) for t in range(len(graph.tensors)) if plan.known[t]}
    specs = {t: replace(graph.tensors[t], shape=shape, shape_signature=None) for t, shape in shapes.items()}
    return with_tensors(model, specs)


def _fold_once(model: Model) -> Rewritten:
    editing, values, rewrites = Editing(model), dict[int, Array](), list[Rewrite]()
    plan = make_plan(model, by_name(_PROFILE))
    for operator in editing.graph.ops:
        found = _value(model, operator, values, plan)
        if found is None:
            editing.copy(operator)
            continue
        output = operator.outputs[0]
        values[output] = found
        name = editing.graph.tensors[output].name or operator.name
        editing.replace(output, editing.constant(name, found))
        rewrites.append(Rewrite(operator.index, operator.name, name, "a constant", SHAPES_WHY, found.nbytes))
    return Rewritten(editing.result(), tuple(rewrites), editing.origins)


def _value(model: Model, operator: OperatorView, values: dict[int, Array], plan: Plan) -> Array | None:
    """Return the integers that an operator computes from shapes; None if it does something else."""
    graph, outputs = operator.graph, operator.outputs
    if len(outputs) != 1 or graph.tensors[outputs[0]].type not in _INTEGERS or outputs[0] in graph.outputs:
        return None
    if operator.name == "SHAPE":
        tensor = operator.inputs[0]
        dtype = np.int32 if graph.tensors[outputs[0]].type == TensorType.INT32 else np.int64
        return np.array(plan.operands[tensor].shape, dtype) if plan.known[tensor] else None
    read = [t for t in operator.inputs if t >= 0]
    if not any(t in values for t in read) or any(t not in values and graph.constant(t) is None for t in read):
        return None
    part, tensors = cut(model, [operator.index])
    inputs = {i: values[tensors[i]] for i in view(part).inputs}
    shapes = {i: value.shape for i, value in inputs.items()}
    return run(make_plan(part, by_name(_PROFILE), input_shapes=shapes), inputs).values[view(part).outputs[0]]


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
