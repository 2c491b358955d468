"""The report of `tflq bench`: times of all sides in seconds, their ratios, memory in bytes, the operators."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.comparison.bench import BenchCase, Benched, BenchSide, OperatorTime, ratio
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Fold,
    Graph,
    Headline,
    Next,
    Note,
    OnPage,
    OperatorBlock,
    Pairs,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.system import BenchDocument, SideDocument, TimedCaseDocument, TimedOperatorDocument
from tflq.face.report.graph.colouring import scale
from tflq.face.report.graph.drawing import ModelView
from tflq.face.report.wording import bytes_text, counted, runtime_name, runtime_text, seconds_text, short
from tflq.texts import facts_of


def bench_document(found: Benched) -> BenchDocument:
    """Return the document of a benchmark."""
    return filled(BenchDocument, found, facts=facts_of(found.notes), cases=[_case(case) for case in found.cases])


def _case(case: BenchCase) -> TimedCaseDocument:
    operators = [filled(TimedOperatorDocument, op, rate=op.rate or None) for op in case.operators]
    return filled(TimedCaseDocument, case, sides=[_side(case, side) for side in case.sides], operators=operators)


def _side(case: BenchCase, side: BenchSide) -> SideDocument:
    base = case.base
    is_other = base is not None and side is not base and side.is_timed
    return filled(
        SideDocument,
        side,
        kind="profile" if side.is_tflq else "runtime",
        median=side.median if side.is_timed else None,
        minimum=side.minimum if side.is_timed else None,
        invokes=len(side.times),
        turns=len(side.turns),
        peak=side.peak or None,
        ratio=ratio(base, side) if is_other and base is not None else None,
    )


_SIDES = (
    ("side", "="),
    ("median", ">"),
    ("least", ">"),
    ("tflq / it", ">"),
    ("quartiles", ">"),
    ("first result", ">"),
    ("peak", ">"),
    ("bits", "<"),
)
_OPERATORS = (("op", ">"), ("operator", "<"), ("time", ">"), ("share", ">"), ("MACs", ">"), ("MACs/s", ">"))
#: Operators that text lists, and that bars on a page show.
_LISTED, _DRAWN = 5, 12


def bench_report(found: Benched) -> Report:
    """Build the report of a benchmark."""
    path = found.facts.path or "model"
    return Report("bench", list(_blocks(found)), about=CodeBlock(path), title=f"{path}: tflq bench")


def bench_card(found: Benched) -> Report:
    """Build the report of a benchmark for a console."""
    return Report("bench", [*_blocks(found), Brief(_conditions(found), "Next: .cases")])


def _blocks(found: Benched) -> Iterator[Block]:
    style, word = ("warning", "INTERRUPTED") if found.interrupted else ("strong", "")
    yield Headline(lead(found), style, word=word, subject=found.facts.path or "model")
    for note in found.notes:
        yield Note(note)
    for case in found.cases:
        yield from _report_case(found, case)
    yield FactLine(_conditions(found))
    if found.missing:
        yield FactLine(f"not installed, so not compared: {', '.join(found.missing)}")
    yield OnPage(lambda view: _page(view, found))
    yield Section("sides", "What was timed", [Fold("packages and resolvers", [Pairs(_describe(found))], opened=True)])
    yield Next(list(_next(found)))


def lead(found: Benched) -> str:
    """Return the result in one line."""
    if not found.cases or found.cases[0].base is None:
        return "nothing was timed"
    if len(found.cases) > 1:
        done = sum(case.base is not None for case in found.cases)
        return f"{counted(done, 'signature')} timed under {found.profiles[0]}"
    return _line(found.cases[0])


def _line(case: BenchCase) -> str:
    return times_text(case) if case.base is not None else "was not timed"


def times_text(case: BenchCase) -> str:
    """Return the median time of an invoke on each side, tflq first."""
    return ", ".join(f"{_side_name(side)} {seconds_text(side.median)}" for side in case.sides if side.is_timed)


def _side_name(side: BenchSide) -> str:
    return f"tflq ({side.name})" if side.is_tflq else runtime_name(side.name)


def _report_case(found: Benched, case: BenchCase) -> Iterator[Block]:
    several = len(found.cases) > 1
    if several:
        yield Text(f"{case.name}: {_line(case)}", "strong")
    seed = "" if case.inputs.seed is None else f", seed {case.inputs.seed}"
    if case is found.cases[0]:
        yield FactLine(f"inputs: {counted(case.inputs.samples, 'sample')}, {case.inputs.source}{seed}")
    title = f"Times of {case.name}" if several else "Times"
    failed = [Text(f"{side.label} did not run: {side.failure}", "bad") for side in case.sides if side.failure]
    rows = [_row(case, side) for side in case.sides if side.is_timed]
    yield Section(_anchor("times", case), title, [TableBlock(_SIDES, rows), *failed, *_bars(case)])
    if case.operators:
        ordered = sorted(case.operators, key=lambda op: -op.seconds)
        total = sum(op.seconds for op in ordered)
        table = TableBlock(
            _OPERATORS,
            [_operator(op, total) for op in ordered],
            most=_LISTED,
            rest="... and {left} more (--html FILE shows all)",
            fold=f"all {counted(len(ordered), 'operator')} by time",
        )
        slowest = [
            Bar((OperatorBlock(op.index, op.op),), op.seconds, seconds_text(op.seconds)) for op in ordered[:_DRAWN]
        ]
        title = f"Operators of {case.name}" if several else "Operators"
        yield Section(
            _anchor("operators", case), title, [Text(_sum(case)), Bars("operator", "median time", slowest), table]
        )


def _anchor(name: str, case: BenchCase) -> str:
    return f"{name}-{case.name}" if case.name else name


def _row(case: BenchCase, side: BenchSide) -> list[str]:
    base = case.base
    ratios = ["", ""]
    if base is not None and side is not base:
        found = ratio(base, side)
        ratios = [_times(found.median), f"{_times(found.low)} to {_times(found.high)}"]
    bits = "" if side is base else side.bits
    peak = bytes_text(side.peak) if side.peak else "unknown"
    return [
        side.label,
        seconds_text(side.median),
        seconds_text(side.minimum),
        *ratios,
        seconds_text(side.ready),
        peak,
        bits,
    ]


def _times(ratio: float) -> str:
    return f"{ratio:.{3 if ratio < 0.0995 else 2 if ratio < 9.95 else 1 if ratio < 99.5 else 0}f}"


def _bars(case: BenchCase) -> Iterator[Block]:
    timed = [side for side in case.sides if side.is_timed]
    rows = [
        Bar(side.label, side.median, seconds_text(side.median), "above" if side is case.base else "plain")
        for side in timed
    ]
    yield Bars("side", "median time of an invoke", rows)
    ready = [
        Bar(side.label, side.ready, seconds_text(side.ready), "above" if side is case.base else "plain")
        for side in timed
    ]
    yield Bars("side", "time to the first result: imports, loading, the first invoke", ready)


def _operator(op: OperatorTime, total: float) -> list[str | OperatorBlock]:
    rate = f"{short(op.rate)}" if op.rate else ""
    macs = short(op.macs) if op.macs else ""
    part = f"{op.seconds / total:.1%}" if total else ""
    return [str(op.index), OperatorBlock(op.index, op.op), seconds_text(op.seconds), part, macs, rate]


def _sum(case: BenchCase) -> str:
    total, macs = sum(op.seconds for op in case.operators), sum(op.macs for op in case.operators)
    text = f"operators of {case.sides[0].name}: {seconds_text(total)} together"
    if not macs or not total:
        return text
    return f"{text}; {short(macs)} MACs, {short(macs / total)} a second"


def _conditions(found: Benched) -> str:
    of_profiles = "each" if found.threads == 1 else "for runtimes, 1 for profiles"
    return f"{counted(found.threads, 'thread')} {of_profiles}; 8-bit codes are multiplied by {found.kernels}"


def _describe(found: Benched) -> list[tuple[str, str]]:
    sides = {side.label: side for case in found.cases for side in case.sides if side.description is not None}
    described = [(label, runtime_text(side.description)) for label, side in sides.items()]
    reasons = {side.label: side.reason for case in found.cases for side in case.sides if side.reason}
    return [(label, f"{text}; {reasons[label]}" if label in reasons else text) for label, text in described]


def _page(view: ModelView, found: Benched) -> Iterator[Block]:
    drawn = next((case for case in found.cases if case.operators and case.name == view.inspection.name), None)
    if drawn is None:
        return
    times = {op.index: 1e6 * op.seconds for op in drawn.operators}
    total = sum(times.values()) or 1.0
    texts = {index: f"{value / total:.1%} of the time" for index, value in times.items()}
    colourings = [scale("time", times, "us", texts=texts)]
    rates = {op.index: op.rate / 1e9 for op in drawn.operators if op.rate}
    if rates:
        colourings.append(scale("multiply-accumulates a second", rates, "G", hue="cool"))
    yield Graph(colourings)


def _next(found: Benched) -> Iterator[str]:
    path = quote(found.facts.path or "MODEL")
    apart = {side.name for case in found.cases for side in case.sides if side.bits == "differs" and not side.is_tflq}
    if found.profiles[0] in apart:
        yield f"tflq verify {path} --profile {found.profiles[0]} --against {found.profiles[0]}"
    elif apart:
        yield f"tflq profiles effects {path}"
    yield f"tflq bench {path} --html bench.html"
