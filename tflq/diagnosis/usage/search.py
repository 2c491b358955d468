"""Search the user's mistake: the one under which a profile reproduces the device's results.

Mistakes in reading a device's tensors: the arrays of a dump, and what they hold if one was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tflq.comparison.evidence.dumps import Dump, dump_of
from tflq.comparison.evidence.inputs import prepare, scaling_of
from tflq.comparison.inputs.prepare import Scaling
from tflq.comparison.inspection.difference import digest_of
from tflq.comparison.results import Located, Status, status_of
from tflq.diagnosis.localization import localize_samples
from tflq.diagnosis.mistakes.device import off_by_128, read_as
from tflq.diagnosis.usage.inputs import FLOATS, STALE, UNFILLED, mistaken, rearranged, scaling_text
from tflq.engine.kernels.checks import code_limits
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.model.ir.constants import codec_of
from tflq.typing import Array

#: The arrays of one run, by tensor.
#: Codes, from floats and the scales and zero points of the tensor and of the input.
Formula = Callable[[Array, float, int, float, int], Array]
#: Formulas of programs in place of scale * (code - zero point), undone.
_FORMULAS: dict[str, Formula] = {
    "dequantized twice": lambda v, s, z, _s, _z: (v / s + z) / s + z,
    "dequantized without the zero point": lambda v, s, z, _s, _z: v / s,
    "dequantized with the wrong sign of the zero point": lambda v, s, z, _s, _z: v / s - z,
    "dequantized with the input's scale and zero point": lambda v, s, z, si, zi: v / si + zi,
    "dequantized with the input's scale": lambda v, s, z, si, _z: v / si + z,
    "dequantized with the input's zero point": lambda v, s, z, _s, zi: v / s + zi,
    "divided by the scale instead of multiplied": lambda v, s, z, _s, _z: v * s + z,
    "the zero point subtracted after the multiplication by the scale": lambda v, s, z, _s, _z: (v + z) / s,
    "codes in floats, not dequantized": lambda v, s, z, _s, _z: v,
    "codes less the zero point, not multiplied by the scale": lambda v, s, z, _s, _z: v + z,
    "dequantized with a scale of 1/255": lambda v, s, z, _s, _z: v * 255 + z,
    "dequantized with a scale of 1/256": lambda v, s, z, _s, _z: v * 256 + z,
    "dequantized with a scale of 1/128": lambda v, s, z, _s, _z: v * 128 + z,
    "codes divided by 255": lambda v, s, z, _s, _z: v * 255,
    "codes divided by 128": lambda v, s, z, _s, _z: v * 128,
}
#: Maximum distance of a value from a whole code, in LSB.
_NEAR = 0.02


def correct(model: Model, samples: Sequence[Arrays]) -> Iterator[tuple[str, list[dict[int, Array]]]]:
    """Yield mistakes and the arrays without them, if the arrays can hold that mistake."""
    computed = set(view(model).last_writers)
    for name, undo in _OF_TENSORS:
        for of in (set(samples[0]), set(samples[0]) & computed):
            fixed = [_undone(model, arrays, undo, of) for arrays in samples]
            if any(one is not None for one in fixed):
                yield name, [dict(arrays) if one is None else one for arrays, one in zip(samples, fixed, strict=True)]
    if len(samples) > 1:
        for word, step in (("next", -1), ("one before", 1)):
            name = f"off by one sample: results of the {word} were saved{STALE if step == 1 else ''}"
            for of in (computed, set(view(model).outputs)):
                moved = samples[step:], samples[:step]
                others = [*moved[0], *moved[1]]
                yield name, [_results_of(arrays, other, of) for arrays, other in zip(samples, others, strict=True)]


def _results_of(arrays: Arrays, other: Arrays, computed: set[int]) -> dict[int, Array]:
    return {t: other[t] if t in computed and t in other else value for t, value in arrays.items()}


def _undone(model: Model, arrays: Arrays, undo: Any, of: set[int]) -> dict[int, Array] | None:
    """Return the arrays with the mistake undone wherever it applies; None if it applies nowhere."""
    graph = view(model)
    source = graph.tensors[graph.inputs[0]] if graph.inputs else None
    undone = {t: undo(graph.tensors[t], v, source) for t, v in arrays.items() if t in of}
    found: dict[int, Array] = {t: v for t, v in undone.items() if v is not None}
    return {**arrays, **found} if found else None


def _other_sign(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return bytes of the other signedness with the zero point moved by 128."""
    carrier = CARRIER[TensorType(spec.type)]
    if carrier.itemsize != 1 or value.dtype.kind not in "iu" or value.dtype.itemsize != 1:
        return None
    return off_by_128(value).view(carrier)


