"""The steps of a session: tokens of a decoder, or inputs of a model with state.

The parts that inputs and outputs of a decoder's signatures play: tokens, positions, mask, caches, logits.

Names of inputs. Source: LiteRT-LM 0.18, runtime/executor/litert_compiled_model_executor_utils.cc.

The plan of a session: its steps, and what is known of them before they run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.comparison.inputs.generate import GENERATORS, generate
from tflq.comparison.sessions.engines import Engine
from tflq.engine.runtimes import Invocation
from tflq.errors import InputError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, rooted, roots, view
from tflq.model.ir.constants import zero_point_of
from tflq.model.ir.signatures import Root, only_root, signature_of
from tflq.model.storage.arrays import opened
from tflq.texts import Statement
from tflq.typing import Array

_TOKENS = frozenset(("tokens", "token_ids", "input_ids"))
_POSITIONS = frozenset(("input_pos", "positions", "position_ids"))
_MASKS = frozenset(("mask", "attn_mask", "attention_mask"))
#: Operators that hand indices on to a look-up, and look-ups with the operands that hold indices and the table.
_MOVES = frozenset(("RESHAPE", "CAST", "SQUEEZE", "EXPAND_DIMS"))
_LOOKUPS = {"EMBEDDING_LOOKUP": (0, 1), "GATHER": (1, 0)}


@dataclass(frozen=True, slots=True)
class StepRoles:
    """The roles in one signature, by names of inputs and outputs.

    `count` is the number of tokens that it takes. `caches` are inputs with an output of the same name; `logits` is the
    output with a score for each token, if there is one. `vocabulary` is the number of tokens, `context` that of
    positions; 0 where the model does not state it.
    """

    signature: str
    count: int
    tokens: str
    specs: Mapping[str, TensorSpec]
    positions: str | None
    mask: str | None
    caches: tuple[str, ...]
    logits: str | None
    vocabulary: int
    context: int

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.specs[name].shape


@dataclass(frozen=True, slots=True)
class Decoder:
    """The signatures of a decoder: one that takes one token, and those that take more, the longest first."""

    decode: StepRoles
    prefills: tuple[StepRoles, ...]

    @property
    def vocabulary(self) -> int:
        """Number of tokens; 0 if the model does not state it."""
        return self.decode.vocabulary

    @property
    def context(self) -> int:
        """Number of positions that the caches hold; 0 if the model does not state it."""
        return self.decode.context


def decoder_of(model: Model) -> Decoder | None:
    """Return the roles in a model that has a signature which takes one token and returns logits; else None.

    Raises:
        InputError: Such a signature has an input without a known role.
    """
    found = [roles for root in roots(model) if (roles := _roles(model, root)) is not None]
    decodes = [roles for roles in found if roles.count == 1 and roles.logits is not None]
    if not decodes:
        return None
    decode = next((roles for roles in decodes if roles.signature == "decode"), decodes[0])
    prefills = (roles for roles in found if roles.count > 1 and set(roles.caches) >= set(decode.caches))
    return Decoder(decode, tuple(sorted(prefills, key=lambda roles: -roles.count)))


def _roles(model: Model, root: Root) -> StepRoles | None:
    signature = signature_of(model, root)
    if signature is None:
        return None
    graph = rooted(model, root)
    tensors = view(graph).tensors
    specs = {name: tensors[tensor] for name, tensor in signature.inputs}
    outputs = {name: tensors[tensor] for name, tensor in signature.outputs}
    tokens = next((name for name in specs if name in _TOKENS and _is_integer(specs[name])), None)
    if tokens is None:
        return None
    caches = tuple(name for name in specs if name in outputs and name != tokens)
    positions = next((name for name in specs if name in _POSITIONS), None)
    mask = next((name for name in specs if name in _MASKS), None)
    unknown = sorted(set(specs) - {tokens, positions, mask, *caches})
    if unknown:
        raise InputError(
            "is neither tokens, positions, a mask nor a cache: give the inputs of all steps in a file",
            name=f"{root}: input {unknown[0]}",
        )
    bound = _vocabulary(graph, dict(signature.inputs)[tokens])
    logits = next((n for n, t in outputs.items() if n not in caches and _is_scores(t, bound)), None)
    context = _context(specs, mask, caches, outputs)
    count = math.prod(specs[tokens].shape)
    return StepRoles(str(root), count, tokens, specs, positions, mask, caches, logits, bound, context)


def _is_integer(spec: TensorSpec) -> bool:
    return isinstance(spec.type, TensorType) and CARRIER[spec.type].kind in "iu"


def _is_scores(spec: TensorSpec, vocabulary: int) -> bool:
    if not spec.shape or not isinstance(spec.type, TensorType):
        return False
    return CARRIER[spec.type].kind in "fi" and (not vocabulary or spec.shape[-1] == vocabulary)


def _vocabulary(model: Model, tensor: int) -> int:
    """Return the number of rows of the smallest table in which the model looks up the input; 0 if there is none."""
    return min(_tables(model, tensor), default=0)


def _tables(model: Model, tensor: int) -> Iterator[int]:
    graph, waiting, seen = view(model), [tensor], set[int]()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        for operator in graph.ops:
            if here not in operator.inputs:
                continue
            if operator.name in _LOOKUPS:
                index, table = _LOOKUPS[operator.name]
                spec = graph.operand(operator.inputs[table])
                if operator.inputs[index] == here and spec is not None and spec.shape:
                    yield spec.shape[0]
            elif operator.name in _MOVES:
                waiting += operator.outputs


def _context(
    specs: Mapping[str, TensorSpec], mask: str | None, caches: tuple[str, ...], outputs: Mapping[str, TensorSpec]
) -> int:
    """Return the number of positions: the last dimension of the mask, else the longest dimension all caches share."""
    if mask is not None:
        return specs[mask].shape[-1]
    shared = set.intersection(*(set(specs[name].shape) for name in caches)) if caches else set()
    return max(shared, default=0)


def mask_of(roles: StepRoles, first: int) -> Array:
    """Return the causal mask of the tokens at positions from `first` on.

    A position attends to itself and all before it. Source of the values: LiteRT-LM 0.18, FillAttentionMask.

    Raises:
        InputError: The mask has an element type without a known meaning.
    """
    assert roles.mask is not None
    spec = roles.specs[roles.mask]
    allowed = np.arange(spec.shape[-1]) <= first + np.arange(roles.count)[:, None]
    if spec.type == TensorType.BOOL:
        values = allowed
    elif spec.type == TensorType.FLOAT32:
        values = np.where(allowed, np.float32(0), np.float32(-0.7) * np.finfo(np.float32).max)
    else:
        kind = getattr(spec.type, "name", spec.type)
        raise InputError("has a type without a known meaning", name=f"mask {roles.mask}", expected="float32", got=kind)
    return np.broadcast_to(values, spec.shape).copy()


def decoder_steps(
    decoder: Decoder, prompt: Sequence[int], follow: Sequence[int], count: int, begin: int = 0
) -> list[tuple[int, Invocation]]:
    """Return the steps that read `prompt` and `count` tokens from its last one on, with their positions.

    After the prompt come the tokens of `follow`, and then those of the greatest logits. Prefills take as many tokens of
    the prompt as they fit without padding, the longest first. Decode reads the rest, and the last one in any case: its
    logits are needed. `begin` counts tokens that were read before.

    Raises:
        InputError: No token, one beyond the vocabulary, or more positions than the model has.
    """
    _check(decoder, (*prompt, *follow))
    steps: list[tuple[int, Invocation]] = []
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


def with_tokens(step: Invocation, roles: StepRoles, token: int) -> Invocation:
    """Return a step of decode with a token in place of its choice."""
    value = np.full(roles.shape(roles.tokens), token, _dtype(roles.specs[roles.tokens]))
    return replace(step, inputs={**step.inputs, roles.tokens: value}, greedy={})


def _check(decoder: Decoder, tokens: Sequence[int]) -> None:
    if not tokens:
        raise InputError("the prompt has no token: give at least one")
    wrong = [token for token in tokens if not 0 <= token < (decoder.vocabulary or 1 << 31)]
    if wrong:
        raise InputError("token", expected=f"0 to {decoder.vocabulary - 1}", got=wrong[0])


def _step(roles: StepRoles, first: int, tokens: Sequence[int], *, fresh: bool) -> Invocation:
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
    return Invocation(roles.signature, inputs, () if fresh else roles.caches, greedy)


def initial(spec: TensorSpec) -> Array:
    """Return a cache that holds nothing: real zeros."""
    return np.full(spec.shape, zero_point_of(spec), _dtype(spec))


def _dtype(spec: TensorSpec) -> np.dtype[Any]:
    if not isinstance(spec.type, TensorType):
        raise InputError("has an unknown element type", name=f"input {spec.name}", got=spec.type)
    return CARRIER[spec.type]


def stream_steps(
    signature: str | None,
    specs: Mapping[str, TensorSpec],
    carried: Sequence[str],
    samples: Sequence[Mapping[str, Array]],
) -> Iterator[Invocation]:
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
        yield Invocation(signature, {**state, **sample}, tuple(n for n in carried if k and n not in sample))


#: Steps if none are asked for, and tokens of a random prompt beyond the shortest prefill.
_STEPS, _BEYOND = 20, 3


@dataclass(frozen=True, slots=True, eq=False)
class SessionPlan:
    """The steps of a session.

    `text` holds the tokens of a given text, `prompt` counts those of the prompt; `positions` is that of each
    step's first token, or its number for a model that is no decoder. `carried` names the inputs that hold state.
    """

    steps: tuple[Invocation, ...]
    positions: tuple[int, ...]
    carried: tuple[str, ...]
    decoder: Decoder | None = None
    text: tuple[int, ...] = ()
    prompt: int = 0
    notes: tuple[str, ...] = ()

    def roles(self, signature: str | None) -> StepRoles | None:
        """Return the roles of a signature; None if it is not one of a decoder's."""
        every = () if self.decoder is None else (self.decoder.decode, *self.decoder.prefills)
        return next((roles for roles in every if roles.signature == signature), None)

    def following(self, number: int) -> int | None:
        """Return the token that follows a step in the known text."""
        roles = self.roles(self.steps[number].signature)
        after = self.positions[number] + (0 if roles is None else roles.count)
        return self.text[after] if roles is not None and after < len(self.text) else None

    def forced(self, engine: Engine) -> tuple[Invocation, ...]:
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
) -> SessionPlan:
    """Return the plan for a decoder, or for any other model with state: see compare_sessions."""
    decoder = decoder_of(model) if inputs is None else None
    if decoder is not None and signature in (None, decoder.decode.signature):
        return _of_decoder(decoder, prompt, follow, steps, seed)
    if prompt is not None or follow:
        raise InputError("tokens are for a decoder: no signature of this model takes one token and returns logits")
    return _of_stream(model, signature, inputs, steps or _STEPS, seed)


def _of_decoder(
    decoder: Decoder, prompt: Sequence[int] | None, follow: Sequence[int], steps: int | None, seed: int
) -> SessionPlan:
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
    return SessionPlan(steps_, positions, decoder.decode.caches, decoder, text, len(prompt), tuple(notes))


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
) -> SessionPlan:
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
    return SessionPlan(script, tuple(range(len(script))), carried)


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
