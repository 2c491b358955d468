"""Profiles that compute an operator alike: by their kernel row, and the arithmetic that the row reads."""

from __future__ import annotations

from collections.abc import Hashable

from tflq.comparison.inspection.profile_pairs import fields_read
from tflq.engine.api.part import Part
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.kernels.table import find
from tflq.engine.profiles import Profile
from tflq.model.ir import TensorType


def computation(part: Part, profile: Profile) -> Hashable:
    """Return the key of a part's first operator: profiles with equal keys compute equal bits.

    Rows that call subgraphs, or that are unknown before the model is bound, are unique to each profile; so are parts of
    several operators.
    """
    if len(part.graph.ops) > 1:
        return profile.name
    row = row_of(part, profile)
    if row is None or row.session or row.calls:
        return profile.name
    read = sorted(fields_read(row.prepare))
    return row.prepare, tuple((name, getattr(profile.arithmetic, name)) for name in read)


def row_of(part: Part, profile: Profile) -> Kernel | None:
    """Return the row that the profile's table has for the operator; None if it refuses it, or a type is unknown."""
    op = part.op
    inputs = op.input_specs
    types = [None if spec is None else spec.type for spec in inputs]
    output_types = [spec.type for spec in op.output_specs if spec is not None]
    known = [type_ for type_ in types if type_ is None or isinstance(type_, TensorType)]
    results = [type_ for type_ in output_types if isinstance(type_, TensorType)]
    if len(known) < len(types) or len(results) < len(output_types):
        return None
    sparse = tuple(i for i, spec in enumerate(inputs) if spec is not None and spec.sparsity is not None)
    return find(profile.kernels, op.name, op.version, known, results, sparse)
