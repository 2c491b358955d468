"""Run explain on each case, and measure how often it is right."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tflq
from device.asking import is_proved_equal, remaining_causes
from device.planting import Case, profile_of, subject
from device.truths import is_cause
from tflq.comparison.evidence.dumps import load_dumps

#: The least acceptable rates.
WANTED = {
    "located": 1.0,
    "found": 0.98,
    "alone": 0.9,
    "settled": 0.95,
    "pairs": 0.8,
    "not wrong": 1.0,
    "left open": 1.0,
    "same": 1.0,
}


@dataclass(frozen=True)
class Judged:
    """One case. `first` is the first divergent operator found, `verdict` and `exact` are explain's."""

    number: int
    kind: str
    mistake: str
    model: str
    profile: str
    operator: int
    op: str
    type: str
    partial: bool
    changed: int
    first: int | None
    verdict: str
    exact: tuple[tuple[str, ...], ...]  # names of every cause that reproduces all bits
    proved: bool  # the only cause equals the planted mistake on every input
    left: tuple[tuple[str, ...], ...]  # causes that fit the device's answers on explain's further inputs
    seconds: float  # of the processor

    @property
    def planted(self) -> bool:
        """True if the case has a visible mistake that explain should know."""
        return self.changed > 0 and self.kind in ("listed", "profile", "pair")

    @property
    def located(self) -> bool:
        """True if the first divergent operator is the right one, or there is none and nothing differs."""
        return self.first == (self.operator if self.changed else None)

    @property
    def found(self) -> bool:
        """True if the planted cause, or one proved to be equal, is among the causes that reproduce every bit."""
        return self.proved or any(is_cause(self.kind, self.mistake, name) for names in self.exact for name in names)

    @property
    def alone(self) -> bool:
        """True if no tried input distinguishes it from the other causes that reproduce every bit, if any do."""
        return self.found and len(self.exact) == 1

    @property
    def settled(self) -> bool:
        """True if it is the only cause left after the device has run on explain's inputs."""
        return self.proved or (
            len(self.left) == 1 and any(is_cause(self.kind, self.mistake, name) for name in self.left[0])
        )

    @property
    def is_left_open(self) -> bool:
        """True if no hypothesis about arithmetic is named; a fault of memory may be."""
        return self.verdict in ("undetermined", "partial") or not self.exact

    @property
    def wrong(self) -> bool:
        """True if another cause was named as certain."""
        return self.verdict == "explained" and bool(self.exact) and not self.found


def judged(case: Case) -> Judged:
    """Write the dump, read it, find the first divergent operator and explain it."""
    chosen = subject(case.model)
    assert chosen is not None
    began = time.process_time()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dump.npz"
        case.save(path)
        findings = tflq.explain(chosen.model, path, profile_of(case.profile))
        dumps = load_dumps(chosen.model, path)
    first = next((o.index for o in findings.operators if o.differs), None)
    found = findings.explanation
    exact = () if found is None else tuple((h.name, *h.also) for h in found.fitting)
    left, proved = exact, False
    if found is not None and len(exact) == 1 and not any(is_cause(case.kind, case.mistake, name) for name in exact[0]):
        proved = is_proved_equal(case, chosen, dumps[findings.sample or 0], found)
    if found is not None and len(exact) > 1 and case.kind in ("listed", "profile", "pair"):
        left = remaining_causes(case, chosen, dumps[findings.sample or 0], found)
    return Judged(
        case.number,
        case.kind,
        case.mistake,
        case.model.stem,
        case.profile,
        case.site.index,
        case.site.op,
        case.site.type,
        case.partial,
        case.changed,
        first,
        "same" if found is None else found.verdict.value,
        exact,
        proved,
        left,
        time.process_time() - began,
    )


def rates(results: Sequence[Judged]) -> dict[str, tuple[int, int]]:
    """Return the rates by name: (number of successes, number of cases)."""
    differing = [r for r in results if r.changed]
    planted = [r for r in results if r.planted and r.kind != "pair"]
    pairs = [r for r in results if r.planted and r.kind == "pair"]
    outside = [r for r in differing if r.kind == "outside"]
    same = [r for r in results if not r.changed]
    return {
        "located": (sum(r.located for r in differing), len(differing)),
        "found": (sum(r.found for r in planted), len(planted)),
        "alone": (sum(r.alone for r in planted), len(planted)),
        "settled": (sum(r.settled for r in planted), len(planted)),
        "pairs": (sum(r.found for r in pairs), len(pairs)),
        "not wrong": (sum(not r.wrong for r in results), len(results)),
        "left open": (sum(r.is_left_open for r in outside), len(outside)),
        "same": (sum(r.verdict == "same" for r in same), len(same)),
    }


def good(measured: dict[str, tuple[int, int]]) -> bool:
    """Return whether every rate is high enough."""
    return all(n >= WANTED[name] * of for name, (n, of) in measured.items())


_MEANING = {
    "located": "first divergent operator found",
    "found": "planted cause among the exact fits",
    "alone": "the only one, or equivalent on every input tried",
    "settled": "the only one after a run on the inputs that --discriminate finds",
    "pairs": "both of two planted mistakes among the exact fits",
    "not wrong": "no wrong cause named as certain",
    "left open": "mistakes beyond the list left undetermined or partial",
    "same": "unchanged results reported the same",
}


def lines(results: Sequence[Judged]) -> Iterator[str]:
    """Yield the rates."""
    seconds = sum(r.seconds for r in results)
    changed = sum(r.changed > 0 for r in results)
    yield f"{len(results)} dumps, {changed} with changed elements, explained in {seconds:.0f} s of the processor"
    for name, (n, of) in rates(results).items():
        share = f"{n / of:7.2%}" if of else "      -"
        yield f"{share}  {n:4} of {of:4}  {_MEANING[name]} (at least {WANTED[name]:.0%})"


def faulty(results: Iterable[Judged]) -> Iterator[Judged]:
    """Yield cases that count against a rate."""
    for r in results:
        open_ = r.kind != "outside" or r.is_left_open or r.verdict == "same"
        if not r.located or r.wrong or not open_ or (r.planted and not r.alone):
            yield r


def described(r: Judged) -> str:
    """Return one case in a line."""
    said = "; ".join(" = ".join(names[:4]) + (" = ..." if len(names) > 4 else "") for names in r.exact[:4]) or "nothing"
    place = "" if r.located else f" at operator {r.first}"
    sort = "WRONG" if r.wrong or not r.located else "found, not alone" if r.found else "not found"
    return (
        f"{r.number}: {sort}: {r.mistake} [{r.kind}] in {r.model} operator {r.operator} {r.op} {r.type}, "
        f"{r.profile}, {r.changed} changed, {r.seconds:.1f} s: {r.verdict}{place}: {said}"
    )


def document(results: Sequence[Judged], seed: int) -> str:
    """Return the results as JSON."""
    cases = [{**asdict(r), "located": r.located, "found": r.found, "alone": r.alone} for r in results]
    return json.dumps({"seed": seed, "rates": rates(results), "wanted": WANTED, "cases": cases}, indent=1)
