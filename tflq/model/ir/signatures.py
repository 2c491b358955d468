"""The subgraphs that callers run, by signature; and a model rooted at one of them.

A verb that reads `view(model)` works on each signature in turn: on `rooted(model, root)`.

The signatures of a model, each as a model of its own: verbs work on them in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from tflq.errors import InputError, ModelError, UnknownNameError
from tflq.model.ir.graph import view
from tflq.model.ir.model import Model, Operator, Record, SignatureDef, Subgraph

#: Ends of the names of options that hold indices of subgraphs, one or a list; and CALL's only one.
_CALL_ENDS, _CALL_NAME = ("subgraph_index", "subgraph_indices"), "subgraph"


@dataclass(frozen=True, slots=True)
class Root:
    """A subgraph that callers run. `signature` is its key, None for a first subgraph that no signature runs."""

    signature: str | None
    subgraph: int

    def __str__(self) -> str:
        """Return the signature's name, or the subgraph's number if it has none."""
        return self.signature or f"subgraph {self.subgraph}"


def roots(model: Model) -> tuple[Root, ...]:
    """Return the subgraphs that callers run, in the order of the file's signatures.

    The first subgraph comes first if neither a signature nor an operator runs it. Of signatures of the same key only
    the first is listed: a runtime finds no other.

    Raises:
        ModelError: A signature refers to a subgraph that the model does not have.
    """
    found: dict[str, Root] = {}
    for signature in model.signature_defs or ():
        key, index = signature.signature_key or "", signature.subgraph_index
        if not 0 <= index < len(model.subgraphs):
            raise ModelError(f"signature {key!r}: subgraph index", expected=f"below {len(model.subgraphs)}", got=index)
        found.setdefault(key, Root(key, index))
    run = {root.subgraph for root in found.values()}
    first = () if 0 in run or (run and 0 in reach(model, run)) else (Root(None, 0),)
    return (*first, *found.values())


def choose_roots(model: Model, signature: str | None = None) -> tuple[Root, ...]:
    """Return all roots, or the one of a signature.

    Raises:
        UnknownNameError: The model has no such signature.
    """
    every = roots(model)
    if signature is None:
        return every
    some = tuple(root for root in every if root.signature == signature)
    if not some:
        raise UnknownNameError("signature", signature, tuple(r.signature for r in every if r.signature is not None))
    return some


def only_root(model: Model, signature: str | None = None) -> Root:
    """Return the root of a signature, or of a model that has one root.

    Raises:
        InputError: The model has several signatures, and none is named.
    """
    some = choose_roots(model, signature)
    if len(some) > 1:
        reason = "the model has several signatures: choose one with --signature (signature=)"
        raise InputError(reason, expected=f"one of {', '.join(map(str, some))}", got=None)
    return some[0]


def is_plain(model: Model) -> bool:
    """Return whether the first subgraph is the only one that callers run, by at most one signature."""
    every = roots(model)
    return len(every) == 1 and every[0].subgraph == 0


def rooted(model: Model, root: Root) -> Model:
    """Return the model with the root's subgraph first, and its signature alone.

    It changes places with the first subgraph. Indices of tensors stay.
    """
    graphs, place = model.subgraphs, root.subgraph
    view(model, place)  # which raises if there is none
    kept = signature_of(model, root)
    if place:
        number = {0: place, place: 0}
        order = (number.get(k, k) for k in range(len(graphs)))
        graphs = tuple(_renumber(graphs[k], number) for k in order)
    alone = None if kept is None else (replace(kept, subgraph_index=0),)
    return replace(model, subgraphs=graphs, signature_defs=alone)


def signature_of(model: Model, root: Root) -> SignatureDef | None:
    """Return the root's signature; None if it has none."""
    every = model.signature_defs or ()
    return next((s for s in every if root.signature is not None and (s.signature_key or "") == root.signature), None)


def original_index(root: Root, subgraph: int) -> int:
    """Return the index in the file of a subgraph of the rooted model."""
    return {0: root.subgraph, root.subgraph: 0}.get(subgraph, subgraph)


def input_names(model: Model) -> tuple[str, ...]:
    """Return the names of the first subgraph's inputs: the signature's, else the tensors'; each once."""
    return _names(model, view(model).inputs, [s.inputs for s in _of_first(model)])


def output_names(model: Model) -> tuple[str, ...]:
    """Return the names of the first subgraph's outputs: the signature's, else the tensors'; each once."""
    return _names(model, view(model).outputs, [s.outputs for s in _of_first(model)])


def _of_first(model: Model) -> Sequence[SignatureDef]:
    """Return the first subgraph's signature; none if it has several, which may name tensors differently."""
    found = [s for s in model.signature_defs or () if s.subgraph_index == 0]
    return found if len(found) == 1 else ()


