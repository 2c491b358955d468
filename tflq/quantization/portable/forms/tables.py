"""Replace pointwise operators on int8 codes by tables of 256 entries.

Kernels of LOGISTIC, HARD_SWISH or LEAKY_RELU round in as many ways as there are runtimes. A table holds the rounded
results: runtimes only look them up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tflq.engine.profiles import Profile
from tflq.model.ir import GraphView, view
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.portable.forms.chains import Chain, chains, is_code, params_of
from tflq.quantization.portable.forms.editing import Editing, origin_near, rewritten_to
from tflq.quantization.portable.forms.lookups import LEAST, Codes, Lookup, lookup_for, write
from tflq.quantization.portable.forms.products import tie_free
from tflq.quantization.portable.forms.rewrite import Rewrite
from tflq.quantization.scheme.float_graph import FloatModel

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
