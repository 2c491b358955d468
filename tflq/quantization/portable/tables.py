"""Pointwise operators and products of codes as tables, exact in every runtime.

Pointwise operators as functions of real numbers, in float64.

Sources: the definitions in LiteRT 2.3's schema and its float reference kernels (reference_ops.h, gelu.h, elu.h,
hard_swish.h). Values need no particular last bit: they become constants of the model.

Find chains of pointwise operators that compute a function of one tensor.

However an activation is spelled, LOGISTIC and MUL for SiLU or ADD, RELU6 and two MUL for HARD_SWISH, a chain is one
function of one number. On 8-bit codes it has 256 values.

Forms of a table lookup: int8 codes to entries of a constant table, exact in every runtime that takes it.

| form       | operators                       | taken by                                                         |
|------------|---------------------------------|------------------------------------------------------------------|
| cast       | CAST, ADD, GATHER               | TensorFlow Lite 2.8 and later, LiteRT, TFLM                      |
| dequantize | RESHAPE, DEQUANTIZE, CAST, GATHER | older ones, too: CAST takes int8 from version 3 on             |

`cast` adds 128 to codes. `dequantize` calls them numbers with scale 1 and zero point -128; their float32 values are the
places in the table. Run under LiteRT 2.3 and 2.4, tflite-runtime 2.7 to 2.14, TensorFlow 2.3 and tflite-micro.

Let the products of a MUL never lie half-way between two output codes.

With scales so that s_a * s_b / s_y is just below 2**-k, as `portable.grid` sets them, runtimes differ at most in ties:
a * b = 2**(k - 1) modulo 2**k, for codes a and b relative to their zero points. The power of two in a product is the
sum of the powers in its factors, so ties are out if the operands never have powers with the sum k - 1. An operand keeps
below 2**t, the other one out of 2**(k - t) to 2**(k - 1); 0 is always allowed. Codes with another power move by one, in
a table: that of the operator before the MUL, or a new one that changes nothing else.

Replace pointwise operators on int8 codes by tables of 256 entries.

Kernels of LOGISTIC, HARD_SWISH or LEAKY_RELU round in as many ways as there are runtimes. A table holds the rounded
results: runtimes only look them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.interpreter import make_plan
from tflq.engine.numerics.multiplier import exponent_of
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Buffer, GraphView, Model, OperatorView, Quantization, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.model import enum_names
from tflq.quantization.draft import IntegerModel
from tflq.quantization.params import Params, real
from tflq.quantization.portable.editing import Editing, Rewrite, origin_near, rewritten_to
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.typing import Ints, Reals

Function = Callable[..., Reals]


def _elu(x: Reals) -> Reals:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _gelu(x: Reals) -> Reals:
    erf = np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))
    return np.asarray(x * 0.5 * (1 + erf), np.float64)


def _gelu_by_tanh(x: Reals) -> Reals:
    return np.asarray(x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float64)


def _logistic(x: Reals) -> Reals:
    return 0.5 * (1 + np.tanh(x / 2))


def _slope(x: Reals, alpha: Reals | float) -> Reals:
    return np.where(x < 0, x * alpha, x)


def _between(low: float, high: float) -> Function:
    return lambda x: np.clip(x, low, high)


_RECTIFIERS: Mapping[str, Function] = MappingProxyType(
    {
        "RELU": _between(0, np.inf),
        "RELU6": _between(0, 6),
        "RELU_N1_TO_1": _between(-1, 1),
        "RELU_0_TO_1": _between(0, 1),
    }
)
#: The functions that operators fuse into their result, by the schema's name.
_FUSED: Mapping[str, Function] = MappingProxyType({**_RECTIFIERS, "NONE": lambda x: x, "TANH": np.tanh})
#: Operator -> function of its operands.
_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **_RECTIFIERS,
        "ABS": np.abs,
        "ADD": np.add,
        "CEIL": np.ceil,
        "COS": np.cos,
        "DEQUANTIZE": lambda x: x,
        "DIV": np.divide,
        "ELU": _elu,
        "EXP": np.exp,
        "FLOOR": np.floor,
        "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "LOG": np.log,
        "LOGISTIC": _logistic,
        "MAXIMUM": np.maximum,
        "MINIMUM": np.minimum,
        "MUL": np.multiply,
        "NEG": np.negative,
        "POW": np.power,
        "PRELU": _slope,
        "QUANTIZE": lambda x: x,
        "RSQRT": lambda x: 1 / np.sqrt(x),
        "SIGN": np.sign,
        "SIN": np.sin,
        "SQRT": np.sqrt,
        "SQUARE": np.square,
        "SQUARED_DIFFERENCE": lambda a, b: np.square(a - b),
        "SUB": np.subtract,
        "TANH": np.tanh,
    }
)


def function_of(operator: OperatorView) -> Function | None:
    """Return an operator's function of the real values of its operands; None if it is not pointwise, or unknown."""
    name, options = operator.name, operator.options
    if name == "GELU":
        return _gelu_by_tanh if options is not None and options.get("approximate") else _gelu
    if name == "LEAKY_RELU":
        return None if options is None else lambda x: _slope(x, float(options["alpha"]))
    function = _FUNCTIONS.get(name)
    fused = fused_function(operator)
    return None if function is None or fused is None else lambda *x: fused(function(*x))


