"""Cases at the edges of Prepare's conditions: drawn cases with one to three changes that a runtime may or may not take.

Unlike hostile cases, what changes is what Prepare looks at, and the rest of the case stays meaningful: declared shapes
follow changed strides, and values stay within their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opfuzz.case import Array, Case, fed
from opfuzz.draw import CODES, QUANTIZED, Draw
from opfuzz.families.contracting import pixels
from opfuzz.one_operator import T
from opfuzz.session import draw_case
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer, Model, TensorSpec

#: Operators with a bias -> its position.
BIASED = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3, "SVDF": 3}
#: Operators whose windows lie over the image of input 0.
WINDOWED = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
#: Operators of two operands of the same shape and type: one tensor may serve as both.
PAIRED = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "EQUAL", "LESS", "CONCATENATION")
#: Types whose operators are drawn: data of codes or of float32.
DATA = QUANTIZED | {"float32"}
#: Changes that only LiteRT defines: tflite-micro takes declared shapes for the real ones, and reads beyond ends.
NOT_MICRO = frozenset({"shape_unknown", "shape_of_one", "short_buffer"})


@dataclass(frozen=True, eq=False)
class Edge:
    """A file at an edge. `changes` names what was changed, `samples` holds the values of its inputs."""

    number: int
    case: Case
    changes: tuple[str, ...]
    content: bytes
    samples: tuple[tuple[Array, ...], ...]

    @property
    def is_for_micro(self) -> bool:
        """False if the file's declared shapes are not the real ones."""
        return not NOT_MICRO.intersection(self.changes)


def draw_edge(seed: int, number: int) -> Edge | None:
    """Return the edge of that number; None if its operator takes neither codes nor float32, or nothing was changed."""
    case = draw_case(seed, number)
    if not DATA.intersection(t.type for t in (*filter(None, case.inputs), *case.outputs)):
        return None
    draw = Draw(np.random.default_rng([seed, number, 1]))
    done: list[str] = []
    for _ in range(draw.pick([1, 1, 1, 2, 2, 3])):
        change = draw.pick(CASE_CHANGES)
        changed = change(draw, case)
        if changed is not None:
            case = changed
            done.append(change.__name__)
    model = read(case.model())
    if draw.chance(0.25) or not done:
        change_file = draw.pick(FILE_CHANGES)
        made = change_file(draw, case, model)
        if made is not None:
            model = made
            done.append(change_file.__name__)
    shared = one_tensor(case, model) if draw.chance(0.5) else None
    samples = case.samples
    if shared is not None:
        model, samples = shared, tuple(sample[:1] for sample in samples)
        done.append("one_tensor")
    return Edge(number, case, tuple(done), bytes(write(model)), samples) if done else None


# changes of a case


def long_strides(draw: Draw, case: Case) -> Case | None:
    """Return the case with strides beyond the kernel, or beyond the image; the declared shape follows."""
    if case.op not in WINDOWED or case.options is None or case.inputs[0] is None or len(case.outputs[0].shape) != 4:
        return None
    image = tuple(case.inputs[0].shape)
    table, options = case.options[0], dict(case.options[1])
    options["padding"] = 0 if draw.chance(0.75) else options["padding"]
    kernel = kernel_of(case, options)
    out = list(case.outputs[0].shape)
    for axis, name in ((1, "h"), (2, "w")):
        stride = draw.pick([kernel[axis - 1] + 1, image[axis] + 1, 2 * image[axis] + 1, draw.int(1, 9)])
        options[f"stride_{name}"] = stride
        reach = (kernel[axis - 1] - 1) * int(options.get(f"dilation_{name}_factor", 1)) + 1
        out[axis] = pixels(image[axis], reach, stride, options["padding"])
    return replace(case, options=(table, options), outputs=(replace(case.outputs[0], shape=tuple(out)),))


