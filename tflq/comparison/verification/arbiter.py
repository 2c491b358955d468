"""Judge by formula which of several outputs of an operator is wrong: no number of systems decides it.

The formula is that of the 8-bit quantization specification: codes become reals, the operator is computed in float32,
and the result is rounded to a code once. Integer kernels round more often, so that a distance of one code is allowed;
a kernel that lies farther off computes something else. Where the reference kernel itself lies farther off, as those of
approximated functions do, the formula decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.comparison.verification.hearing import RUNTIME, Parting, Pool, Ruling, Tensors
from tflq.engine.api.part import part_of
from tflq.engine.profiles import by_name
from tflq.engine.profiles.file import with_rows
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.typing import Array

#: Codes by which a kernel may differ from the formula: one for each further rounding that the specification allows.
ALLOWED = 1
#: A system that computes TOSA's formulas, which is quoted beside the formula if it takes part.
_TOSA = f"{RUNTIME}tosa-reference"


def judge(
    model: Model, parting: Parting, ran: Mapping[str, Tensors], pool: Pool, given: Sequence[Mapping[int, Array]]
) -> Parting:
    """Return the parting with its ruling; without one if no formula can be computed.

    Args:
        model: The model of one subgraph.
        parting: Where systems part.
        ran: The tensors of all systems.
        pool: Their arrays.
        given: The model's inputs by sample and tensor index.
    """
    op, first = view(model).op(parting.index), ran[parting.parts[0][0]]
    (output, *others) = op.record.outputs
    sides = [ran[part[0]] for part in parting.parts]
    sample = next((k for k in range(len(given)) if len({side[k].get(output) for side in sides}) > 1), None)
    if others or sample is None:
        return parting
    values = {**{t: pool.arrays[key] for t, key in first[sample].items()}, **given[sample]}
    made = [pool.arrays.get(side[sample].get(output, "")) for side in sides]
    if any(value is None or value.dtype.kind not in "iu" for value in made):
        return parting
    try:
        reference = by_name("litert-ref")
        formula = with_rows(reference, [{"op": op.name, "floats": {}}])
        part = part_of(model, [parting.index], values)
        right, own = (part.run(part.plan(profile))[output].astype(np.int64) for profile in (formula, reference))
    except TflqError:
        return parting
    distances = tuple(_distance(value, right) for value in made)
    approximate = _distance(own, right)
    if approximate is None or approximate > ALLOWED:
        reason = f"the reference kernel itself lies {approximate} codes from the formula: it does not decide"
        return replace(parting, ruling=Ruling(distances, (), reason))
    return replace(parting, ruling=_ruling(parting, distances))


def _distance(value: Array | None, right: Array) -> int | None:
    if value is None or value.shape != right.shape:
        return None
    return int(np.abs(value.astype(np.int64) - right).max(initial=0))


def _ruling(parting: Parting, distances: Sequence[int | None]) -> Ruling:
    """Return the ruling for distances from the formula."""
    beside = tuple(k for k, distance in enumerate(distances) if distance is None or distance > ALLOWED)
    near = [k for k in range(len(distances)) if k not in beside]
    if beside and near:
        named = "; ".join(f"{parting.parts[k][0]}: up to {distances[k]} codes from the formula" for k in beside)
        reason = f"{named}; the others lie within {ALLOWED}"
    elif near:
        beside, reason = (), f"all lie within {ALLOWED} code of the formula: they round differently, and none is wrong"
    else:
        beside, reason = (), "all lie farther from the formula than rounding explains: it does not decide"
    tosa = next((part[0] for part in parting.parts if _TOSA in part and len(part) > 1), "")
    return Ruling(
        tuple(distances), beside, f"{reason}; the TOSA reference model gives the bits of {tosa}" if tosa else reason
    )