def fused_function(operator: OperatorView) -> Function | None:
    """Return the function that an operator fuses into its result; None if it is not pointwise."""
    number: Any = 0 if operator.options is None else operator.options.get("fused_activation_function", 0)
    return _FUSED.get(enum_names("ActivationFunctionType").get(int(number), ""))


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Pointwise operators, in order of execution, that read nothing computed except `source` and give `result`."""

    graph: GraphView
    operators: tuple[int, ...]
    source: int
    result: int

    @property
    def names(self) -> tuple[str, ...]:
        """The operators that compute, by name."""
        names = (self.graph.op(index).name for index in self.operators)
        return tuple(name for name in names if name not in ("QUANTIZE", "DEQUANTIZE")) or ("QUANTIZE",)

    def values(self, source: Reals) -> Reals:
        """Return the function's values in float64, without rounding in between. Undefined ones are 0."""
        known = {self.source: source}
        with np.errstate(all="ignore"):
            for index in self.operators:
                operator = self.graph.op(index)
                function = function_of(operator)
                assert function is not None  # as found
                known[operator.outputs[0]] = function(*(known.get(t, _scalar(self.graph, t)) for t in operator.inputs))
        return np.nan_to_num(np.broadcast_to(known[self.result], source.shape), nan=0.0, posinf=np.inf, neginf=-np.inf)


def chains(graph: GraphView, starts: Callable[[int], bool], ends: Callable[[int], bool]) -> tuple[Chain, ...]:
    """Return the longest chain to each tensor that `ends` takes, from one that `starts` takes.

    Chains may share operators: what several of them read, each computes.
    """
    last = (op for op in graph.ops if len(op.outputs) == 1 and ends(op.outputs[0]))
    return tuple(chain for op in last if (chain := _longest(op, starts)) is not None)


def _longest(last: OperatorView, starts: Callable[[int], bool]) -> Chain | None:
    graph, result = last.graph, last.outputs[0]
    inside: list[int] = []
    best: Chain | None = None
    operator: OperatorView | None = last
    while operator is not None and _is_pointwise(operator, result):
        inside.append(operator.index)
        open_ = _open(graph, inside)
        if len(open_) == 1 and starts(open_[0]):
            best = Chain(graph, tuple(sorted(inside)), open_[0], result)
        operator = _next(graph, open_)
    return best


def _open(graph: GraphView, inside: list[int]) -> list[int]:
    """Return the computed tensors that operators read and do not make."""
    made = {graph.op(i).outputs[0] for i in inside}
    read = {t for i in inside for t in graph.op(i).inputs}
    return [t for t in read if t not in made and _scalar(graph, t) is None]


def _next(graph: GraphView, open_: list[int]) -> OperatorView | None:
    """Return the last of the makers of open tensors; None if its result is an output of the graph."""
    makers = [maker for t in open_ if (maker := graph.maker(t)) is not None]
    last = max(makers, key=lambda maker: maker.index, default=None)
    return None if last is None or last.outputs[0] in graph.outputs else last


def _is_pointwise(operator: OperatorView, result: int) -> bool:
    """Return whether each element of the output is a function of the elements at its place, the same at every place."""
    graph = operator.graph
    if function_of(operator) is None or len(operator.outputs) != 1 or not operator.inputs or -1 in operator.inputs:
        return False
    shape = graph.tensors[result].shape
    computed = (t for t in (*operator.inputs, operator.outputs[0]) if _scalar(graph, t) is None)
    return all(graph.tensors[t].shape == shape and not graph.tensors[t].is_variable for t in computed)


