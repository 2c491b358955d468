"""`lint`: every rule on every operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflq.diagnosis.linting import accuracy, activations, composites, loading, portable, versions, weights
from tflq.diagnosis.linting.findings import Breach, Finding, Level, Rule
from tflq.diagnosis.linting.site import Site, sites
from tflq.diagnosis.linting.targets import profiles_of, refusals_together, target_rules
from tflq.display import display_by
from tflq.engine.api.files import Source
from tflq.engine.api.subject import ModelFacts, subject
from tflq.model.ir import Model

#: The rules that apply to every target.
RULES: tuple[Rule, ...] = (
    *activations.RULES,
    *loading.RULES,
    *weights.RULES,
    *accuracy.RULES,
    *versions.RULES,
    *composites.RULES,
)


@display_by("lint:lint_report")
@dataclass(frozen=True, slots=True, eq=False)
class Lint:
    """A model and its findings, by operator, then rule. `target` is "" if none was named."""

    facts: ModelFacts
    model: Model
    target: str
    findings: tuple[Finding, ...]

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.level is not Level.NOTE)


def lint(model: Source | Model, target: str = "", signature: str | None = None, *, is_portable: bool = False) -> Lint:
    """Check the model against the rules, and for a `target`: a profile, or "litert" or "cmsis-nn".

    Operators are reported that the target refuses, or computes wrongly as is known. Without a target, it is LiteRT's
    reference kernels, and for refusals also its default delegate.

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
    rules = (*RULES, *target_rules(target), *(portable.RULES if is_portable else ()))
    findings = list(_findings(read.model, rules, signature))
    if target:
        findings += _together(read.model, rules, target, findings, signature)
        findings.sort(key=lambda found: (found.subgraph, found.operator))
    return Lint(read.facts, read.model, target, tuple(findings))


def _together(
    model: Model, rules: tuple[Rule, ...], target: str, known: Sequence[Finding], signature: str | None
) -> list[Finding]:
    """Return what is refused only in the whole model, at operators that `known` findings do not refuse alone."""
    refusal = next(rule for rule in rules if rule.id == "refused")
    refused = {(f.subgraph, f.operator) for f in known if f.level is Level.ERROR}
    places = {(site.subgraph, site.index): site for site in sites(model, signature)}
    found = {(k, index): breach for k, index, breach in refusals_together(model, profiles_of(target))}
    return [_finding(places[key], refusal, found[key]) for key in found if key in places and key not in refused]


def _findings(model: Model, rules: tuple[Rule, ...], signature: str | None) -> Iterator[Finding]:
    for site in sites(model, signature):
        for rule in rules:
            for breach in rule.check(site):
                yield _finding(site, rule, breach)


def _finding(site: Site, rule: Rule, breach: Breach) -> Finding:
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
