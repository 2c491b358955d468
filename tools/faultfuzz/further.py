"""Further faults: inputs read in another order, skipped operators, blocks lost before they were read, float kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from device.mistakes import MISTAKES, Mistake, both
from device.operators import compute, has
from device.runtimes import as_computed_by
from faultfuzz.arithmetic import _pattern, planted_at
from faultfuzz.memory import _sites
from faultfuzz.planted import Array, Kind, Planted, Run, Values
from tflq.engine.api.many import part_of
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import view


def _with_input(run: Run, index: int, position: int, changed: list[Array]) -> list[Array] | None:
    """Return the results of an operator on changed inputs."""
    tensor, found = view(run.model).op(index).inputs[position], []
    for values, x in zip(run.samples, changed, strict=True):
        try:
            part = part_of(run.model, (index,), {**values, tensor: x})
            found.append(part.run(part.plan(by_name(run.profile)))[run.output(index)])
        except TflqError:
            return None
    return found


_ORDERS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "upside down": (lambda x: x[:, ::-1], r"reverse|rotated"),
    "mirrored": (lambda x: x[:, :, ::-1], r"reverse|rotated"),
    "one row late": (lambda x: np.roll(x, 1, 1), r"late|early|shifted|misplaced"),
    "one column early": (lambda x: np.roll(x, -1, 2), r"late|early|shifted|misplaced"),
    "transposed": (lambda x: x.transpose(0, 3, 1, 2).reshape(x.shape), r"NCHW|NWHC|transposed|read as|stored as"),
    "channels reversed": (lambda x: x[..., ::-1], r"reverse|BGR"),
}


def misread(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant an image that one operator reads in another order."""
    name = str(rng.choice(list(_ORDERS)))
    change, words = _ORDERS[name]
    for index in _sites(run, rng, 24):
        operator = view(run.model).op(index)
        x = [values.get(operator.inputs[0]) for values in run.samples]
        if any(one is None or one.ndim != 4 or min(one.shape[1:]) < 2 or one.shape[1] < 4 for one in x):
            continue
        results = _with_input(run, index, 0, [np.ascontiguousarray(change(one)) for one in x if one is not None])
        own = [values[run.output(index)] for values in run.samples]
        if results is None or any(a.shape != b.shape for a, b in zip(results, own, strict=True)):
            continue
        if sum(int((a != b).sum()) for a, b in zip(results, own, strict=True)) < 24:
            continue
        samples = run.kept(run.with_result(index, results), whole=True)
        kind = "input read in another order"
        return Planted(kind, "addressing", run.model, run.path, run.profile, index, samples, (words,))
    return None