def kernel_of(case: Case, options: Mapping[str, Any]) -> tuple[int, int]:
    """Return height and width of the kernel."""
    if "filter_height" in options:
        return int(options["filter_height"]), int(options["filter_width"])
    assert case.inputs[1] is not None
    return int(case.inputs[1].shape[1]), int(case.inputs[1].shape[2])


def extreme_scale(draw: Draw, case: Case) -> Case | None:
    """Return the case with a scale beyond 2**8 or below 2**-20 in one or in all tensors of codes."""
    exponent = draw.pick([8, 9, 12, 16, 20, 24, 31, 40, 60, -20, -22, -25, -30, -31, -40, -60, -100])
    everywhere = draw.chance(0.3)
    return _in_one(draw, case, lambda t: rescaled(t, 2.0**exponent * draw.real(0.7, 1.5)), everywhere)


def rescaled(tensor: T, scale: float) -> T:
    """Return the tensor with scales around `scale`, in the proportions that they had."""
    old = np.asarray(tensor.scale, np.float64)
    with np.errstate(all="ignore"):
        made = np.asarray(old / max(float(np.max(old)), 1e-300) * scale, np.float32)
    return replace(tensor, scale=float(made) if made.ndim == 0 else made)


def unequal_scale(draw: Draw, case: Case) -> Case | None:
    """Return the case with an output scaled otherwise, a little or much."""
    factor = draw.pick([2.0, 0.5, 1.25, 1 + 2**-23, 1000.0, 1 / 300, 0.999])
    return _in_output(draw, case, lambda t: rescaled(t, float(np.max(np.asarray(t.scale))) * factor))


def unequal_zero_point(draw: Draw, case: Case) -> Case | None:
    """Return the case with another zero point of an output."""
    step = draw.pick([1, -1, 7, -90])
    return _in_output(draw, case, lambda t: replace(t, zero_point=within(t, int(np.ravel(t.zero_point)[0]) + step)))


def within(tensor: T, zero_point: int) -> int:
    """Return a zero point moved into the type's range."""
    low, high = CODES[tensor.type]
    return min(max(zero_point, low), high)


def zero_point_of_16_bits(draw: Draw, case: Case) -> Case | None:
    """Return the case with a zero point of a tensor of 16 bits."""
    return _in_one(draw, case, lambda t: replace(t, zero_point=draw.pick([1, -5])) if t.type == "int16" else t)


def zero_point_of_weights(draw: Draw, case: Case) -> Case | None:
    """Return the case with a zero point of constant weights."""

    def change(tensor: T) -> T:
        count = np.size(tensor.scale)
        return tensor if tensor.value is None else replace(tensor, zero_point=[draw.pick([1, -3, 100])] * count)

    return _in_one(draw, case, change)


def per_channel(draw: Draw, case: Case) -> Case | None:
    """Return the case with several scales in a tensor that has one, along any dimension."""

    def change(tensor: T) -> T:
        if not tensor.shape or np.size(tensor.scale) > 1:
            return tensor
        axis = draw.int(0, len(tensor.shape) - 1)
        count = max(1, int(tensor.shape[axis]))
        scales = np.asarray(tensor.scale, np.float32) * draw.rng.uniform(0.5, 2, count).astype(np.float32)
        return replace(tensor, scale=scales, zero_point=[int(np.ravel(tensor.zero_point)[0])] * count, axis=axis)

    return _in_one(draw, case, change)


def other_dimension(draw: Draw, case: Case) -> Case | None:
    """Return the case with scales along another dimension."""
    return _in_one(draw, case, lambda t: replace(t, axis=draw.int(0, 3)))


def no_scale(draw: Draw, case: Case) -> Case | None:
    """Return the case without quantization of one tensor of codes."""
    return _in_one(draw, case, lambda t: replace(t, scale=None, zero_point=0))


def absent_bias(draw: Draw, case: Case) -> Case | None:
    """Return the case without its bias: marked absent, or left out."""
    place = BIASED.get(case.op, len(case.inputs))
    if place >= len(case.inputs) or case.inputs[place] is None:
        return None
    if draw.chance(0.5) and place == len(case.inputs) - 1:
        return replace(case, inputs=case.inputs[:place])
    return replace(case, inputs=(*case.inputs[:place], None, *case.inputs[place + 1 :]))


