"""Which tensors the blocks of a log are: by name, number or role in their labels, or by length."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.comparison.verification.evidence.c_arrays import Numbers, real_of
from tflq.comparison.verification.evidence.logs import (
    ROLE,
    Block,
    are_pairs_of_digits,
    blocks_of,
    check_tensors,
    memory_words,
)
from tflq.comparison.verification.evidence.tensor_names import names_of
from tflq.errors import InputError, InputWarning
from tflq.escaping import quoted
from tflq.model.ir import CARRIER, GraphView, Model, TensorType, view
from tflq.statements import Statement
from tflq.typing import Array

_TENSOR = re.compile(r"\b(?:tensor|tns|t)\s*[_#=:\[ ]?\s*(\d{1,9})\b", re.IGNORECASE)
_INDEX = re.compile(r"[\s_\[#(]*(\d{1,9})")
_FLOAT = re.compile(r"[.]|\d[eE][-+]?\d|nan|inf", re.IGNORECASE)
#: Runs that only prepare the measured ones.
_WARM_UP = re.compile(r"\bwarm(?:ing)?[ _-]?up\b|\bdry[ _-]?run\b", re.IGNORECASE)
#: Shorter blocks of another length than a tensor's are words of the log, such as a size.
_SHORT = 4
#: Words of two digits that need not be decimal.
_DIGITS = 8
#: Operators whose operand is called logits.
_OF_LOGITS = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")

Entry = Array | Numbers


@dataclass(frozen=True, slots=True)
class _Fit:
    """A block, or several that belong together, as a tensor."""

    tensor: int
    entry: Entry
    used: int  # number of blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """The tensors of a model, as labels name them."""

    graph: GraphView
    names: Mapping[str, int]

    def tensors(self, label: str) -> list[int]:
        """Return the tensors that a label names: by name, else by number, else by role."""
        known = self.named(label) if label else []
        role = ROLE.search(label)
        if known or role is None:
            return known
        group = self.graph.inputs if role["input"] else self.graph.outputs
        index = _INDEX.match(label, role.end())
        if index is not None and int(index[1]) < len(group):
            return [group[int(index[1])]]
        return list(group)

    def named(self, label: str) -> list[int]:
        """Return the tensor that a label has the name or the number of, if there is one."""
        words = [label, *re.findall(r"[\"'`]([^\"'`]+)[\"'`]", label), *re.split(r"[\s\"'`,;:=\[\](){}<>]+", label)]
        known = [self.names[word] for word in sorted(filter(None, words), key=len, reverse=True) if word in self.names]
        number = _TENSOR.search(label)
        if not known and number is not None and int(number[1]) < len(self.graph.tensors):
            known = [int(number[1])]
        return known[:1]

    def role_of_output(self, label: str) -> str:
        """Return the word of a label that makes it an output's, without an s; empty if it names the tensor, too."""
        role = ROLE.search(label)
        if role is None or role["output"] is None or self.named(label):
            return ""
        word = role["output"].lower().rstrip("s")
        return "output" if word in ("out", "result") else word


