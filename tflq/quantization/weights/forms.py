"""The codes and scales of weights, and where a model keeps them.

The codes and scales of weights: per channel or per block, the scales' search, and the rounding.

The weights of a model: constants that operators of any subgraph multiply by or look up, and their roles.

Write codes in place of weights, for all subgraphs at once; buffers that nothing reads are dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.checks import code_limits
from tflq.engine.kernels.facts.rules import need, structure_version
from tflq.model.ir import (
    Buffer,
    GraphView,
    Model,
    Operator,
    OperatorView,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)
from tflq.quantization.draft import code_index, four_bits
from tflq.quantization.params import Params, usable, usable_of_blocks, with_block_scales
from tflq.quantization.refine.rounding import gptq
from tflq.typing import Array, Reals

#: Candidate ratios between the magnitude that gets the greatest code and the greatest magnitude.
_SHARES = np.linspace(1.0, 0.55, 19)
#: Iterations of OCTAV; it converges in fewer.
_ITERATIONS = 20


class BlockScaling(Enum):
    """How the scale of a group of weights is chosen.

    GREATEST gives the greatest magnitude the greatest code. OCTAV balances clipping and rounding by a fixed point (Sakr
    et al. 2022). LEAST_ERROR searches for the least squared error, weighted by the second moments of the inputs.
    """

    GREATEST = "greatest"
    OCTAV = "octav"
    LEAST_ERROR = "least-error"


@dataclass(frozen=True, slots=True)
class Method:
    """The search for scales, and whether rounding compensates for its error by GPTQ."""

    scaling: BlockScaling = BlockScaling.LEAST_ERROR
    gptq: bool = True

    @property
    def needs_moments(self) -> bool:
        """True if it reads second moments of the inputs."""
        return self.gptq or self.scaling is BlockScaling.LEAST_ERROR

    def __str__(self) -> str:
        """Return the method in words."""
        return self.scaling.value + (", GPTQ" if self.gptq else ", nearest")


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """The codes of weights, (channels, inputs), and their parameters."""

    codes: Array
    params: Params


def encode(rows: Array, kind: TensorType, block: int, axis: int, method: Method, square: Reals | None) -> Coded:
    """Return the codes of weights.

    Args:
        rows: (channels, inputs), float32.
        kind: INT8 or INT4.
        block: The number of inputs that share a scale; 0 for one scale per channel.
        axis: The axis of channels in the file.
        method: The search and the rounding.
        square: Second moments of the inputs, (inputs, inputs); None: all inputs count the same, and GPTQ is not done.
    """
    values = rows.astype(np.float64)
    greatest = code_limits(kind)[1]
    size = block or values.shape[1]
    groups = values.reshape(len(values), -1, size)
    importance = np.ones(values.shape[1]) if square is None else np.diagonal(square) + 1e-12 * np.trace(square)
    scale = _scales(groups, np.maximum(importance, 1e-300).reshape(-1, size), greatest, method.scaling)
    narrow = usable_of_blocks(scale) if block else usable(scale)
    steps = np.repeat(narrow.astype(np.float64), size, axis=1)
    if method.gptq and square is not None:
        codes = gptq(values[None], square[None], -greatest, greatest, steps[None])[0]
    else:
        codes = np.clip(np.rint(values / steps), -greatest, greatest)
    flat = narrow.reshape(-1)
    zeros = np.zeros(1 if block else flat.size, np.int64)
    return Coded(codes.astype(np.int8), Params(kind, flat, zeros, axis, narrow=True, block=block))


def _scales(groups: Reals, importance: Reals, greatest: int, scaling: BlockScaling) -> Reals:
    """Return a scale for each group: groups (channels, groups, size), importance (groups, size)."""
    reach = np.abs(groups).max(axis=2)
    if scaling is BlockScaling.GREATEST:
        return np.asarray(reach / greatest)
    if scaling is BlockScaling.OCTAV:
        return np.asarray(_octav(groups, reach, greatest) / greatest)
    best: Reals = reach / greatest
    least = np.full(reach.shape, np.inf)
    for share in _SHARES:
        tried = np.maximum(share * reach / greatest, 1e-300)
        rounded = np.clip(np.rint(groups / tried[..., None]), -greatest, greatest) * tried[..., None]
        errors = (np.square(rounded - groups) * importance).sum(axis=2)
        best, least = np.where(errors < least, tried, best), np.minimum(errors, least)
    chosen: Reals = np.where(reach > 0, best, 0.0)
    return chosen


def _octav(groups: Reals, reach: Reals, greatest: int) -> Reals:
    """Return the clipping magnitudes at OCTAV's fixed point: E|x|[|x| > s] / (step noise + P[|x| > s])."""
    size = np.abs(groups)
    clip = np.where(reach > 0, size.mean(axis=2) * 2, 0.0)
    noise = 1 / (3 * (2 * greatest + 1) ** 2)
    for _ in range(_ITERATIONS):
        beyond = size > clip[..., None]
        outside = beyond.mean(axis=2)
        pull = np.where(beyond, size, 0.0).mean(axis=2)
        weight = noise * (1 - outside) + outside
        clip = np.where(pull > 0, pull / weight, clip)
    return np.minimum(clip, reach)