def skipped(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant an operator that was not run: its output holds its input, as when both share memory."""
    for index in _sites(run, rng, 16):
        operator = view(run.model).op(index)
        x = [values.get(operator.inputs[0]) for values in run.samples]
        own = [values[run.output(index)] for values in run.samples]
        if any(a is None or a.shape != b.shape or a.dtype != b.dtype for a, b in zip(x, own, strict=True)):
            continue
        results = [one.copy() for one in x if one is not None]
        if sum(int((a != b).sum()) for a, b in zip(results, own, strict=True)) < 12:
            continue
        samples = run.kept(run.with_result(index, results), whole=True)
        words = (r"skipped|unchanged|no activation",)
        return Planted("operator skipped", "omission", run.model, run.path, run.profile, index, samples, words)
    return None


def lost_before(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a block that was overwritten before later operators read it."""
    for index in _sites(run, rng, 64):
        own = [values[run.output(index)] for values in run.samples]
        size = own[0].size
        length = int(size * rng.uniform(0.1, 0.5))
        start = int(rng.integers(0, size - length))
        results = []
        for value in own:
            changed = value.copy()
            changed.reshape(-1)[start : start + length] = rng.integers(-100, 100, length).astype(value.dtype)
            results.append(changed)
        samples = run.kept(run.with_result(index, results), whole=True)
        words = (r"block|overwrit|not written|(first|last) \d+",)
        return Planted(
            "overwritten before it was read", "memory", run.model, run.path, run.profile, index, samples, words
        )
    return None


def pair(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant two mistakes of a device in one operator."""
    for _ in range(8):
        first, second = (MISTAKES[int(i)] for i in rng.integers(0, len(MISTAKES), 2))
        if first.changes.keys() & second.changes.keys() or first is second:
            continue
        found = planted_at(run, rng, both(first, second))
        if found is not None and not _both_show(run, found, first, second):
            continue
        if found is not None:
            one, other = (_pattern(m.name).replace("$", "") for m in (first, second))
            words = (rf"({one}).*; and .*({other})", rf"({other}).*; and .*({one})")
            return Planted("two mistakes", "combination", *_rest(found), words)
    return None


def _both_show(run: Run, found: Planted, first: Mistake, second: Mistake) -> bool:
    """Return whether each mistake alone gives other results than both, in many elements."""
    site = run.site(found.index)
    right = None if site is None else as_computed_by(run.profile, site)
    if site is None or right is None:
        return False
    for alone in (first, second):
        made = [compute(site, alone.made_by(right), values) for values in run.samples]
        pairs = zip(made, found.samples, strict=True)
        if (
            sum(int((a != b[site.output.tensor]).sum()) for a, b in pairs if a.shape == b[site.output.tensor].shape)
            < 12
        ):
            return False
    return True


def _rest(found: Planted):  # type: ignore[no-untyped-def]
    return found.model, found.path, found.profile, found.index, found.samples


def nchw_and_once(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a dump of images in the order NCHW, from a device that rounds once."""
    from faultfuzz.arithmetic import _once_everywhere

    samples = _once_everywhere(run)
    outputs = view(run.model).outputs
    if samples is None or any(samples[0][t].ndim != 4 or min(samples[0][t].shape[1:]) < 2 for t in outputs):
        return None
    if all(np.array_equal(a[t], b[t]) for a, b in zip(samples, run.samples, strict=True) for t in outputs):
        return None
    written: list[Values] = []
    for one in samples:
        stored = {t: np.ascontiguousarray(one[t].transpose(0, 3, 1, 2)).reshape(one[t].shape) for t in outputs}
        written.append({**one, **stored})
    kept = run.kept(written, whole=False)
    words = (r"(NCHW|transposed).{0,400}(single.rounding|rounds once|half up|the bits of)",)
    return Planted(
        "NCHW dump and single rounding", "combination", run.model, run.path, run.profile, -1, kept, words, (), False
    )


def float_bias(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a float contraction without its bias, in NumPy: the right result less the bias."""
    for index in _sites(run, rng, 12):
        operator = view(run.model).op(index)
        site = run.site(index)
        own = [values[run.output(index)] for values in run.samples]
        if (
            site is None
            or own[0].dtype != np.float32
            or operator.builtin not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
        ):
            continue
        bias = site.inputs[2].value if len(site.inputs) > 2 and site.inputs[2] is not None else None
        if bias is None or site.activation != "NONE" or not np.any(bias) or has(site):
            continue
        results = [(value - bias.reshape(-1)).astype(np.float32) for value in own]
        samples = run.kept(run.with_result(index, results), whole=True)
        return Planted(
            "float bias missing", "float", run.model, run.path, run.profile, index, samples, (r"bias missing",)
        )
    return None


def fast_exponential(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant Schraudolph's exponential into a float LOGISTIC, TANH or SOFTMAX: too coarse for noise."""

    def exp(x: Array) -> Array:
        bits = np.clip(x * np.float32(12102203.0) + np.float32(1064866805), 0, 2**31 - 2**24).astype(np.int32)
        return bits.view(np.float32)

    for index in _sites(run, rng, 12):
        operator = view(run.model).op(index)
        own = [values[run.output(index)] for values in run.samples]
        x = [values[operator.inputs[0]] for values in run.samples]
        if own[0].dtype != np.float32 or operator.builtin not in ("LOGISTIC", "SOFTMAX"):
            continue
        if operator.builtin == "LOGISTIC":
            results = [(1 / (1 + exp(-v))).astype(np.float32) for v in x]
        else:
            raised = [exp(v - v.max(-1, keepdims=True)) for v in x]
            results = [(v / v.sum(-1, keepdims=True)).astype(np.float32) for v in raised]
        samples = run.kept(run.with_result(index, results), whole=True)
        words = (r"fast exp|approximat|exponential",)
        return Planted("fast exponential", "float", run.model, run.path, run.profile, index, samples, words)
    return None


def channels_exchanged(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant pictures that were fed with the order of colours exchanged."""
    from faultfuzz.arithmetic import _rerun

    inputs = view(run.model).inputs
    if len(inputs) != 1 or run.samples[0][inputs[0]].ndim != 4 or run.samples[0][inputs[0]].shape[-1] != 3:
        return None
    meant = [values[inputs[0]] for values in run.samples]
    wrong = _rerun(run, [np.ascontiguousarray(x[..., ::-1]) for x in meant])
    kept = [{t: v for t, v in one.items() if t not in inputs} for one in run.kept(wrong.samples, whole=False)]
    words = (r"RGB and BGR|channels in reverse",)
    return Planted("BGR", "host", run.model, run.path, run.profile, -1, tuple(kept), words, tuple(meant), False)


KINDS = (
    Kind("input read in another order", "addressing", misread, weight=2),
    Kind("operator skipped", "omission", skipped),
    Kind("overwritten before it was read", "memory", lost_before),
    Kind("two mistakes", "combination", pair, weight=2),
    Kind("NCHW dump and single rounding", "combination", nchw_and_once),
    Kind("float bias missing", "float", float_bias),
    Kind("fast exponential", "float", fast_exponential),
    Kind("BGR", "host", channels_exchanged),
)
