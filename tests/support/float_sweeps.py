"""Functions of one float32 under a profile, compared with the live runtime on floats of any bit pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.kernel_runs import RESOLVERS
from support.running import run
from support.single_op import Array, T, build, litert

#: Values at which functions change their branch, and their neighbours.
_EDGES = (0.0, 1e-45, 1.17549435e-38, 0.5, 1.0, 2.0, 3.0, 6.0, 9.0, 17.3, 18.0, 87.33, 88.37626, 88.72284, 104.0)


def floats_of_any_kind(size: int, seed: int = 0) -> Array:
    """Draw float32: random bits, values of ordinary size, and edges with neighbours, of both signs; NaN included."""
    rng = np.random.default_rng([size, seed])
    edges = np.array([*_EDGES, 3.4028235e38, np.inf, np.nan], np.float32)
    with np.errstate(over="ignore"):
        near = np.concatenate([edges, *(np.nextafter(edges, np.float32(to)) for to in (-np.inf, np.inf))])
    parts = [
        np.concatenate([near, -near]),
        rng.integers(0, 1 << 32, size // 2, np.uint32).view(np.float32),
        (rng.standard_normal(size // 4) * 4).astype(np.float32),
        rng.uniform(-110, 110, size - size // 2 - size // 4).astype(np.float32),
    ]
    whole = np.concatenate(parts)
    rng.shuffle(whole)
    return whole[:size]


def assert_function_matches(
    op: str, profile: str, size: int, options: tuple[str, Mapping[str, Any]] | None = None, x: Array | None = None
) -> None:
    """Compare every bit of a function of `size` floats; NaN equals NaN."""
    x = floats_of_any_kind(size) if x is None else x
    model = build(op, [T("float32", x.shape)], [T("float32", x.shape)], options)
    got = run(model, [x], profile)[0]
    want = litert(model, [x], RESOLVERS.get(profile, ("BUILTIN",))[0])[0]
    wrong = (got.view(np.uint32) != want.view(np.uint32)) & ~(np.isnan(got) & np.isnan(want))
    at = np.flatnonzero(wrong)[:4]
    assert not wrong.any(), f"{op}: {np.count_nonzero(wrong)} of {size}: f({x[at]}) = {got[at]}, LiteRT {want[at]}"