def _other_bytes(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return the same bytes in the tensor's type."""
    carrier = CARRIER[TensorType(spec.type)]
    is_other = value.dtype.kind in "iu" and value.dtype != carrier and value.dtype.itemsize == carrier.itemsize
    return value.view(carrier) if is_other else None


def _by_formula(formula: Formula, spec: TensorSpec, value: Array, source: TensorSpec | None) -> Array | None:
    """Return the codes from which a formula made floats; None if they are no whole codes."""
    codec = codec_of(spec)
    if value.dtype.kind != "f" or codec is None:
        return None
    other = codec_of(source) if source is not None else None
    other = other or codec
    with np.errstate(all="ignore"):
        return _whole(spec, formula(value.astype(np.float64), codec.scale, codec.zero, other.scale, other.zero))


def _whole(spec: TensorSpec, codes: Array) -> Array | None:
    whole = np.rint(codes)
    low, high = code_limits(TensorType(spec.type))
    is_whole = codes.size and np.isfinite(codes).all() and np.abs(codes - whole).max() <= _NEAR
    if not is_whole or whole.min() < low or whole.max() > high:
        return None
    return whole.astype(CARRIER[TensorType(spec.type)])


def _from_nchw(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return channels last of elements that were written channels first."""
    if len(spec.shape) != 4 or value.size != int(np.prod(spec.shape)) or min(spec.shape) < 1 or spec.shape[-1] < 2:
        return None
    return read_as(value.reshape(spec.shape), (0, 3, 1, 2))


def _columns_first(spec: TensorSpec, value: Array, _source: TensorSpec | None) -> Array | None:
    """Return rows of elements that were written column by column."""
    if len(spec.shape) < 2 or value.size != int(np.prod(spec.shape)) or value.size in spec.shape:
        return None
    return read_as(value.reshape(spec.shape), range(len(spec.shape))[::-1])


_OF_TENSORS = (
    ("uint8 codes read as int8, or int8 as uint8", _other_sign),
    ("bytes saved in a type of the other sign", _other_bytes),
    *((name, partial(_by_formula, formula)) for name, formula in _FORMULAS.items()),
    ("transposed dump: NCHW instead of NHWC", _from_nchw),
    ("transposed dump: columns first", _columns_first),
)


Arrays = Mapping[int, Array]
#: Samples on which a mistake is tried.
_SAMPLES = 4
#: Shares of differing elements: of the worst operator with a mistake, and of all operators at most without it.
_WRONG, _RIGHT = 0.05, 0.005
#: Roundings make at most this many LSB; shares of elements beyond that without a mistake, and how many times fewer.
_LSB, _STILL_FAR, _NEARER = 4, 0.35, 1.5
#: Number of mistakes that are combined with others.
_FEW = 3
#: Numbers of elements that a mistake explains: for a certain one, and for a likely one.
_CERTAIN, _LIKELY = 12, 3


class UserSide(str, Enum):
    """The place of a mistake."""

    INPUT = "input"
    DUMP = "dump"


@dataclass(frozen=True, slots=True, eq=False)
class Mistake:
    """A mistake of the user. With it `before` of `elements` differ from the profile, without it `after`.

    `also` are other mistakes that explain as much. `dumps` are the device's runs without the mistake: with the input
    that it was fed, or with the values that it computed. `expected` are the inputs that the model expects, by `scaling`
    if the user's numbers were scaled.
    """

    name: str
    side: UserSide
    before: int
    after: int
    elements: int
    dumps: tuple[Dump, ...] = ()
    also: tuple[str, ...] = ()
    expected: tuple[Array, ...] = ()
    scaling: str = ""

    @property
    def is_known(self) -> bool:
        """True if the device's input is known, so that inputs were compared, not results."""
        return self.side == UserSide.INPUT and not self.dumps

    @property
    def is_open(self) -> bool:
        """True if the device may have kept its results: a late file holds the last sample's in the first place."""
        return self.name.endswith(STALE) and (self.after > 0 or self.side == UserSide.INPUT)

    @property
    def is_certain(self) -> bool:
        """True if nothing else explains as much, and a chance hit is unlikely.

        A float model's results are only near, and an operator without its weights ignores its input, too.
        """
        is_doubted = self.name == FLOATS or self.name.startswith(UNFILLED) or self.is_open
        return not self.after and not self.also and self.before >= _CERTAIN and not is_doubted


@dataclass(frozen=True, slots=True)
class Wrong:
    """The number of elements that differ from a profile, of those compared; the share in the worst operator.

    `far` is the share of elements that differ by more than roundings make.
    """

    differing: int
    elements: int
    worst: float = 1.0
    far: float = 1.0

    @property
    def share(self) -> float:
        """The share of elements that differ; 1 if nothing was compared."""
        return self.differing / self.elements if self.elements else 1.0


def find_mistake(
    model: Model,
    samples: Sequence[Arrays],
    profile: Profile,
    given: Sequence[Array] = (),
    scaling: Scaling | None = None,
) -> Mistake | None:
    """Return the mistake that explains a dump's differences from a profile; None if there is none.

    `given` are the numbers that the user has for the only input, one array for each sample: pixels, real values or
    codes. Without them only mistakes in reading the device's tensors are tried.
    """
    graph = view(model)
    if given and len(graph.inputs) == 1 and len(given) == len(samples):
        spec, tensor = graph.tensors[graph.inputs[0]], graph.inputs[0]
        used = scaling_of(spec, given, scaling)
        stated = "" if used is None else scaling_text(_plain(used.mean), _plain(used.std))
        rights = [right for even in (False, True) if (right := prepare(spec, given, scaling, even=even)) is not None]
        trials = mistaken(spec, given, scaling, _first_output(model))
        if all(tensor in one for one in samples):
            found = _of_known_input([one[tensor] for one in samples], rights, trials)
            if found is not None:
                return replace(found, scaling=stated)
        elif rights:
            right = min(rights, key=lambda values: _badness(_wrong(model, _with(samples, tensor, values), profile)))
            fed = [(name, _with(samples, tensor, values)) for name, values in _distinct(trials)]
            found = _tried(model, _with(samples, tensor, right), fed, profile, UserSide.INPUT, right)
            if found is not None:
                return replace(found, scaling=stated)
            samples = _with(samples, tensor, right)
    undone = chain(correct(model, samples), rearranged(model, samples, profile))
    read = _tried(model, samples, undone, profile, UserSide.DUMP)
    return read or _reuse(model, samples, profile)


def near_mistakes(
    model: Model,
    samples: Sequence[Arrays],
    profile: Profile,
    given: Sequence[Array] = (),
    scaling: Scaling | None = None,
) -> Iterator[Mistake]:
    """Yield the mistakes without which a dump comes much nearer to a profile than with them, the nearest first.

    What differs then is for others to explain: another profile, or a mistake of the device.
    """
    graph = view(model)
    side, trials = UserSide.DUMP, correct(model, samples)
    plain, rights = samples, list[Array]()
    if given and len(graph.inputs) == 1 and len(given) == len(samples):
        spec, tensor = graph.tensors[graph.inputs[0]], graph.inputs[0]
        right = prepare(spec, given, scaling)
        if right is not None and not any(tensor in one for one in samples):
            plain, rights = _with(samples, tensor, right), right
            fed = _distinct(mistaken(spec, given, scaling, _first_output(model)))
            both = ((name, _with(samples, tensor, values)) for name, values in fed)
            yield from _nearest(model, plain, both, profile, UserSide.INPUT, rights)
            trials = correct(model, plain)
    yield from _nearest(model, plain, trials, profile, side, rights)


def _nearest(
    model: Model,
    plain: Sequence[Arrays],
    trials: Iterable[tuple[str, Sequence[Arrays]]],
    profile: Profile,
    side: UserSide,
    right: Sequence[Array],
) -> Iterator[Mistake]:
    before = _wrong(model, plain, profile)
    if before is not None and before.far < _WRONG:
        return
    found, first_of = [], _first_sample(model, profile)
    for name, values in trials:
        first = first_of(values)
        if first is None or first.far > 2 * _STILL_FAR:
            continue
        after = _wrong(model, values, profile)
        is_near = after is not None and after.elements and after.far <= _STILL_FAR
        if after is not None and is_near and (before is None or after.far * _NEARER < before.far):
            found.append((after.far, after.differing, name, values))
    for _, differing, name, values in sorted(found, key=lambda one: one[:2])[:_FEW]:
        dumps = tuple(dump_of(model, one) for one in values)
        elements = 0 if before is None else before.elements
        count = elements if before is None else before.differing
        yield Mistake(name, side, count, differing, elements, dumps, (), tuple(right))


def _first_output(model: Model) -> TensorSpec | None:
    graph = view(model)
    return graph.tensors[graph.outputs[0]] if graph.outputs else None


def _plain(numbers: tuple[float, ...]) -> float | tuple[float, ...]:
    return numbers[0] if len(numbers) == 1 else numbers


def _reuse(model: Model, samples: Sequence[Arrays], profile: Profile) -> Mistake | None:
    """Return the mistake of reading a tensor after a later one took its memory; None if no tensor shows it."""
    try:
        located = localize_samples(model, [dump_of(model, one) for one in samples[:_SAMPLES]], profile)
    except (TflqError, ValueError):
        return None
    taken = {t: other for row in located for o in row for t, other in o.overwritten.items()}
    if not taken:
        return None
    tensor, other = next(iter(taken.items()))
    elements = sum(one[t].size for one in samples for t in taken if t in one)
    name = f"reused arena memory: the dump holds tensor {other} in place of tensor {tensor}"
    return Mistake(name, UserSide.DUMP, elements, 0, elements, (), _skip(model, tensor, other))


def _skip(model: Model, tensor: int, other: int) -> tuple[str, ...]:
    """Return the rival where both hold the same bytes: an operator that was skipped left its input unchanged."""
    graph = view(model)
    maker = graph.maker(other)
    if tensor not in graph.inputs or maker is None or tensor not in maker.inputs:
        return ()
    return (f"operator {maker.index} {maker.name} was skipped: its output holds its input unchanged",)


def _with(samples: Sequence[Arrays], tensor: int, values: Sequence[Array]) -> list[dict[int, Array]]:
    return [{**one, tensor: value} for one, value in zip(samples, values, strict=True)]


def _badness(wrong: Wrong | None) -> float:
    return 1.0 if wrong is None else wrong.share


def _distinct(trials: Iterator[tuple[str, list[Array]]]) -> Iterator[tuple[str, list[Array]]]:
    """Yield the trials of a name with other values than those before it."""
    seen = set()
    for name, values in trials:
        key = name, digest_of(values)
        if key not in seen:
            seen.add(key)
            yield name, values


def _of_known_input(
    got: Sequence[Array], rights: Sequence[Sequence[Array]], trials: Iterator[tuple[str, list[Array]]]
) -> Mistake | None:
    """Return the mistake by which the dump's input follows from the user's numbers."""
    if not rights or any(_apart(got, right) == 0 for right in rights):
        return None
    right = min(rights, key=lambda values: _apart(got, values))
    elements = sum(value.size for value in got)
    names = [name for name, fed in trials if _apart(got, fed) == 0]
    others = tuple(dict.fromkeys(name for name in names if name != names[0]))
    name = names[0] if names else "the device was fed with other numbers than the given inputs"
    return Mistake(name, UserSide.INPUT, _apart(got, right), 0, elements, (), others, tuple(right))


def _apart(some: Sequence[Array], others: Sequence[Array]) -> int:
    """Return the number of elements that differ."""
    total = 0
    for one, other in zip(some, others, strict=True):
        total += int(np.count_nonzero(one != other)) if one.shape == other.shape else one.size
    return total


def _tried(
    model: Model, samples: Sequence[Arrays], trials: Any, profile: Profile, side: UserSide, right: Sequence[Array] = ()
) -> Mistake | None:
    """Return the mistake without which fewest elements differ; None if it does not explain the difference."""
    plain = _wrong(model, samples, profile)
    if plain is not None and (plain.worst < _WRONG or is_flat(model, samples)):
        return None
    found, first_of = list[tuple[Wrong, str, Any]](), _first_sample(model, profile)
    for name, values in trials:
        first = first_of(values)
        if first is None or first.differing > _RIGHT * first.elements * _SAMPLES:
            continue  # the others cannot make up for it
        outcome = first if len(values) == 1 else _wrong(model, values, profile)
        if outcome is not None and outcome.elements and outcome.share <= _RIGHT and outcome.worst < _WRONG:
            found.append((outcome, name, values))
    if not found:
        return None
    best, name, values = min(found, key=lambda one: one[0].differing)
    if len(samples) > _SAMPLES:
        whole = _wrong(model, values, profile, None)
        plain = None if plain is None else _wrong(model, samples, profile, None)
        best = best if whole is None else whole
    before = best.elements if plain is None else plain.differing
    if before - best.differing < _LIKELY or (plain is not None and best.elements < plain.elements):
        return None
    least = min(one[0].differing for one in found)
    also = tuple(dict.fromkeys(n for o, n, _ in found if o.differing == least and n != name))
    dumps = tuple(dump_of(model, one) for one in values)
    return Mistake(name, side, before, best.differing, best.elements, dumps, also, tuple(right))


def _first_sample(model: Model, profile: Profile) -> Callable[[Sequence[Arrays]], Wrong | None]:
    """Return `_wrong` of the first sample, computed once for equal values: many mistakes give the same."""
    known: dict[tuple[tuple[int, ...], bytes], Wrong | None] = {}

    def wrong(values: Sequence[Arrays]) -> Wrong | None:
        key = tuple(values[0]), digest_of(values[0].values())
        if key not in known:
            known[key] = _wrong(model, values, profile, 1)
        return known[key]

    return wrong


def is_flat(model: Model, samples: Sequence[Arrays]) -> bool:
    """Return whether no output has two values, in all samples: then many mistakes may explain the outputs."""
    values = (
        np.unique(np.concatenate([np.ravel(one[t]) for one in samples if t in one] or [np.zeros(0)]))
        for t in view(model).outputs
    )
    return all(len(every) < 2 for every in values)


def _wrong(model: Model, samples: Sequence[Arrays], profile: Profile, count: int | None = _SAMPLES) -> Wrong | None:
    """Return the number of elements that differ in the first samples; None if the values do not fit the model."""
    try:
        dumps = [dump_of(model, one) for one in samples[:count]]
        located = localize_samples(model, dumps, profile)
    except (TflqError, ValueError):
        return None
    counts = [_of_operator(row[index] for row in located) for index in range(len(located[0]))]
    worst = max((differing / elements for differing, elements in counts if elements), default=0.0)
    elements = sum(elements for _, elements in counts)
    far = sum(_far(row[index]) for row in located for index in range(len(row)))
    return Wrong(sum(differing for differing, _ in counts), elements, worst, far / elements if elements else 1.0)


def _far(located: Located) -> int:
    """Return the number of elements that differ by more than a few LSB; of floats, all that differ."""
    total = 0
    for tensor, d in located.differences.items():
        if status_of(d, located.promises[tensor]) == Status.DIFFERS:
            near = sum(n for by, n in d.histogram if abs(by) <= _LSB) if d.unit == "LSB" else 0
            total += d.elements if d.problem else d.differing - near
    return total


def _of_operator(samples: Iterable[Located]) -> tuple[int, int]:
    """Return the differing and the compared elements of one operator in all samples."""
    pairs = [(d, o.promises[t]) for o in samples for t, d in o.differences.items()]
    wrong = [d for d, promise in pairs if status_of(d, promise) == Status.DIFFERS]
    return sum(d.elements if d.problem else d.differing for d in wrong), sum(d.elements for d, _ in pairs)
