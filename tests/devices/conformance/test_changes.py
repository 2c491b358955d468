"""Two runs compared: exactly the operators whose bits changed are named, whatever the suite expected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

import tflq as package
from support.commands import conform, validate
from tflq.devices.suites import judge
from tflq.devices.suites.changes import Computed, KernelChange, compare_runs
from tflq.devices.suites.judge import Judged, Response, Verdicts
from tflq.devices.suites.make import Case, kept, read_suite, write_suite
from tflq.devices.suites.run import SuiteOrder, make_suite
from tflq.errors import InputError
from tflq.face.report.verbs.conform_changes import computed_text
from tflq.model.storage.arrays import opened

#: The target before the change, and targets after it.
BEFORE, CHANGED = "litert-ref", "tf-1.15-ref"
AFTER = (
    "litert-2.4-ref",
    CHANGED,
    *(pytest.param(n, marks=pytest.mark.slow) for n in ("tflm-cmsis-nn-single", "litert-opt")),
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "suite.npz"
    make_suite(str(path), SuiteOrder(level="smoke", shard=(13, 24)))
    return path


class Runs:
    """Runs of profiles as targets: their verdicts, and the folders with what they left."""

    def __init__(self, suite: Path, folder: Path) -> None:
        self.suite, self.folder, self.made = suite, folder, dict[str, Verdicts]()

    def __getitem__(self, name: str) -> Verdicts:
        if name not in self.made:
            self.made[name] = package.conform(self.suite, f"profile:{name}", work=self.folder / name)
        return self.made[name]

    def left(self, name: str, case: str) -> dict[str, bytes]:
        """Return what a target left for a case: files of outputs, and an empty one for a refusal."""
        files = (self.folder / name / case).iterdir()
        return {
            path.name: path.read_bytes() if path.name.startswith("out") else b""
            for path in files
            if path.name.startswith("out") or path.name == "refused.txt"
        }


@pytest.fixture(scope="module")
def runs(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(suite, tmp_path_factory.mktemp("runs"))


#: Kernels as a new build may have them: rows of a profile's file, and what is said of the changed cases.
PLANTED = (
    (
        {"op": "CONV_2D", "types": "int8 int8 int32 -> int8", "requantizer": {"last": "towards minus infinity"}},
        "minus infinity",
    ),
    (
        {"op": "MAX_POOL_2D", "types": "int8 -> int8", "ignores": {"option": "activation"}},
        "activation is ignored|no activation in place of",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "said"), PLANTED)
def test_the_formula_of_a_changed_kernel_is_named(row: Any, said: str, suite: Path, runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "after.yaml"
    path.write_text(json.dumps({"schema": "tflq/profile/1", "base": BEFORE, "rows": [row]}), encoding="utf-8")
    found = package.diff_verdicts(runs[BEFORE], package.conform(suite, f"profile:{path}"))
    assert {kernel.op for kernel in found.kernels} == {row["op"]}
    kernel = found.kernels[0]
    assert re.search(said, kernel.after.name)
    assert (kernel.after.is_refuted, kernel.before.name) == (False, BEFORE)


def _changed(*causes: str, places: tuple[str, ...] = ()) -> Computed:
    """Return what is named of changed cases with these causes and places."""

    def one(number: int, result: str, outputs: str, cause: str, place: str) -> Judged:
        case = Case(f"{number:05}", "TANH", "int8 -> int8", "smoke", "aim", (), "", (), ((),))
        named = tuple(filter(None, cause.split("|")))
        found = Judged(case, judge.CaseResult(result), causes=named, digest=str(number), size=number + 1)
        return replace(found, outputs=outputs, place=place)

    pairs = list(zip_longest(causes, places, fillvalue=""))
    before = tuple(one(k, "passes", "a", "", "") for k in range(len(pairs)))
    after = tuple(one(k, "differs", "b", *pair) for k, pair in enumerate(pairs))
    runs = (Verdicts(name, BEFORE, "smoke", cases) for name, cases in (("old", before), ("new", after)))
    return compare_runs(*runs).kernels[0].after


def test_an_arithmetic_that_misses_a_small_case_is_the_nearest() -> None:
    whole, missing = _changed("x", "x", "x"), _changed("x", "x", "")
    assert (whole.name, whole.reproduced, whole.is_refuted) == ("x", 3, False)
    assert (missing.name, missing.reproduced, missing.is_refuted) == ("x", 2, True)


def test_the_simplest_of_those_that_fit_is_named_and_none_that_fits_better_is_hidden() -> None:
    simple = _changed("a, b, c|a|b+a", "a, b, c|a|b+a")
    assert (simple.name, simple.others, simple.is_refuted) == ("a", ("b+a", "a, b, c"), False)
    assert computed_text(simple) == "a (also b+a, a, b, c)"
    whole = _changed(*["near|whole"] * 2, "whole", *["near|whole"] * 21, *["near"] * 30)
    assert (whole.name, whole.reproduced, whole.is_refuted, whole.others) == ("whole", 24, False, ())


def test_a_place_holds_for_half_of_the_cases() -> None:
    few, most = (_changed("", "", "", places=("here",) * count) for count in (1, 2))
    assert (few.name, few.place, few.placed) == ("", "", 0)
    assert (most.name, most.place, most.placed) == ("", "here", 2)


def test_a_cause_of_few_cases_is_not_named() -> None:
    found = _changed("clamp at another code", "", "", places=("", "here", "here"))
    assert (found.name, found.place) == ("", "here")


@pytest.mark.parametrize("after", AFTER)
def test_exactly_the_changed_operators_are_named(after: str, runs: Runs) -> None:
    """The truth is what the two targets left in their folders, byte by byte."""
    found = package.diff_verdicts(runs[BEFORE], runs[after])
    cases = {one.case.id: one.case for one in runs[BEFORE].cases}
    changed = {name for name in cases if runs.left(BEFORE, name) != runs.left(after, name)}
    assert {change.after.case.id for kernel in found.kernels for change in kernel.changes} == changed
    assert {(k.op, k.types) for k in found.kernels} == {(cases[n].op, cases[n].types) for n in changed}
    assert found.verdict.value == ("differs" if changed else "same")
    assert found.same + found.idle + found.changed == len(cases)
    assert changed, "nothing was planted"
    for kernel in found.kernels:
        sizes = [change.size for change in kernel.changes]
        assert kernel.smallest.size == min(sizes) > 0
        if kernel.before.cases:
            assert (kernel.before.name, kernel.before.reproduced) == (BEFORE, kernel.before.cases)
        if kernel.smallest.answers == (Response.RUNS, Response.REFUSES):
            assert kernel.kinds["runs -> refuses"] >= 1


def test_a_change_is_named_after_the_profile_that_computes_it(runs: Runs) -> None:
    (kernel,) = package.diff_verdicts(runs[BEFORE], runs["litert-2.4-ref"]).kernels
    assert (kernel.op, kernel.before.name) == ("LEAKY_RELU", BEFORE)
    assert "litert-2.4-ref" in (kernel.after.name, *kernel.after.others)
    (back,) = package.diff_verdicts(runs["litert-2.4-ref"], runs[BEFORE]).kernels
    assert (back.before, back.after) == (kernel.after, kernel.before)


def test_equal_runs_are_the_same(runs: Runs, suite: Path) -> None:
    found = package.diff_verdicts(runs[BEFORE], runs[BEFORE])
    assert (found.verdict.value, found.kernels) == ("same", ())
    assert found.same == runs[BEFORE].compared
    done = conform("diff", "--suite", suite, "--before", f"profile:{BEFORE}", "--after", f"profile:{BEFORE}")
    assert done.exit_code == 0, done.output


def test_what_the_suite_expected_does_not_matter(suite: Path, runs: Runs) -> None:
    other = package.conform(suite, "profile:litert-2.4-ref", profile="litert-2.4-ref")
    names = {(k.op, k.types) for k in package.diff_verdicts(runs[BEFORE], other).kernels}
    assert names == {("LEAKY_RELU", "uint8 -> uint8")}


def renamed(suite: Path, path: Path, every: int) -> Path:
    """Write a suite as another version might: other names and order, and not every case."""
    with opened(str(suite)) as archive:
        made = read_suite(archive)
        chosen = list(reversed(made.cases))[::every]
        cases = tuple(replace(case, id=f"{k:05d}-{case.op.lower()}") for k, case in enumerate(chosen))
        write_suite(str(path), replace(made, cases=cases), kept(cases, archive))
    return path


def test_cases_are_matched_by_what_they_are(suite: Path, runs: Runs, tmp_path: Path) -> None:
    other = renamed(suite, tmp_path / "other.npz", 1)
    found = package.diff_verdicts(runs[BEFORE], package.conform(other, f"profile:{BEFORE}"))
    assert (found.verdict.value, found.only_before, found.only_after) == ("same", 0, 0)
    changed = package.diff_verdicts(runs[BEFORE], package.conform(other, f"profile:{CHANGED}"))
    truth = package.diff_verdicts(runs[BEFORE], runs[CHANGED])
    assert [(k.op, k.types, len(k.changes)) for k in changed.kernels] == [
        (k.op, k.types, len(k.changes)) for k in truth.kernels
    ]
    half = package.diff_verdicts(
        runs[BEFORE], package.conform(renamed(suite, tmp_path / "half.npz", 2), f"profile:{BEFORE}")
    )
    assert (half.verdict.value, half.only_after) == ("same", 0)
    assert half.only_before == len(runs[BEFORE].cases) // 2


def test_nothing_in_common_is_no_agreement(runs: Runs) -> None:
    first = runs[BEFORE]
    none = replace(first, cases=())
    other = replace(first, cases=tuple(replace(one, digest=f"other {one.digest}") for one in first.cases))
    for second in (none, other):
        assert package.diff_verdicts(first, second).verdict.value == "nothing compared"
    idle = tuple(one for one in first.cases if one.case.is_refused)
    assert package.diff_verdicts(replace(first, cases=idle), first).verdict.value == "nothing compared"


def test_an_interrupted_run_is_no_agreement(runs: Runs) -> None:
    first = runs[BEFORE]
    cut = replace(first, cases=first.cases[:-1], left=1)
    assert package.diff_verdicts(first, cut).verdict.value == "incomplete"
    assert package.diff_verdicts(cut, runs[CHANGED]).verdict.value == "differs"


@pytest.fixture(scope="module")
def documents(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    from tflq.face.report.json import dumps
    from tflq.face.report.verbs.conform import verdict_document

    folder = tmp_path_factory.mktemp("documents")
    paths = folder / "before.json", folder / "after.json"
    for path, name in zip(paths, (BEFORE, CHANGED), strict=True):
        path.write_text(dumps(verdict_document(runs[name])))
    return paths


def test_recorded_runs_give_what_live_ones_give(runs: Runs, documents: tuple[Path, Path]) -> None:
    live = package.diff_verdicts(runs[BEFORE], runs[CHANGED])
    recorded = package.diff_verdicts(*documents)
    facts = ("op", "types", "cases", "options", "before", "after", "kinds")
    assert [[getattr(k, f) for f in facts] for k in recorded.kernels] == [
        [getattr(k, f) for f in facts] for k in live.kernels
    ]
    assert (recorded.same, recorded.idle) == (live.same, live.idle)


def test_the_command_prints_text_a_document_markdown_and_a_page(
    documents: tuple[Path, Path], suite: Path, tmp_path: Path
) -> None:
    text = conform("diff", *documents)
    assert text.exit_code == 1
    assert text.stdout.startswith(f"DIFFERS profile:litert-ref and profile:{CHANGED}: ")
    document = json.loads(conform("diff", *documents, "--json").stdout)
    validate(document, "conform-diff")
    marked = conform("diff", *documents, "--markdown", "--html", tmp_path / "page.html")
    rows = [line for line in marked.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(document["operators"])
    assert "<title>" in (tmp_path / "page.html").read_text()
    place = tmp_path / "cases"
    assert conform("diff", *documents, "--suite", suite, "--cases", place).exit_code == 1
    assert len(list(place.glob("*/model.tflite"))) == len(document["operators"])


def test_names_cannot_leave_a_cell_of_markdown(documents: tuple[Path, Path], tmp_path: Path) -> None:
    document = json.loads(documents[1].read_text())
    document["target"] = "evil` | <script>\n# x"
    for case in document["cases"]:
        case["types"] = "int8 | <b> \x1b[31m"
    other = tmp_path / "evil.json"
    other.write_text(json.dumps(document))
    for name in ("before", "after"):
        order = (other, documents[0]) if name == "before" else (documents[0], other)
        done = conform("diff", *order, "--markdown")
        assert done.exit_code == 1, done.output
        outside = re.sub(r"`[^`\n]*`", "", done.stdout)
        assert not any(word in outside for word in ("`", "<script", "<b>", "\x1b", "\n# x"))
        lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        cells = {line.replace("\\|", "").count("|") for line in lines}
        assert cells == {7}


def hostile(document: dict[str, Any]) -> Iterator[Any]:
    """Yield documents that are damaged in one place each."""
    yield from (None, [], 3, "x", {}, {"schema": "tflq/conform/1"}, {**document, "schema": "tflq/conform/9"})
    for name in ("digest", "outputs", "size", "id", "result", "difference", "causes", "aim"):
        for value in (None, -1, 1.5, "x", [], {}, [1]):
            cases = [dict(case) for case in document["cases"]]
            cases[0][name] = value
            yield {**document, "cases": cases}


def test_any_document_is_read_or_refused(documents: tuple[Path, Path], tmp_path: Path) -> None:
    path, codes = tmp_path / "hostile.json", set()
    for damaged in hostile(json.loads(documents[1].read_text())):
        path.write_text(json.dumps(damaged))
        done = conform("diff", documents[0], path, "--json")
        assert done.exit_code in (0, 1, 2, 3), (done.exit_code, done.output, done.exception)
        assert "Traceback" not in done.output
        codes.add(done.exit_code)
    assert codes >= {1, 2}
    for data in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        path.write_bytes(data)
        assert conform("diff", path, documents[0]).exit_code == 2


def test_runs_of_earlier_versions_are_refused_with_what_helps(documents: tuple[Path, Path], tmp_path: Path) -> None:
    document = json.loads(documents[0].read_text())
    for case in document["cases"]:
        del case["digest"], case["outputs"], case["size"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="record it with this version"):
        package.diff_verdicts(path, documents[1])


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("{before}",),
        ("{before}", "{before}", "{before}"),
        ("--suite", "{suite}"),
        ("--before", "profile:tflm", "--after", "profile:tflm"),
        ("{before}", "{after}", "--before", "profile:tflm"),
        ("{before}", "{after}", "--cases", "{new}"),
        ("{before}", "{after}", "--markdown", "--json"),
        ("{before}", "{nothing}"),
        ("{before}", "{suite}"),
        ("{before}", "{after}", "--html", "{before}"),
    ],
)
def test_misuse(words: tuple[str, ...], documents: tuple[Path, Path], suite: Path, tmp_path: Path) -> None:
    places = {"before": documents[0], "after": documents[1], "suite": suite}
    places |= {name: tmp_path / name for name in ("new", "nothing")}
    before = documents[0].read_bytes()
    done = conform("diff", *(word.format(**places) for word in words))
    assert done.exit_code == 2, done.output
    assert documents[0].read_bytes() == before
    assert not (tmp_path / "new").exists()


def planted(runs: Runs, op: str, types: str, chosen: Callable[[str], bool]) -> KernelChange:
    """Return the change of one kernel, of which the chosen cases gave other outputs, by their aims."""
    first = runs[BEFORE]
    touched = {
        one.case.id for one in first.cases if (one.case.op, one.case.types) == (op, types) and chosen(one.case.aim)
    }
    assert touched
    cases = tuple(replace(one, outputs="other") if one.case.id in touched else one for one in first.cases)
    (kernel,) = package.diff_verdicts(first, replace(first, cases=cases)).kernels
    assert {change.after.case.id for change in kernel.changes} == touched
    return kernel


def options_of(aim: str) -> set[str]:
    return {word for part in aim.split("; ") for word in part.removeprefix("geometry: ").split(", ")}


def test_options_distinguish_the_changed_cases(runs: Runs) -> None:
    """Check every option of every kernel: the changed cases have what is named and, if `only`, no other case has."""
    kernels: dict[tuple[str, str], list[str]] = {}
    for one in runs[BEFORE].cases:
        if not one.case.is_refused:
            kernels.setdefault((one.case.op, one.case.types), []).append(one.case.aim)
    several = {key: aims for key, aims in kernels.items() if len(aims) > 2}
    named = 0
    for (op, types), aims in list(several.items())[:6]:
        for option in sorted(set().union(*map(options_of, aims)))[:8]:
            kernel = planted(runs, op, types, lambda aim, option=option: option in options_of(aim))
            changed = [options_of(c.after.case.aim) for c in kernel.changes]
            rest = [options_of(aim) for aim in aims if option not in options_of(aim)]
            names = set(kernel.options.names)
            if not rest:
                assert names == set()
                continue
            named += 1
            assert option in names
            assert kernel.options.is_only
            assert not kernel.options.is_any
            assert all(names <= options for options in changed)
            assert not any(names & options for options in rest)
    assert named >= 5


def test_options_of_changes_that_share_none(runs: Runs) -> None:
    kernels = Counter((one.case.op, one.case.types) for one in runs[BEFORE].cases if not one.case.is_refused)
    (op, types), count = kernels.most_common(1)[0]
    aims = [one.case.aim for one in runs[BEFORE].cases if (one.case.op, one.case.types) == (op, types)]
    assert count > 3
    kernel = planted(runs, op, types, lambda aim: aim in aims[:2])
    if kernel.options.is_any:
        options = set(kernel.options.names)
        assert all(options & options_of(c.after.case.aim) for c in kernel.changes)
        assert not any(options & options_of(aim) for aim in aims[2:])
