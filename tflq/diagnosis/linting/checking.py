"""`lint`: every rule on every operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflq.diagnosis.linting import accuracy, activations, composites, loading, portable, versions, weights
from tflq.diagnosis.linting.findings import Breach, Finding, Level, Rule
from tflq.diagnosis.linting.site import Site, sites
from tflq.diagnosis.linting.targets import default_rules, target_rules
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
    """Check the model against the rules, and against those of `target` ("litert", "tflm", "cmsis-nn").

    Without a target, operators are reported that LiteRT refuses, with or without its default delegate.

    `signature` leaves out subgraphs that this signature does not run. `is_portable` adds notes on what keeps runtimes
    from giving the same bits for every input.

    Raises:
        FileAccessError, FormatError, ModelError: See `load`.
        UnknownNameError: There is no target or signature of that name.

    Example:
        >>> found = tflq.lint("golden/singleop/models/add_u8_0.tflite", "tflm")
        >>> [(finding.rule, finding.op) for finding in found.findings]
        [('refused', 'ADD')]
    """
    read = subject(model)
    rules = (*RULES, *(target_rules(target) if target else default_rules()), *(portable.RULES if is_portable else ()))
    return Lint(read.facts, read.model, target, tuple(_findings(read.model, rules, signature)))


def _findings(model: Model, rules: tuple[Rule, ...], signature: str | None) -> Iterator[Finding]:
    for site in sites(model, signature):
        for rule in rules:
            for breach in rule.check(site):
                yield _finding(site, rule, breach)


def _finding(site: Site, rule: Rule, breach: Breach) -> Finding:
    spec = site.spec(breach.tensor)
    return Finding(
        rule=rule.id,
        level=rule.level,
        summary=rule.summary,
        subgraph=site.subgraph,
        operator=site.index,
        op=site.op,
        tensor=None if spec is None else breach.tensor,
        name="" if spec is None else spec.name or "",
        required=breach.required,
        found=breach.found,
        fixable=breach.fixable,
    )