def _names(model: Model, tensors: Sequence[int], pairs: Sequence[Sequence[tuple[str, int]]]) -> tuple[str, ...]:
    graph, names = view(model), list[str]()
    free = [pair for pair in (pairs[0] if pairs else ()) if pair[0]]
    for position, tensor in enumerate(tensors):
        named = next((pair for pair in free if pair[1] == tensor), None)
        if named is not None:
            free.remove(named)  # two outputs may be one tensor
        name = graph.tensor(tensor).name or f"t{tensor}" if named is None else named[0]
        while name in names:
            name = f"{name}#{position}"
        names.append(name)
    return tuple(names)


def call(operator: Operator) -> Iterator[int]:
    """Yield the indices of the subgraphs that an operator names."""
    for record in (operator.options, operator.options_2):
        for name, value in record.fields.items() if isinstance(record, Record) else ():
            if _is_call(name) and value is not None:
                yield from map(int, (value,) if isinstance(value, int) else value)


def reach(model: Model, subgraphs: Sequence[int] | set[int]) -> set[int]:
    """Return those subgraphs and all that their operators run, directly or through others."""
    found: set[int] = set()
    waiting = list(subgraphs)
    while waiting:
        index = waiting.pop()
        if index not in found and 0 <= index < len(model.subgraphs):
            found.add(index)
            waiting += [k for operator in model.subgraphs[index].operators for k in call(operator)]
    return found


def root_subgraphs(model: Model, signature: str | None = None) -> Iterator[tuple[int, Model]]:
    """Yield every subgraph, or those that a signature runs, by index: the model with that subgraph first.

    Raises:
        UnknownNameError: The model has no such signature.
    """
    every = set(range(len(model.subgraphs)))
    run = every if signature is None else reach(model, {root.subgraph for root in choose_roots(model, signature)})
    for number in sorted(run):
        yield number, rooted(model, Root(None, number)) if number else model


def is_inner_call(model: Model, subgraph: int, operator: Operator) -> bool:
    """Return whether an operator of a subgraph that no caller runs itself runs other subgraphs.

    Their operators are listed on their own, so that it adds nothing, and binding it at every level takes long.
    """
    return any(True for _ in call(operator)) and subgraph not in {root.subgraph for root in roots(model)}


def place_of(subgraph: int, index: int) -> str:
    """Return an operator's place: its index, after that of its subgraph if this is not the first."""
    return f"{subgraph}:{index}" if subgraph else str(index)


def place_in(signature: str, index: int) -> str:
    """Return the place of an operator or output: its index, after its signature if the model has several."""
    return f"{signature}/{index}" if signature else str(index)


def _is_call(name: str) -> bool:
    return name == _CALL_NAME or name.endswith(_CALL_ENDS)


def _renumber(graph: Subgraph, number: Mapping[int, int]) -> Subgraph:
    if not any(k in number for operator in graph.operators for k in call(operator)):
        return graph
    return replace(graph, operators=tuple(_of_operator(operator, number) for operator in graph.operators))


def _of_operator(operator: Operator, number: Mapping[int, int]) -> Operator:
    return replace(
        operator, options=_of_record(operator.options, number), options_2=_of_record(operator.options_2, number)
    )


def _of_record(record: Record | None, number: Mapping[int, int]) -> Record | None:
    if record is None:
        return None
    fields = {k: _of_value(v, number) if _is_call(k) and v is not None else v for k, v in record.fields.items()}
    return replace(record, fields=MappingProxyType(fields))


def _of_value(value: object, number: Mapping[int, int]) -> object:
    if isinstance(value, int):
        return number.get(value, value)
    return np.array([number.get(int(k), int(k)) for k in np.asarray(value)], np.asarray(value).dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """One signature: its root in the file, the model rooted there, and its name in reports.

    A model that callers run in one way only has one without a name, whose model is the file's. `is_first` is set for a
    runtime that runs the first subgraph only.
    """

    root: Root
    model: Model
    name: str
    is_first: bool = False

    @property
    def signature(self) -> str | None:
        """The signature to run it by; None for the first subgraph."""
        return self.root.signature if self.name and not self.is_first else None


def signed(model: Model, signature: str | None = None) -> tuple[Signed, ...]:
    """Return all signatures, or one by its name.

    Raises:
        UnknownNameError: The model has no such signature.
        ModelError: A signature refers to a subgraph that the model does not have.
    """
    chosen = choose_roots(model, signature)
    if is_plain(model):
        return (Signed(chosen[0], model, ""),)
    return tuple(Signed(root, rooted(model, root), str(root)) for root in chosen)


def only_signed(model: Model, signature: str | None = None) -> Signed:
    """Return one signature by its name, or the only one.

    Raises:
        UnknownNameError: The model has no such signature.
        InputError: The model has several signatures, and none is named.
    """
    root = only_root(model, signature)
    return Signed(root, model, "") if is_plain(model) else Signed(root, rooted(model, root), str(root))
