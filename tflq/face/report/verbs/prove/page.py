"""The page of a proof: the model coloured by verdicts, every operator with its methods, the profiles by hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tflq.face.report.blocks import (
    Badge,
    Block,
    Code,
    Columns,
    Graph,
    Inline,
    Listing,
    Operator,
    Pairs,
    Section,
    Table,
    Text,
)
from tflq.face.report.graph.colouring import states
from tflq.face.report.numbers import counted
from tflq.model.ir import GraphView
from tflq.proof import OperatorProof, Proof, Verdict, Word

if TYPE_CHECKING:
    from tflq.face.report.graph.standard import ModelView

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
        Section("operators", "Operators", [Table(_OPERATORS, [_row(o, o.index in here) for o in proof.operators])]),
        Section("profiles", "Profiles", [Table(_PROFILES, list(_profiles(proof)))]),
    ]


def _row(operator: OperatorProof, is_here: bool) -> Sequence[Inline]:
    sizes = " + ".join(str(len(group)) for group in operator.groups)
    name: Inline = Operator(operator.index, operator.op) if is_here else operator.op
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
        yield Code(one["name"]), one["package"], one["version"], one["resolver"], Code(one["sha256"])


def _panel(operator: OperatorProof) -> Iterator[Block]:
    yield Text(Badge(operator.word.value, STYLES[operator.word]))
    yield Pairs([("accumulators", _span(operator))] if operator.accumulators else [])
    for group in operator.groups:
        yield Text(f"same bits: {', '.join(group)}")
    yield Listing(_reasons(operator.verdicts))


def _reasons(verdicts: Iterable[Verdict]) -> list[Inline]:
    """Return each reason with the first profile that it is about."""
    firsts: dict[str, Verdict] = {}
    for verdict in verdicts:
        firsts.setdefault(verdict.reason, verdict)
    return [f"{v.second}: {v.word.value}: {reason}" for reason, v in firsts.items()]
