"""`lint`: every rule on every operator, and safe corrections.

`lint`: every rule on every operator.

Corrections that change no bit of the kernels' results: kernels read none of the fields written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from tflq.diagnosis.linting import accuracy, portable, specification, targets
from tflq.diagnosis.linting.deployment import Deployment, Oldest, deployment, oldest_releases
from tflq.diagnosis.linting.rules import Breach, Finding, Level, LintRule, Site, rules_of, sites
from tflq.diagnosis.linting.specification import accumulator_scale
from tflq.diagnosis.linting.targets import needed_version, profiles_of, refusals_together, target_rules
from tflq.engine.api.files import ModelFacts, Source, subject
from tflq.model.ir import Model, OperatorCode, Quantization, TensorSpec, view, with_graph
from tflq.model.ir.model import MissingField
from tflq.texts import Tabular, display_by

#: The rules that apply to every target.
RULES: tuple[LintRule, ...] = (
    specification.equal_scale,
    specification.fixed_output,
    specification.softmax_range,
    specification.int16_zero_point,
    specification.zero_point_range,
    specification.usable_scale,
    targets.scale_count,
    targets.buffer_size,
    specification.bias_scale,
    specification.bias_zero_point,
    specification.bias_saturated,
    specification.weights_zero_point,
    specification.channel_count,
    accuracy.narrow_sums,
    accuracy.coarse_operand,
    accuracy.lost_scores,
    accuracy.float_between,
    accuracy.float_inside,
    targets.operator_version,
    specification.decomposition,
)


@display_by("lint:lint_report", "lint_document", "findings")
@dataclass(frozen=True, slots=True, eq=False)
class Lint(Tabular):
    """A model and its findings, by operator, then rule; and for each target that was named, whether it runs the model.

    `oldest` is the oldest release of each family that takes it, known if targets were named.
    """

    facts: ModelFacts
    model: Model
    findings: tuple[Finding, ...]
    targets: tuple[Deployment, ...] = ()
    oldest: tuple[Oldest, ...] = ()

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.level is not Level.NOTE)


def lint(
    model: Source | Model, target: str | Sequence[str] = (), signature: str | None = None, *, is_portable: bool = False
) -> Lint:
    """Check the model against the rules, and for targets: profiles, or "litert" or "cmsis-nn".

    Operators are reported that a target refuses, or computes wrongly as is known. Without a target, it is LiteRT's
    reference kernels, and for refusals also its default delegate. For a target that is named, the result also holds
    whether it runs the model, tflite-micro's arena and resolver, and what XNNPACK leaves to the interpreter.

    `signature` leaves out subgraphs that this signature does not run. `is_portable` adds notes on what keeps runtimes
    from giving the same bits for every input.

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no profile or signature of that name.

    Example:
        >>> found = tflq.lint("golden/singleop/models/add_u8_0.tflite", "tflm")
        >>> [(finding.rule, finding.op) for finding in found.findings]
        [('refused', 'ADD')]
    """
    read = subject(model)
    names = (target,) if isinstance(target, str) and target else tuple(target)
    rules = (*RULES, *(rule for name in names or ("",) for rule in target_rules(name)))
    rules = (*rules, *(rules_of(portable) if is_portable else ()))
    findings = list(dict.fromkeys(_findings(read.model, rules, signature)))
    deployments = tuple(deployment(read.model, name, profiles_of(name)[0], signature) for name in names)
    for one in deployments:
        if one.refused:
            findings += _together(read.model, rules, one.target, findings, signature)
    findings.sort(key=lambda found: (found.subgraph, found.operator))
    oldest = oldest_releases(read.model, signature) if names else ()
    return Lint(read.facts, read.model, tuple(findings), deployments, oldest)


def _together(
    model: Model, rules: tuple[LintRule, ...], target: str, known: Sequence[Finding], signature: str | None
) -> list[Finding]:
    """Return what is refused only in the whole model, at operators that `known` findings do not refuse alone."""
    refusal = next(rule for rule in rules if rule.id == "refused")
    refused = {(f.subgraph, f.operator) for f in known if f.level is Level.ERROR}
    places = {(site.subgraph, site.index): site for site in sites(model, signature)}
    found = {(k, index): breach for k, index, breach in refusals_together(model, profiles_of(target)[0], signature)}
    return [_finding(places[key], refusal, found[key]) for key in found if key in places and key not in refused]


def _findings(model: Model, rules: tuple[LintRule, ...], signature: str | None) -> Iterator[Finding]:
    for site in sites(model, signature):
        for rule in rules:
            with suppress(MissingField):  # an option that the file lacks: the kernel's prepare refuses the operator
                for breach in rule.check(site):
                    yield _finding(site, rule, breach)


def _finding(site: Site, rule: LintRule, breach: Breach) -> Finding:
    spec = site.spec(breach.tensor)
    return Finding(
        rule=(breach.outcome or rule).id,
        level=(breach.outcome or rule).level,
        summary=(breach.outcome or rule).summary,
        subgraph=site.subgraph,
        operator=site.index,
        op=site.op,
        tensor=None if spec is None else breach.tensor,
        name="" if spec is None else spec.name or "",
        required=breach.required,
        found=breach.found,
        fixable=breach.fixable,
    )


def fixed(model: Model, findings: Sequence[Finding]) -> tuple[Model, tuple[Finding, ...]]:
    """Return the model with every safe correction applied, and the corrected findings.

    A tensor or operator code that several operators use is corrected for the first finding. Kernels only check bias
    scales and zero points, and never compute with them. A version is raised, never lowered.
    """
    corrected: list[Finding] = []
    for finding in findings:
        if finding.fixable:
            model = _FIXES[finding.rule](model, finding)
            corrected.append(finding)
    return model, tuple(corrected)


def _bias_scale(model: Model, finding: Finding) -> Model:
    scale = accumulator_scale(_site(model, finding))
    if scale is None:
        return model
    spec = _spec(model, finding)
    old = spec.quantization or Quantization(scale, np.zeros(1, np.int64))
    points = np.zeros(scale.size, np.int64) if old.zero_point.size != scale.size else old.zero_point
    return _with_spec(model, finding, replace(spec, quantization=replace(old, scale=scale, zero_point=points)))


def _bias_zero_point(model: Model, finding: Finding) -> Model:
    spec = _spec(model, finding)
    if spec.quantization is None:
        return model
    symmetric = replace(spec.quantization, zero_point=np.zeros_like(spec.quantization.zero_point))
    return _with_spec(model, finding, replace(spec, quantization=symmetric))


def _version(model: Model, finding: Finding) -> Model:
    """Return the model in which the operator gets a code of its own; operators of other types keep theirs."""
    site = _site(model, finding)
    code = site.operator.code
    raised = replace(code, version=max(code.version, needed_version(site)))
    codes, number = _with_code(model.operator_codes, raised)
    operators = list(site.graph.record.operators)
    operators[site.index] = replace(site.operator.record, opcode_index=number)
    graph = replace(site.graph.record, operators=tuple(operators))
    return with_graph(replace(model, operator_codes=codes), graph, site.subgraph)


def _with_code(codes: tuple[OperatorCode, ...], code: OperatorCode) -> tuple[tuple[OperatorCode, ...], int]:
    return (codes, codes.index(code)) if code in codes else ((*codes, code), len(codes))


def _site(model: Model, finding: Finding) -> Site:
    return Site(model, finding.subgraph, finding.operator)


def _spec(model: Model, finding: Finding) -> TensorSpec:
    return view(model, finding.subgraph).tensors[finding.tensor or 0]


def _with_spec(model: Model, finding: Finding, spec: TensorSpec) -> Model:
    graph = view(model, finding.subgraph)
    tensors = list(graph.tensors)
    tensors[finding.tensor or 0] = spec
    return with_graph(model, replace(graph.record, tensors=tuple(tensors)), finding.subgraph)


_FIXES = {"bias-scale": _bias_scale, "bias-zero-point": _bias_zero_point, "operator-version": _version}