#: Operators with float kernels for integer weights: the operand that holds weights, and their axis of channels.
_OPERANDS = {"FULLY_CONNECTED": (1, 0), "EMBEDDING_LOOKUP": (1, 0), "CONV_2D": (1, 0), "DEPTHWISE_CONV_2D": (1, 3)}
#: Operators of attention between the projections of queries, keys and values, and that of the result.
_ATTENTION = frozenset(("BATCH_MATMUL", "DYNAMIC_UPDATE_SLICE", "odml.scaled_dot_product_attention"))


class Role(Enum):
    """The part that weights play in a decoder."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed-forward"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Use:
    """A tensor of a subgraph that holds weights, the operator that reads it, and the operator's name."""

    subgraph: int
    operator: int
    tensor: int
    op: str


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """Weights in one buffer: all their uses, their values with the axis of channels, role, and name."""

    buffer: int
    uses: tuple[Use, ...]
    values: Array
    axis: int
    role: Role
    name: str

    @property
    def ops(self) -> frozenset[str]:
        """The names of the operators that read them."""
        return frozenset(use.op for use in self.uses)

    @property
    def rows(self) -> Array:
        """The values as (channels, inputs)."""
        return np.moveaxis(self.values, self.axis, 0).reshape(self.values.shape[self.axis], -1)

    def from_rows(self, rows: Array) -> Array:
        """Return an array of `rows`' form in the form of the values."""
        moved = np.moveaxis(self.values, self.axis, 0).shape
        return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), 0, self.axis))


def weights_of(model: Model) -> tuple[Weight, ...]:
    """Return the float weights of a model that operators with integer forms read, and no other.

    Constants that an operator without such a form reads, too, are not among them.
    """
    uses: dict[int, list[Use]] = defaultdict(list)
    blocked: set[int] = set()
    for number in range(len(model.subgraphs)):
        graph = view(model, number)
        blocked |= {graph.tensors[t].buffer for t in (*graph.inputs, *graph.outputs)}
        for operator in graph.ops:
            for position, tensor in enumerate(operator.inputs):
                if tensor < 0 or graph.data(tensor) is None:
                    continue
                buffer = graph.tensors[tensor].buffer
                if _takes(graph, operator, position):
                    uses[buffer].append(Use(number, operator.index, tensor, operator.name))
                else:
                    blocked.add(buffer)
    found = (_weight(model, buffer, places) for buffer, places in sorted(uses.items()) if buffer not in blocked)
    return tuple(weight for weight in found if weight is not None)


def _takes(graph: GraphView, operator: OperatorView, position: int) -> bool:
    """Return whether an operand is one of weights, of an operator on floats."""
    if operator.name not in _OPERANDS or _OPERANDS[operator.name][0] != position:
        return False
    outputs = [spec.type for spec in operator.output_specs if spec is not None]
    return graph.tensors[operator.inputs[position]].type == TensorType.FLOAT32 and outputs == [TensorType.FLOAT32]


