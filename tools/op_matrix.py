"""Write docs/operators.md: the forms that the kernel table accepts, and those that were compared with a real runtime.

The table comes from the kernels; comparisons come from golden/evidence.json, to which the fuzzer and the kernel tests
add:

    python tools/fuzz_ops.py --count 20000 --evidence golden/evidence.json
    TFLQ_EVIDENCE=golden/evidence.json python -m pytest tests/engine/kernels
    python tools/op_matrix.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opfuzz.evidence import SPARSE, Evidence
from tflq.engine.kernels.kernel import Kernel, Signature, Slot
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType
from tflq.model.ir.model import enum

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "golden" / "evidence.json"
TARGET = ROOT / "docs" / "operators.md"
#: Operands with only these alternatives are positions, sizes and axes: any one of them represents all.
COUNTING = (TensorType.INT16, TensorType.INT32, TensorType.INT64)
#: The highest version, which means "any".
ANY = 99

HEAD = """# Operators

This page lists the forms that profile `litert-ref` runs, and those that were compared with LiteRT 2.3, bit by bit.
`tools/op_matrix.py` writes it from the kernel tables and from `golden/evidence.json`; do not edit it.

A version is listed under *compared* only if elements of an output of that operator, with operands of those types, in
that version, were equal to those of a real interpreter (BUILTIN_REF, or the full resolver if BUILTIN_REF lacks the
operator or the version). The column *promise* is one of **exact**; **exact on the same libm**, if a function of the
host's libm takes part; **close**, with the largest difference measured. All other forms are refused with an error that
names the nearest supported form. Types that only positions, sizes and axes have are left out.
"""


@dataclass(frozen=True)
class Unit:
    """One operator in one choice of types: accepted versions, compared versions, and the promise."""

    op: str
    types: str
    accepted: tuple[int, ...]
    compared: tuple[int, ...]
    promise: str


def units(evidence: Evidence) -> Iterator[Unit]:
    """Yield all choices of types of all rows."""
    forms: dict[str, list[tuple[str, int]]] = {}
    for op, types, version in evidence.counts:
        forms.setdefault(op, []).append((types, version))
    for op in sorted(by_name("litert-ref").kernels, key=str.upper):
        for row in by_name("litert-ref").kernels[op]:
            fitting = [(types, version) for types, version in forms.get(op, ()) if _fits(row, types, version)]
            yield from _of_row(row, fitting)


def _fits(row: Kernel, types: str, version: int) -> bool:
    left, right = (half.split() for half in types.split("->"))
    if row.sparse != tuple(place for place, word in enumerate(left) if word.startswith(SPARSE)):
        return False
    given, made = ([None if w == "-" else TensorType[w.removeprefix(SPARSE).upper()] for w in h] for h in (left, right))
    return row.accepts(version, given, [t for t in made if t is not None])


def _of_row(row: Kernel, fitting: list[tuple[str, int]]) -> Iterator[Unit]:
    low, high = row.versions
    accepted = tuple(range(low, (low if high == ANY else high) + 1))
    leading = _leading(row.signature)
    for type_ in _choices(leading):
        compared = {v for types, v in fitting if type_ is None or type_ in _data(row.signature, types, leading)}
        yield Unit(row.op, _named(row, type_), accepted, tuple(sorted(compared)), str(row.exactness))


def _leading(signature: Signature) -> Slot | None:
    """Return the first operand that offers types of data to choose from."""
    return next((slot for slot in signature.slots if slot.types is None or len({*slot.types} - {*COUNTING}) > 1), None)


def _choices(leading: Slot | None) -> tuple[str | None, ...]:
    if leading is None or leading.types is None:
        return (None,)
    return tuple(type_.label for type_ in leading.types)


def _data(signature: Signature, types: str, leading: Slot | None) -> set[str]:
    """Return the types in `types` of those operands that offer the same choice as the leading one."""
    offered = (leading or signature.slots[0]).types
    found = set()
    for slots, given in zip((signature.inputs, signature.outputs), types.split("->"), strict=True):
        for place, type_ in enumerate(given.split()):
            if slots[min(place, len(slots) - 1)].types == offered:
                found.add(type_.removeprefix(SPARSE))
    return found


def _named(row: Kernel, type_: str | None) -> str:
    """Return a row's types in a few words: one type if all data have it."""
    leading = _leading(row.signature)
    left, right = ([_chosen(s, leading, type_) for s in half] for half in (row.signature.inputs, row.signature.outputs))
    data = [w for w in left if not _counts(w)] or left
    shown = {*data, *right}
    storage = " (sparse)" if row.sparse else ""
    if len(shown) == 1:
        return f"{shown.pop()}{storage}"
    return f"{_folded(data)} → {_folded(right)}{storage}".strip()


def _counts(word: str) -> bool:
    """Return whether operands of these types hold positions, sizes or axes. int16 alone is a type of codes."""
    return Slot.parse(word).is_only(*COUNTING) and word != "int16"


def _chosen(slot: Slot, leading: Slot | None, type_: str | None) -> str:
    same = leading is not None and slot.types == leading.types
    return (type_ or str(slot)) if same else slot.label


def _folded(words: list[str]) -> str:
    """Return types in order, with runs of equal ones counted; long lists of alternatives are shortened."""
    runs: list[tuple[str, int]] = []
    for word in (_short(w) for w in words if w):
        if runs and runs[-1][0] == word:
            runs[-1] = (word, runs[-1][1] + 1)
        else:
            runs.append((word, 1))
    return ", ".join(word if count == 1 else f"{count} × {word}" for word, count in runs) or "nothing"


def _short(word: str) -> str:
    parts = word.split("|")
    return "/".join(parts) if len(parts) < 5 else f"{parts[0]}/…/{parts[-1]}"


def ranges(numbers: tuple[int, ...]) -> str:
    """Return `1–4, 6` for 1, 2, 3, 4 and 6; a dash for none."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1][1:] = [n]
        else:
            runs.append([n])
    return ", ".join("–".join(map(str, run)) for run in runs) or "–"


def document(evidence: Evidence) -> str:
    """Return the whole page."""
    lines = [HEAD, "| operator | types | compared | accepted, not yet compared | promise |", "|---|---|---|---|---|"]
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for unit in units(evidence):
        rest = tuple(v for v in unit.accepted if v not in unit.compared)
        promise = unit.promise if unit.compared or unit.promise.startswith("close") else "–"
        rows.setdefault((unit.op, ranges(unit.compared), ranges(rest), promise), []).append(unit.types)
    for (op, compared, missing, promise), types in rows.items():
        shown = "; ".join(dict.fromkeys(types)).replace("|", "/")
        lines.append(f"| {op} | {shown} | {compared} | {missing} | {promise} |")
    refused = sorted(set(enum("BuiltinOperator")) - set(by_name("litert-ref").kernels) - NOT_OPERATORS)
    lines += ["", f"Refused with all types and versions: {', '.join(refused)}.", ""]
    return "\n".join(lines)


#: Numbers in the schema without an operator.
NOT_OPERATORS = frozenset({"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"})


if __name__ == "__main__":
    TARGET.write_text(document(Evidence.load(EVIDENCE)), encoding="utf-8")
