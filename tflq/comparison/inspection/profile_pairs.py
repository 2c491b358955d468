"""Two profiles side by side: the operators and types for which they have other kernels, or other primitives.

The fields of the `Arithmetic` that a kernel's prepare reads are found in its code: those named by it, or by a function
of the kernels package that it refers to. The code is read, not run; a field named for one form counts for all forms
that share the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from inspect import unwrap
from itertools import product
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tflq.engine.kernels.kernel import Kernel, Signature, Slot
from tflq.engine.kernels.table import KernelTable, find
from tflq.engine.numerics.arithmetic import Arithmetic, prepared_real
from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import TensorType
from tflq.texts import Tabular, display_by

#: Text for a profile without a kernel.
NONE = "none"
_FIELDS = frozenset(field.name for field in fields(Arithmetic))
_PACKAGE = "tflq.engine.kernels."
#: Operators whose signed forms compute multipliers in float64 under every profile.
_PER_TENSOR_IF_UINT8 = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")


@dataclass(frozen=True, slots=True)
class Primitive:
    """One difference: a field of the arithmetic or "kernel", and its value in each of the two profiles."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class PairDifference:
    """One operator with operand types, such as "int8 -> int8", or "all".

    `notes` are the descriptions of the kernels of other runtimes.
    """

    op: str
    types: tuple[str, ...]
    primitives: tuple[Primitive, ...]
    notes: tuple[str, ...] = ()


@display_by("profiles:pair_report", "pair_document", "differences")
@dataclass(frozen=True, slots=True)
class ProfileComparison(Tabular):
    """Two profiles by name, and the differences that can change bits, by operator."""

    first: str
    second: str
    differences: tuple[PairDifference, ...]

    def __iter__(self) -> Iterator[PairDifference]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)


def compare_profiles(first: str | Profile, second: str | Profile, ops: Collection[str] = ()) -> ProfileComparison:
    """Return every difference, by operator; only of the operators `ops`, if any are given.

    Raises:
        UnknownNameError: There is no profile of that name.

    Example:
        >>> sorted({found.op for found in tflq.compare_profiles("litert-ref", "litert-opt", ["SOFTMAX", "NEG"])})
        ['SOFTMAX']
    """
    first, second = by_name(first), by_name(second)
    differences: list[PairDifference] = []
    for op in sorted(set(ops) or {*first.kernels, *second.kernels}):
        differences += _merge(_differences(first, second, op))
    return ProfileComparison(first.name, second.name, tuple(differences))


def _differences(first: Profile, second: Profile, op: str) -> Iterator[PairDifference]:
    missing = [op not in profile.kernels for profile in (first, second)]
    if any(missing):
        labels = (NONE if gone else label(p.kernels[op][0]) for gone, p in zip(missing, (first, second), strict=True))
        yield PairDifference(op, ("all",), (Primitive("kernel", *labels),))
        return
    compared: set[Signature] = set()
    for row in (*first.kernels.get(op, ()), *second.kernels.get(op, ())):
        for form in _forms(row.signature):
            if form in compared:
                continue
            compared.add(form)
            one, other = (_row(p.kernels, row, form) for p in (first, second))
            primitives = tuple(_primitives(first, second, one, other, form))
            if primitives:
                notes = [_note(k) for k in (one, other) if k is not None and home(one) != home(other)]
                yield PairDifference(op, (str(form),), primitives, tuple(dict.fromkeys(filter(None, notes))))


def _merge(differences: Iterator[PairDifference]) -> Iterator[PairDifference]:
    """Yield forms with the same differences as one."""
    groups: dict[tuple[str, tuple[Primitive, ...], tuple[str, ...]], list[str]] = {}
    for d in differences:
        groups.setdefault((d.op, d.primitives, d.notes), []).extend(d.types)
    for (op, primitives, notes), types in groups.items():
        yield PairDifference(op, tuple(types), primitives, notes)


def _forms(signature: Signature) -> Iterator[Signature]:
    """Yield every choice of the alternatives, with all optional operands."""
    count = len(signature.inputs)
    # Operands beyond the third follow the first alternative: rows do not differ in them.
    inputs = [slot.choices if position < 3 else slot.choices[:1] for position, slot in enumerate(signature.inputs)]
    for chosen in product(*inputs, *(slot.choices for slot in signature.outputs)):
        yield Signature(chosen[:count], chosen[count:])


def _row(kernels: KernelTable, like: Kernel, form: Signature) -> Kernel | None:
    def types(slots: tuple[Slot, ...]) -> list[TensorType]:
        return [TensorType.FLOAT32 if slot.types is None else slot.types[0] for slot in slots]

    return find(kernels, like.op, like.versions[0], types(form.inputs), types(form.outputs), like.sparse)


def _primitives(
    first: Profile, second: Profile, one: Kernel | None, other: Kernel | None, form: Signature
) -> Iterator[Primitive]:
    if label(one) != label(other):
        yield Primitive("kernel", label(one), label(other))
    if one is None or other is None or not form.has_integers:
        return
    for name in sorted(fields_read(one.prepare) & fields_read(other.prepare)):
        if name.endswith("_wide") and not form.starts_with(TensorType.INT16):
            continue
        if name == "scale_type" and not _depends_on_scale_type(one.op, form, first.arithmetic, second.arithmetic):
            continue
        values = getattr(first.arithmetic, name), getattr(second.arithmetic, name)
        if values[0] != values[1]:
            yield Primitive(name, *map(named, values))


