"""The report of `tflq prove`: the verdict on every operator, under two profiles or under many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version

from tflq.face.report.blocks import Block, Brief, Code, Columns, InText, Listing, OnPage, Report, Table, Text
from tflq.face.report.blocks import Verdict as VerdictBlock
from tflq.face.report.matrix import merge
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Mark, Matrix, Strip
from tflq.face.report.verbs.prove.page import STYLES, page_blocks
from tflq.proof import ON_ONE_LIBM, Coverage, OperatorProof, Proof, Verdict, Word

_HOW: Columns = (("how", "<"), ("element", "<"), ("first", ">"), ("second", ">"))
_COLUMNS: Columns = (("#", ">"), ("operator", "<"), ("verdict", "<"), *_HOW)
_MANY: Columns = (("#", ">"), ("operator", "<"), ("verdict", "<"), ("same bits", "<"), ("profiles", "<"), *_HOW)
#: Rows of operators that text lists for many profiles, and profiles that it names for one reason.
_ROWS, _NAMED = 5, 4
#: Marks of groups of profiles; the last one is that of all others.
_ALIKE, _LETTERS = Mark("a", "good"), "abcdefghijklmnopqrstuvwxyz*"


def prove_report(proof: Proof) -> Report:
    """Build the report: counts, the operators that are not equal by their constants alone, and how far it is proved."""
    path = proof.model.path or "model"
    about = Code(path), f" {proof.model.size:,} bytes, SHA-256 {proof.model.sha256}, tflq {version('tflq')}"
    return Report("prove", list(_blocks(proof)), about=about, title=f"{path}: tflq prove")


def prove_card(proof: Proof) -> Report:
    """Build the report with where to look first."""
    apart = ((o, v) for o in proof.operators for v in o.verdicts if v.word == proof.word != Word.EQUAL)
    where = (f"First: operator {o.place} {o.op}, {v.first} and {v.second}: {v.reason}" for o, v in apart)
    brief = Brief(
        next(where, claim_text(proof)),
        "Next: .operators[i].verdicts, .groups; .witness of a verdict holds inputs that show the difference",
        f"{proof.model.path or 'model'}: {profiles_text(proof)}: {counts_text(proof.counts)}",
    )
    return Report("prove", [*_blocks(proof), brief])


def _blocks(proof: Proof) -> Iterator[Block]:
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


def _matrix(proof: Proof) -> Matrix:
    """Return profiles against operators: those with one letter in a column give the same bits for every input."""
    marks: dict[str, list[Mark]] = {name: [] for name in proof.profiles}
    for operator in proof.operators:
        letters: dict[str, Mark] = {}
        for number, group in enumerate(operator.groups):
            letters |= dict.fromkeys(group, _mark(operator, number))
        for name, row in marks.items():
            row.append(letters.get(name, _ALIKE))
    operators = [(operator.place, operator.op) for operator in proof.operators]
    key = (
        (_ALIKE, f"the bits of {proof.profiles[0]}"),
        (Mark("b", "hot3"), "and so on: other bits, for an input that is known"),
        (Mark("B", "warning"), "and so on: not decided"),
    )
    ordered = merge("Profiles with the same bits for every input", marks, operators, ())
    seen = {mark.style for row in ordered.rows for mark in row.marks}
    return replace(ordered, key=[(mark, text) for mark, text in key if mark.style in seen])


def _mark(operator: OperatorProof, number: int) -> Mark:
    """Return the mark of a group: a for the first, else its letter, in the style of what is known of it."""
    if not number:
        return _ALIKE
    group, first = set(operator.groups[number]), set(operator.groups[0])
    about = [v for v in operator.verdicts if {v.first, v.second} & group]
    differs = any(v.word == Word.DIFFERS for v in [v for v in about if {v.first, v.second} & first] or about)
    letter = _LETTERS[min(number, len(_LETTERS) - 1)]
    return Mark(letter, "hot3") if differs else Mark(letter.upper(), "warning")


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
            yield f"no computed tensor{graph} is proved equal for every input of the model"
            continue
        count = counted(len(one.covered), "computed tensor")
        upto = ", ".join(map(str, one.edge[-_NAMED:]))
        yield f"covered{graph}: {count}, up to tensor {upto}, equal for every input of the model"
        yield f"outside of the proof{graph}: {_outside_text(proof, one)}"


def _outside_text(proof: Proof, one: Coverage) -> str:
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


def _two(proof: Proof) -> Table:
    rows = [(o, v) for o in proof.operators for v in o.verdicts if not _is_plain(v)]
    return Table(_COLUMNS, [(o.place, o.op, v.word.value, *_how(v)) for o, v in rows])


def _many(proof: Proof) -> Table:
    rows = [_row(o) for o in proof.operators if o.word != Word.EQUAL]
    return Table(_MANY, rows, most=_ROWS, rest="... and {left} more (--json and --html list them all)")


def _row(operator: OperatorProof) -> tuple[str, ...]:
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


def _is_plain(verdict: Verdict) -> bool:
    """Return True if both profiles have the same kernel with the same constants."""
    return verdict.word == Word.EQUAL and verdict.reason.startswith("the same kernel")


def _how(verdict: Verdict) -> tuple[str, str, str, str]:
    witness = verdict.witness
    if witness is None:
        return verdict.reason, "", "", ""
    return verdict.reason, str(list(witness.element)), str(witness.first), str(witness.second)
