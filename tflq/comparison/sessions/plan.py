"""The plan of a session: its steps, and what is known of them before they run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.comparison.sessions.engines import Engine
from tflq.comparison.sessions.roles import Decoder, Roles, decoder_of
from tflq.comparison.sessions.script import decoder_steps, stream_steps, with_tokens
from tflq.comparison.verification.generators import GENERATORS, generate
from tflq.engine.runtimes import Step
from tflq.errors import InputError
from tflq.model.ir import Model, TensorSpec, rooted, view
from tflq.model.ir.signatures import only_root, signature_of
from tflq.model.storage.archive import opened
from tflq.statements import Statement
from tflq.typing import Array

#: Steps if none are asked for, and tokens of a random prompt beyond the shortest prefill.
_STEPS, _BEYOND = 20, 3


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps of a session.

    `text` holds the tokens of a given text, `prompt` counts those of the prompt; `positions` is that of each
    step's first token, or its number for a model that is no decoder. `carried` names the inputs that hold state.
    """

    steps: tuple[Step, ...]
    positions: tuple[int, ...]
    carried: tuple[str, ...]
    decoder: Decoder | None = None
    text: tuple[int, ...] = ()
    prompt: int = 0
    notes: tuple[str, ...] = ()

    def roles(self, signature: str | None) -> Roles | None:
        """Return the roles of a signature; None if it is not one of a decoder's."""
        every = () if self.decoder is None else (self.decoder.decode, *self.decoder.prefills)
        return next((roles for roles in every if roles.signature == signature), None)

    def following(self, number: int) -> int | None:
        """Return the token that follows a step in the known text."""
        roles = self.roles(self.steps[number].signature)
        after = self.positions[number] + (0 if roles is None else roles.count)
        return self.text[after] if roles is not None and after < len(self.text) else None

    def forced(self, engine: Engine) -> tuple[Step, ...]:
        """Return the steps with the tokens that `engine` chooses in place of each side's own choice."""
        if self.decoder is None or not any(step.greedy for step in self.steps):
            return self.steps
        roles = self.decoder.decode
        results = engine.run(self.steps)
        return tuple(
            with_tokens(step, roles, int(result.inputs[roles.tokens].ravel()[0])) if step.greedy else step
            for step, result in zip(self.steps, results, strict=True)
        )


def planned(
    model: Model,
    prompt: Sequence[int] | None,
    follow: Sequence[int],
    steps: int | None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None,
    signature: str | None,
    seed: int,
) -> Plan:
    """Return the plan for a decoder, or for any other model with state: see compare_sessions."""
    decoder = decoder_of(model) if inputs is None else None
    if decoder is not None and signature in (None, decoder.decode.signature):
        return _of_decoder(decoder, prompt, follow, steps, seed)
    if prompt is not None or follow:
        raise InputError("tokens are for a decoder: no signature of this model takes one token and returns logits")
    return _of_stream(model, signature, inputs, steps or _STEPS, seed)


def _of_decoder(
    decoder: Decoder, prompt: Sequence[int] | None, follow: Sequence[int], steps: int | None, seed: int
) -> Plan:
    notes: list[str] = []
    given = prompt is not None
    if prompt is None:
        prompt = random_prompt(decoder, seed)
        said = f"the prompt is {len(prompt)} random tokens (seed {seed}); --prompt or --tokens gives a text"
        notes.append(Statement(said, "random-prompt", tokens=len(prompt), seed=seed))
    known = tuple(map(int, (*prompt, *follow)))
    count = steps if steps is not None else len(follow) or _room(decoder, len(prompt))
    if count < len(follow):
        said = f"{count:,} of the {len(follow):,} tokens after the prompt are read"
        notes.append(Statement(said, "text-cut", tokens=len(follow), read=count))
    script = decoder_steps(decoder, known[: len(prompt)], known[len(prompt) :], count)
    positions, steps_ = zip(*script, strict=True)
    if decoder.prefills and all(step.signature == decoder.decode.signature for step in steps_):
        least = decoder.prefills[-1]
        said = f"the prompt has fewer than {least.count} tokens, so {least.signature} does not run"
        notes.append(Statement(said, "short-prompt", least=least.count, signature=least.signature))
    text = known if given else ()
    return Plan(steps_, positions, decoder.decode.caches, decoder, text, len(prompt), tuple(notes))


def _room(decoder: Decoder, prompt: int) -> int:
    return max(1, min(_STEPS, decoder.context - prompt + 1)) if decoder.context else _STEPS


def random_prompt(decoder: Decoder, seed: int) -> tuple[int, ...]:
    """Return tokens that run the shortest prefill, if there is one, and a few steps of decode.

    Raises:
        InputError: The model does not state the number of tokens.
    """
    if not decoder.vocabulary:
        raise InputError("the number of tokens is unknown: give a prompt")
    count = (decoder.prefills[-1].count if decoder.prefills else 0) + _BEYOND
    count = min(count, decoder.context or count)
    return tuple(map(int, np.random.default_rng(seed).integers(0, decoder.vocabulary, count)))


def _of_stream(
    model: Model,
    signature: str | None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None,
    steps: int,
    seed: int,
) -> Plan:
    root = only_root(model, signature)
    alone, named = rooted(model, root), signature_of(model, root)
    graph = view(alone)
    pairs = tuple((str(k), t) for k, t in enumerate(graph.inputs)) if named is None else named.inputs
    specs = {name: graph.tensors[t] for name, t in pairs}
    outputs = {} if named is None else dict(named.outputs)
    carried = tuple(name for name in specs if name in outputs)
    samples: Sequence[Mapping[str, Array]]
    if inputs is None:
        drawn = generate(alone, GENERATORS["random"], steps, seed)
        order = {t: k for k, t in enumerate(graph.inputs)}
        samples = [{name: sample[order[t]] for name, t in pairs if name not in carried} for sample in drawn]
    elif isinstance(inputs, (str, os.PathLike)):
        samples = _rows(inputs, specs)
    else:
        samples = inputs
    script = tuple(stream_steps(root.signature, specs, carried, samples))
    return Plan(script, tuple(range(len(script))), carried)


def _rows(path: str | os.PathLike[str], specs: Mapping[str, TensorSpec]) -> list[Mapping[str, Array]]:
    """Return a sample for each row of the arrays of an .npz file."""
    with opened(path) as archive:
        arrays = {name: np.asarray(archive[name]) for name in archive}
    unknown = sorted(set(arrays) - set(specs))
    if unknown:
        raise InputError("is no input", name=f"{os.fspath(path)}: {unknown[0]}", expected=", ".join(specs))
    counts = {value.shape[0] if value.ndim else 0 for value in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise InputError("has arrays whose first axes, the steps, are empty or not equal", name=os.fspath(path))
    return [{name: value[k] for name, value in arrays.items()} for k in range(counts.pop())]
