"""Only results whose windows reach beyond one side of the image differ: padding that was not made there."""

from __future__ import annotations

import numpy as np

from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case, Mask
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.engine.kernels.geometry.windows import Window
from tflq.errors import TflqError

#: Share of the results beyond a side that must differ.
_MOST = 0.3


def padding(case: Case) -> Defect | None:
    """Return the sides of the image at which padding was not made.

    None if results inside differ, too, or all by no more than one code.
    """
    window = _window(case)
    if window is None or case.apart.ndim != 4 or _is_rounding(case):
        return None
    sides = _sides(window, case.apart.shape)
    wrong = np.flatnonzero(case.apart.any(axis=(0, 3)).reshape(-1))
    hit: Mask = np.asarray(case.apart.any(axis=(0, 3)))
    chosen = _covering(sides, hit)
    if not chosen or len(wrong) < 2:
        return None
    reach = np.logical_or.reduce([sides[name] for name in chosen])
    if reach.all() or np.count_nonzero(hit & reach) < _MOST * np.count_nonzero(reach):
        return None
    name = f"padding at the {' and '.join(chosen)} was not made: only windows that reach beyond it differ"
    place = "; ".join(_rows(name, mask) for name, mask in sides.items() if name in chosen)
    cleared = f"{case.equal_text()}; so is every window inside the image"
    tell = "place known values in memory behind the image: the device reads them in place of padding"
    return Defect(DefectKind.PADDING, name, Certainty.LIKELY, case.tensor, place, cleared, tell)


def _is_rounding(case: Case) -> bool:
    """Return whether integers differ by one code alone, which other values than padding's would hardly do."""
    pairs = zip(case.expected, case.observed, strict=True)
    return all(
        np.issubdtype(e.dtype, np.integer) and np.abs(e.astype(np.int64) - o.astype(np.int64)).max(initial=0) <= 1
        for e, o in pairs
    )


def _window(case: Case) -> Window | None:
    part = case.parts[0]
    try:
        prepared = part.plan(case.profile).steps[0].prepared
    except TflqError:
        return None
    return None if prepared is None else next((p.value for p in parts_of(prepared.data, Window)), None)


def _sides(window: Window, shape: tuple[int, ...]) -> dict[str, Mask]:
    """Return the places (out_h, out_w) whose windows reach beyond each side."""
    rows, columns = np.arange(shape[1]), np.arange(shape[2])
    top = rows * window.stride_h - window.pad_top
    left = columns * window.stride_w - window.pad_left
    bottom = top + (window.kernel_h - 1) * window.dilation_h >= window.height
    right = left + (window.kernel_w - 1) * window.dilation_w >= window.width
    every = (len(rows), len(columns))
    found = {
        "bottom": np.broadcast_to(bottom[:, None], every),
        "right": np.broadcast_to(right[None, :], every),
        "top": np.broadcast_to((top < 0)[:, None], every),
        "left": np.broadcast_to((left < 0)[None, :], every),
    }
    return {name: mask for name, mask in found.items() if mask.any()}


def _covering(sides: dict[str, Mask], hit: Mask) -> tuple[str, ...]:
    """Return the fewest sides, each of them wrong, that cover all wrong places."""
    names = [name for name, mask in sides.items() if (hit & mask).any()]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for chosen in (*((name,) for name in names), *pairs):
        if not (hit & ~np.logical_or.reduce([sides[name] for name in chosen])).any():
            return chosen
    return ()


def _rows(side: str, mask: Mask) -> str:
    axis, word = (1, "row") if side in ("bottom", "top") else (0, "column")
    at = np.flatnonzero(mask.any(axis=axis))
    last = "last " if side in ("bottom", "right") else "first "
    names = f"{word} {at[0]}" if len(at) == 1 else f"{word}s {at[0]} to {at[-1]}"
    return f"only the {last}{word}{'s' if len(at) > 1 else ''} ({names} of {mask.shape[1 - axis]})"
