"""A device with a mistake: a function of one operator's inputs. An error while listing mistakes loses one source.

Real multipliers of a single operator's scales, in the precisions of numerics/multiplier.py.

Profiles that take zero points beyond their type's range, which mistakes produce and runtimes refuse.

Profiles that compute an operator alike: by their kernel row, and the arithmetic that the row reads.

Bytes taken otherwise: in another order of axes, or with the other signedness of 8-bit codes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.profile_pairs import fields_read
from tflq.engine.api.many import Part
from tflq.engine.kernels import add_sub as sub
from tflq.engine.kernels.families.scaled_sum import prepare_general
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.kernels.table import find
from tflq.engine.numerics.multiplier import OperatorScales as Quotient
from tflq.engine.numerics.multiplier import RealScales, in_float32, in_float64, of_float32_product, product_last
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, TensorType, view
from tflq.typing import Array

Values: TypeAlias = "Mapping[int, Array]"
#: A device's results for an operator's inputs, by original tensor index. It raises a TflqError if it cannot run.
Device: TypeAlias = "Callable[[Part], Values]"

#: A device with a mistake, and the mistake's name.
Mistaken: TypeAlias = "tuple[str, Device]"


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """A device that runs the operator under a profile: another model of it, other inputs, or other results.

    `given` are changes of inputs by position, `made` changes each result that is in the dump.
    """

    profile: Profile
    model: Model | None = None
    given: Mapping[int, Callable[[Array], Array]] = field(default_factory=dict)
    made: Callable[[Array], Array] | None = None

    def __call__(self, part: Part) -> Values:
        """Bind the operator and run it."""
        inputs = {p: self.given[p](x) if p in self.given else x for p, x in part.inputs.items()}
        other = replace(part, inputs=inputs) if self.given else part
        values = other.run(other.plan(self.profile, self.model))
        return values if self.made is None else {t: self.made(v) if t in part.got else v for t, v in values.items()}

    @property
    def is_plain(self) -> bool:
        """True if it is the profile itself on the operator as it is."""
        return self.model is None and not self.given and self.made is None


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Another order or reading of an array's elements, and its inverse."""

    there: Callable[[Array], Array]
    back: Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceChange:
    """A mistake: another profile or model of the single operator, or other forms of its inputs or of all its results.

    `run` computes the results, if these parts do not describe the mistake. Only a mistake with a profile can come
    before another one: see `of` and `under`.
    """

    name: str
    profile: Profile | None = None
    model: Model | None = None
    given: Mapping[int, Turn] = field(default_factory=dict)
    made: Turn | None = None
    run: Device | None = None

    def device(self, part: Part) -> Values:
        """Return the results of the operator's inputs."""
        if self.run is not None:
            return self.run(part)
        return self.under(lambda turned: turned.run(turned.plan(self.first)))(part)

    @property
    def first(self) -> Profile:
        """The profile under which another mistake is searched."""
        assert self.profile is not None
        return self.profile

    def of(self, part: Part) -> Part:
        """Return the operator with this mistake, and the results before their form changes."""
        inputs = {t: self.given[t].there(x) if t in self.given else x for t, x in part.inputs.items()}
        got = part.got if self.made is None else {t: self.made.back(y) for t, y in part.got.items()}
        return replace(part, model=self.model or part.model, inputs=inputs, got=got)

    def under(self, second: Device) -> Device:
        """Return the device that also makes another mistake."""

        def device(part: Part) -> Values:
            values = second(self.of(part))
            turn = self.made
            return values if turn is None else {t: turn.there(values[t]) for t in part.got if t in values}

        return device


#: The changes that a module of mistakes yields for an operator and the profile that it should follow.
Source: TypeAlias = "Callable[[Part, Profile], Iterable[DeviceChange]]"


def running(found: Callable[[Part, Profile], Iterable[Mistaken]]) -> Source:
    """Return a source of devices as a source of changes, none of which can come before another mistake."""
    return lambda alone, profile: (DeviceChange(name, run=device) for name, device in found(alone, profile))