def _scalar(graph: GraphView, tensor: int) -> Reals | None:
    """Return the real value of a constant of one number; None for any other tensor."""
    spec = graph.tensors[tensor]
    if tensor in graph.inputs or graph.maker(tensor) is not None or np.prod(spec.shape, dtype=np.int64) != 1:
        return None
    value = graph.constant(tensor)
    return None if value is None or value.dtype.kind not in "fiu" else real(spec, value).reshape(())


def is_code(graph: GraphView, tensor: int) -> bool:
    """Return whether a tensor holds int8 codes of one scale."""
    return params_of(graph, tensor) is not None


def params_of(graph: GraphView, tensor: int) -> Params | None:
    """Return the parameters of a tensor of int8 codes with one scale; None for any other."""
    spec = graph.tensors[tensor]
    q = spec.quantization
    if spec.type != TensorType.INT8 or q is None or q.scale.size != 1 or q.zero_point.size != 1:
        return None
    return Params(TensorType.INT8, q.scale, q.zero_point)


Codes = NDArray[np.int8]
#: A table begins with the entry of the least code.
LEAST = -128


@dataclass(frozen=True, slots=True)
class Lookup:
    """A form: the operators that it writes, and the function that writes them."""

    name: str
    operators: tuple[str, ...]
    write: Callable[[Editing, int, int], int]  # from a tensor of codes to places in the table, for an origin


def _cast(editing: Editing, source: int, origin: int) -> int:
    spec = editing.spec(source)
    wide, places = (editing.tensor(spec, end, type=TensorType.INT32, quantization=None) for end in ("/wide", "/place"))
    types = {"in_data_type": int(TensorType.INT8), "out_data_type": int(TensorType.INT32)}
    editing.operator("CAST", [source], [wide], origin, "CastOptions", 3, **types)
    offset = editing.constant("table_offset", np.array([-LEAST], np.int32))
    editing.operator("ADD", [wide, offset], [places], origin, "AddOptions", pot_scale_int16=False)
    return places


def _dequantize(editing: Editing, source: int, origin: int) -> int:
    spec = editing.spec(source)
    numbered = editing.tensor(spec, "/numbered", quantization=Params.of(TensorType.INT8, 1.0, LEAST).quantization)
    wide = editing.tensor(spec, "/wide", type=TensorType.FLOAT32, quantization=None)
    places = editing.tensor(spec, "/place", type=TensorType.INT32, quantization=None)
    shape = editing.constant("table_shape", np.array(spec.shape, np.int32))
    editing.operator(
        "RESHAPE", [source, shape], [numbered], origin, "ReshapeOptions", new_shape=np.array(spec.shape, np.int32)
    )
    editing.operator("DEQUANTIZE", [numbered], [wide], origin, "DequantizeOptions", 2)
    types = {"in_data_type": int(TensorType.FLOAT32), "out_data_type": int(TensorType.INT32)}
    editing.operator("CAST", [wide], [places], origin, "CastOptions", 1, **types)
    return places


#: All forms, the one with the fewest operators first.
LOOKUPS = (
    Lookup("cast", ("CAST", "ADD", "GATHER"), _cast),
    Lookup("dequantize", ("RESHAPE", "DEQUANTIZE", "CAST", "GATHER"), _dequantize),
)


def lookup_for(runtimes: Sequence[Profile]) -> Lookup | None:
    """Return the first form that all runtimes take; None if there is none."""
    return next((form for form in LOOKUPS if all(takes(form, runtime) for runtime in runtimes)), None)


@cache
def takes(form: Lookup, runtime: Profile) -> bool:
    """Return whether a runtime has kernels for the operators of a form."""
    try:
        make_plan(_trial(form), runtime)
    except TflqError:
        return False
    return True


@cache
def _trial(form: Lookup) -> Model:
    """Return a model that is one lookup."""
    q = Params.of(TensorType.INT8, 1.0).quantization
    x, y = (TensorSpec(name, TensorType.INT8, (1, 2, 2, 3), quantization=q) for name in "xy")
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    write(editing, form, editing.new(0), editing.new(1), np.arange(LEAST, -LEAST, dtype=np.int8), q, -1)
    return editing.result()


def write(
    editing: Editing, form: Lookup, source: int, result: int, table: Codes, q: Quantization | None, origin: int
) -> None:
    """Write a lookup from one tensor of codes to another; GATHER has the origin, the operators before it have none."""
    places = form.write(editing, source, -1)
    entries = editing.constant("table", table, q)
    editing.operator("GATHER", [entries, places], [result], origin, "GatherOptions", 2)


