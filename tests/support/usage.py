"""Mistakes that users make, planted into runs of the carried models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support import suites
from support.single_op import T, build
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

Array = NDArray[Any]
MODELS = suites.ROOT / "golden" / "models"
PIXELS = np.load(MODELS / "digits_test.npz")["images"]


@dataclass(frozen=True, eq=False)
class Planted:
    """A mistake: the model, the user's numbers, the device's tensors by sample, and words of the right answer."""

    name: str
    model: Model
    given: list[Array]
    samples: list[dict[int, Array]]
    words: tuple[str, ...]
    scaling: tuple[float, float] | None = None


def coloured() -> Model:
    """An int8 convolution over a picture of 6 by 6 in three colours, of range -1 to 1."""
    draw = np.random.default_rng(5)
    weights = draw.integers(-90, 90, (4, 3, 3, 3)).astype(np.int8)
    return load(
        build(
            "CONV_2D",
            [
                T("int8", (1, 6, 6, 3), 1 / 127.5, 0),
                T("int8", (4, 3, 3, 3), 0.01, 0, value=weights),
                T("int32", (4,), 0.01 / 127.5, 0, value=draw.integers(-900, 900, 4).astype(np.int32)),
            ],
            [T("int8", (1, 6, 6, 4), 0.03, -4)],
            ("Conv2DOptions", {"padding": 0, "stride_h": 1, "stride_w": 1}),
        )
    )


def device(model: Model, fed: list[Array], profile: str, *, whole: bool) -> list[dict[int, Array]]:
    """Return the tensors of runs: all of them, or outputs only."""
    plan, graph = make_plan(model, by_name(profile)), view(model)
    found = []
    for value in fed:
        values = run(plan, {graph.inputs[0]: value}, keep_all=True).values
        kept = [*graph.inputs, *graph.last_writers] if whole else graph.outputs
        found.append({t: np.array(values[t]) for t in kept if t in values})
    return found


def quantization_of(model: Model, tensor: int) -> tuple[float, int]:
    """Return the scale and the zero point of a tensor."""
    quantization = view(model).tensors[tensor].quantization
    assert quantization is not None
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def codes_of(model: Model, real: Array) -> Array:
    """Return real values as int8 codes: divided in float32, rounded half to even."""
    scale, zero = quantization_of(model, view(model).inputs[0])
    return np.clip(np.rint(real.astype(np.float32) / np.float32(scale)) + zero, -128, 127).astype(np.int8)


def pixels(count: int, start: int) -> list[Array]:
    """Return digits as stored numbers 0 to 255."""
    return list(PIXELS[start : start + count, None])


def pictures(count: int, seed: int) -> list[Array]:
    """Return pictures in three colours as stored numbers 0 to 255."""
    return list(np.random.default_rng(seed).integers(0, 256, (count, 1, 6, 6, 3)).astype(np.uint8))


def float_of(codes: Array, scale: float, zero: int) -> Array:
    """Return dequantized values, float32."""
    return (np.float32(scale) * (codes.astype(np.float32) - np.float32(zero))).astype(np.float32)


def _fed(kind: str, model: Model, stored: list[Array]) -> list[Array]:
    """Return the codes that a device is fed by a mistake; `right` is none."""
    half = 127.5 if quantization_of(model, view(model).inputs[0])[1] == 0 else 0.0
    std = 127.5 if half else 255.0

    def real(v: Array) -> Array:
        return (v.astype(np.float32) - np.float32(half)) / np.float32(std)

    def other(v: Array) -> Array:
        return v.astype(np.float32) / np.float32(255) if half else (v.astype(np.float32) - 127.5) / np.float32(127.5)

    scale = np.float32(quantization_of(model, view(model).inputs[0])[0])
    zero = int(quantization_of(model, view(model).inputs[0])[1])
    of = {
        "right": lambda v: codes_of(model, real(v)),
        "wrong mean": lambda v: codes_of(model, other(v)),
        "BGR": lambda v: codes_of(model, real(v[..., ::-1])),
        "NCHW": lambda v: codes_of(model, real(np.transpose(v, (0, 3, 1, 2)).reshape(v.shape))),
        "float as codes": lambda v: real(v).astype(np.int8),
        "uint8": lambda v: (codes_of(model, real(v)).astype(np.int16) + 128).astype(np.uint8).view(np.int8),
        "truncated": lambda v: np.clip(np.trunc(real(v) / scale) + zero, -128, 127).astype(np.int8),
    }[kind]
    return [of(v) for v in stored]


def _channels_first(value: Array) -> Array:
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 else value


def _columns_first(value: Array) -> Array:
    return np.ascontiguousarray(value.T).reshape(value.shape) if value.ndim > 1 else value


def planted(seed: int = 0) -> Iterator[Planted]:
    """Yield 60 mistakes of ten kinds; other seeds choose other pictures."""
    digits = {n: load(MODELS / f"digits_{n}_int8.tflite") for n in ("mobilenet", "lstm", "autoencoder", "unet")}
    colours = coloured()
    words = {
        "wrong mean": ("wrong mean or std",),
        "BGR": ("RGB and BGR",),
        "NCHW": ("NCHW",),
        "float as codes": ("float values fed as codes",),
        "uint8": ("uint8",),
        "truncated": ("truncated",),
    }
    for kind, right in words.items():
        for number, (name, whole, profile) in enumerate(
            [
                ("colours", True, "litert-ref"),
                ("colours", False, "litert-ref"),
                ("colours", False, "tflm"),
                ("mobilenet", True, "litert-ref"),
                ("unet", False, "litert-ref"),
                ("autoencoder", False, "litert-ref"),
            ]
        ):
            is_coloured = name == "colours" or kind in ("BGR", "NCHW")
            model = colours if is_coloured else digits[name]
            stored = pictures(3, number + 100 * seed) if is_coloured else pixels(3, 10 * number + 7 * seed)
            samples = device(model, _fed(kind, model, stored), profile, whole=whole)
            yield Planted(f"{kind}-{number}-{name}", model, stored, samples, right)
    for number, name in enumerate(("mobilenet", "lstm", "autoencoder", "unet", "mobilenet", "unet")):
        model, stored = digits[name], pixels(4, 20 * number + 7 * seed)
        fed = _fed("right", model, stored)
        graph, rows = view(model), device(model, fed, "litert-ref", whole=True)
        out = graph.outputs[0]
        scale, zero = quantization_of(model, out)
        twice = [{**r, out: float_of(float_of(r[out], scale, zero), scale, zero)} for r in rows]
        yield Planted(f"dequantized-twice-{number}", model, stored, twice, ("dequantized twice",))
        late = []
        for k, row in enumerate(rows):
            following = rows[(k + 1) % len(rows)]
            kept = {out: following[out]} if number % 2 else {t: v for t, v in following.items() if t != graph.inputs[0]}
            late.append({**row, **kept})
        yield Planted(f"off-by-one-{number}", model, stored, late, ("off by one sample",))
        turn = _columns_first if name in ("lstm", "autoencoder") else _channels_first
        turned = [{t: v if t in graph.inputs else turn(v) for t, v in row.items()} for row in rows]
        yield Planted(f"transposed-{number}", model, stored, turned, ("transposed dump",))
        # an early result whose place a later one has taken
        makers = sorted((i, t) for t, i in graph.last_writers.items() if rows[0][t].nbytes >= 60)
        early, taker = makers[0][1], makers[-1][1] if len(makers) > 1 else out
        size = min(rows[0][early].nbytes, rows[0][taker].nbytes)
        reused = []
        for r in rows:
            held = r[early].copy().reshape(-1).view(np.int8)
            held[:size] = r[taker].reshape(-1).view(np.int8)[:size]
            reused.append({**r, early: held.view(r[early].dtype).reshape(r[early].shape)})
        yield Planted(f"arena-{number}", model, stored, reused, ("reused",))
