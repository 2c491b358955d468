"""Faults of arithmetic and of the host's code, and both at once, by the devices in software of tools/device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from device.codes import point
from device.contraction import contract
from device.mistakes import MISTAKES, Mistake
from device.operators import compute, has
from device.runtimes import as_computed_by
from device.truths import _CAUSES
from faultfuzz.planted import Array, Kind, Planted, Run, Values
from tflq.model.ir import view

_ENOUGH = 16
#: Other names of the same function: mistakes of the user in a model of one operator, windows whose sides are alike.
_ALSO = {
    "output written as NCHW": "|transposed dump: NCHW",
    "clamp of the other type": "|results of one sign only",
    "zero point of the input ignored": "|zero point of the input ignored",
    "stride ignored": "|strides of height and width swapped|stride of the (height|width) for both",
    "output's highest bit flipped": "|uint8 codes read as int8|codes of the results off by 128",
}


def _pattern(mistake: str) -> str:
    import re

    return _CAUSES.get(mistake, re.escape(mistake)).replace("$", "") + _ALSO.get(mistake, "")


def listed(run: Run, rng: np.random.Generator, everywhere: bool = False) -> Planted | None:
    """Plant a mistake of a device into one operator, or into all to which it applies."""
    for number in rng.permutation(len(MISTAKES))[:12].tolist():
        mistake = MISTAKES[number]
        found = planted_at(run, rng, mistake)
        if found is not None:
            return found
    return None


def planted_at(run: Run, rng: np.random.Generator, mistake: Mistake) -> Planted | None:
    """Return the mistake in one operator; None where it applies to none, or changes too little."""
    for index in rng.permutation(len(run.operators)).tolist():
        site = run.site(index)
        if site is None or not has(site) or not mistake.can_be_made(site):
            continue
        right = as_computed_by(run.profile, site)
        if right is None:
            continue
        device = mistake.made_by(right)
        results = [compute(site, device, values) for values in run.samples]
        own = [values[site.output.tensor] for values in run.samples]
        if sum(int((a != b).sum()) for a, b in zip(results, own, strict=True)) < _ENOUGH:
            continue
        if any(a.shape != b.shape for a, b in zip(results, own, strict=True)):
            continue
        samples = run.kept(run.with_result(index, results), whole=True)
        words = (_pattern(mistake.name),)
        return Planted("arithmetic", "arithmetic", run.model, run.path, run.profile, index, samples, words)
    return None


def _once_everywhere(run: Run) -> tuple[Values, ...] | None:
    """Return the runs of a device that rounds once in all contractions."""
    from device.planting import _went_on
    from tflq.engine.profiles import by_name

    mistake = next(m for m in MISTAKES if m.name == "rounds once, half up")
    found, changed = [], 0
    for values in run.samples:
        now = dict(values)
        for index in run.operators:
            site = run.site(index)
            if site is None or not has(site) or not mistake.can_be_made(site):
                continue
            right = as_computed_by(run.profile, site)
            if right is None:
                continue
            result = compute(site, mistake.made_by(right), now)
            changed += int((result != now[site.output.tensor]).sum())
            now = dict(_went_on(run.model, site, by_name(run.profile), now, result))
        found.append(now)
    return tuple(found) if changed >= _ENOUGH else None


def once(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant single rounding everywhere; all tensors or outputs only."""
    samples = _once_everywhere(run)
    if samples is None:
        return None
    whole = bool(rng.random() < 0.5)
    words = (r"single.rounding|rounds once|bits of \S+ and \d+ other|rounds half up, in fixed point|round once",)
    kept = run.kept(samples, whole=whole)
    return Planted("single rounding", "arithmetic", run.model, run.path, run.profile, -1, kept, words, (), whole)


# --- Host code -------------------------------------------------------------------------------------------------------


def _images(run: Run) -> int | None:
    graph = view(run.model)
    if len(graph.inputs) != 1:
        return None
    return graph.inputs[0]


def _rerun(run: Run, fed: list[Array]) -> Run:
    from faultfuzz.planted import run_on

    tensor = view(run.model).inputs[0]
    return run_on(run, [{tensor: x} for x in fed])


def host_input(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant codes of the other sign, or an exchanged order, that the device was fed with."""
    return _host_input(run, rng, once_too=False)


def host_input_and_rounding(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a mistaken input into a device that rounds once."""
    return _host_input(run, rng, once_too=True)


def _host_input(run: Run, rng: np.random.Generator, *, once_too: bool) -> Planted | None:
    tensor = _images(run)
    if tensor is None or run.samples[0][tensor].dtype not in (np.int8, np.uint8):
        return None
    meant = [values[tensor] for values in run.samples]
    way = str(rng.choice(["sign", "columns", "late"]))
    if way == "sign":
        fed, words = [(x.view(np.uint8) ^ 128).view(x.dtype) for x in meant], r"uint8|int8 fed|other sign"
    elif way == "columns":
        if meant[0].ndim != 4 or meant[0].shape[1] != meant[0].shape[2] or meant[0].shape[1] < 3:
            return None
        fed, words = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in meant], r"rows and columns|NWHC"
    else:
        if len(meant) < 2:
            return None
        fed, words = [meant[-1], *meant[:-1]], r"off by one sample|sample before"
    wrong = _rerun(run, fed)
    samples: tuple[Values, ...] | None = wrong.samples
    right = [words]
    if once_too:
        samples = _once_everywhere(wrong)
        right = [rf"({words}).{{0,400}}(single.rounding|rounds once|half up|the bits of)"]
    if samples is None:
        return None
    own = run.samples[0]
    outputs = view(run.model).outputs
    if all(np.array_equal(samples[0][t], own[t]) for t in outputs):
        return None
    whole = bool(rng.random() < 0.5)
    kept = [{t: v for t, v in one.items() if t != tensor} for one in run.kept(samples, whole=whole)]
    kind = "host input and single rounding" if once_too else "host input"
    family = "combination" if once_too else "host"
    return Planted(kind, family, run.model, run.path, run.profile, -1, tuple(kept), tuple(right), tuple(meant), whole)