#: Powers of two in a difference of two int8 codes are below this.
_POWERS = 8
#: An operand: (operator, position).
_Slot = tuple[int, int]
#: Powers of two that codes relative to the zero point must not have.
_Powers = range
_WHY = "products half-way between two codes are rounded up, down or to even; the operands now have none"


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a MUL: its tensor, zero point, codes that occur, and whether a table makes it."""

    tensor: int
    zero_point: int
    codes: Codes
    in_table: bool
    elements: int

    def cost(self, powers: _Powers) -> tuple[int, float]:
        """Return the elements that pass a new table, and the share of codes that move."""
        share = float(np.mean(_has_power(self.codes - np.int64(self.zero_point), powers)))
        return (self.elements if share and not self.in_table else 0), share


def tie_free(
    integer: IntegerModel, form: Lookup, inside: Collection[int] | None = None
) -> tuple[IntegerModel, tuple[Rewrite, ...]]:
    """Return the model with operands of MUL that give no ties, where the scales allow it."""
    graph = view(integer.model)
    chosen = [op for op in graph.ops if inside is None or integer.operators[op.index] in inside]
    wanted = {slot: powers for op in chosen for slot, powers in _wanted(op)}
    if not wanted:
        return integer, ()
    writing = _TiesWriting(integer, form, wanted)
    for operator in graph.ops:
        writing.operator(operator)
    return writing.result(), tuple(writing.rewrites)


def shift_of(operator: OperatorView) -> int | None:
    """Return k if the multiplier of a MUL of two int8 activations is just below 2**-k; None if it is not."""
    graph = operator.graph
    used = [params_of(graph, t) for t in (*operator.inputs, *operator.outputs)]
    if len(used) != 3 or any(p is None for p in used):
        return None
    one, other, made = (float(p.scale[0]) for p in used if p is not None)
    exponent = exponent_of(one * other / made)
    return -exponent if exponent is not None and exponent <= -1 else None


def _wanted(operator: OperatorView) -> Iterator[tuple[_Slot, _Powers]]:
    """Yield the powers of two that the operands of a MUL must do without, if there are ties."""
    if operator.name != "MUL" or (shift := shift_of(operator)) is None:
        return
    operands = [_operand(operator.graph, t) for t in operator.inputs]
    if any(operator.graph.constant(t) is not None for t in operator.inputs) or operands[0].tensor == operands[1].tensor:
        return
    pairs = list(_pairs(shift))
    if not pairs:
        return
    costs = [[o.cost(p) for o, p in zip(operands, pair, strict=True)] for pair in pairs]
    totals = [(sum(new for new, _ in cost), sum(share for _, share in cost)) for cost in costs]
    best = pairs[min(range(len(pairs)), key=totals.__getitem__)]
    for position, (operand, powers) in enumerate(zip(operands, best, strict=True)):
        if operand.cost(powers)[1]:
            yield (operator.index, position), powers


def _pairs(shift: int) -> Iterator[tuple[_Powers, _Powers]]:
    """Yield the powers that two factors must do without, so that no product has the power shift - 1."""
    for least in range(1, shift):
        high, band = range(least, _POWERS + 1), range(shift - least, shift)
        yield high, band
        yield band, high


def _operand(graph: GraphView, tensor: int) -> _Operand:
    table = _table(graph, tensor)
    codes = np.arange(LEAST, -LEAST, dtype=np.int8) if table is None else np.unique(table)
    elements = prod(graph.tensors[tensor].shape)
    return _Operand(tensor, graph.zero_point(tensor), codes, table is not None, elements)


def _table(graph: GraphView, tensor: int) -> Codes | None:
    """Return the table that a tensor's codes are looked up in; None if they are not."""
    maker = graph.maker(tensor)
    if maker is None or maker.name != "GATHER" or tensor in graph.outputs:
        return None
    table = graph.constant(maker.inputs[0])
    return table if table is not None and table.shape == (-2 * LEAST,) and table.dtype == np.int8 else None


def _has_power(values: Ints, powers: _Powers) -> NDArray[np.bool_]:
    """Return which numbers other than 0 are odd multiples of these powers of two."""
    lowest = values & -values
    return np.isin(lowest, [1 << power for power in powers])


