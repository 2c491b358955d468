"""Rules about the operators that a target's kernels take.

Sources: the profiles litert-ref and tflm; tflite-micro (October 2026) micro/kernels/cmsis_nn/*.cc, Prepare functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.verification.localization import alone
from tflq.diagnosis.linting.findings import Breach, Level, Rule
from tflq.diagnosis.linting.site import Site
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.unpacking import makers_of, unpackable_tensors
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Operand
from tflq.engine.profiles import Profile, by_name
from tflq.engine.profiles.faults import faults_at
from tflq.errors import ModelError, TflqError, UndefinedResultError
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


UNDEFINED = Rule("undefined-result", Level.ERROR, "the runtime's result is undefined", lambda site: iter(()))


def refuse(profiles: tuple[Profile, ...], site: Site) -> Iterator[Breach]:
    """Yield that the kernels of one of the profiles refuse the operator, or leave its result undefined.

    Shapes of a subgraph that operators run come from its callers, so that errors of shapes are no refusals there.
    """
    if is_inner_call(site.model, site.subgraph, site.operator.record) or _is_foreign(site):
        return
    is_inner = site.subgraph not in {root.subgraph for root in roots(site.model)}
    for profile in profiles:
        try:
            _prepare(site.first or rooted(site.model, Root(None, site.subgraph)), site.index, profile)
        except TflqError as error:
            if not (is_inner and isinstance(error, ModelError)):
                yield _refusal(profile, error)
                return


def refusals_together(model: Model, profiles: tuple[Profile, ...]) -> Iterator[tuple[int, int, Breach]]:
    """Yield subgraph, operator and breach of what a profile refuses only in the whole model, the first of each root.

    An operator alone does not show what those before it decide.
    """
    for root in roots(model):
        for profile in profiles:
            try:
                make_plan(rooted(model, root), profile)
            except TflqError as error:
                index = getattr(error, "index", None)
                if isinstance(index, int) and 0 <= index < len(model.subgraphs[root.subgraph].operators):
                    yield root.subgraph, index, _refusal(profile, error)


def _refusal(profile: Profile, error: TflqError) -> Breach:
    if isinstance(error, UndefinedResultError):
        return Breach(-1, f"a result that {profile.name} defines", error.statement, outcome=UNDEFINED)
    return Breach(-1, f"an operator that {profile.name} takes", error.statement)


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


def faulty(profiles: tuple[Profile, ...], site: Site) -> Iterator[Breach]:
    """Yield an operator whose kernel is known to compute other than it means to, on these types.

    What a kernel refuses is left to `refuse`.
    """
    edges = (site.operator.inputs, site.operator.outputs)
    types = [[t if isinstance(t := site.type(k), TensorType) else None for k in edge] for edge in edges]
    for profile in profiles:
        for fault in faults_at(profile, site.op, types[0], [t for t in types[1] if t is not None]):
            if "refused" not in fault.symptom:
                words = ", ".join(t.label for t in types[0] if isinstance(t, TensorType))
                where = f"{profile.name} computes {site.op} of {words} otherwise ({fault.versions})"
                yield Breach(site.output(), "another runtime, or other types", f"{where}: {fault.symptom}")


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


def profiles_of(target: str) -> tuple[Profile, ...]:
    """Return the profiles of a target: a profile by name or path, or a word of TARGETS.

    Without a target, LiteRT runs the model, with and without its default delegate.

    Raises:
        UnknownNameError: There is no such target or profile.
    """
    names = (TARGETS.get(target, target),) if target else ("litert-ref", "litert-xnnpack")
    return tuple(map(by_name, names))


def target_rules(target: str) -> tuple[Rule, ...]:
    """Return the rules of a target, or those without one; see `profiles_of`."""
    profiles = profiles_of(target)
    rules = (
        Rule("refused", Level.ERROR, "the runtime refuses this operator", partial(refuse, profiles)),
        Rule("known-fault", Level.NOTE, "the kernel is known to be wrong", partial(faulty, profiles[:1])),
        Rule("custom-operator", Level.NOTE, "no runtime registers this custom operator by itself", foreign),
    )
    if target == "cmsis-nn":
        return (*rules, Rule("cmsis-nn-types", Level.ERROR, "CMSIS-NN takes no such types", cmsis_nn_types))
    return rules


#: Words for targets, and their profiles.
TARGETS = {"litert": "litert-ref", "tflm": "tflm", "cmsis-nn": "tflm"}
