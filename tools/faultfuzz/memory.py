"""Faults of memory, addressing and omission, each a change of an operator's right results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from faultfuzz.planted import Array, Kind, Planted, Run
from tflq.model.ir import view

#: A change of the right results of all samples; None where it does not apply.
Change = Callable[[list[Array], np.random.Generator], "list[Array] | None"]
_SMALLEST = 24


def _sites(run: Run, rng: np.random.Generator, smallest: int = _SMALLEST, rank: int = 0) -> Iterator[int]:
    """Yield operators with one result of enough elements, in random order."""
    for index in rng.permutation(len(run.operators)).tolist():
        operator = view(run.model).op(index)
        if len(operator.outputs) != 1 or run.site(index) is None:
            continue
        first = run.samples[0].get(operator.outputs[0])
        if first is None or first.size < smallest or first.dtype.kind not in "iuf" or first.dtype.itemsize > 4:
            continue
        if (rank and first.ndim != rank) or len(np.unique(first)) < 8:
            continue
        yield index


def planting(
    name: str, family: str, change: Change, right: Sequence[str], *, smallest: int = _SMALLEST, rank: int = 0
) -> Callable[[Run, np.random.Generator], Planted | None]:
    """Return the function that plants a change of results, read by later operators."""

    def plant(run: Run, rng: np.random.Generator) -> Planted | None:
        for index in _sites(run, rng, smallest, rank):
            whole = bool(rng.random() < 0.6) or index != run.operators[-1]
            right_ones = [values[run.output(index)] for values in run.samples]
            wrong = change([one.copy() for one in right_ones], rng)
            if wrong is None or sum(int((a != b).sum()) for a, b in zip(wrong, right_ones, strict=True)) < 6:
                continue
            samples = run.kept(run.with_result(index, wrong), whole=whole)
            return Planted(name, family, run.model, run.path, run.profile, index, samples, tuple(right), (), whole)
        return None

    return plant


# --- Nothing computed ------------------------------------------------------------------------------------------------


def _constant(values: list[Array], rng: np.random.Generator) -> list[Array]:
    low = np.iinfo(values[0].dtype).min if values[0].dtype.kind in "iu" else 0
    value = values[0].dtype.type(rng.choice([0, low, 85 if values[0].dtype.kind in "iu" else -1.5]))
    return [np.full_like(v, value) for v in values]


def _frozen(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    return [values[0]] * len(values) if len(values) > 1 else None


def _stale(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    return [np.zeros_like(values[0]), *values[:-1]] if len(values) > 1 else None


def _unwritten_end(values: list[Array], rng: np.random.Generator) -> list[Array]:
    start, fill = int(values[0].size * rng.uniform(0.4, 0.85)), values[0].dtype.type(rng.integers(0, 100))
    for v in values:
        v.reshape(-1)[start:] = fill
    return values


def _stale_half(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    if len(values) < 2:
        return None
    half = values[0].size // 2
    place = slice(half, None) if rng.random() < 0.5 else slice(0, half)
    found = [v.copy() for v in values]
    for own, before in zip(found[1:], values[:-1], strict=True):
        own.reshape(-1)[place] = before.reshape(-1)[place]
    found[0].reshape(-1)[place] = 0
    return found


def _tail(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    channels = values[0].shape[-1]
    block = int(rng.choice([4, 8, 16]))
    if channels <= block or channels % block == 0 or values[0].ndim < 2 or values[0].size // channels < 6:
        return None
    for v in values:
        rest = v[..., channels // block * block :]
        rest[...] = rng.integers(0, 100, rest.shape).astype(v.dtype)
    return values


# --- Addressing ------------------------------------------------------------------------------------------------------


def _shifted(values: list[Array], rng: np.random.Generator) -> list[Array]:
    by = int(rng.choice([1, 2, 3, values[0].shape[-1]]))
    return [np.roll(v.reshape(-1), by).reshape(v.shape) for v in values]


def _row_late(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    if values[0].ndim != 4 or values[0].shape[1] < 3:
        return None
    axis = int(rng.choice([1, 2]))
    return [np.roll(v, 1, axis) for v in values] if values[0].shape[axis] > 2 else None


def _wrong_stride(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    shape = values[0].shape
    if len(shape) != 4 or shape[1] < 4 or shape[2] * shape[3] < 8:
        return None
    width = shape[2] * shape[3]
    pitch = width + int(rng.choice([-shape[3], shape[3], 1, 4]))
    found = []
    for v in values:
        memory = np.concatenate([v.reshape(-1), rng.integers(0, 100, 8 * width).astype(v.dtype)])
        places = np.arange(shape[0] * shape[1])[:, None] * pitch + np.arange(width)
        found.append(memory[np.minimum(places, len(memory) - 1)].reshape(shape))
    return found


def _reversed_rows(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    if values[0].ndim != 4 or min(values[0].shape[1:3]) < 3:
        return None
    return [np.ascontiguousarray(np.flip(v, int(rng.choice([1, 2])) if len(values) == 1 else 1)) for v in values]


def _transposed(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    shape = values[0].shape
    if len(shape) != 4 or min(shape[1:]) < 2:
        return None
    order = (0, 3, 1, 2) if rng.random() < 0.5 else (0, 2, 1, 3)
    return [np.ascontiguousarray(v.transpose(order)).reshape(shape) for v in values]


def _blocked(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    n, h, w, c = values[0].shape if values[0].ndim == 4 else (0, 0, 0, 0)
    blocks = [b for b in (4, 8, 16) if b < c and c % b == 0]
    if not blocks or h * w < 4:
        return None
    b = int(rng.choice(blocks))
    return [v.reshape(n, h * w, c // b, b).transpose(0, 2, 1, 3).reshape(v.shape).copy() for v in values]


def _big_endian(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    return [v.byteswap() for v in values] if values[0].dtype.kind in "iu" and values[0].dtype.itemsize > 1 else None


def _channels_swapped(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    channels = values[0].shape[-1]
    if channels < 4 or values[0].size // channels < 8:
        return None
    one, other = rng.choice(channels, 2, replace=False)
    for v in values:
        v[..., [one, other]] = v[..., [other, one]]
    return values


def _first_image(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    if values[0].ndim < 2 or values[0].shape[0] < 2 or values[0][0].size < 8:
        return None
    return [np.repeat(v[:1], len(v), 0) for v in values]


def _stuck_bit(values: list[Array], rng: np.random.Generator) -> list[Array] | None:
    if values[0].dtype.kind not in "iu":
        return None
    bit = values[0].dtype.type(1 << int(rng.integers(0, 4)))
    return [v | bit for v in values]


def _dead_lane(values: list[Array], rng: np.random.Generator) -> list[Array]:
    lanes, lane = int(rng.choice([3, 4, 8])), int(rng.integers(0, 3))
    for v in values:
        v.reshape(-1)[lane::lanes] = 85
    return values


# --- Overwritten -----------------------------------------------------------------------------------------------------


def overwritten_after(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a block that a later tensor, or anything else, overwrote after the readers had run."""
    graph = view(run.model)
    for index in _sites(run, rng, 64):
        tensor = run.output(index)
        if tensor in graph.outputs or not graph.readers(tensor):
            continue
        size = run.samples[0][tensor].size
        length = int(size * rng.uniform(0.15, 0.6))
        start = int(rng.choice([0, size - length, (size - length) // 2]))
        found = []
        for values in run.samples:
            changed = values[tensor].copy()
            changed.reshape(-1)[start : start + length] = rng.integers(-100, 100, length).astype(changed.dtype)
            found.append(changed)
        if sum(int((a != v[tensor]).sum()) for a, v in zip(found, run.samples, strict=True)) < 12:
            continue
        samples = run.kept(run.without_reading(index, found), whole=True)
        words = (rf"tensor {tensor}\b.{{0,40}}overwrit|{tensor} in place|in place of tensor {tensor}\b",)
        return Planted(
            "overwritten after it was read", "memory", run.model, run.path, run.profile, index, samples, words
        )
    return None


def _unsteady(run: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a result that differs between samples with equal inputs."""
    from faultfuzz.planted import run_on

    graph = view(run.model)
    inputs = {t: run.samples[0][t] for t in graph.inputs}
    twice = run_on(run, [inputs, inputs])
    plant = planting(
        "uninitialized: changes between equal runs",
        "omission",
        lambda values, rng: [rng.integers(-100, 100, v.shape).astype(v.dtype) for v in values],
        (r"equal runs|uninitiali[sz]ed",),
    )
    return plant(twice, rng)


_NOTHING = r"nothing was computed|never written|constant|stale|not written"
_CHANGES: tuple[tuple[str, str, Change, tuple[str, ...], int, int], ...] = (
    ("constant", "omission", _constant, (r"constant",), 12, 0),
    ("same for all samples", "omission", _frozen, (r"same in all|stale|not written",), 12, 0),
    ("stale: the sample before", "omission", _stale, (r"sample before|one before|stale",), 12, 0),
    ("end not written", "omission", _unwritten_end, (r"block|last|end|constant",), 48, 0),
    ("stale half", "memory", _stale_half, (r"stale|block|half|sample before",), 48, 0),
    ("tail of a vector", "memory", _tail, (r"last \d* ?channels?|tail",), 24, 0),
    ("shifted in memory", "addressing", _shifted, (r"shifted|late|early|misplaced",), 32, 0),
    ("one row late", "addressing", _row_late, (r"shifted|late|early|misplaced",), 32, 4),
    ("wrong stride", "addressing", _wrong_stride, (r"stride|apart",), 64, 4),
    ("rows reversed", "addressing", _reversed_rows, (r"reverse",), 32, 4),
    ("transposed", "addressing", _transposed, (r"NCHW|NWHC|transposed|stored as|rows and columns",), 32, 4),
    ("blocks of channels", "addressing", _blocked, (r"blocks of|NC\d+HW",), 64, 4),
    ("big-endian", "addressing", _big_endian, (r"endian|byte",), 24, 0),
    (
        "two channels swapped",
        "addressing",
        _channels_swapped,
        (r"channel.*(swap|exchang)|swap|exchang|channels? \d",),
        32,
        0,
    ),
    (
        "one image of a batch",
        "addressing",
        _first_image,
        (r"every (image|row) is the first|first (image|item)",),
        24,
        0,
    ),
    ("stuck bit", "memory", _stuck_bit, (r"bit \d",), 24, 0),
    ("dead lane", "memory", _dead_lane, (r"every \w+ (element|channel)|lane|channel \d of",), 48, 0),
)

KINDS = (
    *(
        Kind(name, family, planting(name, family, change, right, smallest=smallest, rank=rank), 3 if "s" == "" else 0)
        for name, family, change, right, smallest, rank in _CHANGES
    ),
    Kind("overwritten after it was read", "memory", overwritten_after, weight=2),
    Kind("uninitialized", "omission", _unsteady),
)
