"""Rules about the operators that a target's kernels take.

Sources: the profiles litert-ref and tflm; tflite-micro (October 2026) micro/kernels/cmsis_nn/*.cc, Prepare functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tflq.errors import TflqError, UnknownNameError
from tflq.inspection.operators import prepare_alone
from tflq.ir import Root, TensorType, rooted
from tflq.ir.signatures import is_inner_call
from tflq.linting.findings import Breach, Level, Rule
from tflq.linting.site import Site
from tflq.profiles import Profile, by_name

#: Operators for which CMSIS-NN's kernels replace tflite-micro's own, none of them for uint8.
CMSIS_NN = frozenset(
    (
        "ADD",
        "AVERAGE_POOL_2D",
        "BATCH_MATMUL",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "MAXIMUM",
        "MAX_POOL_2D",
        "MINIMUM",
        "MUL",
        "PAD",
        "PADV2",
        "SOFTMAX",
        "SVDF",
        "TRANSPOSE",
        "TRANSPOSE_CONV",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
    )
)


def refused(profile: Profile, site: Site) -> Iterator[Breach]:
    """Yield an operator that the target's kernels refuse."""
    if is_inner_call(site.model, site.subgraph, site.operator.record):
        return
    try:
        prepare_alone(site.first or rooted(site.model, Root(None, site.subgraph)), site.index, profile)
    except TflqError as error:
        reason = error.statement
        yield Breach(-1, f"an operator that {profile.name} takes", reason)


def cmsis_nn_types(site: Site) -> Iterator[Breach]:
    """Yield element types that CMSIS-NN's kernels do not take if they replace tflite-micro's own."""
    kind, weights = site.type(site.input(0)), site.quantization(site.input(1))
    if site.op in CMSIS_NN and kind == TensorType.UINT8:
        yield Breach(site.input(0), "int8, int16 or float32", "uint8")
    per_channel = weights is not None and weights.scale.size > 1
    narrow = site.type(site.input(1)) == TensorType.INT4
    if site.op == "FULLY_CONNECTED" and per_channel and (kind == TensorType.INT16 or narrow):
        yield Breach(site.input(1), "one scale for weights of int4, or with int16 data", "one scale per channel")


def target_rules(target: str) -> tuple[Rule, ...]:
    """Return the rules of a target by name."""
    if target not in TARGETS:
        raise UnknownNameError("target", target, TARGETS)
    profile = by_name("litert-ref" if target == "litert" else "tflm")
    rules = (Rule("refused", Level.ERROR, "the target refuses this operator", partial(refused, profile)),)
    if target == "cmsis-nn":
        return (*rules, Rule("cmsis-nn-types", Level.ERROR, "CMSIS-NN takes no such types", cmsis_nn_types))
    return rules


TARGETS = ("litert", "tflm", "cmsis-nn")
