"""Two sessions compared step by step: bits, signal to noise, tokens, perplexity, and where they first differ."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from tflq.comparison.sessions.engines import Observed, RuntimeEngine, engine_of
from tflq.comparison.sessions.judge import Judge
from tflq.comparison.sessions.plan import Plan, planned
from tflq.comparison.sessions.results import ComparedStep, FirstDifference, SessionComparison
from tflq.engine.api.files import Source
from tflq.engine.api.subject import Subject, subject
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Runtime, Step
from tflq.model.ir import Model
from tflq.typing import Array

#: A profile or a real runtime: by name, a runtime's after "runtime:", or as a value.
Side = str | Profile | Runtime


def compare_sessions(
    model: Source | Model,
    other: Source | Model | None = None,
    between: tuple[Side, Side] = ("litert-ref", "litert-xnnpack"),
    prompt: Sequence[int] | None = None,
    follow: Sequence[int] = (),
    steps: int | None = None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None,
    signature: str | None = None,
    seed: int = 0,
    python: str | None = None,
    *,
    free: bool = False,
    operators: bool = True,
) -> SessionComparison:
    """Run a model step by step twice, with its state carried over, and compare every step.

    A decoder reads `prompt` (drawn at random if None) by its prefills, and what follows by decode. Tokens beyond
    `follow` are those that the first side chooses, unless `free`. Any other model runs `inputs`, one sample a step.

    Args:
        model: A path, the bytes of a file, or a Model.
        other: The model of the second side, if it is not the same.
        between: For each side a profile, or "runtime:NAME" for a real runtime.
        prompt: Token ids.
        follow: Token ids of a text after the prompt, for perplexities.
        steps: Number of steps of decode, or of samples to generate for other models. None: all of `follow`, else 20.
        inputs: For models that are no decoders: samples by input name, or an .npz with a first axis of steps.
        signature: The signature that `inputs` are for.
        seed: The seed of random tokens and inputs.
        python: The path of a Python that has the runtime installed, if not this one.
        free: Let each side choose its own tokens after the prompt.
        operators: Compare the results of all operators, too.

    Raises:
        InputError: Tokens or inputs do not fit.
        UnknownNameError: There is no profile, runtime or signature of that name.
        RuntimeMissing, RuntimeFailed: See `verify`.

    Example:
        >>> sides = "litert-ref", "litert-ref"
        >>> found = tflq.compare_sessions("golden/models/tiny_decoder_int8.tflite", between=sides, steps=4)
        >>> found.same, found.agreement
        (True, (6, 6))
    """
    first = subject(model)
    second = first if other is None else subject(other)
    engines = engine_of(first, between[0], python), engine_of(second, between[1], python)
    plan = planned(first.model, prompt, follow, steps, inputs, signature, seed)
    forced = plan.forced(engines[0])
    scripts = (forced, plan.steps if free else forced)
    runs = [engine.run(script, tensors=operators) for engine, script in zip(engines, scripts, strict=True)]
    pairs = zip(scripts[0], *runs, strict=True)
    compared, texts, first_difference = _compared(first, second, plan, pairs, free=free)
    notes = (*plan.notes, *(note for e in engines if isinstance(e, RuntimeEngine) for note in e.notes))
    return SessionComparison(
        models=(first.facts,) if other is None else (first.facts, second.facts),
        names=(engines[0].name, engines[1].name),
        steps=compared,
        first=first_difference,
        free=free,
        texts=texts,
        prompt=plan.prompt,
        notes=notes,
    )


def _compared(
    first: Subject, second: Subject, plan: Plan, pairs: Iterable[tuple[Step, Observed, Observed]], *, free: bool
) -> tuple[tuple[ComparedStep, ...], tuple[tuple[int, ...], tuple[int, ...]], FirstDifference | None]:
    """Return the steps, the tokens that each side chose, and the first difference."""
    found: list[ComparedStep] = []
    texts: tuple[list[int], list[int]] = ([], [])
    where: FirstDifference | None = None
    judges: dict[str | None, Judge] = {}
    for number, (step, one, two) in enumerate(pairs):
        judge = judges.get(step.signature)
        if judge is None:
            judge = judges[step.signature] = Judge(first.model, second.model, plan, step.signature)
        compared = judge.compared(number, one, two)
        found.append(compared)
        if where is None and compared.differs:
            where = judge.first(compared, one, two)
        if compared.logits is not None:
            for text, choice in zip(texts, compared.logits.choices, strict=True):
                text.append(choice)
            if free and not compared.logits.agree:
                break  # the sides read different texts from here on
    return tuple(found), (tuple(texts[0]), tuple(texts[1])), where
