"""Mistakes in preparing inputs, and of the program around the model.

Mistakes in preparing an input: from the numbers that the user has to the codes that a device was fed.

Mistakes of the program around the model: results, classes or samples in another order, and results computed further.

The results of the profile are computed once. A mistake is an order or a function that makes them the saved ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import Any

import numpy as np

from tflq.comparison.evidence.dumps import dump_of
from tflq.comparison.evidence.inputs import codes, prepare, real_values, saturate
from tflq.comparison.inputs.prepare import Scaling
from tflq.comparison.inspection.difference import bits_of, digest_of
from tflq.diagnosis.mistakes.device import off_by_128, stored_as
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.model.ir.constants import Codec, codec_of
from tflq.typing import Array

#: Samples of an input, one array each.
Samples = Sequence[Array]
#: Means and standard deviations of stored numbers 0 to 255 that are in common use.
_IMAGENET = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
_PLAIN: tuple[tuple[Any, Any], ...] = ((0, 1), (0, 255), (127.5, 127.5), (128, 128), (127, 128), (0, 127.5))
_SCALINGS = (*_PLAIN, _IMAGENET)
#: From the real value, the scale and the zero point: numbers that are rounded otherwise, or not scaled.
_ROUNDED: tuple[tuple[str, Callable[[Array, Any, int], Array]], ...] = (
    ("truncated instead of rounded in host code", lambda r, s, z: np.trunc(r / s) + z),
    ("truncated instead of rounded in host code", lambda r, s, z: np.trunc(r / s + z)),
    ("rounded down instead of to the nearest in host code", lambda r, s, z: np.floor(r / s) + z),
    ("float values fed as codes", lambda r, _s, _z: np.trunc(r)),
    ("float values fed as codes", lambda r, _s, _z: np.rint(r)),
)
#: Formulas of host code in place of real / scale + zero point, from the real value, the scale and the zero point.
_FORMULAS: dict[str, Callable[[Array, Any, int], Array]] = {
    "the zero point was left out": lambda r, s, z: r / s,
    "the zero point was subtracted in place of added": lambda r, s, z: r / s - z,
    "the zero point was added a second time": lambda r, s, z: r / s + 2 * z,
    "multiplied by the scale instead of divided": lambda r, s, z: r * s + z,
    "multiplied by the scale instead of divided, without the zero point": lambda r, s, z: r * s,
    "quantized twice": lambda r, s, z: (r / s + z) / s + z,
    "the zero point was added before the division by the scale": lambda r, s, z: (r + z) / s,
    "the zero point was subtracted, as if codes were dequantized": lambda r, s, z: s * (r - z),
    "not scaled: the zero point was added to real values": lambda r, s, z: r + z,
}
#: Formulas of code that takes codes, which are right already, for real values.
_OF_CODES: dict[str, Callable[[Array, Any, int], Array]] = {
    "the zero point was added a second time": lambda c, s, z: c + z,
    "the zero point was subtracted from codes": lambda c, s, z: c - z,
    "quantized twice": lambda c, s, z: c / s + z,
    "codes were dequantized before they were fed": lambda c, s, z: s * (c - z),
}
#: The rival of results that were saved one sample late, or are always the same.
STALE = ", or the device kept them (stale)"
#: The name of inputs that nothing filled.
UNFILLED = "the input buffer was never filled, or holds one constant"


def mistaken(
    spec: TensorSpec, samples: Samples, scaling: Scaling | None, other: TensorSpec | None = None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield mistakes and what a device is fed by them. The first that reproduces a device's input is its cause.

    `other` is the first output, whose scale and zero point may have been taken.
    """
    codec = codec_of(spec)
    if codec is not None:
        yield from _of_other_sign(spec, samples, scaling)
        yield from _rounded(spec, codec, samples, scaling)
    for even in (False, True) if codec is not None else (False,):
        for name, moved in _move(samples):
            expected = prepare(spec, moved, scaling, even=even)
            if expected is not None:
                yield name, expected
        yield from _scale(spec, samples, even=even)
    yield from _unfilled(spec, samples, scaling)
    if codec is not None:
        yield from _by_formulas(spec, codec, samples, scaling, other)


