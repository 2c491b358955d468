"""CALL_ONCE, IF, WHILE, variables and hash tables.

CALL_ONCE, IF, WHILE, STABLEHLO_CASE: operators that run subgraphs.

| operator            | operands                              | outputs                                       |
|---------------------|---------------------------------------|-----------------------------------------------|
| CALL_ONCE           |                                       |                                               |
| IF                  | condition: one bool; x ...: any       | y ...: the branch's                           |
| WHILE               | x ...: any                            | y ...: as the body makes them, x if it never  |
|                     |                                       | runs; the body's quantization                 |
| STABLEHLO_CASE      | index: one int32; x ...: any          | y ...: the branch's                           |

CALL_ONCE: option init_subgraph_index. It runs once in an interpreter's life: allocations and resizes do not count.
IF: options then_subgraph_index, else_subgraph_index; both take x ... and give y ... .
WHILE: options cond_subgraph_index (x ... -> one bool), body_subgraph_index (x ... -> as many, of the same types). The
declared type of an output must be the body's: LiteRT puts the body's in its place, which is refused here. A body that
hands inputs on in another order meets a fault of LiteRT: its outputs are copied one after the other over the loop's
values, which are its inputs, so that a later output may be what an earlier one has just overwritten.
STABLEHLO_CASE: option branch_subgraph_indices; an index outside of them takes the last. LiteRT overwrites the
quantization of the branches' inputs and outputs with the caller's: branches that have another are refused. BUILTIN_REF
lacks it: the kernel is that of the full resolver.
Source: LiteRT 2.3, call_once.cc; if.cc Prepare, Eval_static, Eval_dynamic; while.cc Prepare_impl, Eval_static,
Eval_dynamic; stablehlo_case.cc.

VAR_HANDLE: the handle of a variable, by name. ASSIGN_VARIABLE, READ_VARIABLE: set and read its value.

| operator        | operands                                        | output                                           |
|-----------------|-------------------------------------------------|--------------------------------------------------|
| VAR_HANDLE      |                                                 | handle: resource, any shape                      |
| ASSIGN_VARIABLE | handle: one element, resource or int32; x: any  |                                                  |
| READ_VARIABLE   | handle                                          | y: any type but string, the variable's           |
|                 |                                                 | quantization; the file's shape, the variable's   |
|                 |                                                 | if that is a scalar                              |

VAR_HANDLE: options container, shared_name; equal names mean the same variable in every subgraph. ASSIGN_VARIABLE sets
shape and type, too, and drops the quantization.
READ_VARIABLE: an output whose shape the file gives takes the variable's bytes, regardless of its shape. LiteRT reads
beyond a variable that has fewer bytes, and crashes on strings; both are refused. Without a value, or with one of
another type, the run fails.
Source: LiteRT 2.3, var_handle.cc Init, Eval; assign_variable.cc Eval; resource_variable.cc AssignFrom; read_variable.cc
Prepare, Eval.

HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND, HASHTABLE_SIZE: tables by handle. HASHTABLE_LOOKUP: rows by their keys.

| operator         | operands                                               | outputs                               |
|------------------|--------------------------------------------------------|---------------------------------------|
| HASHTABLE        |                                                        | handle (1): resource                  |
| HASHTABLE_IMPORT | handle, keys, values as keys                           |                                       |
| HASHTABLE_FIND   | handle, keys, default: at least 1 element              | y as keys, of the default's type      |
| HASHTABLE_SIZE   | handle                                                 | y (1): int64, the number of keys      |
| HASHTABLE_LOOKUP | lookup (N), keys (K > 0): int32; values (K, ...): any; | y (N, ...) as values; hits (N): uint8 |
|                  | strings (K)                                            |                                       |

Tables map int64 to string or string to int64; nothing is quantized, except that HASHTABLE_LOOKUP passes quantization.
HASHTABLE: options table_id, key_dtype, value_dtype. HASHTABLE_IMPORT fills a table once; of equal keys the first
counts. HASHTABLE_FIND gives the first default for a missing key; a table that was never filled fails the run.
HASHTABLE_LOOKUP expects keys in ascending order. Missing keys give zeros, or empty strings, and a hit of 0. Keys are
searched as C's bsearch does, the middle first, which decides the result for keys that are out of order or not unique.
BUILTIN_REF has HASHTABLE_LOOKUP only: the others are those of the full resolver.
Source: LiteRT 2.3, hashtable.cc, hashtable_import.cc, hashtable_find.cc, hashtable_size.cc; static_hashtable.cc Import,
Lookup; hashtable_lookup.cc Prepare, Eval; glibc bsearch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.checks import (
    integers_option,
    require_rank,
    require_rank_from,
    require_same_quantization,
    require_same_type,
)
from tflq.engine.kernels.families.resources import (
    Branches,
    OnVariable,
    Table,
    Variable,
    callee,
    eval_call_once,
    eval_handle,
    number_of,
    prepare_branches,
    present,
    require_handle,
    resource,
    single_value,
    table_of,
    take,
)
from tflq.engine.kernels.kernel import CalledSubgraphs, Callee, Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

_ONCE = "init_subgraph_index"


def prepare_call_once(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a subgraph without inputs and outputs."""
    subgraph = int(node.options[_ONCE])
    callee(node, subgraph, (), 0)
    return Prepared((), subgraph, eval_call_once)