def _depends_on_scale_type(op: str, form: Signature, *arithmetics: Arithmetic) -> bool:
    """Return whether an operator uses the `scale_type` that it reads, under either arithmetic."""
    if op == "FULLY_CONNECTED":
        return any(arithmetic.dense_real is prepared_real for arithmetic in arithmetics)
    return op not in _PER_TENSOR_IF_UINT8 or form.starts_with(TensorType.UINT8)


def label(kernel: Kernel | None) -> str:
    """Return the function that prepares a row, and what it is bound to, such as "mul.reference.prepare_quantized"."""
    if kernel is None:
        return NONE
    row = _delegate(kernel)
    return describe(row.prepare) + ("" if row.takes is None else f", if {_short(row.takes)}")


def _delegate(kernel: Kernel) -> Kernel:
    """Return XNNPACK's own row of one that prepares what XNNPACK leaves, too; any other row without added checks."""
    row = next((bound for bound in _bound(kernel.prepare) if isinstance(bound, Kernel)), kernel)
    inner = unwrap(row.prepare)
    return row if inner is row.prepare else replace(row, prepare=inner)


@cache
def describe(function: Callable[..., Any]) -> str:
    """Return a function of the kernels package as text: room, file, name, and what it is bound to."""
    module = unwrapped(function).__module__ or ""  # functions made by exec have none
    return f"{module.removeprefix(_PACKAGE)}.{_with_bound(function)}"


def _with_bound(value: Any) -> str:
    """Return a function's name and what it is bound to: functions and plain values."""
    if isinstance(value, partial):
        return _call(_with_bound(value.func), (*value.args, *value.keywords.values()))
    if isinstance(value, FunctionType):
        return _call(named(value), _bound(value))
    return named(value)


def _bound(function: Callable[..., Any]) -> list[Any]:
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]


def _call(name: str, bound: Iterable[Any]) -> str:
    parts = [part for value in bound for part in _parts(value)]
    return f"{name}({', '.join(parts)})" if parts else name


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, MethodType):
        yield f"{value.__self__}.{value.__name__}"
    elif callable(value):
        yield _short(value)
    elif is_dataclass(value) or isinstance(value, (int, float, str)):
        yield str(value)


def _short(function: Callable[..., Any]) -> str:
    module = getattr(unwrapped(function), "__module__", "") or ""
    return f"{module.rpartition('.')[2]}.{_with_bound(function)}"


@cache
def home(kernel: Kernel | None) -> str:
    """Return the room and file that hold a row, such as "mul.reference"."""
    if kernel is None:
        return NONE
    kernel = _delegate(kernel)
    for name, module in tuple(sys.modules.items()):
        if name.startswith(_PACKAGE) and any(_is_same(row, kernel) for row in getattr(module, "KERNELS", ())):
            return name.removeprefix(_PACKAGE)
    return str(unwrapped(kernel.prepare).__module__).removeprefix(_PACKAGE)


def _is_same(row: Kernel, kernel: Kernel) -> bool:
    """Return whether `kernel` is that row, or its equivalent for other versions."""
    return row is kernel or (row.op, row.signature, row.prepare) == (kernel.op, kernel.signature, kernel.prepare)


def _note(kernel: Kernel) -> str:
    """Return the first sentence of the file of a kernel that is not the reference's."""
    where = home(kernel)
    module = sys.modules.get(_PACKAGE + where)
    if where.endswith(".reference") or module is None:
        return ""
    paragraph = " ".join((module.__doc__ or "").split("\n\n", 1)[0].split())
    return f"{where}: {paragraph.split('. ', 1)[0].rstrip('.')}"


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside a partial application."""
    while isinstance(function, partial):
        function = function.func
    return function


def named(value: Any) -> str:
    """Return a stage or rule in words: its class or its function."""
    if isinstance(value, (int, type)):
        return str(getattr(value, "__name__", value))
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):
        own = value.__name__
        return owner.__name__ if own == "of" else f"{owner.__name__}.{own}"
    return str(getattr(value, "__qualname__", type(value).__name__)).split(".<locals>")[0].removesuffix(".of")


@cache
def fields_read(function: Callable[..., Any]) -> frozenset[str]:
    """Return the fields of `Arithmetic` that `function` names.

    It may name them itself or through other functions of the kernels package.
    """
    names_read: set[str] = set()
    waiting: list[Callable[..., Any]] = [function]
    visited: set[Any] = set()
    while waiting:
        current = unwrapped(waiting.pop())
        if not isinstance(current, FunctionType) or current in visited:
            continue
        visited.add(current)
        if not current.__module__.startswith("tflq.engine.kernels"):
            continue
        names = set(_names(current.__code__))
        names_read |= names & _FIELDS
        names_read |= {field for name in names for field in _read_by_method(name)}
        reached = [current.__globals__.get(name) for name in names]
        reached += _bound(current)
        reached += [getattr(module, name, None) for module in reached if _is_kernel_module(module) for name in names]
        waiting += [value for value in reached if callable(value)]
    return frozenset(names_read)


def _read_by_method(name: str) -> frozenset[str]:
    """Return the fields that a method of `Arithmetic` reads; none if it has no such method."""
    method = vars(Arithmetic).get(name)
    return _FIELDS.intersection(_names(method.__code__)) if isinstance(method, FunctionType) else frozenset()


def _is_kernel_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