def guard(name: str, source: Source, alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield a source's changes. If listing them raises, yield one more, named after the source, that raises when run.

    A refusal (TflqError) ends the list: the operator cannot have these mistakes.
    """
    try:
        yield from source(alone, profile)
    except TflqError:
        return
    except Exception as error:
        yield DeviceChange(f"mistakes in {name}", run=raising(error))


def raising(error: Exception) -> Device:
    """Return a device that raises an error from its construction."""

    def device(_alone: Part) -> Values:
        raise error

    return device


Scales = NDArray[np.float32]

_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)

_OF_ONE = {"multiplier computed in float64": in_float64, "multiplier computed in float32": in_float32}
_OF_TWO = {
    **_OF_ONE,
    "multiplier computed in float32, the product of scales last": product_last,
    "multiplier of a product of scales in float32": of_float32_product,
}


def reals_of(model: Model) -> tuple[Mapping[str, RealScales], ...]:
    """Return the multipliers of a single operator, by the name of the field's value."""
    with np.errstate(all="ignore"):
        return tuple(_reals(_scales(model), _alpha(model)))


def _scales(model: Model) -> list[Scales]:
    """Return scales of the operator's codes, float32, inputs first."""
    graph = view(model)
    operator = graph.op(0)
    specs = [graph.tensors[t] for t in (*operator.inputs, *operator.outputs[:1]) if t >= 0]
    return [q.scale for spec in specs if spec.type in _CODES and (q := spec.quantization) is not None and q.scale.size]


def _alpha(model: Model) -> np.float32 | None:
    """Return the slope of LEAKY_RELU."""
    options = view(model).op(0).options
    alpha = None if options is None else options.get("alpha")
    return None if alpha is None else np.float32(alpha)


def _reals(scales: Sequence[Scales], alpha: np.float32 | None) -> Iterator[Mapping[str, RealScales]]:
    if len(scales) == 2:
        x, y = scales
        yield _forms(Quotient(x, None, y))
        if alpha is not None:
            yield _forms(Quotient(x, np.atleast_1d(alpha), y))
    if len(scales) == 3:
        a, b, y = scales
        yield _forms(Quotient(a, None, y))  # PRELU, for inputs above 0
        yield _forms(Quotient(a, b, y))


def _forms(scales: Quotient) -> Mapping[str, RealScales]:
    """Return the multipliers by name; those of one scale have no order."""
    return {name: form(scales) for name, form in (_OF_ONE if scales.b is None else _OF_TWO).items()}


def unchecked(profile: Profile) -> Profile:
    """Return the profile without SUB's check of zero points, which ADD and MUL do not have."""
    rows = profile.kernels.get("SUB", ())
    free = partial(prepare_general, sign=-1)
    loose = tuple(replace(row, prepare=free) for row in rows if row.prepare is sub.prepare_sub)
    return profile.derive(profile.name, kernels={"SUB": loose}) if loose else profile


def computation(part: Part, profile: Profile) -> Hashable:
    """Return the key of a part's first operator: profiles with equal keys compute equal bits.

    Rows that call subgraphs, or that are unknown before the model is bound, are unique to each profile; so are parts of
    several operators.
    """
    if len(part.graph.ops) > 1:
        return profile.name
    row = row_of(part, profile)
    if row is None or row.session or row.calls:
        return profile.name
    read = sorted(fields_read(row.prepare))
    return row.prepare, tuple((name, getattr(profile.arithmetic, name)) for name in read)


def row_of(part: Part, profile: Profile) -> Kernel | None:
    """Return the row that the profile's table has for the operator; None if it refuses it, or a type is unknown."""
    op = part.op
    inputs = op.input_specs
    types = [None if spec is None else spec.type for spec in inputs]
    output_types = [spec.type for spec in op.output_specs if spec is not None]
    known = [type_ for type_ in types if type_ is None or isinstance(type_, TensorType)]
    results = [type_ for type_ in output_types if isinstance(type_, TensorType)]
    if len(known) < len(types) or len(results) < len(output_types):
        return None
    sparse = tuple(i for i, spec in enumerate(inputs) if spec is not None and spec.sparsity is not None)
    return find(profile.kernels, op.name, op.version, known, results, sparse)


def read_as(x: Array, order: Sequence[int]) -> Array:
    """Return the elements in memory, read as an array whose axes have that order."""
    shape = [x.shape[i] for i in order]
    back = tuple(int(i) for i in np.argsort(order))
    return np.ascontiguousarray(np.ascontiguousarray(x).reshape(shape).transpose(back))


def stored_as(x: Array, order: Sequence[int]) -> Array:
    """Return the elements in memory of an array written in that order."""
    return np.ascontiguousarray(x.transpose(order)).reshape(x.shape)


def off_by_128(x: Array) -> Array:
    """Return 8-bit codes + 128, modulo 256; other types are unchanged."""
    return (x.view(np.uint8) ^ np.uint8(128)).view(x.dtype) if x.dtype.kind in "iu" and x.dtype.itemsize == 1 else x
