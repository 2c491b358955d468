"""Rules about what runtimes and targets take.

Rules about the operators that a target's kernels take.

Sources: the profiles litert-ref and tflm; tflite-micro (October 2026) micro/kernels/cmsis_nn/*.cc, Prepare functions.

Rules about what runtimes refuse when they load a model.

Sources: LiteRT 2.3 tflite/core/interpreter_builder.cc ParseQuantization; tflite/core/subgraph.cc
SetTensorParametersReadOnly.

The rule about operator versions: the least version that an operator's types need.

Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.verification.localization import alone
from tflq.diagnosis.linting.rules import Breach, Level, LintRule, Site, rule
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.fusions import makers_of, unpackable_tensors
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import needs_of
from tflq.engine.kernels.kernel import Operand
from tflq.engine.profiles import Profile, by_name
from tflq.engine.profiles.history import faults_at
from tflq.errors import ModelError, TflqError, UndefinedResultError
from tflq.model.ir import GraphView, Model, Root, TensorType, rooted, view
from tflq.model.ir.constants import surplus
from tflq.model.ir.signatures import choose_roots, is_inner_call, roots

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


UNDEFINED = LintRule("undefined-result", Level.ERROR, "the runtime's result is undefined", lambda site: iter(()))


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


def refusals(model: Model, profile: Profile, signature: str | None = None) -> Iterator[tuple[Root, TflqError]]:
    """Yield the first refusal of each root of a model, or of a signature's.

    An operator alone does not show what those before it decide.
    """
    for root in choose_roots(model, signature):
        try:
            make_plan(rooted(model, root), profile)
        except TflqError as error:
            yield root, error


def refusals_together(
    model: Model, profile: Profile, signature: str | None = None
) -> Iterator[tuple[int, int, Breach]]:
    """Yield subgraph, operator and breach of what a profile refuses only in the whole model, the first of each root."""
    for root, error in refusals(model, profile, signature):
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


def target_rules(target: str) -> tuple[LintRule, ...]:
    """Return the rules of a target, or those without one; see `profiles_of`."""
    profiles = profiles_of(target)
    rules = (
        LintRule("refused", Level.ERROR, "the runtime refuses this operator", partial(refuse, profiles)),
        LintRule("known-fault", Level.NOTE, "the kernel is known to be wrong", partial(faulty, profiles[:1])),
        LintRule("custom-operator", Level.NOTE, "no runtime registers this custom operator by itself", foreign),
    )
    if target == "cmsis-nn":
        return (*rules, LintRule("cmsis-nn-types", Level.ERROR, "CMSIS-NN takes no such types", cmsis_nn_types))
    return rules


#: Words for targets, and their profiles.
TARGETS = {"litert": "litert-ref", "tflm": "tflm", "cmsis-nn": "tflm"}


@rule("scale-count", Level.ERROR, "LiteRT refuses another number of scales")
def scale_count(site: Site) -> Iterator[Breach]:
    """Yield operands whose scales are neither one nor one for each index of their dimension."""
    for tensor in site.operands():
        spec = site.spec(tensor)
        quantization = None if spec is None else spec.quantization
        if spec is None or quantization is None or not quantization.scale.size or not spec.shape:
            continue
        count, axis = quantization.scale.size, quantization.quantized_dimension
        if not 0 <= axis < len(spec.shape):
            yield Breach(tensor, f"a dimension below {len(spec.shape)}", f"dimension {axis}")
        elif count not in (1, spec.shape[axis]):
            yield Breach(tensor, f"1 or {spec.shape[axis]} scales along dimension {axis}", f"{count}")


@rule("buffer-size", Level.ERROR, "LiteRT refuses a buffer smaller than its tensor")
def buffer_size(site: Site) -> Iterator[Breach]:
    """Yield tensors whose buffer in the file has fewer bytes than their shape and type need."""
    for tensor in site.operands():
        spec = site.spec(tensor)
        data = None if spec is None else site.model.buffers[spec.buffer].data
        if spec is not None and data is not None and (more := surplus(site.model, spec)) < 0:
            yield Breach(tensor, f"{data.size - more} bytes", f"{data.size}")


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


@rule("operator-version", Level.WARNING, "the operator's version is too low for its types")
def operator_version(site: Site) -> Iterator[Breach]:
    """Yield a version that is too low: runtimes that lack the operator's types would take it."""
    version, least = site.operator.version, needed_version(site)
    if version < least:
        yield Breach(-1, f"version {least} or later", f"version {version}", fixable=True)
