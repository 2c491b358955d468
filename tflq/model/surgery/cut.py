"""Parts of a model as models of their own: some of its operators, with the inputs and outputs of the cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from tflq.errors import OptionError, UnknownNameError, UnsupportedError
from tflq.model.ir import GraphView, Model, Operator, OperatorView, Subgraph, TensorSpec, TensorType, view, with_graph
from tflq.model.ir.constants import stored
from tflq.model.ir.signatures import reach

Op = TypeVar("Op", Operator, OperatorView)

#: Types of values that cannot cross a model's edge.
OPAQUE = (TensorType.RESOURCE, TensorType.VARIANT)
#: Fields of a quantization's details that name tensors.
_NAMED = ("scales", "zero_points")


def cut(model: Model, operators: Sequence[int]) -> tuple[Model, tuple[int, ...]]:
    """Return those operators of the first subgraph, in execution order, and the original index of each tensor.

    Inputs are the tensors that they read, except their own results, constants and variables. Outputs are their results
    that other operators read, that the graph outputs, or that nothing reads.
    """
    graph = view(model)
    chosen = [graph.op(index).record for index in sorted(set(operators))]
    used = dict.fromkeys(t for o in chosen for t in _used(o))
    tensors = (*used, *dict.fromkeys(s for t in used for s in _scales(graph.tensors[t]) if s not in used))
    number = {tensor: position for position, tensor in enumerate(tensors)}
    part = Subgraph(
        tensors=tuple(_rescale(graph.tensors[t], number) for t in tensors),
        inputs=tuple(number[t] for t in dict.fromkeys(_read_from_outside(graph, chosen))),
        outputs=tuple(number[t] for t in dict.fromkeys(_given_out(graph, set(operators)))),
        operators=tuple(_renumber(operator, number) for operator in chosen),
        name=graph.record.name,
    )
    return replace(with_graph(model, part), signature_defs=None), tensors


def extract(model: Model, words: Sequence[str]) -> tuple[Model, tuple[int, ...]]:
    """Return a model with only the operators that `words` name, and their original indices.

    A word is an index, the name of a tensor that the operator makes, or an operator's type (all of that type). It may
    also be a range FIRST..LAST of indices or tensor names, both included.

    Raises:
        UnknownNameError: No operator has that name.
        OptionError: A range ends before it starts.
        UnsupportedError: A resource or variant would have to cross the cut.

    Example:
        >>> part, operators = tflq.extract(tflq.load("golden/models/digits_mobilenet_int8.tflite"), ["CONV_2D"])
        >>> operators
        (1, 2, 4, 6, 8, 9, 11, 13, 15, 16)
    """
    chosen = sorted(operators_named(model, words))
    part, tensors = cut(model, chosen)
    graph = view(part)
    for position in (*graph.inputs, *graph.outputs):
        if graph.tensors[position].type in OPAQUE:
            name = graph.tensors[position].name
            raise UnsupportedError("extract", reason=f"tensor {tensors[position]} {name!r} is a handle; cut elsewhere")
    return compact(part), tuple(chosen)


def upstream(operators: Sequence[Op], tensors: Iterable[int]) -> tuple[Op, ...]:
    """Return the operators, in their order, that tensors depend on."""
    needed, found = set(tensors), list[Op]()
    for operator in reversed(operators):
        if needed.intersection(operator.outputs):
            found.append(operator)
            needed.update(operator.inputs)
    return tuple(reversed(found))


def operators_named(model: Model, words: Sequence[str]) -> frozenset[int]:
    """Return the operators of the first subgraph that words name; see `extract`."""
    return frozenset(index for word in words for index in _name(model, word))


def compact(model: Model) -> Model:
    """Return the model without unused buffers, operator codes and, if no operator calls one, subgraphs.

    Tensors that are no constants get buffer 0.
    """
    graphs = model.subgraphs
    if reach(model, (0,)) == {0}:
        graphs = graphs[:1]
    used_buffers = {0, *(t.buffer for g in graphs for t in g.tensors if stored(model, t) is not None)}
    kept = [i for i in range(len(model.buffers)) if i in used_buffers]
    buffer = {old: new for new, old in enumerate(kept)}
    codes = sorted({o.opcode_index for g in graphs for o in g.operators})
    code = {old: new for new, old in enumerate(codes)}
    return replace(
        model,
        subgraphs=tuple(
            replace(
                g,
                tensors=tuple(replace(t, buffer=buffer.get(t.buffer, 0)) for t in g.tensors),
                operators=tuple(replace(o, opcode_index=code[o.opcode_index]) for o in g.operators),
            )
            for g in graphs
        ),
        buffers=tuple(model.buffers[i] for i in kept),
        operator_codes=tuple(model.operator_codes[i] for i in codes),
        metadata=None,
        metadata_buffer=None,
    )


def _used(operator: Operator) -> Iterator[int]:
    tensors = (*operator.inputs, *operator.outputs, *(operator.intermediates or ()))
    return (t for t in tensors if t >= 0)


def _scales(spec: TensorSpec) -> tuple[int, ...]:
    """Return the tensors that hold scales and zero points of a tensor's blocks."""
    details = None if spec.quantization is None else spec.quantization.details
    named = () if details is None else (details.get(field) for field in _NAMED)
    return tuple(int(t) for t in named if t is not None and int(t) >= 0)


