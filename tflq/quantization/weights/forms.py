"""The codes and scales of weights: per channel or per block, the scales' search, and the rounding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.code_limits import code_limits
from tflq.engine.numerics.block_products import to_bfloat16
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, usable
from tflq.quantization.refine.gptq import gptq
from tflq.typing import Array

Reals = NDArray[np.float64]

#: Candidate ratios between the magnitude that gets the greatest code and the greatest magnitude.
_SHARES = np.linspace(1.0, 0.55, 19)
#: Iterations of OCTAV; it converges in fewer.
_ITERATIONS = 20
#: The least scale of a block: float16 keeps all eight bits of mantissa, as bfloat16 has, of any number above it.
_LEAST = 2.0**-17


class Scaling(Enum):
    """How the scale of a group of weights is chosen.

    GREATEST gives the greatest magnitude the greatest code. OCTAV balances clipping and rounding by a fixed point (Sakr
    et al. 2022). LEAST_ERROR searches for the least squared error, weighted by the second moments of the inputs.
    """

    GREATEST = "greatest"
    OCTAV = "octav"
    LEAST_ERROR = "least-error"


@dataclass(frozen=True, slots=True)
class Method:
    """The search for scales, and whether rounding compensates for its error by GPTQ."""

    scaling: Scaling = Scaling.LEAST_ERROR
    gptq: bool = True

    @property
    def needs_moments(self) -> bool:
        """True if it reads second moments of the inputs."""
        return self.gptq or self.scaling is Scaling.LEAST_ERROR

    def __str__(self) -> str:
        """Return the method in words."""
        return self.scaling.value + (", GPTQ" if self.gptq else ", nearest")


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """The codes of weights, (channels, inputs), and their parameters."""

    codes: Array
    params: Params


def encode(rows: Array, kind: TensorType, block: int, axis: int, method: Method, square: Reals | None) -> Coded:
    """Return the codes of weights.

    Args:
        rows: (channels, inputs), float32.
        kind: INT8 or INT4.
        block: The number of inputs that share a scale; 0 for one scale per channel.
        axis: The axis of channels in the file.
        method: The search and the rounding.
        square: Second moments of the inputs, (inputs, inputs); None: all inputs count the same, and GPTQ is not done.
    """
    values = rows.astype(np.float64)
    greatest = code_limits(kind)[1]
    size = block or values.shape[1]
    groups = values.reshape(len(values), -1, size)
    importance = np.ones(values.shape[1]) if square is None else np.diagonal(square) + 1e-12 * np.trace(square)
    scale = _scales(groups, np.maximum(importance, 1e-300).reshape(-1, size), greatest, method.scaling)
    narrow = _in_file(scale, blocked=bool(block))
    steps = np.repeat(narrow.astype(np.float64), size, axis=1)
    if method.gptq and square is not None:
        codes = gptq(values[None], square[None], -greatest, greatest, steps[None])[0]
    else:
        codes = np.clip(np.rint(values / steps), -greatest, greatest)
    flat = narrow.reshape(-1)
    zeros = np.zeros(1 if block else flat.size, np.int64)
    return Coded(codes.astype(np.int8), Params(kind, flat, zeros, axis, narrow=True, block=block))


def _in_file(scale: Reals, *, blocked: bool) -> NDArray[np.float32]:
    """Return scales as a runtime reads them: those of blocks are exact in float16 and in bfloat16."""
    return to_bfloat16(np.maximum(scale, _LEAST).astype(np.float32)) if blocked else usable(scale)


def _scales(groups: Reals, importance: Reals, greatest: int, scaling: Scaling) -> Reals:
    """Return a scale for each group: groups (channels, groups, size), importance (groups, size)."""
    reach = np.abs(groups).max(axis=2)
    if scaling is Scaling.GREATEST:
        return np.asarray(reach / greatest)
    if scaling is Scaling.OCTAV:
        return np.asarray(_octav(groups, reach, greatest) / greatest)
    best: Reals = reach / greatest
    least = np.full(reach.shape, np.inf)
    for share in _SHARES:
        tried = np.maximum(share * reach / greatest, 1e-300)
        rounded = np.clip(np.rint(groups / tried[..., None]), -greatest, greatest) * tried[..., None]
        errors = (np.square(rounded - groups) * importance).sum(axis=2)
        best, least = np.where(errors < least, tried, best), np.minimum(errors, least)
    chosen: Reals = np.where(reach > 0, best, 0.0)
    return chosen


def _octav(groups: Reals, reach: Reals, greatest: int) -> Reals:
    """Return the clipping magnitudes at OCTAV's fixed point: E|x|[|x| > s] / (step noise + P[|x| > s])."""
    size = np.abs(groups)
    clip = np.where(reach > 0, size.mean(axis=2) * 2, 0.0)
    noise = 1 / (3 * (2 * greatest + 1) ** 2)
    for _ in range(_ITERATIONS):
        beyond = size > clip[..., None]
        outside = beyond.mean(axis=2)
        pull = np.where(beyond, size, 0.0).mean(axis=2)
        weight = noise * (1 - outside) + outside
        clip = np.where(pull > 0, pull / weight, clip)
    return np.minimum(clip, reach)