def _by_formulas(
    spec: TensorSpec, codec: Codec, samples: Samples, scaling: Scaling | None, other: TensorSpec | None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield other formulas of host code, codes that wrap, parameters of the output, and other scalings with them."""
    scale, zero = np.float32(codec.scale), codec.zero
    real = real_values(spec, samples, scaling)
    if real is None:
        real = [scale * (v.astype(np.float32) - zero) for v in samples]
    parameters = {"": (scale, zero)}
    theirs = None if other is None else codec_of(other)
    if theirs is not None:
        taken = np.float32(theirs.scale), theirs.zero
        parameters["the output's scale and zero point were taken"] = taken
        parameters["the output's scale was taken"] = taken[0], zero
        parameters["the output's zero point was taken"] = scale, taken[1]
    for rounding in (_half_away, np.rint, np.trunc):
        for text, (s, z) in parameters.items():
            numbers = [rounding(v.astype(np.float32) / s) + z for v in real]
            if text:
                yield text, [saturate(spec, v) for v in numbers]
            yield from _wrapping(spec, text, numbers)
        codes_of = [saturate(spec, rounding(v.astype(np.float32) / scale) + zero) for v in real]
        both = [(*pair, real) for pair in _FORMULAS.items()] + [(*pair, codes_of) for pair in _OF_CODES.items()]
        for text, formula, source in both:
            numbers = [rounding(formula(v.astype(np.float32), scale, zero)) for v in source]
            yield text, [saturate(spec, v) for v in numbers]
            yield from _wrapping(spec, text, numbers)
    for mean, std in _SCALINGS:
        if not isinstance(mean, tuple):
            scaled = [Scaling.of(mean, std).apply(v).astype(np.float32) for v in samples]
            for text, formula in _FORMULAS.items():
                numbers = [_half_away(formula(v, scale, zero)) for v in scaled]
                yield (
                    f"wrong mean or std: {scaling_text(mean, std)} was fed, and {text}",
                    [saturate(spec, v) for v in numbers],
                )


def _half_away(values: Array) -> Array:
    rounded: Array = np.trunc(values + np.copysign(0.5, values))
    return rounded


def _wrapping(spec: TensorSpec, text: str, numbers: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield codes that wrap where they are not clamped, if some are beyond the type's range."""
    made = [_wrapped(spec, v) for v in numbers]
    if any(np.any(saturate(spec, v) != w) for v, w in zip(numbers, made, strict=True)):
        wraps = "values beyond the range were not clamped: codes wrap"
        yield f"{text}, and {wraps}" if text else wraps, made


def _wrapped(spec: TensorSpec, values: Array) -> Array:
    """Return values as codes of the tensor's type, modulo the size of the type."""
    carrier = CARRIER[TensorType(spec.type)]
    finite = np.nan_to_num(values, posinf=0.0, neginf=0.0).clip(-(2.0**62), 2.0**62)
    return finite.astype(np.int64).astype(carrier)


def constants(spec: TensorSpec, expected: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield inputs of one constant, as a buffer holds that nothing fills."""
    values: dict[float, str] = {0: "zeros"}
    codec = codec_of(spec)
    if codec is not None:
        ends: dict[float, str] = {
            codec.high: "the highest code",
            codec.low: "the lowest code",
            codec.zero: "the zero point",
        }
        values = {**ends, **values}
    for value, name in reversed(values.items()):
        yield f"{UNFILLED}: its input was {name} in every run", [np.full_like(v, value) for v in expected]


def _unfilled(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Iterator[tuple[str, list[Array]]]:
    """Yield inputs of one constant, and the first sample's input in every run."""
    expected = prepare(spec, samples, scaling)
    if expected is None:
        return
    yield from constants(spec, expected)
    if len(expected) > 1:
        name = f"the input buffer was written once only: every run gives the results of sample 0{STALE}"
        yield name, [expected[0]] * len(expected)


def _of_other_sign(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Iterator[tuple[str, list[Array]]]:
    """Yield bytes of the other sign, whose zero point lies 128 higher or lower."""
    name = "uint8 fed where int8 is expected"
    carrier = CARRIER[TensorType(spec.type)]
    if carrier.itemsize != 1:
        return
    if carrier == np.uint8:
        name = "int8 fed where uint8 is expected"
    for even in (False, True):
        right = prepare(spec, samples, scaling, even=even)
        if right is not None:
            yield name, [off_by_128(v).view(carrier) for v in right]
    if samples[0].dtype == np.uint8 and carrier == np.int8:
        yield name, [v.view(np.int8) for v in samples]
        yield name, [saturate(spec, v.astype(np.int16)) for v in samples]


def _move(samples: Samples) -> Iterator[tuple[str, list[Array]]]:
    """Yield orders of elements and of samples."""
    shape = samples[0].shape
    if len(shape) == 4 and shape[-1] == 3:
        yield "RGB and BGR exchanged", [v[..., ::-1] for v in samples]
    if len(shape) == 4 and shape[-1] > 1:
        yield "NCHW fed where NHWC is expected", [stored_as(v, (0, 3, 1, 2)) for v in samples]
    if len(shape) == 4 and shape[1] == shape[2]:
        yield "rows and columns exchanged", [v.transpose(0, 2, 1, 3) for v in samples]
    if len(samples) > 1:
        yield "off by one sample: the next one was fed", [*samples[1:], samples[0]]
        yield "off by one sample: the one before was fed", [samples[-1], *samples[:-1]]


def _rounded(
    spec: TensorSpec, codec: Codec, samples: Samples, scaling: Scaling | None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield other roundings of the division by the scale, and real values that were taken for codes."""
    real = real_values(spec, samples, scaling)
    for name, form in _ROUNDED if real is not None else ():
        yield (
            name,
            [saturate(spec, form(v.astype(np.float32), np.float32(codec.scale), codec.zero)) for v in real or ()],
        )


def _scale(spec: TensorSpec, samples: Samples, *, even: bool) -> Iterator[tuple[str, list[Array]]]:
    """Yield other means and standard deviations."""
    channels = samples[0].shape[-1] if samples[0].ndim else 1
    for mean, std in _SCALINGS:
        if isinstance(mean, tuple) and channels != len(mean):
            continue
        scaling = Scaling.of(mean, std)
        values = [scaling.apply(v) for v in samples]
        has_codes = codec_of(spec) is not None
        fed = [codes(spec, v, even=even) if has_codes else v.astype(np.float32) for v in values]
        yield f"wrong mean or std: {scaling_text(mean, std)} was fed", fed


def scaling_text(mean: Any, std: Any) -> str:
    """Return mean and standard deviation, a number each or one for each channel."""
    return f"mean {_text(mean)}, std {_text(std)}"


def _text(number: Any) -> str:
    return ",".join(f"{n:g}" for n in number) if isinstance(number, tuple) else f"{number:g}"


Arrays = Mapping[int, Array]
#: A mistake's name, and the arrays without it.
Corrected = tuple[str, list[dict[int, Array]]]
#: Results that are no whole codes, but as near to the right ones as a float model's.
FLOATS = "the outputs are those of the float model, before quantization: `tflq compare` compares them with this file"
#: Correlation and largest mean difference, in LSB, of a float model's results.
_CORRELATED, _LSB = 0.95, 4.0
#: Largest relative and absolute distance of floats that a program computed.
_RELATIVE, _ABSOLUTE = 1e-3, 2e-5
#: Largest rank of results that are classes.
_VECTORS = 2
#: Number of orders of inputs or outputs that are tried.
_ORDERS = 24


def _softmax(real: Array) -> Array:
    raised = np.exp(real - real.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


#: Functions that a program applies to results, by name.
FURTHER: dict[str, Callable[[Array], Array]] = {
    "softmax applied again by the program": _softmax,
    "logarithm of a softmax applied by the program": lambda r: np.log(_softmax(r)),
    "sigmoid applied again by the program": lambda r: 1 / (1 + np.exp(-r)),
    "logarithm applied by the program": np.log,
    "results divided by their sum by the program": lambda r: r / r.sum(-1, keepdims=True),
    "results divided by their largest by the program": lambda r: r / r.max(-1, keepdims=True),
    "results divided by their norm by the program": lambda r: r / np.linalg.norm(r, axis=-1, keepdims=True),
    "results turned into percent by the program": lambda r: r * 100,
    "one less each result, by the program": lambda r: 1 - r,
    "results with the other sign": lambda r: -r,
}


def rearranged(model: Model, samples: Sequence[Arrays], profile: Profile) -> Iterator[Corrected]:
    """Yield mistakes and the arrays without them. Samples that lack an input, or do not run, yield none."""
    graph = view(model)
    if any(t not in one for one in samples for t in graph.inputs):
        return
    yield from _exchanged(model, samples, graph.inputs, "inputs")
    for tensor in graph.inputs:
        held, spec = [one[tensor] for one in samples], graph.tensors[tensor]
        for name, values in constants(spec, held):
            which = f" ({spec.name or tensor})" if len(graph.inputs) > 1 else ""
            yield name + which, [{**one, tensor: value} for one, value in zip(samples, values, strict=True)]
    yield from _exchanged(model, samples, graph.outputs, "outputs")
    try:
        plan = make_plan(model, profile)
        fed = [dump_of(model, {t: one[t] for t in graph.inputs}).tensors for one in samples]
        right = [run(plan, inputs).values for inputs in fed]
    except (TflqError, ValueError):
        return
    yield from _further(model, samples, right)
    try:
        seen = [dump_of(model, one).tensors for one in samples]
    except (TflqError, ValueError):
        return
    yield from _of_samples(model, seen, right)
    yield from _of_classes(model, seen, right)


def _exchanged(model: Model, samples: Sequence[Arrays], tensors: Sequence[int], word: str) -> Iterator[Corrected]:
    """Yield the same arrays with inputs, or outputs, of one shape and type in another order.

    Two inputs of one operator are left out: the device may have exchanged its operands.
    """
    graph, specs = view(model), view(model).tensors
    held = [t for t in tensors if all(t in one for one in samples)]
    if any(len(set(op.inputs) & set(held)) > 1 for op in graph.ops):
        return
    for order in islice(permutations(held), 1, _ORDERS):
        pairs = [(a, b) for a, b in zip(held, order, strict=True) if a != b]
        if all((specs[a].shape, specs[a].type) == (specs[b].shape, specs[b].type) for a, b in pairs):
            names = ", ".join(f"{specs[b].name or b} for {specs[a].name or a}" for a, b in pairs)
            moved = [{**one, **{b: one[a] for a, b in pairs}} for one in samples]
            yield f"{word} exchanged, in another order: {names}", moved


def _of_samples(model: Model, seen: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield the samples in the order in which their results were saved, if each is the right one of another."""
    outputs = [t for t in view(model).outputs if all(t in one for one in seen)]
    places: dict[bytes, list[int]] = defaultdict(list)
    for k, one in enumerate(right):
        places[digest_of(one[t] for t in outputs)].append(k)
    keys = [digest_of(one[t] for t in outputs) for one in seen]
    if not outputs or len(places) < len(right) or set(keys) != set(places):
        return
    order = [places[key][0] for key in keys]
    if order != list(range(len(order))):
        back = np.argsort(order)
        made = [
            {t: seen[back[k]].get(t, v) if t not in view(model).inputs else v for t, v in one.items()}
            for k, one in enumerate(seen)
        ]
        yield f"samples in another order: the results saved are those of samples {_listed(order)}", made


def _of_classes(model: Model, seen: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield a vector of results with its elements in another order, the same in all samples.

    The order of an image's elements may be the device's: tflq/diagnosis/faults names it.
    """
    for tensor in view(model).outputs:
        every = [(one.get(tensor), good[tensor]) for one, good in zip(seen, right, strict=True)]
        pairs = [(o, g) for o, g in every if o is not None and o.shape == g.shape and 0 < g.ndim <= _VECTORS]
        order = _order(pairs) if len(pairs) == len(every) else None
        if order is not None:
            moved = [{**one, tensor: one[tensor].take(np.argsort(order), -1)} for one in seen]
            yield f"classes (elements of the output) in another order: {_listed(order)}, a permutation", moved


def _order(pairs: Sequence[tuple[Array, Array]]) -> list[int] | None:
    """Return the right element in each place of the last axis; None if there is no such order, or if it is right."""
    seen, right = ([np.asarray(pair[k]) for pair in pairs] for k in (0, 1))
    here, there = (np.concatenate([np.reshape(v, (-1, v.shape[-1])) for v in some]).T for some in (seen, right))
    places: dict[bytes, list[int]] = defaultdict(list)
    for k in reversed(range(len(there))):
        places[bits_of(there[k])].append(k)
    order = []
    for k in range(len(here)):
        known = places.get(bits_of(here[k]))
        if not known:
            return None
        order.append(known.pop(known.index(k) if k in known else -1))
    return None if order == list(range(len(order))) else order


def _listed(order: Sequence[int]) -> str:
    return ", ".join(map(str, order[:16])) + (", ..." if len(order) > 16 else "")


def _further(model: Model, samples: Sequence[Arrays], right: Sequence[Arrays]) -> Iterator[Corrected]:
    """Yield functions of the right results that give the saved floats, and a float model's results."""
    graph = view(model)
    outputs = [t for t in graph.outputs if all(t in one for one in samples)]
    if not outputs or any(
        one[t].dtype.kind != "f" or one[t].shape != good[t].shape
        for one, good in zip(samples, right, strict=True)
        for t in outputs
    ):
        return
    pairs: list[tuple[Array, Array, float]] = []
    for t in outputs:
        codec = codec_of(graph.tensors[t])
        scale = 0.0 if codec is None else codec.scale
        for one, good in zip(samples, right, strict=True):
            real = codec.reals(good[t]) if codec is not None and scale else good[t].astype(np.float64)
            pairs.append((one[t].astype(np.float64), real, scale))
    fixed = [{**one, **{t: good[t] for t in outputs}} for one, good in zip(samples, right, strict=True)]
    if all(np.ptp(v) == 0 for v, _, _ in pairs) or not all(np.isfinite(v).all() for v, _, _ in pairs):
        return
    saved, due = (np.concatenate([np.ravel(pair[k]) for pair in pairs]) for k in (0, 1))
    far = max((float(np.abs(v - real).mean() / scale) for v, real, scale in pairs if scale), default=np.inf)
    with np.errstate(all="ignore"):
        names = [
            name
            for name, function in FURTHER.items()
            if all(np.allclose(function(real), v, _RELATIVE, _ABSOLUTE) for v, real, _ in pairs)
        ]
        if far <= _LSB and not _are_codes(pairs) and np.corrcoef(saved, due)[0, 1] >= _CORRELATED:
            names.append(FLOATS)
    yield from ((name, fixed) for name in names)


def _are_codes(pairs: Sequence[tuple[Array, Array, float]]) -> bool:
    """Return whether most values lie as whole steps from the right ones."""
    steps = np.concatenate([((v - real) / scale).reshape(-1) for v, real, scale in pairs if scale])
    return bool(np.mean(np.abs(steps - np.rint(steps)) < 0.01) > 0.5)