def _rescale(spec: TensorSpec, number: dict[int, int]) -> TensorSpec:
    """Return a tensor with the new numbers of the tensors that hold its scales."""
    if spec.quantization is None or spec.quantization.details is None or not _scales(spec):
        return spec
    details = spec.quantization.details
    fields = {k: number[int(v)] if k in _NAMED and int(v) >= 0 else v for k, v in details.fields.items()}
    details = replace(details, fields=MappingProxyType(fields))
    return replace(spec, quantization=replace(spec.quantization, details=details))


def _read_from_outside(graph: GraphView, chosen: Sequence[Operator]) -> Iterator[int]:
    computed: set[int] = set()
    for operator in chosen:
        yield from (t for t in operator.inputs if t >= 0 and t not in computed and _is_computed(graph, t))
        computed.update(operator.outputs)


def _given_out(graph: GraphView, chosen: set[int]) -> Iterator[int]:
    inside = {t for i in chosen for t in graph.op(i).inputs}
    others = (record for i, record in enumerate(graph.record.operators) if i not in chosen)
    outside = {t for record in others for t in record.inputs} | set(graph.outputs)
    for index in sorted(chosen):
        yield from (t for t in graph.op(index).outputs if t >= 0 and (t in outside or t not in inside))


def _renumber(operator: Operator, number: dict[int, int]) -> Operator:
    def of(tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number.get(t, -1) for t in tensors)

    intermediates = None if operator.intermediates is None else of(operator.intermediates)
    return replace(
        operator,
        inputs=of(operator.inputs),
        outputs=of(operator.outputs),
        intermediates=intermediates,
        debug_metadata_index=-1,
    )


def _is_computed(graph: GraphView, tensor: int) -> bool:
    if graph.tensors[tensor].is_variable:
        return False
    return tensor in graph.inputs or graph.data(tensor) is None


def _name(model: Model, word: str) -> Sequence[int]:
    first, dots, last = word.partition("..")
    if dots:
        start, end = _one(model, first), _one(model, last)
        if end < start:
            raise OptionError(f"range {word!r}: its last operator, {end}, comes before its first, {start}")
        return range(start, end + 1)
    ops = view(model).ops
    alike = [o.index for o in ops if o.builtin == word]
    if not alike and not _makers(model, word):
        alike = [o.index for o in ops if o.builtin.lower() == word.lower()]
    return alike or [_one(model, word)]


def _one(model: Model, word: str) -> int:
    """Return the operator of that index, or the one that makes the tensor of that name."""
    graph = view(model)
    if word.isdecimal() and int(word) < len(graph.ops):
        return int(word)
    for maker in _makers(model, word):
        return maker
    types = sorted({o.builtin for o in graph.ops})
    raise UnknownNameError("operator", word, (*types, f"0 to {len(graph.ops) - 1}", "names of tensors"))


def _makers(model: Model, name: str) -> list[int]:
    """Return the operators that make a tensor of that name."""
    made = ((o.index, spec) for o in view(model).ops for spec in o.output_specs)
    return [index for index, spec in made if spec is not None and spec.name == name]
