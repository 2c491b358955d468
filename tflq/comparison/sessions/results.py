"""The results of comparing two sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tflq.comparison.inspection.difference import Difference
from tflq.display import display_by
from tflq.engine.api.subject import ModelFacts


@dataclass(frozen=True, slots=True)
class Logits:
    """The scores of two sessions after the same step.

    `noise` is in dB, `divergence` KL(first || second) in nats. `choices` are the greatest of each. `losses` are
    -log p, nats, of the token that follows; None if no token does.
    """

    noise: float
    divergence: float
    choices: tuple[int, int]
    losses: tuple[float, float] | None

    @property
    def agree(self) -> bool:
        """True if both choose the same token."""
        return self.choices[0] == self.choices[1]


@dataclass(frozen=True, slots=True)
class Band:
    """A group of operators in one step: results compared, results that differ, and the least dB of these."""

    name: str
    compared: int = 0
    differing: int = 0
    noise: float = math.inf


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """One step: the token position, outputs with their differences and dB, logits if it has any, and bands.

    `lacking` are the outputs that one of the two sides does not have.
    """

    number: int
    signature: str
    position: int
    tokens: tuple[int, ...]
    outputs: Mapping[str, Difference]
    noise: Mapping[str, float]
    logits: Logits | None
    bands: tuple[Band, ...]
    lacking: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if every bit of every output agrees."""
        return all(found.same for found in self.outputs.values())

    @property
    def differs(self) -> bool:
        """True if an output or the result of an operator differs."""
        return not self.same or any(band.differing for band in self.bands)


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first step that differs, and in it the first operator and output.

    `operator` is the operator's index and name; None if no operators were observed. `slot` is the first index of a
    differing element of the output.
    """

    step: int
    signature: str
    position: int
    operator: tuple[int, str] | None
    band: str
    output: str
    slot: tuple[int, ...]


@display_by("session.report:session_card")
@dataclass(frozen=True, slots=True)
class SessionComparison:
    """Two sessions. `names` are those of the engines; `models` has one entry if both run the same file.

    `same_model` is True if outputs are compared bit by bit. `free` is True if each side chose its own tokens; then
    `texts` differ from `parted` on, the number of tokens that both chose alike.
    """

    models: tuple[ModelFacts, ...]
    names: tuple[str, str]
    steps: tuple[ComparedStep, ...]
    first: FirstDifference | None
    free: bool
    texts: tuple[tuple[int, ...], tuple[int, ...]]
    prompt: int
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if every bit of every output of every step was compared and agrees."""
        return self.verdict == "same"

    @property
    def verdict(self) -> str:
        """The verdict, one of exits.VERDICTS; two models are "compared" if an output differs."""
        if not any(step.outputs for step in self.steps):
            return "nothing compared"
        if not all(step.same for step in self.steps):
            return "compared" if len(self.models) > 1 else "differs"
        return "incomplete" if any(step.lacking for step in self.steps) else "same"

    @property
    def scored(self) -> tuple[ComparedStep, ...]:
        """Steps with logits."""
        return tuple(step for step in self.steps if step.logits is not None)

    @property
    def agreement(self) -> tuple[int, int]:
        """Steps in which both choose the same token, and steps with logits."""
        return sum(step.logits is not None and step.logits.agree for step in self.steps), len(self.scored)

    @property
    def perplexities(self) -> tuple[float, float] | None:
        """exp of the mean loss of each side over the tokens of the text; None if no step has a known next token."""
        losses = [step.logits.losses for step in self.steps if step.logits is not None and step.logits.losses]
        if not losses:
            return None
        first, second = (math.exp(min(sum(side) / len(losses), 700.0)) for side in zip(*losses, strict=True))
        return first, second

    @property
    def parted(self) -> int | None:
        """The number of tokens after which the texts differ; None if they agree."""
        pairs = zip(*self.texts, strict=False)
        return next((k for k, (a, b) in enumerate(pairs) if a != b), None)