def without_powers(codes: Codes, zero_point: int, powers: _Powers) -> Codes:
    """Return codes with those that have such a power of two, relative to the zero point, moved by one.

    Neighbours that move go up and down in turn, so that the mean stays.
    """
    values = codes.astype(np.int64) - zero_point
    up = (values >> powers.start) & 1 == 0
    up = np.where(codes == -LEAST - 1, False, np.where(codes == LEAST, True, up))
    moved = codes.astype(np.int64) + np.where(up, 1, -1)
    return np.where(_has_power(values, powers), moved, codes).astype(np.int8)


class _TiesWriting:
    """A model while operands of its MULs are moved to codes without ties."""

    def __init__(self, integer: IntegerModel, form: Lookup, wanted: Mapping[_Slot, _Powers]) -> None:
        self._integer, self._form, self._wanted = integer, form, wanted
        self._editing = Editing(integer.model)
        self._graph = self._editing.graph
        self._moved: dict[tuple[int, _Powers], int] = {}
        self.rewrites: list[Rewrite] = []

    def operator(self, operator: OperatorView) -> None:
        """Write an operator, its moved operands first; a table that only such a MUL reads is changed in place."""
        made = operator.outputs[0] if operator.outputs else -1
        powers = self._of_all_readers(made)
        table = None if powers is None else _table(self._graph, made)
        if powers is not None and table is not None:
            self._moved[made, powers] = self._editing.new(made)
            self._gather(operator, table, made, powers, self._editing.new(made))
            return
        slots = [(operator.index, position) for position in range(len(operator.inputs))]
        inputs = [self._editing.new(t) for t in operator.inputs]
        for position, slot in enumerate(slots):
            if slot in self._wanted:
                inputs[position] = self._operand(operator, operator.inputs[position], self._wanted[slot])
        self._editing.copy(operator, self._integer.operators[operator.index], inputs)

    def result(self) -> IntegerModel:
        """Return the model."""
        return rewritten_to(self._integer, self._editing)

    def _of_all_readers(self, tensor: int) -> _Powers | None:
        """Return the powers that all operands which read a tensor do without; None if they differ."""
        slots = [(r.index, p) for r in self._graph.readers(tensor) for p, t in enumerate(r.inputs) if t == tensor]
        found = {self._wanted.get(slot) for slot in slots}
        return found.pop() if len(found) == 1 else None

    def _operand(self, operator: OperatorView, tensor: int, powers: _Powers) -> int:
        """Return the tensor without these powers, which is written when it is first needed."""
        if (tensor, powers) not in self._moved:
            source = self._editing.new(tensor)
            result = self._editing.tensor(self._editing.spec(source), "/without_ties")
            self._moved[tensor, powers] = result
            maker, table = self._graph.maker(tensor), _table(self._graph, tensor)
            if maker is not None and table is not None:
                self._gather(maker, table, tensor, powers, result)
            else:
                codes = np.arange(LEAST, -LEAST, dtype=np.int8)
                entries = without_powers(codes, self._graph.zero_point(tensor), powers)
                quantization = self._graph.tensors[tensor].quantization
                write(self._editing, self._form, source, result, entries, quantization, -1)
                self._report(operator, tensor, ", ".join(self._form.operators), entries)
        return self._moved[tensor, powers]

    def _gather(self, maker: OperatorView, table: Codes, tensor: int, powers: _Powers, result: int) -> None:
        entries = without_powers(table, self._graph.zero_point(tensor), powers)
        name = self._graph.tensors[tensor].name or ""
        constant = self._editing.constant(f"{name}/table", entries, self._graph.tensors[tensor].quantization)
        origin = self._integer.operators[maker.index]
        places = self._editing.new(maker.inputs[1])
        self._editing.operator("GATHER", [constant, places], [result], origin, "GatherOptions", 2)
        self._report(maker, tensor, "GATHER", entries)

    def _report(self, operator: OperatorView, tensor: int, becomes: str, entries: Codes) -> None:
        origin, name = self._integer.operators[operator.index], self._graph.tensors[tensor].name or ""
        origin = origin if origin >= 0 else origin_near(self._integer, self._graph, tensor)
        self.rewrites.append(Rewrite(origin, "MUL operand", name, becomes, _WHY, entries.nbytes, "codes move by one"))


_CODES = np.arange(LEAST, -LEAST, dtype=np.int64)
#: Operators that move codes if operands and result share scale and zero point.
_MOVES = frozenset({"ADD", "SUB", "MAXIMUM", "MINIMUM", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "QUANTIZE"})
#: The reason why an operator computes in float until a table replaces it.
PART_OF_TABLE = "it becomes part of a table"
WHY = "runtimes round its kernel in different ways; a table of its results is only looked up"


