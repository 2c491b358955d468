"""Random float models to quantize, of most operators that have an integer kernel and some that have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.model import enum
from tflq.model.surgery.cut import operators_named
from tflq.quantization.build.build import Built, Task, build
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.scheme.float_graph import prepare

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

#: Activation functions that may be fused: none, RELU, RELU_N1_TO_1, RELU6.
FUSED = (0, 0, 1, 2, 3)


class FloatGraph:
    """A model while it is drawn, operator by operator. Tensors are numbers."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: list[TensorSpec] = []
        self.buffers = [Buffer()]
        self.codes: list[OperatorCode] = []
        self.operators: list[Operator] = []
        self.inputs: list[int] = []
        self.computed: list[int] = []  # float tensors that a step may read

    def given(self, *shape: int) -> int:
        """An input of the graph."""
        self.inputs.append(self._tensor(shape, "float32"))
        self.computed.append(self.inputs[-1])
        return self.inputs[-1]

    def given_integers(self, *shape: int) -> int:
        """An input of the graph that holds indices."""
        self.inputs.append(self._tensor(shape, "int32"))
        return self.inputs[-1]

    def constant(self, values: Any, type_: str = "float32") -> int:
        """A constant tensor."""
        array = np.asarray(values, type_)
        self.buffers.append(Buffer(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        return self._tensor(array.shape, type_, len(self.buffers) - 1)

    def variable(self, *shape: int) -> int:
        """A tensor that keeps its value from run to run."""
        tensor = self._tensor(shape, "float32")
        self.tensors[tensor] = replace(self.tensors[tensor], is_variable=True)
        return tensor

    def weights(self, *shape: int) -> int:
        """Normal numbers, with channels of different magnitudes along either end."""
        reach = np.exp2(self.random.uniform(-2, 1, (shape[0], *[1] * (len(shape) - 2), shape[-1])))
        return self.constant(self.random.normal(0, 1, shape) * reach / np.sqrt(np.prod(shape[1:])))

    def bias(self, count: int) -> int:
        """Small normal numbers."""
        return self.constant(self.random.normal(0, 0.3, count))

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        options: Mapping[str, Any] | None = None,
        types: Sequence[str] = ("float32",),
        version: int = 1,
    ) -> list[int]:
        """Append an operator; its outputs, whose shapes tflq's own plan tells."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, version)
        if code not in self.codes:
            self.codes.append(code)
        record = None if options is None else Record(table_of(name), dict(options))
        outputs = [self._tensor((), kind) for kind in types]
        self.operators.append(Operator(self.codes.index(code), tuple(inputs), tuple(outputs), record))
        operands = make_plan(self.model(outputs), by_name("litert-ref")).operands
        for tensor in outputs:
            shape = operands[tensor].shape
            self.tensors[tensor] = TensorSpec(f"t{tensor}", self.tensors[tensor].type, shape)
            if self.tensors[tensor].type == TensorType.FLOAT32 and 0 < int(np.prod(shape)) < 20_000:
                self.computed.append(tensor)
        return outputs

    def unary(self, name: str, x: int, options: Mapping[str, Any] | None = None) -> int:
        """An operator of one operand."""
        return self.op(name, [x], options)[0]

    def shape(self, tensor: int) -> Shape:
        """A tensor's shape."""
        return self.tensors[tensor].shape

    def pick(self, rank: int | None = None) -> int:
        """A computed tensor, of that rank where there is one."""
        fitting = [t for t in self.computed if rank is None or len(self.shape(t)) == rank]
        return int(self.random.choice((fitting or self.computed)[-4:]))

    def partner(self, shape: Shape) -> int:
        """Something that broadcasts to that shape: a computed tensor, or a constant."""
        alike = [t for t in self.computed if self.shape(t) == shape]
        if alike and self.random.random() < 0.6:
            return int(self.random.choice(alike))
        kept = tuple(n if self.random.random() < 0.5 else 1 for n in shape)
        return self.constant(self.random.normal(0, 1, kept[self.random.integers(0, len(shape) + 1) :]))

    def model(self, outputs: Sequence[int] | None = None) -> Model:
        """The model; its outputs are what no operator reads."""
        read = {t for operator in self.operators for t in operator.inputs}
        made = [t for operator in self.operators for t in operator.outputs]
        ends = [t for t in made if t not in read] if outputs is None else outputs
        graph = Subgraph(tuple(self.tensors), tuple(self.inputs), tuple(ends), tuple(self.operators), "main")
        return Model(3, tuple(self.codes), (graph,), tuple(self.buffers))

    def _tensor(self, shape: Shape, type_: str, buffer: int = 0) -> int:
        name = f"t{len(self.tensors)}"
        self.tensors.append(TensorSpec(name, TensorType[type_.upper()], tuple(shape), buffer))
        return len(self.tensors) - 1


#: Options tables that are not named after their operator.
_TABLES = {
    "SVDF": "SVDFOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "MATRIX_DIAG": "MatrixDiagOptions",
    "SCATTER_ND": "ScatterNdOptions",
    "MATRIX_SET_DIAG": "MatrixSetDiagOptions",
    "ONE_HOT": "OneHotOptions",
    "GATHER_ND": "GatherNdOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "PADV2": "PadV2Options",
    "TOPK_V2": "TopKV2Options",
    "SPACE_TO_BATCH_ND": "SpaceToBatchNDOptions",
    "BATCH_TO_SPACE_ND": "BatchToSpaceNDOptions",
    "REVERSE_V2": "ReverseV2Options",
    "SELECT_V2": "SelectV2Options",
    "SPLIT_V": "SplitVOptions",
}


def table_of(name: str) -> str:
    """The options table of an operator."""
    return _TABLES.get(name, "".join(word.capitalize() for word in name.split("_")) + "Options")


def convolution(g: FloatGraph) -> None:
    x = image(g)
    depth, count = g.shape(x)[3], int(g.random.integers(1, 9))
    kernel = _kernel(g, x)
    options = {**_strides(g), "fused_activation_function": int(g.random.choice(FUSED))}
    g.op("CONV_2D", [x, g.weights(count, *kernel, depth), g.bias(count)], options)


def depthwise(g: FloatGraph) -> None:
    x = image(g)
    depth, multiplier = g.shape(x)[3], int(g.random.integers(1, 3))
    kernel = _kernel(g, x)
    options = {
        **_strides(g, square=True),
        "depth_multiplier": multiplier,
        "fused_activation_function": int(g.random.choice(FUSED)),
    }
    g.op("DEPTHWISE_CONV_2D", [x, g.weights(1, *kernel, depth * multiplier), g.bias(depth * multiplier)], options)


def _kernel(g: FloatGraph, x: int) -> list[int]:
    """Height and width of a window that fits even without padding."""
    return [int(g.random.integers(1, min(extent, 3) + 1)) for extent in g.shape(x)[1:3]]


def _strides(g: FloatGraph, square: bool = False) -> dict[str, int]:
    high, wide = (int(n) for n in g.random.choice((1, 1, 2), 2))
    dilated = 1 if high > 1 or wide > 1 else int(g.random.choice((1, 1, 2)))
    return {
        "padding": int(g.random.integers(2)) if dilated == 1 else 0,
        "stride_h": high,
        "stride_w": high if square else wide,
        "dilation_h_factor": dilated,
        "dilation_w_factor": dilated,
    }


def transposed_convolution(g: FloatGraph) -> None:
    x = image(g)
    _, height, width, depth = g.shape(x)
    count, stride = int(g.random.integers(1, 5)), int(g.random.integers(1, 3))
    wanted = g.constant([1, height * stride, width * stride, count], "int32")
    operands = [wanted, g.weights(count, 2, 2, depth), x, *([g.bias(count)] if g.random.random() < 0.5 else [])]
    options = {"padding": 0, "stride_h": stride, "stride_w": stride, "fused_activation_function": 0}
    g.op("TRANSPOSE_CONV", operands, options, version=3 if len(operands) == 4 else 1)


def dense(g: FloatGraph) -> None:
    x = g.pick()
    shape = g.shape(x)
    if not shape:
        return
    count, keep = int(g.random.integers(1, 17)), len(shape) > 2 or g.random.random() < 0.3
    bias = [g.bias(count)] if g.random.random() < 0.7 else [-1]
    options = {"keep_num_dims": bool(keep), "fused_activation_function": int(g.random.choice(FUSED[:3]))}
    g.op("FULLY_CONNECTED", [x, g.weights(count, shape[-1]), *bias], options, version=5)


def matrix_product(g: FloatGraph) -> None:
    x = g.pick(3)
    shape = g.shape(x)
    if len(shape) < 2:
        return
    if g.random.random() < 0.5:
        y, adjoint = g.constant(g.random.normal(0, 0.5, (*shape[:-2], shape[-1], 5))), False
    else:
        y, adjoint = x, True
    g.op("BATCH_MATMUL", [x, y], {"adj_x": False, "adj_y": adjoint, "asymmetric_quantize_inputs": False})


_POINTWISE = (
    "ABS",
    "ELU",
    "GELU",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "TANH",
)


def pointwise(g: FloatGraph) -> None:
    options: dict[str, Any] = {"LEAKY_RELU": {"alpha": 0.2}, "GELU": {"approximate": False}}
    name = str(g.random.choice(_POINTWISE))
    g.unary(name, g.pick(), options.get(name))


def positive(g: FloatGraph) -> None:
    """Operators that are only defined, or only tame, for some numbers."""
    bounded = g.unary("LOGISTIC", g.pick())
    raised = g.op("ADD", [bounded, g.constant([0.25])], {"fused_activation_function": 0})[0]
    name = str(g.random.choice(["LOG", "SQRT", "RSQRT", "EXP", "DIV"]))
    if name == "DIV":
        other = g.partner(g.shape(raised))
        g.op("DIV", [other, raised], {"fused_activation_function": 0})
    else:
        g.unary(name, raised)


def arithmetic(g: FloatGraph) -> None:
    x = g.pick()
    y = g.partner(g.shape(x))
    name = str(g.random.choice(["ADD", "MUL", "SUB", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"]))
    fused = {"fused_activation_function": int(g.random.choice(FUSED))}
    order = [x, y] if g.random.random() < 0.5 else [y, x]
    g.op(name, order, fused if name in ("ADD", "MUL", "SUB") else {})


def pooling(g: FloatGraph) -> None:
    name = str(g.random.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    options = {
        "padding": int(g.random.integers(2)),
        "stride_h": 1,
        "stride_w": 2,
        "filter_height": 1,
        "filter_width": 2,
        "fused_activation_function": int(g.random.choice(FUSED[:3])),
    }
    x = image(g)
    if g.shape(x)[2] > 1:
        g.op(name, [x], options)


def reduction(g: FloatGraph) -> None:
    x = g.pick()
    rank = len(g.shape(x))
    if not rank:
        return
    name = str(g.random.choice(["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"]))
    axes = g.random.permutation(rank)[: g.random.integers(1, rank + 1)]
    g.op(name, [x, g.constant(axes, "int32")], {"keep_dims": bool(g.random.integers(2))})


def normalization(g: FloatGraph) -> None:
    x = g.pick()
    if not g.shape(x):
        return
    name = str(g.random.choice(["SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"]))
    options: dict[str, Any] = {"SOFTMAX": {"beta": 1.0}, "L2_NORMALIZATION": {"fused_activation_function": 0}}
    g.op(name, [x], options.get(name, {}))


def parametric(g: FloatGraph) -> None:
    x = g.pick()
    if g.shape(x):
        g.op("PRELU", [x, g.constant(g.random.normal(0.2, 0.2, g.shape(x)[-1:]))], None)


def moving(g: FloatGraph) -> None:
    """One of the operators that only move values."""
    x = g.pick()
    shape, rank = g.shape(x), len(g.shape(x))
    if not rank:
        return
    axis = int(g.random.integers(rank))
    whole, zeros = g.constant(shape, "int32"), g.constant([0] * rank, "int32")
    pads = g.constant(g.random.integers(0, 2, (rank, 2)), "int32")
    moves: dict[str, Callable[[], Any]] = {
        "RESHAPE": lambda: g.op("RESHAPE", [x, g.constant([-1, shape[-1]], "int32")], {"new_shape": None}),
        "TRANSPOSE": lambda: g.op("TRANSPOSE", [x, g.constant(g.random.permutation(rank), "int32")], {}),
        "PAD": lambda: g.op("PAD", [x, pads], {}),
        "PADV2": lambda: g.op("PADV2", [x, pads, g.constant(np.float32(0.5))], {}),
        "SLICE": lambda: g.op("SLICE", [x, zeros, whole], {}),
        "STRIDED_SLICE": lambda: g.op("STRIDED_SLICE", [x, zeros, whole, g.constant([1] * rank, "int32")], _NO_MASKS),
        "GATHER": lambda: g.op(
            "GATHER", [x, g.constant([0, shape[axis] - 1], "int32")], {"axis": axis, "batch_dims": 0}
        ),
        "TILE": lambda: g.op("TILE", [x, g.constant([1] * (rank - 1) + [2], "int32")], {}),
        "EXPAND_DIMS": lambda: g.op("EXPAND_DIMS", [x, g.constant(0, "int32")], {}) if rank < 4 else None,
        "REVERSE_V2": lambda: g.op("REVERSE_V2", [x, g.constant([axis], "int32")], {}),
        "TOPK_V2": lambda: g.op("TOPK_V2", [x, g.constant(1, "int32")], {}, ("float32", "int32")),
        "ARG_MAX": lambda: g.op("ARG_MAX", [x, g.constant(axis, "int32")], {"output_type": 2}, ("int32",)),
        "SHAPE": lambda: g.op("SHAPE", [x], {"out_type": 2}, ("int32",)),
    }
    moves[str(g.random.choice(list(moves)))]()


_NO_MASKS = {
    "begin_mask": 0,
    "end_mask": 0,
    "ellipsis_mask": 0,
    "new_axis_mask": 0,
    "shrink_axis_mask": 0,
    "offset": False,
}


def copying(g: FloatGraph) -> None:
    """One of the rarer operators that copy values, or fill up with others."""
    x = g.pick()
    shape, rank = g.shape(x), len(g.shape(x))
    if not rank:
        return
    zeros, whole = g.constant([0] * rank, "int32"), g.constant(shape, "int32")
    value = g.constant(np.float32(g.random.normal()))
    first = g.constant([[0] * rank], "int32")
    half = [(shape[-1] + 1) // 2, shape[-1] // 2]
    pads = g.constant([[0, 0]] * (rank - 1) + [[1, 0]], "int32")
    sides = {"block": g.constant([1, 1], "int32"), "pads": g.constant([[1, 0], [0, 1]], "int32")}
    moves: dict[str, Callable[[], Any]] = {
        "MIRROR_PAD": lambda: g.op("MIRROR_PAD", [x, pads], {"mode": 0}) if shape[-1] > 1 else None,
        "BROADCAST_TO": lambda: g.op("BROADCAST_TO", [x, g.constant([2, *shape], "int32")], {}, version=2),
        "SPLIT_V": lambda: (
            g.op(
                "SPLIT_V",
                [x, g.constant(half, "int32"), g.constant(rank - 1, "int32")],
                {"num_splits": 2},
                ["float32"] * 2,
            )
            if shape[-1] > 1
            else None
        ),
        "GATHER_ND": lambda: g.op("GATHER_ND", [x, g.constant([[0], [shape[0] - 1]], "int32")], {}),
        "EMBEDDING_LOOKUP": lambda: g.op("EMBEDDING_LOOKUP", [g.constant([1, 0], "int32"), g.weights(3, 5)], None),
        "DYNAMIC_UPDATE_SLICE": lambda: g.op("DYNAMIC_UPDATE_SLICE", [x, g.unary("TANH", x), zeros], {}),
        "SPARSE_TO_DENSE": lambda: g.op(
            "SPARSE_TO_DENSE", [first, whole, g.constant([0.5]), value], {"validate_indices": False}
        ),
        "ONE_HOT": lambda: g.op(
            "ONE_HOT",
            [g.constant([0, 2], "int32"), g.constant(3, "int32"), value, g.constant(np.float32(-0.5))],
            {"axis": -1},
        ),
        "MATRIX_DIAG": lambda: g.op("MATRIX_DIAG", [x], {}) if rank < 4 else None,
        "SCATTER_ND": lambda: (
            g.op("SCATTER_ND", [g.constant([[2]], "int32"), x, g.constant([4, *shape[1:]], "int32")], {})
            if shape[0] == 1
            else None
        ),
        "FILL": lambda: g.op("FILL", [whole, value], {}),
        "SQUEEZE": lambda: g.op("SQUEEZE", [x], {"squeeze_dims": None}),
        "SPACE_TO_BATCH_ND": lambda: g.op("SPACE_TO_BATCH_ND", [image(g), sides["block"], sides["pads"]], {}),
        "REDUCE_PROD": lambda: g.op("REDUCE_PROD", [g.unary("TANH", x), g.constant([0], "int32")], {"keep_dims": True}),
        "RELU_0_TO_1": lambda: g.op("RELU_0_TO_1", [x], None),
        "MATRIX_SET_DIAG": lambda: (
            g.op("MATRIX_SET_DIAG", [x, g.constant(g.random.normal(0, 1, _diagonal(shape)))], {}) if rank > 1 else None
        ),
    }
    moves[str(g.random.choice(list(moves)))]()


def _diagonal(shape: Shape) -> Shape:
    return (*shape[:-2], min(shape[-2:]))


def resizing(g: FloatGraph) -> None:
    x = image(g)
    _, height, width, depth = g.shape(x)
    name = str(g.random.choice(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE"]))
    if name.startswith("RESIZE"):
        size = g.constant(g.random.integers(1, 9, 2), "int32")
        g.op(name, [x, size], {"align_corners": False, "half_pixel_centers": bool(g.random.integers(2))}, version=3)
    elif (depth % 4 if name == "DEPTH_TO_SPACE" else height % 2 + width % 2) == 0:
        g.op(name, [x], {"block_size": 2})


def splitting(g: FloatGraph) -> None:
    x = g.pick()
    even = [a for a, n in enumerate(g.shape(x)) if n % 2 == 0]
    if not even:
        return
    axis = int(g.random.choice(even))
    if g.shape(x)[axis] < 6 and g.random.random() < 0.5:
        count = g.shape(x)[axis]
        g.op("UNPACK", [x], {"num": count, "axis": axis}, ["float32"] * count)
    else:
        g.op("SPLIT", [g.constant(axis, "int32"), x], {"num_splits": 2}, ["float32"] * 2)


def joining(g: FloatGraph) -> None:
    x = g.pick()
    shape = g.shape(x)
    others = [t for t in g.computed if g.shape(t) == shape][-3:]
    if g.random.random() < 0.3:
        others.append(g.constant(g.random.normal(0, 1, shape)))
    if len(shape) < 4 and g.random.random() < 0.3:
        g.op("PACK", [x, *others], {"values_count": 1 + len(others), "axis": 0})
    elif shape:
        axis = int(g.random.integers(len(shape)))
        g.op("CONCATENATION", [x, *others], {"axis": axis, "fused_activation_function": 0})


def choosing(g: FloatGraph) -> None:
    x = g.pick()
    y = g.partner(g.shape(x))
    name = str(g.random.choice(["GREATER", "LESS_EQUAL", "EQUAL"]))
    chosen = g.op(name, [x, y], {}, ("bool",))[0]
    g.op("SELECT_V2", [chosen, x, y], {})


def floating(g: FloatGraph) -> None:
    """An operator without an integer kernel."""
    g.unary(str(g.random.choice(["SIN", "FLOOR", "COS"])), g.pick())


def memory(g: FloatGraph) -> None:
    """An LSTM over a sequence, or over what can be taken for one."""
    x = g.pick(3)
    if len(g.shape(x)) != 3:
        return
    batches, _, depth = g.shape(x)
    count, projected = int(g.random.integers(1, 7)), g.random.random() < 0.3
    outputs = int(g.random.integers(1, 5)) if projected else count
    first = 1 if g.random.random() < 0.2 else 0  # without an input gate's weights
    absent = [-1] * first
    inputs = absent + [g.weights(count, depth) for _ in range(4 - first)]
    recurrent = absent + [g.weights(count, outputs) for _ in range(4 - first)]
    peepholes = [-1] * 3
    if outputs <= count and g.random.random() < 0.3:
        peepholes = absent + [g.bias(count) for _ in range(3 - first)]
    biases = absent + [g.bias(count) for _ in range(4 - first)]
    projection = [g.weights(outputs, count), g.bias(outputs)] if projected else [-1, -1]
    states = [g.variable(batches, outputs), g.variable(batches, count)]
    options = {
        "fused_activation_function": 4,
        "cell_clip": float(g.random.choice((0.0, 3.0))),
        "proj_clip": 0.0,
        "time_major": False,
        "asymmetric_quantize_inputs": False,
    }
    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    g.op(name, [x, *inputs, *recurrent, *peepholes, *biases, *projection, *states], options)


def filtering(g: FloatGraph) -> None:
    """An SVDF over what has two dimensions."""
    x = g.pick(2)
    if len(g.shape(x)) != 2:
        x = g.op("RESHAPE", [x, g.constant([1, -1], "int32")], {"new_shape": None})[0]
    batches, depth = g.shape(x)
    units, rank, moments = (int(n) for n in g.random.integers(1, 5, 3))
    bias = g.bias(units) if g.random.random() < 0.7 else -1
    operands = [x, g.weights(units * rank, depth), g.weights(units * rank, moments), bias]
    operands.append(g.variable(batches, units * rank * moments))
    g.op("SVDF", operands, {"rank": rank, "fused_activation_function": 1, "asymmetric_quantize_inputs": False})


def image(g: FloatGraph) -> int:
    """A tensor of four dimensions and one image, made by RESHAPE where there is none."""
    x = g.pick(4)
    if len(g.shape(x)) == 4 and g.shape(x)[0] == 1:
        return x
    size = int(np.prod(g.shape(x)))
    width = 2 if size % 2 == 0 else 1
    return g.op("RESHAPE", [x, g.constant([1, 1, width, size // width], "int32")], {"new_shape": None})[0]


STEPS: tuple[Callable[[FloatGraph], None], ...] = (
    convolution,
    depthwise,
    transposed_convolution,
    dense,
    matrix_product,
    pointwise,
    pointwise,
    positive,
    arithmetic,
    arithmetic,
    pooling,
    reduction,
    normalization,
    parametric,
    moving,
    moving,
    resizing,
    splitting,
    joining,
    joining,
    choosing,
    memory,
    filtering,
    copying,
    floating,
)


def random_graph(seed: int, steps: int = 9) -> Model:
    """A model of one or two inputs and some operators, the same for the same seed."""
    g = FloatGraph(seed)
    side, depth = (int(n) for n in g.random.integers(3, 9, 2))
    g.given(1, side, side, depth)
    if g.random.random() < 0.4:
        g.given(*((1, side, side, depth) if g.random.random() < 0.5 else (1, depth)))
    for step in g.random.choice(len(STEPS), steps):
        STEPS[step](g)
    if not g.operators:
        pointwise(g)
    return read(write(g.model()))


def min_max(model: Model, given: Sequence[Mapping[int, Array]], recipe: Recipe) -> Built:
    """The model quantized with nothing but observed ranges, and not checked."""
    floats = prepare(model)
    named = operators_named(model, recipe.keep_float)
    kept = {index: "asked for" for index, origin in enumerate(floats.origins) if origin in named}
    return build(Task(floats, given, recipe, Methods(), kept))


def samples(model: Model, seed: int, count: int = 4) -> list[dict[int, Array]]:
    """Calibration inputs, by tensor index."""
    random, graph = np.random.default_rng(seed), view(model)
    return [
        {t: random.normal(0, 1, graph.tensors[t].shape).astype(np.float32) for t in graph.inputs} for _ in range(count)
    ]