def _weight(model: Model, buffer: int, uses: Sequence[Use]) -> Weight | None:
    """Return the weights in a buffer; None if their uses differ in shape, or they are not finite."""
    specs = [view(model, use.subgraph).tensors[use.tensor] for use in uses]
    axes = {_OPERANDS[use.op][1] for use in uses}
    ranks = {4 if use.op in ("CONV_2D", "DEPTHWISE_CONV_2D") else 2 for use in uses}
    if len({spec.shape for spec in specs}) != 1 or len(axes) != 1 or ranks != {len(specs[0].shape)}:
        return None
    data = model.buffers[buffer].data
    assert data is not None  # a tensor without data has no use
    count = int(np.prod(specs[0].shape))
    if not count or data.size != 4 * count:
        return None
    values = np.frombuffer(data, "<f4").reshape(specs[0].shape)
    if not np.isfinite(values).all():
        return None
    name = next((spec.name for spec in specs if spec.name), "")
    return Weight(buffer, tuple(uses), values, axes.pop(), _role(model, uses), name)


def _role(model: Model, uses: Sequence[Use]) -> Role:
    """Return the role of weights: that of a table if any operator looks them up."""
    if any(use.op == "EMBEDDING_LOOKUP" for use in uses):
        return Role.EMBEDDING
    for use in uses:
        graph = view(model, use.subgraph)
        operator = graph.op(use.operator)
        if any(out in graph.outputs for out in operator.outputs) or _ends(graph, operator):
            return Role.OUTPUT
        if _reaches(graph, operator, forward=True) or _reaches(graph, operator, forward=False):
            return Role.ATTENTION
    return Role.FEED_FORWARD


def _ends(graph: GraphView, operator: OperatorView) -> bool:
    """Return whether an operator's result leads to outputs of the graph through pointwise operators alone."""
    here = operator.outputs[0]
    while here not in graph.outputs:
        readers = graph.readers(here)
        if len(readers) != 1 or readers[0].name not in ("RESHAPE", "TANH", "MUL", "DIV"):
            return False
        here = readers[0].outputs[0]
    return True


def _reaches(graph: GraphView, operator: OperatorView, *, forward: bool) -> bool:
    """Return whether attention comes before the next product with weights, behind an operator or before it."""
    waiting, seen = [operator], {operator.index}
    while waiting:
        for near in _near(graph, waiting.pop(), forward=forward):
            if near.index in seen:
                continue
            seen.add(near.index)
            if _name(near) in _ATTENTION:
                return True
            if near.name not in ("FULLY_CONNECTED", "CONV_2D", "ADD"):  # ADD ends a residual branch
                waiting.append(near)
    return False


def _near(graph: GraphView, operator: OperatorView, *, forward: bool) -> Iterator[OperatorView]:
    if forward:
        for tensor in operator.outputs:
            yield from graph.readers(tensor)
    else:
        for tensor in operator.inputs:
            maker = graph.maker(tensor)
            if maker is not None:
                yield maker


def _name(operator: OperatorView) -> str:
    """Return the operator's name; for a composite, the composite's."""
    options = operator.record.options_2
    return str(options.get("name")) if operator.name == "STABLEHLO_COMPOSITE" and options is not None else operator.name


def with_codes(model: Model, chosen: Mapping[int, tuple[Weight, Coded]], *, dynamic: bool) -> Model:
    """Return the model with these weights as codes, by buffer.

    Args:
        model: The float model.
        chosen: For each buffer its weights, and their codes and scales.
        dynamic: Let reference kernels quantize activations asymmetrically, as XNNPACK does.
    """
    writing = _WeightsWriting(model, dynamic)
    for weight, codes in chosen.values():
        writing.write(weight, codes)
    return compact(writing.model())