def other_bias(draw: Draw, case: Case) -> Case | None:
    """Return the case with another scale, zero point or type of its bias."""

    def change(bias: T) -> T:
        if bias.scale is None:
            return replace(bias, scale=1.0, zero_point=0)
        kind = draw.int(0, 4)
        if kind == 0:
            return replace(bias, type="int64" if bias.type == "int32" else "int32")
        if kind == 1:
            return replace(bias, zero_point=[draw.pick([1, -7])] * np.size(bias.scale))
        if kind == 2:
            return replace(bias, scale=None, zero_point=0)
        factor = draw.pick([2.0, 0.5, 1.5, 1.019, 1.021, 1.00001, 100.0, 1e-6])
        return replace(bias, scale=np.asarray(bias.scale, np.float32) * np.float32(factor))

    return _bias_changed(case, change)


def long_bias(draw: Draw, case: Case) -> Case | None:
    """Return the case with a bias near the ends of int32."""

    def change(bias: T) -> T:
        if bias.type not in ("int32", "int64") or bias.value is None:
            return bias
        value = draw.rng.choice(np.array([2**31 - 1, -(2**31), 2**31 - 1000, 2**30]), tuple(bias.shape))
        return replace(bias, value=value)

    return _bias_changed(case, change)


def _bias_changed(case: Case, change: Callable[[T], T]) -> Case | None:
    place = BIASED.get(case.op, len(case.inputs))
    bias = case.inputs[place] if place < len(case.inputs) else None
    if bias is None:
        return None
    return replace(case, inputs=(*case.inputs[:place], change(bias), *case.inputs[place + 1 :]))


def extreme_codes(draw: Draw, case: Case) -> Case | None:
    """Return the case with all codes at one end, or at either: sums and differences are as large as they get."""

    def ends(tensor: T, shape: tuple[int, ...]) -> Array:
        return draw.rng.choice(
            np.array(draw.pick([CODES[tensor.type], CODES[tensor.type][:1], CODES[tensor.type][1:]])), shape
        )

    def constant(tensor: T | None) -> T | None:
        if tensor is None or tensor.value is None or tensor.type not in QUANTIZED:
            return tensor
        return replace(tensor, value=ends(tensor, tuple(tensor.shape)))

    free = fed(case.inputs)
    samples = tuple(
        tuple(ends(t, v.shape).astype(v.dtype) if t.type in QUANTIZED else v for t, v in zip(free, sample, strict=True))
        for sample in case.samples
    )
    return replace(case, inputs=tuple(map(constant, case.inputs)), samples=samples)


def any_activation(draw: Draw, case: Case) -> Case | None:
    """Return the case with any of the activations, among them those that few kernels know, and one that is none."""
    if case.options is None or "fused_activation_function" not in case.options[1]:
        return None
    chosen = draw.pick([0, 1, 2, 3, 4, 5, 6])
    return replace(case, options=(case.options[0], {**case.options[1], "fused_activation_function": chosen}))


def odd_version(draw: Draw, case: Case) -> Case | None:
    """Return the case with another version of its operator."""
    return replace(case, version=max(0, draw.pick([0, 1, 2, 3, case.version + 1, case.version - 1, 30])))


def _tensors(case: Case) -> list[T | None]:
    return [*case.inputs, *case.outputs]


def _in_one(draw: Draw, case: Case, change: Callable[[T], T], everywhere: bool = False) -> Case | None:
    """Return the case with a tensor of codes changed, or with all."""
    tensors = _tensors(case)
    scaled = [i for i, t in enumerate(tensors) if t is not None and t.scale is not None and t.type in QUANTIZED]
    if not scaled:
        return None
    for place in scaled if everywhere else [draw.pick(scaled)]:
        tensor = tensors[place]
        assert tensor is not None
        tensors[place] = change(tensor)
    count = len(case.inputs)
    return replace(case, inputs=tuple(tensors[:count]), outputs=tuple(t for t in tensors[count:] if t is not None))


