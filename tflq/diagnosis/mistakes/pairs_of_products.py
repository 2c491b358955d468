"""Products of unsigned and signed bytes that are added in pairs with 16 bits: x86's vpmaddubsw without VNNI.

The hypothesis is a point of the grammar of sums (`kernels/families/contraction_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.mistakes.device import Mistaken, Under
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.contraction_sums import PAIRS
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import with_rows


def mistaken_pairs(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield a convolution or dense layer whose pairs of products saturate."""
    if alone.op.builtin not in ("CONV_2D", "FULLY_CONNECTED"):
        return
    changed = with_rows(profile, [{"op": alone.op.name, "sums": {"products": PAIRS}}])
    alone.plan(changed)  # refused here if the operator is no contraction of codes
    yield "pairs of products saturate at 16 bits, as those of vpmaddubsw", Under(changed)
