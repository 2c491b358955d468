"""Memory that a runtime reused: dumped values that a later operator had overwritten before the dump was taken.

A dump that is read after the run holds one state of the memory. If a later tensor used the same place, both entries
have the same bytes wherever they overlap. That alone proves nothing: an operator that only moves elements copies a
faulty tensor. So the operators between the two are computed, which shows which one is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import difference, unequal
from tflq.comparison.verification.dump import Dump
from tflq.engine.api.part import part_of
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import GraphView, Model, view
from tflq.typing import Array

Bytes = NDArray[np.uint8]

#: Shared bytes must have at least this variety, so that they are not equal by chance.
_TELLING = 4
#: Memory planners align tensors to at least this many bytes (tflite-micro; LiteRT uses 64).
_ALIGNMENT = 16
#: Number of first bytes of a tensor that are searched in another, and of places whose whole overlap is compared.
_HEAD, _PLACES = 64, 16


def overwritten_by(
    model: Model, profile: Profile, dump: Dump, tensor: int, computed: Mapping[int, Array]
) -> int | None:
    """Return the later tensor whose bytes the dump holds in place of `tensor`'s; None if there is none.

    `computed` are values of the tensors computed before, and `tensor`'s own if it is known (a graph input's is not).
    """
    graph = view(model)
    makers = graph.last_writers
    mine, known = dump.tensors[tensor], computed.get(tensor)
    if tensor in graph.outputs or graph.tensors[tensor].is_variable or mine.dtype.hasobject:
        return None
    if known is None and _is_believed(model, dump, profile, tensor):
        return None
    suspect = _suspect(mine, known)
    last = _last_reader(graph, tensor)
    for other in sorted((t for t, i in makers.items() if i >= last and t != tensor), key=lambda t: makers[t]):
        in_place = makers[other] == last
        shared = _share(mine, dump.tensors[other], suspect, in_place) if other in dump.tensors else None
        if shared is not None and known is None and _is_open(graph, tensor, other, shared, mine.nbytes):
            continue
        if shared is not None and not _follows(model, dump, profile, tensor, other, shared, computed):
            return other
    return None


def _is_open(graph: GraphView, tensor: int, other: int, shared: slice, size: int) -> bool:
    """Return whether shared bytes of a graph input show nothing: few of them, or of an operator that moves elements."""
    maker = graph.maker(other)
    fact = None if maker is None else OPERATORS.get(maker.builtin)
    moves = fact is not None and fact.moves != () and maker is not None and tensor in maker.inputs
    return moves or 2 * (shared.stop - shared.start) < size


def _last_reader(graph: GraphView, tensor: int) -> int:
    """Return the operator from which on the tensor's memory may be reused.

    Its results may be written in place; those of later operators anywhere.
    """
    readers = graph.readers(tensor)
    return readers[-1].index if readers else graph.last_writers.get(tensor, -1) + 1


def _suspect(mine: Array, known: Array | None) -> NDArray[np.bool_]:
    """Return a mask of bytes that may be another tensor's: of elements that differ from the known ones, else all."""
    if known is None or known.shape != mine.shape or known.dtype != mine.dtype:
        return np.ones(mine.nbytes, bool)
    return np.repeat(unequal(known, mine).reshape(-1), mine.itemsize)


def _share(mine: Array, theirs: Array, suspect: NDArray[np.bool_], in_place: bool) -> slice | None:
    """Return the bytes of `theirs` that `mine` also has, overlapping as planners arrange them, if they are telling."""
    if theirs.dtype.hasobject:
        return None
    a, b = _bytes(mine), _bytes(theirs)
    shifts = (0,) if in_place else (*_places(a, b), *(-place for place in _places(b, a)))
    for shift in shifts:
        low, high = max(0, -shift), min(len(a), len(b) - shift)
        telling = len(np.unique(a[low:high][suspect[low:high]])) >= _TELLING
        if telling and np.array_equal(a[low:high], b[low + shift : high + shift]):
            return slice(low + shift, high + shift)
    return None


def _places(head: Bytes, whole: Bytes) -> list[int]:
    """Return the possible starts of one tensor inside another: its first bytes match there."""
    places = np.arange(0, len(whole), _ALIGNMENT)
    places = places[whole[places] == head[0]] if len(head) else places[:0]
    for step in range(1, min(_HEAD, len(head))):
        if not len(places):
            break
        beyond = places + step >= len(whole)
        places = places[beyond | (whole[np.where(beyond, 0, places + step)] == head[step])]
    return [int(place) for place in places[:_PLACES]]


def _bytes(value: Array) -> Bytes:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _is_believed(model: Model, dump: Dump, profile: Profile, tensor: int) -> bool:
    """Return whether a graph input's first reader reproduces at least half of the dump; if unknown, True."""
    reader = next(iter(view(model).readers(tensor)), None)
    computed = None if reader is None else _compute(model, profile, [reader.index], dump.tensors)
    if reader is None or computed is None:
        return True
    results = [t for t in reader.outputs if t in computed and t in dump.tensors]
    differences = [difference(dump.tensors[t], computed[t]) for t in results]
    differing = sum(d.elements if d.problem else d.differing for d in differences)
    return 2 * differing <= sum(d.elements for d in differences)


def _follows(
    model: Model, dump: Dump, profile: Profile, tensor: int, other: int, shared: slice, computed: Mapping[int, Array]
) -> bool:
    """Return whether the shared bytes of `other` follow from the dumped value of `tensor`, not from the known one."""
    graph = view(model)
    between = _between(graph, graph.last_writers.get(tensor, -1), other)
    if not any(tensor in graph.op(index).inputs for index in between):
        return False
    dumped = _bytes(dump.tensors[other])[shared]

    def gives(values: Mapping[int, Array]) -> bool | None:
        recomputed = _compute(model, profile, between, values)
        return None if recomputed is None else np.array_equal(_bytes(recomputed[other])[shared], dumped)

    values = {**dump.tensors, **computed}
    if gives({**values, tensor: dump.tensors[tensor]}) is False:
        return False
    return tensor not in computed or not gives(values)


def _compute(
    model: Model, profile: Profile, operators: Sequence[int], values: Mapping[int, Array]
) -> dict[int, Array] | None:
    """Return the results of some operators on `values`, by tensor index; None if one cannot run or lacks an input."""
    try:
        part = part_of(model, operators, values)
        return part.run(part.plan(profile))
    except TflqError:
        return None


def _between(graph: GraphView, maker: int, other: int) -> list[int]:
    """Return the operators after `maker` that `other` depends on."""
    needed, between = {other}, []
    for op in reversed(graph.ops[maker + 1 :]):
        if needed & set(op.outputs):
            between.append(op.index)
            needed |= {t for t in op.inputs if t >= 0}
    return between