_IF = ("then_subgraph_index", "else_subgraph_index")


def prepare_if(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Bind both branches to the inputs' shapes."""
    single_value(node, node.input(0))
    subgraphs = [int(node.options[option]) for option in _IF]
    branches, shapes = prepare_branches(node, subgraphs, 1, lambda condition: 0 if condition.flat[0] else 1)
    return Prepared(shapes, branches, eval_branches)


def eval_branches(data: Branches, session: CalledSubgraphs, selector: Array, *values: Array) -> tuple[Array, ...]:
    """Source: if.cc Eval; stablehlo_case.cc Eval. Only the branch taken is run."""
    return take(data, session, data.chosen(selector), values)


_WHILE = ("cond_subgraph_index", "body_subgraph_index")


@dataclass(frozen=True, slots=True, eq=False)
class WhileData:
    """`forwarded[i]` is the input that output i of the body is, or -1. `fixed` holds (shape inside the loop, shape
    outside) of each value, or is empty where shapes may change from round to round.
    """

    cond: int
    body: int
    forwarded: tuple[int, ...]
    fixed: tuple[tuple[Shape, Shape], ...]


def prepare_while(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Fix shapes if the body keeps them; a scalar and a vector of one element are alike."""
    arguments = present(node)
    cond_index, body_index = (int(node.options[option]) for option in _WHILE)
    node.check(cond_index != body_index, "condition and body are the same subgraph", got=cond_index)
    cond = callee(node, cond_index, arguments, 1)
    node.check(cond.outputs[0].type == TensorType.BOOL, "element type", cond.outputs[0], expected="bool")
    node.check(cond.shapes[0] in (None, (), (1,)), "shape of the condition", expected="one bool", got=cond.shapes[0])
    body = callee(node, body_index, arguments, len(arguments))
    for value, result in zip(arguments, body.outputs, strict=True):
        node.check(value.type == result.type, "element type", result, expected=value.type.label, got=result.type.label)
    node.check(len(node.outputs) == len(arguments), "number of outputs", expected=len(arguments), got=len(node.outputs))
    for y, result in zip(node.outputs, body.outputs, strict=True):
        require_same_type(node, result, y)
    fixed = _fix(node, body)
    data = WhileData(cond_index, body_index, _forward(body), fixed)
    shapes = tuple(outside for _, outside in fixed) if fixed else (None,) * len(arguments)
    return Prepared(shapes, data, eval_while)


def _fix(node: Node, body: Callee) -> tuple[tuple[Shape, Shape], ...]:
    pairs = []
    for operand, computed in zip(body.inputs, body.shapes, strict=True):
        declared = operand.shape
        if computed is None or (declared != computed and sum(declared[:1]) + sum(computed[:1]) != 1):
            return ()
        node.check(
            np.prod(declared) == np.prod(computed), "number of elements", operand, expected=declared, got=computed
        )
        pairs.append((declared, computed))
    return tuple(pairs)


def _forward(body: Callee) -> tuple[int, ...]:
    position = {operand.index: i for i, operand in enumerate(body.inputs)}
    return tuple(position.get(operand.index, -1) for operand in body.outputs)


def eval_while(data: WhileData, session: CalledSubgraphs, *values: Array) -> tuple[Array, ...]:
    """Source: Eval_static and Eval_dynamic. The condition sees the body's own outputs."""
    cond, body = session.enter(data.cond), session.enter(data.body)
    carried, tested = values, values
    while holds(cond(tested)[0]):
        tested = body(carried)
        if data.fixed:
            tested = tuple(x.reshape(inside) for x, (inside, _) in zip(tested, data.fixed, strict=True))
        carried = _copy_in_turn(data, carried, tested)
    if data.fixed:
        return tuple(x.reshape(outside) for x, (_, outside) in zip(carried, data.fixed, strict=True))
    return carried


def holds(condition: Array) -> bool:
    """Return a condition's one element."""
    if condition.shape not in ((), (1,)):
        raise UndefinedResultError("while", f"the condition has shape {list(condition.shape)}, not one element")
    return bool(condition.flat[0])


def _copy_in_turn(data: WhileData, carried: tuple[Array, ...], results: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the loop's values: an output that is an input has the value that lies there at its turn."""
    result = list(results)
    for i, source in enumerate(data.forwarded):
        if source >= 0 and carried[source].shape != results[source].shape:
            raise UndefinedResultError("while", f"output {i} is an input whose memory is given back before it is read")
        if 0 <= source < i:
            result[i] = result[source]
    return tuple(result)


def prepare_case(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Bind all branches to the inputs' shapes."""
    single_value(node, node.input(0))
    subgraphs = integers_option(node, "branch_subgraph_indices")
    node.check(len(subgraphs) > 0, "no branches")
    arguments = present(node, 1)
    for subgraph in subgraphs:
        branch = callee(node, subgraph, arguments, len(node.outputs))
        for inner, outer in zip((*branch.inputs, *branch.outputs), (*arguments, *node.outputs), strict=True):
            require_same_quantization(node, outer, inner)
    last = len(subgraphs) - 1

    def chosen(index: Array) -> int:
        number = int(index.flat[0])
        return number if 0 <= number <= last else last

    branches, shapes = prepare_branches(node, subgraphs, 1, chosen)
    return Prepared(shapes, branches, eval_branches)


_CONTROL_FLOW = (
    Kernel("CALL_ONCE", "->", prepare_call_once, (1, 1), session=True, calls=(_ONCE,)),
    Kernel("IF", "bool any* -> any*", prepare_if, (1, 1), session=True, calls=_IF),
    Kernel("WHILE", "any* -> any*", prepare_while, (1, 1), session=True, calls=_WHILE),
    Kernel(
        "STABLEHLO_CASE", "int32 any* -> any*", prepare_case, (1, 1), session=True, calls=("branch_subgraph_indices",)
    ),
)


def prepare_handle(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Number variables in the order of their first handles in the file."""
    name = str(node.options.get("container") or ""), str(node.options.get("shared_name") or "")
    shape = node.outputs[0].shape
    handle = np.full(shape, node.around().handle(*name), object)
    return Prepared((shape,), handle, eval_handle)


def prepare_assign(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the handle alone."""
    require_handle(node, node.input(0))
    return Prepared((), node.input(1).type, ASSIGN)


def _assign(type_: TensorType, session: CalledSubgraphs, handle: Array, x: Array) -> tuple[Array, ...]:
    """Assign without a copy: arrays are never written to after their creation."""
    variable = resource(session, number_of(handle), Variable, Variable())
    variable.value, variable.type = x, type_
    return ()


def _assign_quickly(type_: TensorType, variable: Variable, x: Array) -> bool:
    variable.value, variable.type = x.copy(), type_
    return True


ASSIGN = OnVariable(_assign, _assign_quickly)


@dataclass(frozen=True, slots=True)
class ReadData:
    """Shape and type of the output; `shape` is None if it is the variable's."""

    shape: Shape | None
    type: TensorType


def prepare_read(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take a scalar for a tensor without rank, as LiteRT does: they look alike."""
    require_handle(node, node.input(0))
    y = node.outputs[0]
    data = ReadData(y.shape or None, y.type)
    return Prepared((data.shape,), data, READ)


def _read(data: ReadData, session: CalledSubgraphs, handle: Array) -> Array:
    """Copy, so that no reader of the result can change the variable. Source: read_variable.cc Eval."""
    variable = resource(session, number_of(handle), Variable)
    value = variable.value
    if value is None or variable.type is None:
        raise LookupError("the variable has no value yet")
    if variable.type != data.type:
        raise TypeError(f"the variable holds {variable.type.label}, not {data.type.label}")
    if value.dtype == object:
        raise UndefinedResultError("read_variable", "LiteRT copies strings as plain bytes, to memory that is not there")
    if data.shape is None or data.shape == value.shape:
        return value.copy()
    count = prod(data.shape)
    if count > value.size:
        raise UndefinedResultError("read_variable", f"{count} elements are read of a variable that has {value.size}")
    return value.reshape(-1)[:count].reshape(data.shape).copy()


def _read_quickly(data: ReadData, variable: Variable, y: Array) -> bool:
    value = variable.value
    if value is None or variable.type != data.type or value.shape != y.shape or value.dtype != y.dtype:
        return False
    np.copyto(y, value)
    return True


READ = OnVariable(_read, _read_quickly)


_VARIABLES = (
    Kernel("VAR_HANDLE", "-> resource", prepare_handle, (1, 1)),
    Kernel("ASSIGN_VARIABLE", "resource|int32 any ->", prepare_assign, (1, 1), session=True),
    Kernel("READ_VARIABLE", "resource|int32 -> any", prepare_read, (1, 1), session=True),
)


_TYPES = ((TensorType.INT64, TensorType.STRING), (TensorType.STRING, TensorType.INT64))


@dataclass(frozen=True, slots=True)
class TableData:
    """Number and types of a table."""

    number: int
    types: tuple[TensorType, TensorType]  # of keys, of values


def prepare_table(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse other types of keys and values."""
    types = TensorType(int(node.options["key_dtype"])), TensorType(int(node.options["value_dtype"]))
    node.check(types in _TYPES, "types of keys and values", got=" and ".join(t.label for t in types))
    return Prepared(((1,),), TableData(int(node.options["table_id"]), types), eval_hashtable)


def eval_hashtable(data: TableData, session: CalledSubgraphs) -> Array:
    """Make an empty table if there is none yet."""
    resource(session, data.number, Table, Table(*data.types))
    return np.array([data.number], object)


def prepare_import(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one shape for keys and values."""
    handle, keys, values = node.input(0), node.input(1), node.input(2)
    require_rank(node, handle, 1)
    require_handle(node, handle)
    node.check(keys.shape == values.shape, "shape", values, expected=keys.shape, got=values.shape)
    return Prepared((), (keys.type, values.type), eval_import)


def eval_import(
    types: tuple[object, object], session: CalledSubgraphs, handle: Array, keys: Array, values: Array
) -> tuple[()]:
    """Source: StaticHashtable::Import."""
    table = table_of(resource(session, number_of(handle), Table), types)
    if not table.filled:
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True):
            table.entries.setdefault(key, value)
        table.filled = True
    return ()


def prepare_find(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output with the shape of the keys."""
    handle, keys, default, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    require_rank(node, handle, 1)
    require_handle(node, handle)
    require_same_type(node, default, y)
    return Prepared((keys.shape,), (keys.type, y.type), eval_find)


def eval_find(
    types: tuple[object, object], session: CalledSubgraphs, handle: Array, keys: Array, default: Array
) -> Array:
    """Source: StaticHashtable::Lookup."""
    table = table_of(resource(session, number_of(handle), Table), types)
    if not table.filled:
        raise LookupError("the hash table was not filled")
    missing = default.reshape(-1).tolist()[0]
    values = np.empty(keys.size, CARRIER[table.value_type])
    values[:] = [table.entries.get(key, missing) for key in keys.reshape(-1).tolist()]
    return values.reshape(keys.shape)


def prepare_size(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one number."""
    require_rank(node, node.input(0), 1)
    require_handle(node, node.input(0))
    return Prepared(((1,),), None, eval_size)


def eval_size(data: None, session: CalledSubgraphs, handle: Array) -> Array:
    """Count equal keys once; a table that was not filled has none."""
    return np.array([len(resource(session, number_of(handle), Table).entries)], np.int64)


def prepare_lookup(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one row for each key."""
    lookup, keys, values = node.input(0), node.input(1), node.input(2)
    require_rank(node, lookup, 1)
    require_rank(node, keys, 1)
    require_same_type(node, values, node.outputs[0])
    require_rank_from(node, values, 1)
    node.check(keys.shape[0] == values.shape[0], "rows", values, expected=keys.shape[0], got=values.shape[0])
    node.check(keys.shape[0] > 0, "no rows", values)
    if values.type.label == "string":
        require_rank(node, values, 1)
    return Prepared((lookup.shape + values.shape[1:], lookup.shape), None, eval_lookup)


def eval_lookup(data: None, lookup: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """Source: hashtable_lookup.cc Eval."""
    rows = search(lookup, keys)
    hits = rows >= 0
    y = values[np.where(hits, rows, 0)]
    y[~hits] = b"" if values.dtype == object else 0
    return y, hits.astype(np.uint8)


def search(lookup: Array, keys: Array) -> Array:
    """Return the row at which bsearch finds each element of `lookup`, or -1. All are searched at once."""
    low, high = np.zeros(lookup.shape, np.int64), np.full(lookup.shape, len(keys), np.int64)
    rows = np.full(lookup.shape, -1, np.int64)
    while (open_ := (low < high) & (rows < 0)).any():
        middle = (low + high) // 2
        key = keys[np.minimum(middle, len(keys) - 1)]
        rows = np.where(open_ & (lookup == key), middle, rows)
        high = np.where(open_ & (lookup < key), middle, high)
        low = np.where(open_ & (lookup > key), middle + 1, low)
    return rows


_HASHTABLES = (
    Kernel("HASHTABLE", "-> resource", prepare_table, (1, 1), session=True),
    Kernel("HASHTABLE_IMPORT", "resource int64 string ->", prepare_import, (1, 1), session=True),
    Kernel("HASHTABLE_IMPORT", "resource string int64 ->", prepare_import, (1, 1), session=True),
    Kernel("HASHTABLE_FIND", "resource int64 string -> string", prepare_find, (1, 1), session=True),
    Kernel("HASHTABLE_FIND", "resource string int64 -> int64", prepare_find, (1, 1), session=True),
    Kernel("HASHTABLE_SIZE", "resource -> int64", prepare_size, (1, 1), session=True),
    Kernel("HASHTABLE_LOOKUP", "int32 int32 any -> any uint8", prepare_lookup, (1, 1)),
)

#: The rows of all operators above.
KERNELS = (*_CONTROL_FLOW, *_VARIABLES, *_HASHTABLES)
