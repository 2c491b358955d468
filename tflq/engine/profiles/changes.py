"""Changes of single rows of a profile's table, as files of profiles state them.

A change names an operator and, if it does not mean all its rows, operand types such as "int8 int8 int32? -> int8". It
has one of: `refused: true`; `like: PROFILE`, whose rows are taken; `arithmetic`, fields that differ for these rows;
a key of `GRAMMARS` with a point that the rows compute by; `table`, the 256 codes that an
operator of one 8-bit input gives, for the lowest code first; `tables`, several of these, each for one pair of scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from tflq.engine.kernels.exactness import EXACT
from tflq.engine.kernels.families import (
    code_averages,
    contraction_sums,
    fixed_bilinear,
    float_sum,
    integer_means,
    integer_softmax,
    integer_sums,
    nearest_positions,
    window_rules,
)
from tflq.engine.kernels.families.code_averages import average, average_of
from tflq.engine.kernels.families.float_sum import float_sum_of, sum_in_floats
from tflq.engine.kernels.families.ignored_options import ignored_of, ignoring
from tflq.engine.kernels.families.nearest_positions import nearest_by_rule, nearest_of
from tflq.engine.kernels.families.only_where import only_of, only_where
from tflq.engine.kernels.families.requantized import requantize
from tflq.engine.kernels.families.through_floats import floats_of, through_floats
from tflq.engine.kernels.families.unary import eval_table_8bit
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.signature import Signature
from tflq.engine.kernels.table import KernelTable, Rows, overlaid
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.requantizer import point_of
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles.values import changed
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import CARRIER, TensorType

_EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)


@dataclass(frozen=True, slots=True)
class Grammar:
    """A key of a file that states a point: its reader, and what computes a row by it; only for `operators`, if any."""

    read: Callable[[Mapping[str, Any]], Any]
    changed: Callable[[Kernel, Any], Kernel] | None = None  # None: it needs the operator's other rows, too
    operators: tuple[str, ...] = ()


GRAMMARS: Mapping[str, Grammar] = {
    "requantizer": Grammar(point_of, requantize),
    "floats": Grammar(floats_of),
    "average": Grammar(average_of, average, code_averages.OPERATORS),
    "float_sum": Grammar(float_sum_of, sum_in_floats, float_sum.OPERATORS),
    "ignores": Grammar(ignored_of, ignoring),
    "nearest": Grammar(nearest_of, nearest_by_rule, nearest_positions.OPERATORS),
    "sums": Grammar(contraction_sums.sums_of, contraction_sums.sum_by_rule, contraction_sums.OPERATORS),
    "windows": Grammar(window_rules.window_rule_of, window_rules.windows_by_rule, window_rules.OPERATORS),
    "mean": Grammar(integer_means.mean_of, integer_means.mean_in_integers, integer_means.OPERATORS),
    "integer_sum": Grammar(integer_sums.integer_sum_of, integer_sums.sum_in_integers, integer_sums.OPERATORS),
    "integer_softmax": Grammar(
        integer_softmax.integer_softmax_of, integer_softmax.softmax_in_integers, integer_softmax.OPERATORS
    ),
    "bilinear": Grammar(
        fixed_bilinear.fixed_bilinear_of, fixed_bilinear.bilinear_in_fixed_point, fixed_bilinear.OPERATORS
    ),
    "only": Grammar(only_of, only_where),
}
#: The keys of a change that name its effect.
KINDS = ("refused", "like", "arithmetic", *GRAMMARS, "table", "tables")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a profile's table; `kind` is a key of `KINDS`, `value` what the file gives for it."""

    op: str
    types: str
    kind: str
    value: Any


def apply(
    table: KernelTable, changes: Sequence[Change], other: Callable[[str], KernelTable], *, alone: bool = False
) -> KernelTable:
    """Return the table with the changes applied in their order; `other` gives the kernels of a profile by name.

    With `alone`, only rows that a change names are left.

    Raises:
        UnknownNameError: There is no such operator or profile, or an arithmetic has no such field or value.
        OptionError: No row takes these types, or a lookup table does not suit them.
    """
    now: dict[str, Rows] = {}  # of the operators that change; one table in the end, however many changes there are
    named: dict[str, Rows] = {}
    for change in changes:
        rows = now[change.op] if change.op in now else table.get(change.op, ())
        if not rows and change.kind != "like":
            raise UnknownNameError("operator", change.op, tuple(table))
        if change.kind == "refused" and not change.types:
            now[change.op] = ()
            continue
        first = _rows({change.op: rows}, change, other)
        now[change.op] = overlaid(first, rows)
        named[change.op] = overlaid(first, named.get(change.op, ()))
    if alone:
        return KernelTable(named, lambda op: named[op])
    kept = (op for op in (*table, *now) if now.get(op, True))
    return KernelTable(kept, lambda op: now[op] if op in now else table[op])


def _rows(table: Mapping[str, Rows], change: Change, other: Callable[[str], KernelTable]) -> Rows:
    if change.kind == "like":
        return _meant(other(change.value), change)
    if change.kind == "arithmetic":
        return tuple(_with_arithmetic(row, change.value) for row in _meant(table, change))
    if change.kind in GRAMMARS:
        return tuple(_by_grammar(row, change, table[change.op]) for row in _meant(table, change))
    if change.kind == "table":
        return (_look_up(change),)
    if change.kind == "tables":
        return (_look_up_by_scales(change),)
    return tuple(replace(row, prepare=_refuse) for row in _meant(table, change))


