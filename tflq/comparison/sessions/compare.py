"""Two sessions compared step by step: bits, signal to noise, tokens, perplexity, and where they first differ.

Operators of a signature grouped into bands: by the caches that they lie between, else into equal parts.

The results of comparing two sessions.

Compare one step of two sessions: outputs by name, results of operators, logits.

A session: one model run step by step, with its state carried over.

A session as a golden: what a real runtime gives at every step, to verify without that runtime.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tflq.comparison.goldens.golden import Golden
from tflq.comparison.goldens.record import observe
from tflq.comparison.goldens.stored import check_golden_output, save_golden
from tflq.comparison.inputs.read import FedSample, Feeds
from tflq.comparison.inspection.difference import Difference, decibels, difference, divergences, log_shares, same_bits
from tflq.comparison.results import InputFacts
from tflq.comparison.sessions.engines import Observed, RuntimeEngine, engine_of, live_name
from tflq.comparison.sessions.plan import Decoder, SessionPlan, decoder_of, decoder_steps, initial, planned
from tflq.engine.api.files import ModelFacts, Source, Subject, subject
from tflq.engine.api.signature import Stepper
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Invocation, Runtime
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import InputError
from tflq.model.ir import CARRIER, GraphView, Model, Signed, TensorSpec, TensorType, input_names, signed, view
from tflq.model.ir.constants import codec_of
from tflq.model.ir.signatures import choose_roots, only_root, signature_of
from tflq.texts import Tabular, display_by
from tflq.typing import Array

#: Parts of a model without caches.
_PARTS = 16


@dataclass(frozen=True, slots=True)
class Bands:
    """The names of a signature's bands, and the band of each operator."""

    names: tuple[str, ...]
    of_operator: tuple[int, ...]


def bands_of(model: Model, signature: str | None, caches: Sequence[str]) -> Bands:
    """Return the bands of a signature.

    Caches belong to a layer by the last number in their names. A band ends with the last operator that writes a cache
    of its layer.
    """
    (root,) = choose_roots(model, signature) if signature is not None else choose_roots(model)[:1]
    graph, named = view(model, root.subgraph), signature_of(model, root)
    outputs = dict(named.outputs) if named is not None else {}
    ends: dict[int, int] = defaultdict(int)
    for name in caches:
        numbers = re.findall(r"\d+", name)
        maker = graph.maker(outputs[name]) if name in outputs else None
        if numbers and maker is not None:
            ends[int(numbers[-1])] = max(ends[int(numbers[-1])], maker.index)
    layers, count = sorted(ends), len(graph.ops)
    if not layers or sorted(ends.values()) != [ends[layer] for layer in layers]:
        return _parts(count)
    names = [f"to cache {layers[0]}", *(f"cache {a} to {b}" for a, b in pairwise(layers))]
    band = [sum(ends[layer] < k for layer in layers) for k in range(count)]
    return Bands((*names, f"after cache {layers[-1]}"), tuple(band))