def _in_output(draw: Draw, case: Case, change: Callable[[T], T]) -> Case | None:
    scaled = [i for i, t in enumerate(case.outputs) if t.scale is not None and t.type in QUANTIZED]
    if not scaled:
        return None
    place = draw.pick(scaled)
    outputs = [change(t) if i == place else t for i, t in enumerate(case.outputs)]
    return replace(case, outputs=tuple(outputs))


CASE_CHANGES: Sequence[Callable[[Draw, Case], Case | None]] = (
    long_strides,
    long_strides,
    extreme_scale,
    extreme_scale,
    unequal_scale,
    unequal_scale,
    unequal_zero_point,
    zero_point_of_16_bits,
    zero_point_of_weights,
    per_channel,
    other_dimension,
    no_scale,
    absent_bias,
    other_bias,
    long_bias,
    extreme_codes,
    extreme_codes,
    any_activation,
    odd_version,
)


# changes of a file


def shape_unknown(draw: Draw, case: Case, model: Model) -> Model | None:
    """Return the model without declared shapes of its outputs."""
    return _outputs_changed(model, lambda t: replace(t, shape=()))


def shape_of_one(draw: Draw, case: Case, model: Model) -> Model | None:
    """Return the model with outputs that are declared as of one element a dimension."""
    return _outputs_changed(model, lambda t: replace(t, shape=(1,) * len(t.shape)))


def _outputs_changed(model: Model, change: Callable[[TensorSpec], TensorSpec]) -> Model:
    graph = model.subgraphs[0]
    tensors = tuple(change(t) if i in graph.outputs else t for i, t in enumerate(graph.tensors))
    return replace(model, subgraphs=(replace(graph, tensors=tensors), *model.subgraphs[1:]))


def empty_first_buffer(draw: Draw, case: Case, model: Model) -> Model | None:
    """Return the model whose first buffer, which tensors without data use, holds data without bytes."""
    return replace(model, buffers=(Buffer(np.zeros(0, np.uint8)), *model.buffers[1:]))


def long_buffer(draw: Draw, case: Case, model: Model) -> Model | None:
    """Return the model with a constant that has a byte or an element too many."""
    return _resized(draw, model, draw.pick([1, 4]))


def short_buffer(draw: Draw, case: Case, model: Model) -> Model | None:
    """Return the model with a constant that has a byte or an element too few."""
    return _resized(draw, model, draw.pick([-1, -4]))


def _resized(draw: Draw, model: Model, step: int) -> Model | None:
    held = [i for i, buffer in enumerate(model.buffers) if buffer.data is not None and len(buffer.data) > 8]
    if not held:
        return None
    place = draw.pick(held)
    data = model.buffers[place].data
    assert data is not None
    buffers = list(model.buffers)
    buffers[place] = Buffer(np.resize(data, len(data) + step))
    return replace(model, buffers=tuple(buffers))


FILE_CHANGES: Sequence[Callable[[Draw, Case, Model], Model | None]] = (
    shape_unknown,
    shape_of_one,
    empty_first_buffer,
    long_buffer,
    short_buffer,
)


def one_tensor(case: Case, model: Model) -> Model | None:
    """Return the model with its first operand as both; None if these are not two inputs of one shape and type."""
    first, second = (*case.inputs[:2], None, None)[:2]
    if case.op not in PAIRED or first is None or second is None or len(case.inputs) != 2:
        return None
    if (first.type, tuple(first.shape)) != (second.type, tuple(second.shape)) or len(fed(case.inputs)) != 2:
        return None
    graph = model.subgraphs[0]
    (operator,) = graph.operators
    both = replace(operator, inputs=(operator.inputs[0],) * 2)
    changed = replace(graph, operators=(both,), inputs=graph.inputs[:1])
    return replace(model, subgraphs=(changed, *model.subgraphs[1:]))
