"""The rule about operator versions: the least version that an operator's types need.

Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.engine.kernels.facts.versions import needs_of
from tflq.model.ir import TensorType

#: Operators whose versions are checked: those that converters themselves number correctly.
CHECKED = frozenset(
    {
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "GATHER",
        "MAX_POOL_2D",
        "MUL",
        "SVDF",
        "TRANSPOSE",
    }
)


def needed_version(site: Site) -> int:
    """Return the version that the operator's data type needs, if it is listed here, else 1."""
    kind = site.type(site.input(0))
    if site.op not in CHECKED or not isinstance(kind, TensorType):
        return 1
    needs = needs_of(site.op)
    return {TensorType.INT8: needs.int8, TensorType.INT16: needs.int16}.get(kind, 1)


def operator_version(site: Site) -> Iterator[Breach]:
    """Yield a version that is too low: runtimes that lack the operator's types would take it."""
    version, least = site.operator.version, needed_version(site)
    if version < least:
        yield Breach(-1, f"version {least} or later", f"version {version}", fixable=True)


RULES = (Rule("operator-version", Level.WARNING, "the operator's version is too low for its types", operator_version),)
