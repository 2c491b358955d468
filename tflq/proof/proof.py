"""Every operator of a model under several profiles: equal for every input, different on one, or not decided.

The first of these steps that applies decides two profiles on an operator:

1. Operators with equal preparation are equal.
2. Operators that a finite set of inputs decides are run on it.
3. For sums of products, the output stages are compared on every possible sum.
4. Otherwise, an input that differs is searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from tflq.engine.api.files import ModelFacts, Source, Subject, subject
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, OperatorView, view
from tflq.model.ir.signatures import root_subgraphs
from tflq.proof.bindings import Bindings
from tflq.proof.certificate import ALL, Certificate, ProofCoverage, Selection, certificate_of, coverage_of, select
from tflq.proof.operator import Held, ModelContext, OperatorProof, ProfileVerdict, Undecidable, Word, bind
from tflq.texts import Tabular, display_by


@display_by("prove:prove_card", "prove_document", "operators")
@dataclass(frozen=True, slots=True, eq=False)
class Proof(Tabular):
    """All subgraphs of a model under several profiles, for the shapes in the file.

    `operators` compare the first profile with each of the others. `refused` are profiles that take no part in the
    verdict, because they refuse the model. `coverage` has the tensors of each subgraph that are equal for every input.
    """

    model: ModelFacts
    selection: Selection
    operators: tuple[OperatorProof, ...]
    coverage: tuple[ProofCoverage, ...]
    signature: str | None = None

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles that the verdict is about."""
        return tuple(p.name for p in self.selection.profiles)

    @property
    def refused(self) -> tuple[Undecidable, ...]:
        """The profiles that refuse the model, with their reasons."""
        return self.selection.refused

    @property
    def counts(self) -> dict[Word, int]:
        """The number of operators with each verdict."""
        counts = Counter(o.word for o in self.operators)
        return {word: counts[word] for word in Word}

    @property
    def word(self) -> Word:
        """The verdict on the whole: any difference first, then anything undecided; so are fewer than two profiles."""
        if len(self.profiles) < 2:
            return Word.UNDECIDED
        return next((w for w in (Word.DIFFERS, Word.UNDECIDED) if self.counts[w]), Word.EQUAL)

    def certificate(self) -> Certificate:
        """Return what is proved, with the hashes of the model and of the profiles, to be written and checked again."""
        return certificate_of(
            self.model, self.word, self.selection, self.operators, self.coverage, signature=self.signature
        )


def prove(model: Source | Model, profiles: Sequence[str | Profile] | str = ALL, signature: str | None = None) -> Proof:
    """Prove or disprove, operator by operator, that profiles give the same bits for every input of the operator.

    Inputs have the shapes that the file declares.

    Args:
        model: A path, the bytes of a file, or a Model. Operators of all its subgraphs are decided.
        profiles: Two or more, by name, file or value: none may refuse an operator of a model that is called equal.
            "all": every profile of a runtime; those that refuse the model are left out and listed.
        signature: Only the subgraphs that this signature runs.

    Raises:
        UnknownNameError: No profile or signature has that name.
        OptionError: There are fewer than two profiles.

    Example:
        >>> proof = tflq.prove("golden/models/digits_lstm_int8.tflite", ["litert-ref", "tflite-2.14-ref"])
        >>> proof.word.value
        'differs'
    """
    return proof_of(subject(model), partial(select, profiles), signature)


def proof_of(target: Subject, choose: Callable[[Sequence[Model]], Selection], signature: str | None = None) -> Proof:
    """Prove a model under the profiles that `choose` returns for its subgraphs, each as the first of a model."""
    parts = tuple(root_subgraphs(target.model, signature))
    chosen = choose([part for _, part in parts])
    operators = tuple(o for number, part in parts for o in _subgraph(part, number, chosen.profiles))
    coverage = tuple(coverage_of(part, number, operators) for number, part in parts)
    return Proof(target.facts, chosen, operators, coverage, signature)


def _subgraph(part: Model, number: int, profiles: Sequence[Profile]) -> Iterator[OperatorProof]:
    if len(profiles) < 2:
        return
    for op, bindings, _ in bind_in_model(part, profiles):
        verdicts = bindings.against_first()
        yield OperatorProof(op.index, op.name, verdicts, number, bindings.groups(), bindings.accumulators())


def bind_in_model(
    part: Model, profiles: Sequence[Profile]
) -> Iterator[tuple[OperatorView, Bindings, Mapping[int, Held]]]:
    """Yield the operators of the first subgraph with their bindings, and what tensors can hold after them."""
    around, held = ModelContext(part, profiles), dict[int, Held]()
    for op in view(part).ops:
        bindings = _bound(part, op.index, profiles, around, held)
        given = bindings.given(op, held)
        held.update({tensor: given for tensor in op.outputs if given is not None and around.is_made_once(tensor)})
        yield op, bindings, held


def _bound(
    part: Model, index: int, profiles: Sequence[Profile], around: ModelContext, held: Mapping[int, Held]
) -> Bindings:
    reasons = ((p, around.objection(index, p)) for p in profiles)
    return Bindings([Undecidable(p.name, reason) if reason else bind(part, index, p, held) for p, reason in reasons])


def contrast(model: Model, index: int, base: Profile, others: Sequence[Profile]) -> tuple[ProfileVerdict, ...]:
    """Decide one operator of the first subgraph under `base` and each of the others."""
    profiles = (base, *others)
    return _bound(model, index, profiles, ModelContext(model, profiles), {}).against_first()


def pairs(model: Model, index: int, profiles: Sequence[Profile]) -> tuple[ProfileVerdict, ...]:
    """Decide one operator of the first subgraph under every pair of profiles."""
    bindings = _bound(model, index, profiles, ModelContext(model, profiles), {})
    return tuple(bindings.verdict(a, b) for a, b in combinations(range(len(profiles)), 2))
