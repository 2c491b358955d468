"""The steps of a session: tokens of a decoder, or the inputs of a model with state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.comparison.sessions.roles import Decoder, Roles, mask_of
from tflq.engine.runtimes import Step
from tflq.errors import InputError
from tflq.model.ir import CARRIER, TensorSpec, TensorType
from tflq.typing import Array


def decoder_steps(
    decoder: Decoder, prompt: Sequence[int], follow: Sequence[int], count: int, begin: int = 0
) -> list[tuple[int, Step]]:
    """Return the steps that read `prompt` and `count` tokens from its last one on, with their positions.

    After the prompt come the tokens of `follow`, and then those of the greatest logits. Prefills take as many tokens of
    the prompt as they fit without padding, the longest first. Decode reads the rest, and the last one in any case: its
    logits are needed. `begin` counts tokens that were read before.

    Raises:
        InputError: No token, one beyond the vocabulary, or more positions than the model has.
    """
    _check(decoder, (*prompt, *follow))
    steps: list[tuple[int, Step]] = []
    done = 0
    fresh = not begin
    for roles in decoder.prefills:
        while len(prompt) - done >= roles.count:
            tokens = prompt[done : done + roles.count]
            steps.append((begin + done, _step(roles, begin + done, tokens, fresh=fresh and not steps)))
            done += roles.count
    text = (*prompt, *follow)
    at = min(done, len(prompt) - 1)
    end = len(prompt) - 1 + count
    if count < 1:
        raise InputError("a session has at least one step of decode", got=count)
    if decoder.context and begin + end > decoder.context:
        raise InputError("number of positions", expected=f"at most {decoder.context}", got=begin + end)
    for k in range(at, end):
        step = _step(decoder.decode, begin + k, text[k : k + 1], fresh=fresh and not steps)
        steps.append((begin + k, step))
    return steps


def with_tokens(step: Step, roles: Roles, token: int) -> Step:
    """Return a step of decode with a token in place of its choice."""
    value = np.full(roles.shape(roles.tokens), token, _dtype(roles.specs[roles.tokens]))
    return replace(step, inputs={**step.inputs, roles.tokens: value}, greedy={})


def _check(decoder: Decoder, tokens: Sequence[int]) -> None:
    if not tokens:
        raise InputError("the prompt has no token: give at least one")
    wrong = [token for token in tokens if not 0 <= token < (decoder.vocabulary or 1 << 31)]
    if wrong:
        raise InputError("token", expected=f"0 to {decoder.vocabulary - 1}", got=wrong[0])


def _step(roles: Roles, first: int, tokens: Sequence[int], *, fresh: bool) -> Step:
    """Return one step at positions from `first` on. Without tokens it takes the one with the greatest logit."""
    inputs: dict[str, Array] = {}
    if tokens:
        inputs[roles.tokens] = np.array(tokens, _dtype(roles.specs[roles.tokens])).reshape(roles.shape(roles.tokens))
    if roles.positions is not None:
        spec = roles.specs[roles.positions]
        inputs[roles.positions] = np.arange(first, first + roles.count).astype(_dtype(spec)).reshape(spec.shape)
    if roles.mask is not None:
        inputs[roles.mask] = mask_of(roles, first)
    if fresh:
        inputs |= {name: initial(roles.specs[name]) for name in roles.caches}
    greedy = {} if tokens else {roles.tokens: (str(roles.logits), roles.shape(roles.tokens))}
    return Step(roles.signature, inputs, () if fresh else roles.caches, greedy)


def initial(spec: TensorSpec) -> Array:
    """Return a cache that holds nothing: real zeros."""
    quantization = spec.quantization
    zero = quantization.zero_point[0] if quantization is not None and np.size(quantization.zero_point) else 0
    return np.full(spec.shape, zero, _dtype(spec))


def _dtype(spec: TensorSpec) -> np.dtype[Any]:
    if not isinstance(spec.type, TensorType):
        raise InputError("has an unknown element type", name=f"input {spec.name}", got=spec.type)
    return CARRIER[spec.type]


def stream_steps(
    signature: str | None,
    specs: Mapping[str, TensorSpec],
    carried: Sequence[str],
    samples: Sequence[Mapping[str, Array]],
) -> Iterator[Step]:
    """Yield a step for each sample. Carried inputs are empty at first, then the output of the same name.

    Raises:
        InputError: There is no sample, or one lacks an input.
    """
    if not samples:
        raise InputError("no step: there is no sample of the inputs")
    for k, sample in enumerate(samples):
        missing = next((name for name in specs if name not in sample and name not in carried), None)
        if missing is not None:
            raise InputError("no value is given", name=missing)
        state = {name: initial(specs[name]) for name in carried if name not in sample} if not k else {}
        yield Step(signature, {**state, **sample}, tuple(n for n in carried if k and n not in sample))
