"""Rules about the operators that a target's kernels take.

Sources: the profiles litert-ref and tflm; tflite-micro (October 2026) micro/kernels/cmsis_nn/*.cc, Prepare functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.verification.localization import alone
from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.unpacking import makers_of, unpackable_tensors
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Operand
from tflq.engine.profiles import Profile, by_name
from tflq.errors import ModelError, TflqError, UndefinedResultError, UnknownNameError
from tflq.model.ir import GraphView, Model, Root, TensorType, rooted, view
from tflq.model.ir.signatures import is_inner_call, roots

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


@lru_cache(maxsize=1)
def _refusal(profiles: tuple[Profile, ...], site: Site) -> tuple[Profile, TflqError] | None:
    """Return the first of the profiles whose kernels refuse the operator, and why. Rules ask for a site in turn.

    Shapes of a subgraph that operators run come from its callers, so that errors of shapes are no refusals there.
    """
    if is_inner_call(site.model, site.subgraph, site.operator.record) or _is_foreign(site):
        return None
    is_inner = site.subgraph not in {root.subgraph for root in roots(site.model)}
    for profile in profiles:
        try:
            _prepare(site.first or rooted(site.model, Root(None, site.subgraph)), site.index, profile)
        except TflqError as error:
            if not (is_inner and isinstance(error, ModelError)):
                return profile, error
    return None


def _prepare(model: Model, index: int, profile: Profile) -> None:
    """Prepare an operator alone, or with the DEQUANTIZE of a float16 bias that XNNPACK may keep as it is."""
    graph = view(model)
    kept = [t for t in graph.op(index).inputs[2:3] if _is_kept(graph, t, profile)]
    if kept:
        make_plan(alone(model, index, kept).model, profile)
    else:
        prepare_alone(model, index, profile)


def _is_kept(graph: GraphView, tensor: int, profile: Profile) -> bool:
    """Return whether a tensor is a float16 constant behind DEQUANTIZE that only filters and biases read."""
    operands: dict[int, Operand] = {}
    if not makers_of(graph, [tensor]) or tensor not in unpackable_tensors(graph, profile, operands):
        return False
    return operands[tensor].is_half


def refuse(profiles: tuple[Profile, ...], site: Site) -> Iterator[Breach]:
    """Yield an operator that the kernels of one of the profiles refuse."""
    refusal = _refusal(profiles, site)
    if refusal is not None and not isinstance(refusal[1], UndefinedResultError):
        yield Breach(-1, f"an operator that {refusal[0].name} takes", refusal[1].statement)


def undefined(profiles: tuple[Profile, ...], site: Site) -> Iterator[Breach]:
    """Yield an operator that a runtime takes although the values in the file leave its result undefined."""
    refusal = _refusal(profiles, site)
    if refusal is not None and isinstance(refusal[1], UndefinedResultError):
        yield Breach(-1, f"a result that {refusal[0].name} defines", refusal[1].statement)


def foreign(site: Site) -> Iterator[Breach]:
    """Yield a custom operator that no runtime known here has: only a program that registers it runs the model."""
    if _is_foreign(site):
        yield Breach(-1, "a program that registers it", site.op)


def _is_foreign(site: Site) -> bool:
    return site.operator.code.custom_code is not None and site.op not in OPERATORS


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
    rules = _rules(by_name("litert-ref" if target == "litert" else "tflm"))
    if target == "cmsis-nn":
        return (*rules, Rule("cmsis-nn-types", Level.ERROR, "CMSIS-NN takes no such types", cmsis_nn_types))
    return rules


def default_rules() -> tuple[Rule, ...]:
    """Return the rules where no target is named: LiteRT runs the model, with and without its default delegate."""
    return _rules(by_name("litert-ref"), by_name("litert-xnnpack"))


def _rules(*profiles: Profile) -> tuple[Rule, ...]:
    return (
        Rule("refused", Level.ERROR, "the runtime refuses this operator", partial(refuse, profiles)),
        Rule("undefined-result", Level.ERROR, "the runtime's result is undefined", partial(undefined, profiles)),
        Rule("custom-operator", Level.NOTE, "no runtime registers this custom operator by itself", foreign),
    )


TARGETS = ("litert", "tflm", "cmsis-nn")