class _WeightsWriting:
    """The tables of a model under change."""

    def __init__(self, model: Model, dynamic: bool) -> None:
        self._model, self._dynamic = model, dynamic
        self._buffers = list(model.buffers)
        self._codes = list(model.operator_codes)
        self._tensors = [list(graph.tensors) for graph in model.subgraphs]
        self._operators = [list(graph.operators) for graph in model.subgraphs]

    def model(self) -> Model:
        """Return the model."""
        graphs = tuple(
            replace(graph, tensors=tuple(tensors), operators=tuple(operators))
            for graph, tensors, operators in zip(self._model.subgraphs, self._tensors, self._operators, strict=True)
        )
        return replace(self._model, subgraphs=graphs, buffers=tuple(self._buffers), operator_codes=tuple(self._codes))

    def write(self, weight: Weight, coded: Coded) -> None:
        """Write one weight's codes, and its scales into every subgraph that reads it."""
        params = coded.params
        codes = weight.from_rows(coded.codes)
        buffer = self._buffer(four_bits(codes) if params.type == TensorType.INT4 else codes)
        scales = self._buffer(params.scale.astype(np.float16)) if params.block else 0
        for use in weight.uses:
            tensors = self._tensors[use.subgraph]
            old = tensors[use.tensor]
            if old.type == TensorType.FLOAT32:
                form = params.quantization
                if params.block:
                    form = self._blocks(use.subgraph, old, params, scales)
                tensors[use.tensor] = replace(old, type=params.type, quantization=form, buffer=buffer, sparsity=None)
            self._write_operator(use.subgraph, use.operator)

    def _blocks(self, subgraph: int, old: TensorSpec, params: Params, buffer: int) -> Quantization:
        """Return the quantization that names a new tensor of scales in the subgraph."""
        tensors = self._tensors[subgraph]
        shape = (*old.shape[:-1], old.shape[-1] // params.block)
        tensors.append(TensorSpec(f"{old.name or 'weights'}_scales", TensorType.FLOAT16, shape, buffer))
        return with_block_scales(params, len(tensors) - 1)

    def _write_operator(self, subgraph: int, index: int) -> None:
        operator = self._operators[subgraph][index]
        tensors = self._tensors[subgraph]
        code = self._codes[operator.opcode_index]
        specs = [tensors[t] if t >= 0 else None for t in operator.inputs]
        types = [None if s is None else TensorType(s.type) for s in specs]
        scales = [s.quantization.scale.size for s in specs[1:] if s is not None and s.quantization is not None]
        version = need(code.name, types, per_channel=any(size > 1 for size in scales))
        version = max(code.version, version, structure_version(code.name, operator.options, len(operator.inputs)))
        self._operators[subgraph][index] = replace(
            operator,
            opcode_index=code_index(replace(code, version=version), self._codes),
            options=self._options(operator),
        )

    def _options(self, operator: Operator) -> Record | None:
        options = operator.options
        if options is None or "asymmetric_quantize_inputs" not in options.fields:
            return options
        fields = {**options.fields, "asymmetric_quantize_inputs": self._dynamic}
        return replace(options, fields=MappingProxyType(fields))

    def _buffer(self, values: Array) -> int:
        self._buffers.append(Buffer(np.ascontiguousarray(values).reshape(-1).view(np.uint8)))
        return len(self._buffers) - 1


def compact(model: Model) -> Model:
    """Return the model with equal buffers stored once; buffers and operator codes that nothing uses are dropped."""
    kept: list[Buffer] = [Buffer()]
    places: dict[bytes, int] = {}
    numbers: dict[int, int] = {}

    def placed(number: int) -> int:
        if number not in numbers:
            data = model.buffers[number].data if number else None
            if data is None or not data.size:
                numbers[number] = 0 if data is None else appended(model.buffers[number])
            else:
                key = sha256(np.ascontiguousarray(data).data).digest()
                if key not in places:
                    places[key] = appended(replace(model.buffers[number], external=False))
                numbers[number] = places[key]
        return numbers[number]

    def appended(buffer: Buffer) -> int:
        kept.append(buffer)
        return len(kept) - 1

    used = sorted({operator.opcode_index for graph in model.subgraphs for operator in graph.operators})
    codes = {old: new for new, old in enumerate(used)}
    graphs = tuple(_renumber(graph, codes, placed) for graph in model.subgraphs)
    entries = [(name, b) for name, b in model.metadata or () if name != "min_runtime_version"]
    metadata = tuple((name, placed(buffer)) for name, buffer in entries) or None
    return replace(
        model,
        operator_codes=tuple(model.operator_codes[old] for old in used),
        subgraphs=graphs,
        buffers=tuple(kept),
        metadata=metadata,
        metadata_buffer=None,
    )


def _renumber(graph: Subgraph, codes: Mapping[int, int], placed: Callable[[int], int]) -> Subgraph:
    tensors = tuple(replace(tensor, buffer=placed(tensor.buffer)) for tensor in graph.tensors)
    operators = tuple(replace(operator, opcode_index=codes[operator.opcode_index]) for operator in graph.operators)
    return replace(graph, tensors=tensors, operators=operators)