def log_entries(model: Model, text: str, source: str) -> list[dict[str, Entry]]:
    """Return the tensors in a log by number, for each sample.

    If the log begins with an input and holds every tensor equally often, the k-th time is that of sample k: inputs may
    come first, and outputs after them all. Otherwise a tensor that is printed again begins the next sample.

    Raises:
        InputError: The log holds no tensor of the model, or one that may be several; or all are damaged.
    """
    checked = check_tensors(text)
    if checked is not None:
        return _checked_samples(model, *checked, source)
    labels = _Labels(view(model), names_of(model))
    read, unread = blocks_of(text)
    blocks, problems = _settle_roles(labels, read)
    fits: list[_Fit] = []
    at, unclear = 0, []
    while at < len(blocks):
        reason = _reason_to_skip(blocks[at])
        if reason:
            problems.append(f"line {blocks[at].line}: {reason}: not compared")
            at += 1
            continue
        candidates = list(_candidates(labels, blocks, at))
        if len(candidates) == 1:
            found = candidates[0]
            fits.append(found)
            if len(blocks[at].words) >= _DIGITS and are_pairs_of_digits(blocks[at].words):
                problems.append(
                    f"line {blocks[at].line}: two digits each, read as decimal; write 0x before hexadecimal"
                )
            at += found.used
            continue
        if candidates:
            unclear.append((blocks[at], [one.tensor for one in candidates]))
        elif len(blocks[at].words) >= _SHORT:
            unclear.append((blocks[at], []))
        at += 1
    samples = _by_sample(labels.graph, fits)
    problems += [_problem(labels, block, tensors) for block, tensors in unclear]
    if unread:
        problems.append(
            f"{'lines' if unread[1:] else 'line'} {', '.join(map(str, unread[:5]))}: output or input not read"
        )
    if not samples:
        expected = "a tensor's name or number, input or output, before as many numbers as it has"
        got = problems[0] if problems else f"{len(blocks)} blocks of other lengths" if blocks else "no numbers"
        raise InputError("holds no tensor of the model", name=source, expected=expected, got=got)
    for problem in problems:
        warnings.warn(InputWarning(Statement(f"{source}: {problem}", "log-block")), stacklevel=2)
    return samples


def _by_sample(graph: GraphView, fits: Sequence[_Fit]) -> list[dict[str, Entry]]:
    """Return the tensors of each sample; see `log_entries`."""
    samples: list[dict[str, Entry]] = []
    times = Counter(fit.tensor for fit in fits)
    in_turn = len(set(times.values())) == 1 and fits[0].tensor in graph.inputs
    so_far: Counter[int] = Counter()
    for fit in fits:
        key, k = str(fit.tensor), so_far[fit.tensor] if in_turn else len(samples) - 1
        so_far[fit.tensor] += 1
        if k in (-1, len(samples)) or key in samples[k]:
            samples.append({})
            k = len(samples) - 1
        samples[k][key] = fit.entry
    return samples


def _reason_to_skip(block: Block) -> str:
    """Return why a block holds no tensor of a sample, regardless of its length; empty if it may."""
    if block.is_elided:
        return "... stands for values that were left out; NumPy prints all after np.set_printoptions(threshold=np.inf)"
    return f"{quoted(block.label)} is no sample" if _WARM_UP.search(block.label) else ""


def _settle_roles(labels: _Labels, blocks: Sequence[Block]) -> tuple[list[Block], list[str]]:
    """Return the blocks, of which only one role is the model's only output, and the problems of the others.

    Logits beside an output are the operand of the operator that makes it, if that is a SOFTMAX or LOGISTIC.
    """
    graph = labels.graph
    roles = {id(block): labels.role_of_output(block.label) for block in blocks}
    named = dict.fromkeys(filter(None, roles.values()))
    if len(named) < 2 or len(graph.outputs) != 1:
        return list(blocks), []
    best = "output" if "output" in named else next((role for role in named if role != "logit"), next(iter(named)))
    maker = graph.maker(graph.outputs[0])
    kept, problems = [], []
    for block in blocks:
        role = roles[id(block)]
        if role == "logit" and best != role and maker is not None and maker.builtin in _OF_LOGITS:
            kept.append(replace(block, label=f"tensor {maker.inputs[0]}"))
        elif role in ("", best):
            kept.append(block)
        else:
            what = f"line {block.line}: {quoted(block.label)} beside {quoted(best)} is not known"
            problems.append(f"{what}; print the number or the name of the tensor before it")
    return kept, problems


def _candidates(labels: _Labels, blocks: Sequence[Block], at: int) -> Iterator[_Fit]:
    """Yield the tensors that the block may be, alone or with those after it; the label decides if it names one."""
    graph = labels.graph
    named = labels.tensors(blocks[at].label)
    groups = ([*named],) if named else (graph.outputs, tuple(dict.fromkeys((*graph.inputs, *graph.computed))))
    for group in groups:
        found = [
            fit for tensor in dict.fromkeys(group) if (fit := _fit(labels, tensor, blocks, at, is_named=bool(named)))
        ]
        if found:
            yield from found
            return