def _meant(table: Mapping[str, Rows], change: Change) -> Rows:
    """Return the rows of the change's operator, or the first that takes its types, narrowed to them."""
    rows = table.get(change.op, ())
    if not rows:
        raise UnknownNameError("operator", change.op, tuple(table))
    if not change.types:
        return tuple(rows)
    signature = signature_of(change.types)
    inputs = [None if slot.types is None else slot.types[0] for slot in signature.inputs]
    outputs = [slot.types[0] for slot in signature.outputs if slot.types]
    row = next((row for row in rows if row.signature.mismatches(inputs, outputs) == 0), None)
    if row is None:
        forms = ", ".join(dict.fromkeys(str(row.signature) for row in rows))
        raise OptionError(f"no row of {change.op} takes {change.types}; there are: {forms:.400}")
    return (row.taking(signature),)


def signature_of(types: str) -> Signature:
    """Return the signature that a text states.

    Raises:
        OptionError: It is none, or names a type that does not exist.
    """
    try:
        signature = Signature.parse(types)
    except KeyError as error:
        raise OptionError(f"types {types!r:.120}: there is no type {str(error)[:40]}") from error
    if "->" not in types or not signature.outputs:
        raise OptionError(f'types {types!r:.120}: expected inputs, "->" and outputs, such as "int8 int8 -> int8"')
    return signature


def _with_arithmetic(row: Kernel, fields: Mapping[str, object]) -> Kernel:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return row.prepare(node, changed(arithmetic, fields))

    return replace(row, prepare=prepare)


def _by_grammar(row: Kernel, change: Change, rows: Rows) -> Kernel:
    """Return the row that computes by a point of a grammar; `rows` are those of its operator."""
    grammar = GRAMMARS[change.kind]
    if grammar.operators and change.op not in grammar.operators:
        raise OptionError(f"{change.kind} of {change.op}: only {', '.join(grammar.operators)} can have it")
    point = grammar.read(change.value)
    return through_floats(row, rows, point) if grammar.changed is None else grammar.changed(row, point)


def _refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the node, as the profile's file asks for."""
    node.refuse("is refused by the profile's file")


def _look_up(change: Change) -> Kernel:
    """Return a row that looks codes up."""
    signature, source, result = _of_one_input(change)
    table = _table(change, change.value, source, result)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return Prepared((node.input(0).shape,), table, eval_table_8bit)

    return Kernel(change.op, str(signature), prepare, exactness=EXACT)


def _look_up_by_scales(change: Change) -> Kernel:
    """Return a row that looks codes up in the table of the operands' scales and options, and refuses others."""
    signature, source, result = _of_one_input(change)
    tables = {_key_of_stated(one): _table(change, one["codes"], source, result) for one in change.value}

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0), node.outputs[0]
        key = (*((float(o.scale), int(o.zero_point)) for o in (x, y)), _options(node.options.fields))
        table = tables.get(key)
        if table is None:
            node.refuse("the profile's file has no table of codes for these scales", y)
        return Prepared((x.shape,), table, eval_table_8bit)

    return Kernel(change.op, str(signature), prepare, exactness=EXACT)


def _key_of_stated(one: Mapping[str, Any]) -> object:
    pairs = tuple((float(np.float32(one[k][0])), int(one[k][1])) for k in ("input", "output"))
    return (*pairs, _options(one.get("options", {})))


def _options(fields: Mapping[str, Any]) -> tuple[tuple[str, object], ...]:
    """Return options that are numbers other than 0, in the precision of a file."""
    numbers = {k: v for k, v in fields.items() if isinstance(v, (int, float, np.number, bool)) and v}
    return tuple(sorted((k, float(np.float32(v))) for k, v in numbers.items()))


def _of_one_input(change: Change) -> tuple[Signature, TensorType, TensorType]:
    signature = signature_of(change.types or "int8 -> int8")
    slots = signature.slots
    if len(slots) != 2 or any(slot.types is None or len(slot.types) != 1 for slot in slots):
        raise OptionError(f'{change.op}: a table needs types such as "int8 -> int8", not {change.types!r}')
    source, result = (slot.types[0] for slot in slots if slot.types)
    if source not in _EIGHT_BITS or result not in _EIGHT_BITS:
        raise OptionError(f"{change.op}: a table maps int8 or uint8 to int8 or uint8, not {change.types}")
    return signature, source, result


def _table(change: Change, codes: Any, source: TensorType, result: TensorType) -> np.ndarray[Any, Any]:
    limits = type_range(CARRIER[result])
    if len(codes) != 256 or not all(type(code) is int and limits[0] <= code <= limits[1] for code in codes):
        raise OptionError(f"{change.op}: a table has 256 whole numbers from {limits[0]} to {limits[1]}")
    ordered = np.array(codes, CARRIER[result])
    return np.roll(ordered, -128) if source is TensorType.INT8 else ordered
