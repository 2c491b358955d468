"""`tflq/engine/kernels/signals.py` against live LiteRT, whose optimized resolver alone has it."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers

from support import graphs as g
from support.each import each
from support.single_op import T, assert_same, tflq
from tflq.engine.profiles import PROFILES
from tflq.errors import ModelError


def model(shape: tuple[int, ...], size: int, type_: str = "float32", out: tuple[int, ...] | None = None) -> bytes:
    options = bytes(flexbuffers.Dumps({"hadamard_size": size, "random_binary_vector": [1, -1]}))
    op = g.Op("aeq.hadamard_rotation", (0,), (1,), custom=options)
    return g.build(g.Graph([T(type_, shape), T(type_, shape if out is None else out)], (0,), (1,), [op]))


@each(
    ("shape", "size"),
    [
        ((3, 8), 8),
        ((3, 8), 1),
        ((2, 3, 16), 4),
        ((5, 12), 6),  # no power of two: nothing happens
        ((3, 10), 4),  # what is left of a row is transformed with the next one, and the end is not
        ((2, 256), 256),  # beyond the size whose loops LiteRT unrolls
        ((4, 1, 192), 64),
        ((2, 8, 3, 2), 4),  # of rank 4: only the first two axes count
        ((0, 8), 8),
    ],
    ids=str,
)
@each("type_", ["float32", "int32"])
def test_bits_are_the_runtimes(shape: tuple[int, ...], size: int, type_: str) -> None:
    x = np.random.default_rng(size).standard_normal(shape).astype(np.float32) * np.float32(3)
    for resolver in ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        assert_same(model(shape, size, type_), [x.view(type_)], (shape, size), resolver)


def test_refused() -> None:
    x = np.zeros((2, 8), np.float32)
    for bad, given in (
        (model((2, 8), 0), x),
        (model((2, 8), -4), x),
        (model((8,), 4), x[0]),
        (model((2, 8), 4, out=(3,)), x),
    ):
        with pytest.raises(ModelError):
            tflq(bad, [given])


def test_releases_that_have_it() -> None:
    """ai-edge-litert 1.2 does not find it, 1.4, 2.0 and 2.3 do."""
    have = {name for name, profile in PROFILES.items() if "aeq.hadamard_rotation" in profile.kernels}
    assert {"litert-opt", "litert-xnnpack", "litert-2.0-opt", "litert-1.4-opt"} <= have
    assert not have & {"litert-1.2-opt", "litert-1.0-opt", "tflite-2.14-opt", "tflite-2.9-opt", "tf-1.15-opt", "tflm"}
