"""The parts that inputs and outputs of a decoder's signatures play: tokens, positions, mask, caches, logits.

Names of inputs. Source: LiteRT-LM 0.18, runtime/executor/litert_compiled_model_executor_utils.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tflq.errors import InputError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, rooted, roots, view
from tflq.model.ir.signatures import Root, signature_of
from tflq.typing import Array

_TOKENS = frozenset(("tokens", "token_ids", "input_ids"))
_POSITIONS = frozenset(("input_pos", "positions", "position_ids"))
_MASKS = frozenset(("mask", "attn_mask", "attention_mask"))
#: Operators that hand indices on to a look-up, and look-ups with the operands that hold indices and the table.
_MOVES = frozenset(("RESHAPE", "CAST", "SQUEEZE", "EXPAND_DIMS"))
_LOOKUPS = {"EMBEDDING_LOOKUP": (0, 1), "GATHER": (1, 0)}


@dataclass(frozen=True, slots=True)
class Roles:
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

    decode: Roles
    prefills: tuple[Roles, ...]

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


def _roles(model: Model, root: Root) -> Roles | None:
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
    return Roles(str(root), count, tokens, specs, positions, mask, caches, logits, bound, context)


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


def mask_of(roles: Roles, first: int) -> Array:
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