def with_tables(
    integer: IntegerModel, runtimes: Sequence[Profile], inside: Collection[int] | None = None
) -> tuple[IntegerModel, tuple[Rewrite, ...]]:
    """Return the model with pointwise operators on int8 codes as tables and MULs without ties, and what was rewritten.

    Of the float model's operators, only those `inside` are; None: all.
    The model is unchanged if one of the runtimes takes no form of a table; `obstacles` names it.
    """
    form = lookup_for(runtimes)
    if form is None:
        return integer, ()
    integer, tables = _with_chains_looked_up(integer, form, inside)
    integer, products = tie_free(integer, form, inside)
    return integer, (*tables, *products)


def _with_chains_looked_up(
    integer: IntegerModel, form: Lookup, inside: Collection[int] | None
) -> tuple[IntegerModel, tuple[Rewrite, ...]]:
    graph, left = view(integer.model), set[int]()
    if inside is not None:
        left = {i for i, origin in enumerate(integer.operators) if origin >= 0 and origin not in inside}
    ends = {chain.operators[-1]: chain for chain in _tabulate(graph) if left.isdisjoint(chain.operators)}
    kept = _live(graph, ends)
    editing, rewrites = Editing(integer.model), list[Rewrite]()
    for operator in editing.graph.ops:
        if operator.index in kept and operator.index in ends:
            rewrites.append(_write(editing, ends[operator.index], form, integer))
        elif operator.index in kept:
            editing.copy(operator, integer.operators[operator.index])
    return rewritten_to(integer, editing), tuple(rewrites)


def _live(graph: GraphView, ends: Mapping[int, Chain]) -> set[int]:
    """Return the operators whose results are still read once the last of each chain reads its source alone."""
    inside = {index for chain in ends.values() for index in chain.operators}
    read, kept = {*graph.outputs}, set[int]()
    for operator in reversed(graph.ops):
        if operator.index not in inside or read.intersection(operator.outputs):
            kept.add(operator.index)
            chain = ends.get(operator.index)
            read.update(operator.inputs if chain is None else (chain.source,))
    return kept


def _tabulate(graph: GraphView) -> list[Chain]:
    """Return the chains from int8 codes to int8 codes, without operators that move codes already."""

    def coded(tensor: int) -> bool:
        return is_code(graph, tensor)

    return [chain for chain in chains(graph, coded, coded) if not _moves(chain)]


def in_float(model: FloatModel, runtimes: Sequence[Profile], inside: Collection[int]) -> dict[int, str]:
    """Return the operators of the float model, with a reason, that compute in float until `with_tables` takes them.

    No operator between two tables then decides a scale of its own.
    """
    if lookup_for(runtimes) is None:
        return {}
    graph = model.graph
    found = chains(graph, model.is_float, lambda t: model.is_float(t) and t not in graph.outputs)
    whole = (chain.operators for chain in found if set(chain.operators) <= set(inside))
    return {index: PART_OF_TABLE for operators in whole for index in operators}


def _moves(chain: Chain) -> bool:
    graph, (first, *more) = chain.graph, chain.operators
    operator = graph.op(first)
    used = {params_of(graph, t) for t in (*operator.inputs, *operator.outputs)}
    return not more and operator.name in _MOVES and len(used) == 1 and None not in used


def _write(editing: Editing, chain: Chain, form: Lookup, integer: IntegerModel) -> Rewrite:
    graph = chain.graph
    source, result = editing.new(chain.source), editing.new(chain.result)
    origins = [integer.operators[index] for index in chain.operators if integer.operators[index] >= 0]
    origin = origins[-1] if origins else -1
    table = table_of(chain)
    write(editing, form, source, result, table, graph.tensors[chain.result].quantization, origin)
    name, becomes = graph.tensors[chain.result].name or "", ", ".join(form.operators)
    index = origin if origin >= 0 else origin_near(integer, graph, chain.source)
    return Rewrite(index, " + ".join(chain.names), name, becomes, WHY, table.nbytes)


def table_of(chain: Chain) -> Codes:
    """Return the codes of a chain's results for all codes of its source, the least first."""
    source, result = params_of(chain.graph, chain.source), params_of(chain.graph, chain.result)
    assert source is not None  # as found
    assert result is not None
    values = (_CODES - source.zero_point[0]) * source.scale.astype(np.float64)
    codes: Codes = result.encode(chain.values(values))
    return codes
