"""The steps of a session: tokens of a decoder, or the inputs of a model with state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError
from tflq.ir import CARRIER, TensorSpec, TensorType
from tflq.runtimes import Step
from tflq.sessions.roles import Decoder, Roles, mask_of

Array = NDArray[Any]


def decoder_steps(decoder: Decoder, prompt: Sequence[int], follow: Sequence[int], count: int) -> list[tuple[int, Step]]:
    """Return the steps that read `prompt` by prefills and the rest by `count` steps of decode, with their positions.

    Decode reads `follow` after the prompt, and then the tokens of its greatest logits. Prefills take as many tokens as
    they fit without padding, the longest first. Decode begins with the first token that no prefill took, or with the
    prompt's last one again: its logits are needed.

    Raises:
        InputError: No token, one beyond the vocabulary, or more positions than the model has.
    """
    _check(decoder, (*prompt, *follow))
    steps: list[tuple[int, Step]] = []
    done = 0
    for roles in decoder.prefills:
        while len(prompt) - done >= roles.count:
            steps.append((done, _step(roles, done, prompt[done : done + roles.count], fresh=not steps)))
            done += roles.count
    text = (*prompt, *follow)
    at = min(done, len(prompt) - 1)
    end = at + count
    if count < 1:
        raise InputError("a session has at least one step of decode", got=count)
    if decoder.context and end > decoder.context:
        raise InputError("number of positions", expected=f"at most {decoder.context}", got=end)
    for position in range(at, end):
        steps.append((position, _step(decoder.decode, position, text[position : position + 1], fresh=not steps)))
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
        inputs |= {name: empty(roles.specs[name]) for name in roles.caches}
    greedy = {} if tokens else {roles.tokens: (str(roles.logits), roles.shape(roles.tokens))}
    return Step(roles.signature, inputs, () if fresh else roles.caches, greedy)


def empty(spec: TensorSpec) -> Array:
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
    """Yield a step for each sample. Carried inputs are empty at first, then the output of the same name."""
    for k, sample in enumerate(samples):
        missing = next((name for name in specs if name not in sample and name not in carried), None)
        if missing is not None:
            raise InputError("no value is given", name=missing)
        state = {name: empty(specs[name]) for name in carried if name not in sample} if not k else {}
        yield Step(signature, {**state, **sample}, tuple(n for n in carried if k and n not in sample))
