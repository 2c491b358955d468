"""The reports of `tflq prove`: verdicts on operators under two profiles or many, and certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    CodeBlock,
    Columns,
    Graph,
    Headline,
    Inline,
    InText,
    Listing,
    OnPage,
    OperatorBlock,
    Pairs,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.blocks import Headline as VerdictBlock
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.proof import (
    AnswerDocument,
    CertificateCheckDocument,
    ProveDocument,
    VerdictDocument,
    WitnessDocument,
)
from tflq.face.report.graph.colouring import states
from tflq.face.report.matrices import MatrixBlock, MatrixMark, Strip, merge
from tflq.face.report.wording import counted
from tflq.model.ir import GraphView
from tflq.proof import ON_ONE_LIBM, CertificateCheck, OperatorProof, ProfileVerdict, Proof, ProofCoverage, Word
from tflq.proof.answers import AnswerSearch
from tflq.proof.certificate import reach, stated
from tflq.texts import shown

if TYPE_CHECKING:
    from tflq.face.report.graph.drawing import ModelView

STYLES = {Word.EQUAL: "good", Word.DIFFERS: "bad", Word.UNDECIDED: "warning"}
_OPERATORS: Columns = (
    ("#", ">"),
    ("operator", "<"),
    ("verdict", "<"),
    ("same bits", "<"),
    ("accumulators", ">"),
    ("methods", "<"),
)
_PROFILES: Columns = (("profile", "<"), ("package", "<"), ("version", "<"), ("resolver", "<"), ("SHA-256", "<"))


def page_blocks(proof: Proof, shown: ModelView) -> list[Block]:
    """Return the blocks of a page: a picture of a subgraph, what is covered, all operators, and the profiles."""
    here = {o.index: o for o in proof.operators if o.subgraph == shown.inspection.subgraph}
    shades = {index: (STYLES[o.word], o.word.value) for index, o in here.items()}
    first = next((index for index, o in here.items() if o.word != Word.EQUAL), None)
    graph = Graph([states("verdict", shades)], lambda i: list(_panel(here[i])) if i in here else [], first)
    return [
        graph,
        Section("covered", "Equal for every input", list(_cover(proof, shown.graph))),
        Section(
            "operators", "Operators", [TableBlock(_OPERATORS, [_row(o, o.index in here) for o in proof.operators])]
        ),
        Section("profiles", "Profiles", [TableBlock(_PROFILES, list(_profiles(proof)))]),
    ]


def _row(operator: OperatorProof, is_here: bool) -> Sequence[Inline]:
    sizes = " + ".join(str(len(group)) for group in operator.groups)
    name: Inline = OperatorBlock(operator.index, operator.op) if is_here else operator.op
    verdict = Badge(operator.word.value, STYLES[operator.word])
    return operator.place, name, verdict, sizes, _span(operator), "; ".join(operator.methods)


def _span(operator: OperatorProof) -> str:
    """Return the range of accumulators, with their bias."""
    return "" if operator.accumulators is None else "{:,} to {:,}".format(*operator.accumulators)


def _cover(proof: Proof, graph: GraphView) -> Iterator[Block]:
    """Yield how far each subgraph is proved; tensors of the first one have names."""
    for one in proof.coverage:
        where = f"subgraph {one.subgraph}: " if len(proof.coverage) > 1 else ""
        yield Text(f"{where}{counted(len(one.covered), 'computed tensor')}, up to:")
        named = len(proof.coverage) == 1
        yield Listing([f"{t} {graph.tensors[t].name or ''}" if named else str(t) for t in one.edge])


def _profiles(proof: Proof) -> Iterator[Sequence[Inline]]:
    for one in proof.certificate().document["profiles"]:
        yield CodeBlock(one["name"]), one["package"], one["version"], one["resolver"], CodeBlock(one["sha256"])


def _panel(operator: OperatorProof) -> Iterator[Block]:
    yield Text(Badge(operator.word.value, STYLES[operator.word]))
    yield Pairs([("accumulators", _span(operator))] if operator.accumulators else [])
    for group in operator.groups:
        yield Text(f"same bits: {', '.join(group)}")
    yield Listing(_reasons(operator.verdicts))


def _reasons(verdicts: Iterable[ProfileVerdict]) -> list[Inline]:
    """Return each reason with the first profile that it is about."""
    firsts: dict[str, ProfileVerdict] = {}
    for verdict in verdicts:
        firsts.setdefault(verdict.reason, verdict)
    return [f"{v.second}: {v.word.value}: {reason}" for reason, v in firsts.items()]


_HOW: Columns = (("how", "<"), ("element", "<"), ("first", ">"), ("second", ">"))
_COLUMNS: Columns = (("#", ">"), ("operator", "<"), ("verdict", "<"), *_HOW)
_MANY: Columns = (("#", ">"), ("operator", "<"), ("verdict", "<"), ("same bits", "<"), ("profiles", "<"), *_HOW)
#: Rows of operators that text lists for many profiles, and profiles that it names for one reason.
_ROWS, _NAMED = 5, 4
#: Marks of groups of profiles; the last one is that of all others.
_ALIKE, _LETTERS = MatrixMark("a", "good"), "abcdefghijklmnopqrstuvwxyz*"


def prove_report(proof: Proof) -> Report:
    """Build the report: counts, the operators that are not equal by their constants alone, and how far it is proved."""
    path = proof.model.path or "model"
    about = CodeBlock(path), f" {proof.model.size:,} bytes, SHA-256 {proof.model.sha256}, tflq {version('tflq')}"
    return Report("prove", list(_report_blocks(proof)), about=about, title=f"{path}: tflq prove")


def prove_card(proof: Proof) -> Report:
    """Build the report with where to look first."""
    apart = ((o, v) for o in proof.operators for v in o.verdicts if v.word == proof.word != Word.EQUAL)
    where = (f"First: operator {o.place} {o.op}, {v.first} and {v.second}: {v.reason}" for o, v in apart)
    brief = Brief(
        next(where, claim_text(proof)),
        "Next: .operators[i].verdicts, .groups; .witness of a verdict holds inputs that show the difference",
        f"{proof.model.path or 'model'}: {profiles_text(proof)}: {counts_text(proof.counts)}",
    )
    return Report("prove", [*_report_blocks(proof), brief])


def _report_blocks(proof: Proof) -> Iterator[Block]:
    total = counted(len(proof.operators), "operator")
    text = f"{total}: {counts_text(proof.counts)}"
    headline = f"{profiles_text(proof)}: {text}"
    yield VerdictBlock(text, STYLES[proof.word], subject=profiles_text(proof), headline=headline)
    if len(proof.profiles) > 2 and any(o.word != Word.EQUAL for o in proof.operators):
        yield _matrix(proof)
    elif len(proof.profiles) == 2:
        title = "operators: green is the same, red differs, brown is not decided"
        yield Strip(title, [STYLES[o.word] for o in proof.operators])
    yield from _refused(proof)
    yield InText([_two(proof) if len(proof.profiles) == 2 else _many(proof), *_equal_texts(proof)])
    yield Text(claim_text(proof), STYLES[proof.word])
    yield OnPage(lambda view: page_blocks(proof, view))


def _matrix(proof: Proof) -> MatrixBlock:
    """Return profiles against operators: those with one letter in a column give the same bits for every input."""
    marks: dict[str, list[MatrixMark]] = {name: [] for name in proof.profiles}
    for operator in proof.operators:
        letters: dict[str, MatrixMark] = {}
        for number, group in enumerate(operator.groups):
            letters |= dict.fromkeys(group, _mark(operator, number))
        for name, row in marks.items():
            row.append(letters.get(name, _ALIKE))
    operators = [(operator.place, operator.op) for operator in proof.operators]
    key = (
        (_ALIKE, f"the bits of {proof.profiles[0]}"),
        (MatrixMark("b", "hot3"), "and so on: other bits, for an input that is known"),
        (MatrixMark("B", "warning"), "and so on: not decided"),
    )
    ordered = merge("Profiles with the same bits for every input", marks, operators, ())
    seen = {mark.style for row in ordered.rows for mark in row.marks}
    return replace(ordered, key=[(mark, text) for mark, text in key if mark.style in seen])


def _mark(operator: OperatorProof, number: int) -> MatrixMark:
    """Return the mark of a group: a for the first, else its letter, in the style of what is known of it."""
    if not number:
        return _ALIKE
    group, first = set(operator.groups[number]), set(operator.groups[0])
    about = [v for v in operator.verdicts if {v.first, v.second} & group]
    differs = any(v.word == Word.DIFFERS for v in [v for v in about if {v.first, v.second} & first] or about)
    letter = _LETTERS[min(number, len(_LETTERS) - 1)]
    return MatrixMark(letter, "hot3") if differs else MatrixMark(letter.upper(), "warning")


def profiles_text(proof: Proof) -> str:
    """Return the two profiles, or the number of them."""
    if len(proof.profiles) == 2:
        return " and ".join(proof.profiles)
    return counted(len(proof.profiles), "profile")


def counts_text(counts: Mapping[Word, int]) -> str:
    """Return the number of operators with each verdict that occurs."""
    words = {word: "differ" if word == Word.DIFFERS and counts[word] > 1 else word.value for word in Word}
    return ", ".join(f"{counts[word]:,} {words[word]}" for word in Word if counts[word]) or "nothing to compare"


def claim_text(proof: Proof) -> str:
    """Return what follows for the model."""
    if len(proof.profiles) < 2:
        return "fewer than two profiles take the model: nothing is proved"
    if proof.word == Word.EQUAL:
        is_bound = any(v.reason.endswith(ON_ONE_LIBM) for o in proof.operators for v in o.verdicts)
        return "the same bits for every input of the shapes in the file" + (ON_ONE_LIBM if is_bound else "")
    return "; ".join(_covered_texts(proof))


def _covered_texts(proof: Proof) -> Iterator[str]:
    """Yield, by subgraph, the last tensors whose whole upstream is proved."""
    for one in proof.coverage:
        graph = "" if len(proof.coverage) == 1 else f" of subgraph {one.subgraph}"
        if not one.covered:
            yield f"from operator {_first_apart(proof, one)}{graph} on {_can_differ(proof)}"
            continue
        count = counted(len(one.covered), "tensor")
        upto = ", ".join(map(str, one.edge[-_NAMED:]))
        yield f"equal for every input{graph}: {count}, up to tensor {upto}"
        yield f"not proved{graph}: {_outside_text(proof, one)}"


def _first_apart(proof: Proof, one: ProofCoverage) -> str:
    """Return the place of the first operator of a subgraph that is not proved equal."""
    return next((o.place for o in proof.operators if o.subgraph == one.subgraph and o.word != Word.EQUAL), "0")


def _can_differ(proof: Proof) -> str:
    """Return that profiles can differ, or that this is not decided."""
    those = "the two" if len(proof.profiles) == 2 else "profiles"
    return f"{those} {'can' if proof.word == Word.DIFFERS else 'may'} differ"


def _outside_text(proof: Proof, one: ProofCoverage) -> str:
    """Return the operators that are not equal, and the number of others that depend on them."""
    apart = [o for o in proof.operators if o.subgraph == one.subgraph and o.word != Word.EQUAL]
    names = [f"{o.place} {o.op} ({o.word.value})" for o in apart[:_NAMED]]
    more = len(apart) - len(names)
    after = len(one.outside) - len(apart)
    names += [f"{more} more"] * bool(more) + [f"{counted(after, 'operator')} after them"] * bool(after)
    return ", ".join(names)


def _refused(proof: Proof) -> Iterator[Block]:
    """Yield the profiles that take no part in the verdict, by reason."""
    if not proof.refused:
        return
    reasons: dict[str, list[str]] = {}
    for refusal in proof.refused:
        reasons.setdefault(refusal.reason, []).append(refusal.profile)
    few = counted(len(proof.refused), "profile")
    yield Text(f"not covered: {few} that {'refuses' if len(proof.refused) == 1 else 'refuse'} the model", "warning")
    yield Listing([f"{', '.join(names)}: {reason:.120}" for reason, names in reasons.items()])


def _two(proof: Proof) -> TableBlock:
    rows = [(o, v) for o in proof.operators for v in o.verdicts if not _is_plain(v)]
    return TableBlock(_COLUMNS, [(o.place, o.op, v.word.value, *_how(v)) for o, v in rows])


def _many(proof: Proof) -> TableBlock:
    rows = [_report_row(o) for o in proof.operators if o.word != Word.EQUAL]
    return TableBlock(_MANY, rows, most=_ROWS, rest="... and {left} more (--json and --html list them all)")


def _report_row(operator: OperatorProof) -> tuple[str, ...]:
    """Return the operator, its verdict, the sizes of its groups, and its first verdict of that word."""
    worst = [v for v in operator.verdicts if v.word == operator.word]
    more = f" ... {len(worst)}" if len(worst) > 1 else ""
    names = f"{worst[0].first}, {worst[0].second}{more}" if worst else ""
    sizes = " + ".join(str(len(group)) for group in operator.groups)
    how = _how(worst[0]) if worst else ("", "", "", "")
    return operator.place, operator.op, operator.word.value, sizes, names, *how


def _equal_texts(proof: Proof) -> Iterator[Block]:
    """Yield the number of operators that many profiles agree on, by method."""
    if len(proof.profiles) == 2:
        return
    ways = Counter(_way(o) for o in proof.operators if o.word == Word.EQUAL)
    if ways:
        texts = (f"{count:,} by {way}" for way, count in ways.most_common())
        yield Text(f"equal: {', '.join(texts)}", "good")


def _way(operator: OperatorProof) -> str:
    """Return how an operator was proved, without numbers."""
    reasons = [v.reason.split(":")[0] for v in operator.verdicts if not _is_plain(v)]
    return reasons[0] if reasons else "the same kernel with the same constants"


def _is_plain(verdict: ProfileVerdict) -> bool:
    """Return True if both profiles have the same kernel with the same constants."""
    return verdict.word == Word.EQUAL and verdict.reason.startswith("the same kernel")


def _how(verdict: ProfileVerdict) -> tuple[str, str, str, str]:
    witness = verdict.witness
    if witness is None:
        return verdict.reason, "", "", ""
    return verdict.reason, str(list(witness.element)), str(witness.first), str(witness.second)


def check_report(check: CertificateCheck) -> Report:
    """Build the report: the verdict, what a new proof does not repeat, and what the certificate covers."""
    return Report("prove", list(_blocks(check)))


def _blocks(check: CertificateCheck) -> Iterator[Block]:
    path, proof = check.model.path or "model", check.proof
    if check.holds:
        text = "the certificate holds: every statement of it is proved again"
    else:
        text = f"the certificate is void: {counted(len(check.problems), 'statement')} not true of this model"
    yield Headline(text, "good" if check.holds else "bad", subject=path)
    yield Listing(list(check.problems), "bad")
    if check.holds and proof is not None:
        summary = f"{profiles_text(proof)}: {counts_text(proof.counts)}; {claim_text(proof)}"
        yield Text(summary, STYLES[proof.word])
    yield Brief(next(iter(check.problems), "every statement is proved again"), "Next: .problems, .proof")


def check_document(check: CertificateCheck) -> CertificateCheckDocument:
    """Return the document: `schemas/certificate-check.schema.json`."""
    return filled(CertificateCheckDocument, check)


def prove_document(proof: Proof, searched: AnswerSearch | None = None, path: str | None = None) -> ProveDocument:
    """Return the document of a proof, and of a search of another answer. `--witnesses` writes inputs of witnesses."""
    document = filled(
        ProveDocument,
        proof,
        counts={word.value: count for word, count in proof.counts.items()},
        operators=[{**stated(o), "verdicts": [_verdict(v) for v in o.verdicts]} for o in proof.operators],
        coverage=[reach(one) for one in proof.coverage],
    )
    if searched is not None:
        document["answer"] = answer_document(searched, path)
    return document


def answer_text(searched: AnswerSearch) -> str:
    """Return the result of a search in a sentence."""
    first, second = searched.profiles
    found = searched.found
    if found is None:
        return f"answer: none of {searched.tried:,} inputs changes an arg-max; this is no proof"
    row = f" in row {found.row}" if found.row else ""
    return (
        f"answer: output {shown(searched.names[found.output])} chooses {found.answers[0]} under {first} and "
        f"{found.answers[1]} under {second}{row}; found after {counted(searched.tried, 'input')}"
    )


def answer_card(searched: AnswerSearch) -> Report:
    """Build the report of a search for another answer."""
    then = "Next: .named_inputs, an input as numpy.savez takes it" if searched.found else "Next: more tries"
    return Report("prove", [Headline(answer_text(searched)), Brief("", then)])


def answer_document(searched: AnswerSearch, path: str | None = None) -> AnswerDocument:
    """Return the result of a search for another answer; `path` is the file with its input."""
    found = searched.found
    return {
        "tried": searched.tried,
        "output": None if found is None else searched.names[found.output],
        "row": None if found is None else found.row,
        "answers": None if found is None else list(found.answers),
        "file": None if found is None else path,
    }


def _verdict(verdict: ProfileVerdict) -> VerdictDocument:
    witness = verdict.witness
    found = None if witness is None else filled(WitnessDocument, witness, inputs=sorted(witness.inputs))
    return filled(VerdictDocument, verdict, witness=found)