def _fit(labels: _Labels, tensor: int, blocks: Sequence[Block], at: int, *, is_named: bool) -> _Fit | None:
    """Return the block as a tensor, if it has its length. If it is named, blocks without a name may belong to it."""
    spec = labels.graph.tensors[tensor]
    size = math.prod(spec.shape)
    if not isinstance(spec.type, TensorType) or not size:
        return None
    width = CARRIER[spec.type].itemsize
    block = blocks[at]
    last = len(blocks) if is_named else at + 1
    for end in range(at, last):
        if end > at:
            if blocks[end].label and len(blocks[end].words) == 1:  # a line of others, such as `heap: 1234`
                if labels.tensors(blocks[end].label):
                    return None
                continue
            if labels.tensors(blocks[end].label) or blocks[end].is_memory != block.is_memory:
                return None
            block = replace(block, words=(*block.words, *blocks[end].words))
        for words in filter(None, (block.words, memory_words(block))):
            is_bytes = block.is_memory or words is not block.words
            if len(words) == size * width if is_bytes else len(words) in (size, size * width):
                return _Fit(tensor, _entry(block.label or f"line {block.line}", words, width), end - at + 1)
        if len(block.words) > size * width:
            return None
    return None


def _entry(name: str, words: tuple[str, ...], width: int) -> Entry:
    """Return C constants, or floats if one of the words is one."""
    if any(_FLOAT.search(word) for word in words if "x" not in word.lower()):
        return np.array([real_of(word, name) for word in words])
    return Numbers(name, tuple(_constant(word, width) for word in words))


def _constant(word: str, width: int) -> str:
    """Return an integer as C writes it: without leading zeros, which make it octal.

    `%x` prints a negative number as one of int: of its digits, those of `width` bytes are left.
    """
    if "x" in word.lower():
        digits = word.lower().partition("x")[2]
        above, own = digits[: -2 * width], digits[-2 * width :]
        return f"0x{own}" if len(digits) in (8, 16) and set(above) == {"f"} and own[0] in "89abcdef" else word
    return ("-" if word[0] == "-" else "") + (word.lstrip("+-0") or "0")


def _checked_samples(
    model: Model, tensors: Mapping[tuple[int, int], bytes], problems: Sequence[str], source: str
) -> list[dict[str, Entry]]:
    """Return the tensors whose lines are whole, by sample, and warn of the others."""
    samples: dict[int, dict[str, Entry]] = {}
    beyond = [key[1] for key in tensors if key[1] >= len(view(model).tensors)]
    if beyond:
        expected = f"0 to {len(view(model).tensors) - 1}"
        raise InputError("holds a tensor that the model lacks", name=source, expected=expected, got=beyond[0])
    for (sample, tensor), data in sorted(tensors.items()):
        samples.setdefault(sample, {})[str(tensor)] = Numbers(f"tensor {tensor}", tuple(f"0x{b:02x}" for b in data))
    if not samples:
        raise InputError("holds no whole tensor", name=source, expected="lines with checksums", got=problems[0])
    for problem in problems:
        warnings.warn(InputWarning(Statement(f"{source}: {problem}", "log-line")), stacklevel=2)
    return [samples[number] for number in sorted(samples)]


def _problem(labels: _Labels, block: Block, tensors: Sequence[int]) -> str:
    """Return what keeps a block from being a tensor."""
    graph = labels.graph
    what = f"line {block.line}: {len(block.words):,} numbers" + (f" after {quoted(block.label)}" if block.label else "")
    if tensors:
        named = ", ".join(f"{t} {quoted(graph.tensors[t].name or '')}" for t in tensors[:5])
        return f"{what} may be {len(tensors)} tensors ({named}); print the number or the name of the tensor before them"
    named_tensors = labels.tensors(block.label)
    if not named_tensors:
        return f"{what} are of no tensor's length: not compared"
    tensor = named_tensors[0]
    return f"{what}, and tensor {tensor} has {math.prod(graph.tensors[tensor].shape):,}: not compared"
