"""Profiles as files, and changes of single rows that they state.

Changes of single rows of a profile's table, as files of profiles state them.

A change names an operator and, if it does not mean all its rows, operand types such as "int8 int8 int32? -> int8". It
has one of: `refused: true`; `like: PROFILE`, whose rows are taken; `arithmetic`, fields that differ for these rows;
a key of `GRAMMARS` with a point that the rows compute by; `table`, the 256 codes that an
operator of one 8-bit input gives, for the lowest code first; `tables`, several of these, each for one pair of scales.

Profiles as files: YAML or JSON with a base and what differs from it (`schemas/profile.schema.json`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import yaml

from tflq.engine.kernels.families import means, positions, reals, sums
from tflq.engine.kernels.families.learned_form import LearnedForm
from tflq.engine.kernels.families.unary import eval_table_8bit
from tflq.engine.kernels.kernel import EXACT, Kernel, Node, Prepared, Signature
from tflq.engine.kernels.table import KernelTable, Rows, overlaid
from tflq.engine.kernels.validity import CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, MICRO, OPT, REF, RELEASES, SPEC, XNNPACK
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import VARIANTS, by_name
from tflq.engine.profiles.building import NOT_MEASURED, changed, names, profile_from, value_of
from tflq.engine.profiles.profile import Profile, Source
from tflq.engine.profiles.table import ALIASES, ROWS, Row
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import CARRIER, TensorType
from tflq.model.storage.documents import read_document

_EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)


#: The forms that a file can state, by key.
GRAMMARS: Mapping[str, LearnedForm] = {
    "requantizer": reals.requantize,
    "floats": reals.FLOATS,
    "average": means.average,
    "float_sum": sums.sum_in_floats,
    "ignores": reals.ignoring,
    "nearest": positions.nearest_by_rule,
    "sums": sums.sum_by_rule,
    "windows": positions.windows_by_rule,
    "mean": means.mean_in_integers,
    "integer_sum": sums.sum_in_integers,
    "integer_softmax": means.softmax_in_integers,
    "bilinear": positions.bilinear_in_fixed_point,
    "only": reals.only_where,
}
#: The keys of a change that name its effect.
KINDS = ("refused", "like", "arithmetic", *GRAMMARS, "table", "tables")


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of a profile's table; `kind` is a key of `KINDS`, `value` what the file gives for it."""

    op: str
    types: str
    kind: str
    value: Any