def _parts(count: int) -> Bands:
    """Return equal parts of the operators."""
    parts = min(_PARTS, max(count, 1))
    bounds = [count * k // parts for k in range(parts + 1)]
    names = tuple(f"operators {a} to {b - 1}" for a, b in pairwise(bounds))
    return Bands(names, tuple(k * parts // count for k in range(count)) if count else ())


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


@display_by("session:session_card", "session_document", "steps")
@dataclass(frozen=True, slots=True)
class SessionComparison(Tabular):
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


class Judge:
    """One signature of two models, whose tensors are matched by index if they are the same model, else by name."""

    def __init__(self, first: Model, second: Model, plan: SessionPlan, signature: str | None) -> None:
        self._plan, self._signature = plan, signature
        self._graph, self._outputs = _graph(first, signature)
        self._other, self._others = _graph(second, signature)
        self._specs = {name: self._graph.tensors[t] for name, t in self._outputs.items()}
        self._other_specs = {name: self._other.tensors[t] for name, t in self._others.items()}
        self._bands = bands_of(first, signature, plan.carried)
        self._pairs = list(_pairs(self._graph, self._other, same=first is second))

    def compared(self, number: int, one: Observed, two: Observed) -> ComparedStep:
        """Compare a step of both sides."""
        outputs, noise = dict[str, Difference](), dict[str, float]()
        for name in (name for name in one.outputs if name in two.outputs):
            first, second = one.outputs[name], two.outputs[name]
            outputs[name] = difference(first, second)
            noise[name] = _noise(first, self._specs.get(name), second, self._other_specs.get(name))
        return ComparedStep(
            number=number,
            signature=self._signature or "",
            position=self._plan.positions[number],
            tokens=self._tokens(one),
            outputs=outputs,
            noise=noise,
            logits=self._logits(number, one, two),
            bands=tuple(self._compared_bands(one, two)),
            lacking=tuple(sorted(set(one.outputs) ^ set(two.outputs))),
        )

    def first(self, step: ComparedStep, one: Observed, two: Observed) -> FirstDifference:
        """Return where a step first differs."""
        operator, band = None, ""
        for index, position, other in self._pairs:
            if _differs(one.tensors.get(index), two.tensors.get(other)):
                operator = position, self._graph.op(position).name
                band = self._bands.names[self._bands.of_operator[position]]
                break
        output = next((name for name, found in step.outputs.items() if not found.same), "")
        found = step.outputs[output].first if output else None
        return FirstDifference(
            step.number, step.signature, step.position, operator, band, output, found.index if found else ()
        )

    def _tokens(self, one: Observed) -> tuple[int, ...]:
        roles = self._plan.roles(self._signature)
        return () if roles is None else tuple(map(int, one.inputs[roles.tokens].ravel()))

    def _logits(self, number: int, one: Observed, two: Observed) -> Logits | None:
        roles = self._plan.roles(self._signature)
        name = None if roles is None else roles.logits
        if name is None or name not in one.outputs or name not in two.outputs:
            return None
        first = _real(one.outputs[name], self._specs[name])
        second = _real(two.outputs[name], self._other_specs[name])
        first, second = first.reshape(-1, first.shape[-1]), second.reshape(-1, second.shape[-1])
        if first.shape != second.shape:
            return None
        known = self._plan.following(number)
        losses = None
        if known is not None:
            losses = float(-log_shares(first[-1])[known]), float(-log_shares(second[-1])[known])
        return Logits(
            noise=decibels(first, second),
            divergence=float(divergences(first[-1], second[-1])),
            choices=(int(first[-1].argmax()), int(second[-1].argmax())),
            losses=losses,
        )

    def _compared_bands(self, one: Observed, two: Observed) -> Iterator[Band]:
        if not one.tensors or not two.tensors:
            return
        counts = [[0, 0, math.inf] for _ in self._bands.names]
        for index, position, other in self._pairs:
            first, second = one.tensors.get(index), two.tensors.get(other)
            if first is None or second is None or first.shape != second.shape:
                continue
            row = counts[self._bands.of_operator[position]]
            row[0] += 1
            if _differs(first, second):
                row[1] += 1
                noise = _noise(first, self._graph.tensors[index], second, self._other.tensors[other])
                row[2] = min(row[2], noise)
        for name, (compared, differing, noise) in zip(self._bands.names, counts, strict=True):
            yield Band(name, int(compared), int(differing), noise)


def _graph(model: Model, signature: str | None) -> tuple[GraphView, Mapping[str, int]]:
    """Return a signature's graph, and its outputs by name."""
    (root, *_) = choose_roots(model, signature)
    graph, named = view(model, root.subgraph), signature_of(model, root)
    outputs = {str(k): t for k, t in enumerate(graph.outputs)} if named is None else dict(named.outputs)
    return graph, outputs


def _pairs(first: GraphView, second: GraphView, *, same: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the results of operators that both graphs have: tensor, operator, and tensor of the second graph."""
    names = {spec.name or "": k for k, spec in enumerate(second.tensors) if spec.name}
    for operator in first.ops:
        for tensor in operator.writes:
            other = tensor if same else names.get(first.tensors[tensor].name or "")
            if other is not None:
                yield tensor, operator.index, other


def _differs(first: Array | None, second: Array | None) -> bool:
    if first is None or second is None or first.shape != second.shape:
        return False
    return not same_bits(first, second)


def _noise(first: Array, spec: TensorSpec | None, second: Array, other: TensorSpec | None) -> float:
    """Return signal to noise in dB of real values; -inf if shapes differ or there are no numbers."""
    if first.shape != second.shape or "O" in (first.dtype.kind, second.dtype.kind):
        return -math.inf
    return decibels(_real(first, spec), _real(second, other))


def _real(value: Array, spec: TensorSpec | None) -> Array:
    """Return the real values of codes that have one scale; other values are returned unchanged."""
    codec = None if spec is None else codec_of(spec)
    return value if codec is None or value.dtype.kind not in "iu" else codec.reals(value)


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
    first: Subject,
    second: Subject,
    plan: SessionPlan,
    pairs: Iterable[tuple[Invocation, Observed, Observed]],
    *,
    free: bool,
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


class Session:
    """A model under a profile, run step by step. Outputs feed the inputs of the same names in the steps that follow.

    `tokens` are those that a decoder has read, `outputs` the latest output of every name.

    Example:
        >>> session = tflq.Session("golden/models/tiny_decoder_int8.tflite")
        >>> session.feed([72, 101, 108, 108, 111, 32, 119, 111, 114, 108]).shape
        (128,)
        >>> len(session.generate(3))
        3
    """

    def __init__(self, model: Source | Model, profile: str | Profile = "litert-ref") -> None:
        """Load a model: a path, the bytes of a file, or a Model."""
        self._model = subject(model).model
        self._stepper = Stepper(self._model, profile)
        self._decoder: Decoder | None = None
        self.tokens: list[int] = []

    @property
    def outputs(self) -> dict[str, Array]:
        """The latest output of every name."""
        return dict(self._stepper.latest)

    @property
    def decoder(self) -> Decoder:
        """The roles of a decoder's inputs and outputs. Raises InputError if the model is not one."""
        if self._decoder is None:
            self._decoder = decoder_of(self._model)
        if self._decoder is None:
            raise InputError("the model is not a decoder: no signature takes one token and returns logits")
        return self._decoder

    def step(self, signature: str | None = None, **inputs: Any) -> dict[str, Array]:
        """Run one step and return its outputs.

        Inputs that are not given take the latest output of the same name; before there is one, they are empty.

        Raises:
            UnknownNameError: The model has no such signature, or the signature no such input.
            InputError: An input is missing, or does not fit.
        """
        root = only_root(self._model, signature)
        named = signature_of(self._model, root)
        specs = {} if named is None else {n: self._model.subgraphs[root.subgraph].tensors[t] for n, t in named.inputs}
        outputs = () if named is None else [name for name, _ in named.outputs]
        given = {name: _array(value, specs.get(name)) for name, value in inputs.items()}
        missing = [name for name in specs if name not in given and name in outputs]
        latest = self._stepper.latest
        given |= {name: initial(specs[name]) for name in missing if name not in latest}
        carried = tuple(name for name in missing if name in latest)
        return dict(self._stepper.run(Invocation(root.signature, given, carried)).outputs)

    def feed(self, tokens: Sequence[int]) -> Array:
        """Read tokens after those read before; return the logits of the last, of shape [vocabulary].

        Raises:
            InputError: The model is not a decoder, or a token or the number of positions does not fit.
        """
        logits: Array | None = None
        for _, step in decoder_steps(self.decoder, tokens, (), 1, begin=len(self.tokens)):
            result = self._stepper.run(step)
            if step.signature == self.decoder.decode.signature:
                logits = result.outputs[str(self.decoder.decode.logits)]
        assert logits is not None  # the last step is one of decode
        self.tokens += map(int, tokens)
        last: Array = logits.reshape(-1, logits.shape[-1])[-1]
        return last

    def generate(self, count: int) -> list[int]:
        """Return the next tokens, each the one with the greatest logit.

        Raises:
            InputError: No token was read before, or there are no positions left.
        """
        if not self.tokens:
            raise InputError("feed a prompt first: there is no token to continue")
        chosen: list[int] = []
        for _ in range(count):
            scores = self._stepper.latest[str(self.decoder.decode.logits)]
            token = int(scores.reshape(-1, scores.shape[-1])[-1].argmax())
            chosen.append(token)
            self.feed([token])
        return chosen


def _array(value: Any, spec: TensorSpec | None) -> Array:
    """Return an array; plain numbers and lists take the element type of the input."""
    if isinstance(value, np.ndarray) or spec is None or not isinstance(spec.type, TensorType):
        return np.asarray(value)
    return np.asarray(value, CARRIER[spec.type])


def record_session(
    model: Source | Model,
    runtime: str | Runtime,
    path: str | os.PathLike[str],
    prompt: Sequence[int] | None = None,
    follow: Sequence[int] = (),
    steps: int | None = None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None,
    signature: str | None = None,
    seed: int = 0,
    python: str | None = None,
) -> Golden:
    """Run a session in a real runtime and write its steps as a golden, with the results of all operators.

    `runtime` is a name, also after "runtime:"; the other arguments are those of `compare_sessions`. Tokens that are not
    given are those that the runtime chooses.

    Raises:
        FileAccessError: `path` cannot be written; raised before anything runs.
        RuntimeMissing, RuntimeFailed: The runtime is not installed, or it refused or crashed.
    """
    check_golden_output(
        path, [source for source in (model, inputs) if isinstance(source, (str, os.PathLike))], replaces=True
    )
    target = subject(model)
    chosen = runtime_by_name(live_name(runtime) or runtime, python=python) if isinstance(runtime, str) else runtime
    plan = planned(target.model, prompt, follow, steps, inputs, signature, seed)
    forced = plan.forced(RuntimeEngine(target, chosen))
    parts = {part.signature: part for part in signed(target.model, signature)}
    fed = tuple(_feed(parts, step, k) for k, step in enumerate(forced))
    golden = observe(target, chosen, Feeds(InputFacts("session", seed, len(fed)), fed), all_tensors=True)
    save_golden([golden], path)
    return golden


def _feed(parts: Mapping[str | None, Signed], step: Invocation, number: int) -> FedSample:
    """Return a step as goldens hold it: inputs in the order of the signature's graph."""
    if step.signature not in parts:
        raise InputError("a recording needs the inputs of a signature", got=step.signature)
    part = parts[step.signature]
    graph, names, sample = view(part.model), input_names(part.model), []
    for name, tensor in zip(names, graph.inputs, strict=True):
        spec = graph.tensors[tensor]
        empty = np.zeros(spec.shape, CARRIER[TensorType(spec.type)])
        sample.append(np.asarray(step.inputs.get(name, empty)))
    carried = tuple(i for i, name in enumerate(names) if name in step.carried)
    return FedSample(part, tuple(sample), carried, continues=number > 0)