def host_output(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant results that are read with the other sign."""
    return _host_output(run, rng, once_too=False)


def host_output_and_rounding(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant such results of a device that rounds once."""
    return _host_output(run, rng, once_too=True)


def _host_output(run: Run, rng: np.random.Generator, *, once_too: bool) -> Planted | None:
    outputs = view(run.model).outputs
    if any(run.samples[0][t].dtype not in (np.int8, np.uint8) or run.samples[0][t].size < 8 for t in outputs):
        return None
    samples = _once_everywhere(run) if once_too else run.samples
    if samples is None or (
        all(np.array_equal(a[t], b[t]) for a, b in zip(samples, run.samples, strict=True) for t in outputs) and once_too
    ):
        return None
    flipped = [{**one, **{t: (one[t].view(np.uint8) ^ 128).view(one[t].dtype) for t in outputs}} for one in samples]
    kept = run.kept(flipped, whole=False)
    words = r"uint8 codes|off by 128|other sign|highest bit"
    right = (rf"({words}).{{0,400}}(single.rounding|rounds once|half up|the bits of)",) if once_too else (words,)
    kind = "host output and single rounding" if once_too else "host output"
    return Planted(
        kind, "combination" if once_too else "host", run.model, run.path, run.profile, -1, kept, right, (), False
    )


# --- Geometry --------------------------------------------------------------------------------------------------------


def no_padding_at_end(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a convolution that reads what lies in memory below or right of the image in place of padding."""
    for index in rng.permutation(len(run.operators)).tolist():
        site = run.site(index)
        if site is None or site.op not in ("CONV_2D", "DEPTHWISE_CONV_2D") or not has(site):
            continue
        right = as_computed_by(run.profile, site)
        x = site.input(0)
        if right is None or int(site.options["padding"]) != 0 or len(x.shape) != 4:
            continue
        side = str(rng.choice(["bottom", "right"]))
        results = [_reading_on(site, right, values[x.tensor], side, rng) for values in run.samples]
        own = [values[site.output.tensor] for values in run.samples]
        if any(r is None or r.shape != o.shape for r, o in zip(results, own, strict=True)):
            continue
        changed = [r for r in results if r is not None]
        if sum(int((a != b).sum()) for a, b in zip(changed, own, strict=True)) < 8:
            continue
        samples = run.kept(run.with_result(index, changed), whole=True)
        words = (rf"pad.{{0,60}}{side}|(last|trailing).{{0,30}}{'row' if side == 'bottom' else 'column'}",)
        return Planted("no padding at the end", "memory", run.model, run.path, run.profile, index, samples, words)
    return None


def _reading_on(site, device, x, side, rng):  # type: ignore[no-untyped-def]
    """Return the result on an image whose padding at one end is garbage; the window is moved over the padded image."""
    from device.contraction import axis, filters

    weights = filters(site, device)
    sizes = {}
    for letter, size, kernel in (("h", x.shape[1], weights.shape[1]), ("w", x.shape[2], weights.shape[2])):
        one = axis(site, device, letter, size, kernel)
        reach = (one.out - 1) * one.stride + (kernel - 1) * one.dilation + 1
        sizes[letter] = (one.before, max(0, reach - size - one.before))
    end = sizes["h"][1] if side == "bottom" else sizes["w"][1]
    if end == 0:
        return None
    zero = point(site.input(0).zero, device.x_zero)
    image = np.pad(x, ((0, 0), sizes["h"], sizes["w"], (0, 0)), constant_values=zero)
    view_ = image[:, -end:] if side == "bottom" else image[:, :, -end:]
    view_[...] = rng.integers(-100, 100, view_.shape).astype(x.dtype)
    output = replace(site.output)
    valid = replace(site, options={**site.options, "padding": 1}, output=output)
    return contract(valid, device, image)


KINDS = (
    Kind("arithmetic", "arithmetic", listed, weight=6),
    Kind("single rounding", "arithmetic", once, weight=1),
    Kind("host input", "host", host_input, weight=1),
    Kind("host output", "host", host_output, weight=1),
    Kind("host input and single rounding", "combination", host_input_and_rounding),
    Kind("host output and single rounding", "combination", host_output_and_rounding),
    Kind("no padding at the end", "memory", no_padding_at_end, weight=2),
)