def apply(
    table: KernelTable, changes: Sequence[RowChange], other: Callable[[str], KernelTable], *, alone: bool = False
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


def _rows(table: Mapping[str, Rows], change: RowChange, other: Callable[[str], KernelTable]) -> Rows:
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


def _meant(table: Mapping[str, Rows], change: RowChange) -> Rows:
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


def _by_grammar(row: Kernel, change: RowChange, rows: Rows) -> Kernel:
    """Return the row that computes by a point of a grammar; `rows` are those of its operator."""
    grammar = GRAMMARS[change.kind]
    if grammar.operators and change.op not in grammar.operators:
        raise OptionError(f"{change.kind} of {change.op}: only {', '.join(grammar.operators)} can have it")
    return grammar.changed(row, rows, grammar.read(change.value))


def _refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the node, as the profile's file asks for."""
    node.refuse("is refused by the profile's file")


def _look_up(change: RowChange) -> Kernel:
    """Return a row that looks codes up."""
    signature, source, result = _of_one_input(change)
    table = _table(change, change.value, source, result)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return Prepared((node.input(0).shape,), table, eval_table_8bit)

    return Kernel(change.op, str(signature), prepare, exactness=EXACT)


def _look_up_by_scales(change: RowChange) -> Kernel:
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


def _of_one_input(change: RowChange) -> tuple[Signature, TensorType, TensorType]:
    signature = signature_of(change.types or "int8 -> int8")
    slots = signature.slots
    if len(slots) != 2 or any(slot.types is None or len(slot.types) != 1 for slot in slots):
        raise OptionError(f'{change.op}: a table needs types such as "int8 -> int8", not {change.types!r}')
    source, result = (slot.types[0] for slot in slots if slot.types)
    if source not in _EIGHT_BITS or result not in _EIGHT_BITS:
        raise OptionError(f"{change.op}: a table maps int8 or uint8 to int8 or uint8, not {change.types}")
    return signature, source, result


def _table(change: RowChange, codes: Any, source: TensorType, result: TensorType) -> np.ndarray[Any, Any]:
    limits = type_range(CARRIER[result])
    if len(codes) != 256 or not all(type(code) is int and limits[0] <= code <= limits[1] for code in codes):
        raise OptionError(f"{change.op}: a table has 256 whole numbers from {limits[0]} to {limits[1]}")
    ordered = np.array(codes, CARRIER[result])
    return np.roll(ordered, -128) if source is TensorType.INT8 else ordered


SCHEMA = "tflq/profile/1"
#: Files that are kept as profiles.
_KEPT = 64
_KEYS = (
    "schema",
    "base",
    "about",
    "source",
    "runtime",
    "arithmetic",
    "figures",
    "variants",
    "rows",
    "others",
    "learned",
)
#: Values of `others`: the treatment of operators and types that no row names.
_AS_BASE, _REFUSED = "as the base", "refused"
#: The words that each coordinate of a runtime takes.
_RUNTIME: Mapping[str, tuple[object, ...]] = {
    "release": RELEASES,
    "resolver": (REF, OPT, XNNPACK),
    "cpu": ("x86-64", "arm64", "arm64-a53", "wasm", "any"),
    "vectors": (True, False),
    "library": ("", MICRO, CMSIS_NN, CMSIS_NN_SINGLE, ESP_NN, SPEC),
}


def load_profile(path: str) -> Profile:
    """Return the profile that a file states. Its name is the path, by which `by_name` finds it again.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It is no YAML or JSON.
        UnknownNameError: It names a key, field, value, operator or profile that does not exist.
        OptionError: A value does not suit its key.
    """
    try:
        status = os.stat(path)
        version = status.st_mtime_ns, status.st_size, status.st_ino
    except (OSError, ValueError):
        version = None  # reading it raises, with the reason
    return _load(path, version)


@lru_cache(maxsize=_KEPT)
def _load(path: str, _version: object) -> Profile:
    document = read_document(path)
    try:
        return _profile(path, document)
    except UnknownNameError as error:
        raise UnknownNameError(f"{path}: {error.kind}", error.name, error.known) from error
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error


def _profile(path: str, document: Any) -> Profile:
    known = _mapping(document, "a profile", _KEYS)
    if known.get("schema", SCHEMA) != SCHEMA:
        raise OptionError(f"schema {known['schema']!r:.80}: this version reads {SCHEMA!r}")
    base = _text(known.get("base", "litert-ref"), "base")
    if base not in ROWS:
        raise UnknownNameError("base", base, tuple(ROWS))
    figures = _text(known.get("figures", ""), "figures")
    if figures and figures != NOT_MEASURED and figures not in ROWS:
        raise UnknownNameError("profile of figures", figures, tuple(ROWS))
    arithmetic = _mapping(known.get("arithmetic", {}), "arithmetic")
    row = Row(
        path,
        _text(known.get("about", ""), "about"),
        base,
        {key: _text(text, f"source.{key}") for key, text in _source(known).items()},
        _runtime(_mapping(known.get("runtime", {}), "runtime", tuple(_RUNTIME))),
        arithmetic,
        figures,
    )
    stated = known.get("rows", [])
    changes = [_change(item, i) for i, item in enumerate(_list(stated, "rows"))]
    others = _text(known.get("others", _AS_BASE), "others")
    if others not in (_AS_BASE, _REFUSED):
        raise UnknownNameError("value of others", others, (_AS_BASE, _REFUSED))
    profile = profile_from(row)
    if changes or others == _REFUSED:
        profile = _with_changes(profile, changes, stated, alone=others == _REFUSED)
    learned = _mapping(known.get("learned", {}), "learned")
    if learned:
        profile = profile.stating({"learned": learned})
    for word in _list(known.get("variants", []), "variants"):
        if not isinstance(word, str) or f"+{word}" not in VARIANTS:
            raise UnknownNameError("variant", str(word), tuple(ending[1:] for ending in VARIANTS))
        profile = VARIANTS[f"+{word}"](profile)
    return profile.derive(path)


def with_rows(profile: Profile, stated: Sequence[Mapping[str, Any]]) -> Profile:
    """Return the profile with the rows that `stated` gives as a file does.

    Raises:
        UnknownNameError, OptionError: As `load_profile`.
    """
    return _with_changes(profile, [_change(item, i) for i, item in enumerate(stated)], stated, alone=False)


def _with_changes(profile: Profile, changes: Sequence[RowChange], stated: Sequence[Any], *, alone: bool) -> Profile:
    changed = profile.within(lambda table: apply(table, changes, lambda name: by_name(name).kernels, alone=alone))
    return changed.stating({**({"others": _REFUSED} if alone else {}), "rows": stated})


def _change(item: Any, number: int) -> RowChange:
    place = f"rows[{number}]"
    stated = _mapping(item, place, ("op", "types", *KINDS))
    kinds = [kind for kind in KINDS if kind in stated]
    if "op" not in stated or len(kinds) != 1:
        raise OptionError(f"{place}: expected op and one of {', '.join(KINDS)}")
    (kind,) = kinds
    types = _text(stated.get("types", ""), f"{place}.types")
    if types:
        signature_of(types)
    value = stated[kind]
    if kind == "refused" and value is not True:
        raise OptionError(f"{place}.refused: expected true, not {value!r:.80}")
    if kind == "like":
        _check_like(_text(value, f"{place}.like"))
    if kind == "arithmetic":
        for field, name in _mapping(value, f"{place}.arithmetic").items():
            value_of(field, name)
    if kind in GRAMMARS:
        GRAMMARS[kind].read(_mapping(value, f"{place}.{kind}"))
    if kind == "table":
        _list(value, f"{place}.table")
    if kind == "tables":
        for number, one in enumerate(_list(value, f"{place}.tables")):
            _check_table(one, f"{place}.tables[{number}]")
    return RowChange(_text(stated["op"], f"{place}.op"), types, kind, value)


def _check_table(one: Any, place: str) -> None:
    """Require codes and the scale and zero point of input and output."""
    known = _mapping(one, place, ("input", "output", "options", "codes"))
    for key in ("input", "output"):
        pair = _list(known.get(key), f"{place}.{key}")
        if len(pair) != 2 or type(pair[0]) not in (int, float) or type(pair[1]) is not int:
            raise OptionError(f"{place}.{key}: expected scale and zero point, not {pair!r:.80}")
    _list(known.get("codes"), f"{place}.codes")
    _mapping(known.get("options", {}), f"{place}.options")


def _check_like(name: str) -> None:
    """Require a profile by name: a file that named files could name itself."""
    if name.partition("+")[0] not in {*ROWS, *ALIASES}:
        raise UnknownNameError("profile", name, tuple(ROWS))
    by_name(name)


def _source(known: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(known.get("source", {}), "source", tuple(field.name for field in fields(Source)))


def _runtime(stated: Mapping[str, Any]) -> Mapping[str, str | bool]:
    for key, value in stated.items():
        if not any(type(value) is type(known) and value == known for known in _RUNTIME[key]):
            raise UnknownNameError(f"runtime.{key}", value, _RUNTIME[key])
    return stated


def _mapping(value: Any, place: str, known: Sequence[str] = ()) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionError(f"{place}: expected keys and values, not {value!r:.80}")
    unknown = next((key for key in value if known and key not in known), None)
    if unknown is not None:
        raise UnknownNameError(f"key of {place}", unknown, tuple(known))
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{place}: expected text, not {value!r:.80}")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise OptionError(f"{place}: expected a list, not {value!s:.80}")
    return value


def document_of(profile: Profile) -> dict[str, Any]:
    """Return the document that states the profile; loaded again, it gives the same arithmetic and the same kernels."""
    return {
        "schema": SCHEMA,
        "base": "litert-ref",
        "about": profile.about,
        "source": {key: value for key, value in asdict(profile.source).items() if value},
        "runtime": asdict(profile.runtime),
        "arithmetic": names(profile.arithmetic),
        "figures": profile.figures or NOT_MEASURED,
        **profile.stated,
    }


def text_of(profile: Profile) -> str:
    """Return the YAML file that states the profile."""
    return yaml.safe_dump(document_of(profile), sort_keys=False, allow_unicode=True, width=110)
