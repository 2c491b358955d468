"""Joint causes: the fewest that cover the groups, what has none, and refusals by reason."""

from __future__ import annotations

from tflq.devices.suites.causes import joint_causes, refusals, unexplained
from tflq.devices.suites.judge import CaseResult, Judged
from tflq.devices.suites.make import Case
from tflq.diagnosis.siblings import Joint, JointCause, Reproduced


def case(number: int, op: str, types: str = "int8 -> int8") -> Case:
    return Case(f"{number:05d}-{op.lower()}", op, types, "smoke", "ties", (), "", (), ((),))


def differs(number: int, op: str, *causes: str) -> Judged:
    return Judged(case(number, op), CaseResult.DIFFERS, "1 of 8 elements differ", causes=causes)


def refused(number: int, op: str, reason: str) -> Judged:
    return Judged(case(number, op), CaseResult.REFUSED, reason)


def test_the_cause_of_most_groups_leads_and_a_group_counts_once() -> None:
    cases = [
        differs(1, "ADD", "a", "b"),
        differs(2, "ADD"),
        differs(3, "MUL", "b", "c"),
        differs(4, "SUB", "b", "c"),
        differs(5, "TANH", "d"),
        differs(6, "RELU"),
    ]
    first, second = joint_causes(cases)
    assert (first.name, first.groups, len(first.names), first.failing, first.first) == ("b", 3, 3, 4, "00001-add")
    assert first.operators == ("ADD", "MUL", "SUB")
    assert (second.name, second.others) == ("d", ())
    assert [(row.op, row.failing) for row in unexplained(cases)] == [("RELU", 1)]


def test_causes_of_the_same_groups_are_named_with_the_first() -> None:
    (only,) = joint_causes([differs(1, "ADD", "a", "b"), differs(2, "MUL", "b", "a")])
    assert (only.name, only.others) == ("a", ("b",))


def test_a_cause_that_was_compared_with_every_case_goes_before_one_that_fits_a_few() -> None:
    cases = [differs(n, "ADD", *("near",) * (n < 2), "whole") for n in range(4)] + [differs(4, "MUL", "near")]
    whole = JointCause("whole", (), 1, 4, ("ADD",), (), (Reproduced("ADD", "int8 -> int8", 9, 9, 4, 4),))
    first, second = joint_causes(cases, Joint((whole,)))
    assert (first.name, first.others, len(first.names), first.failing) == ("whole", (), 4, 4)
    assert (second.name, second.operators, second.failing) == ("near", ("MUL",), 1)


def test_a_cause_of_less_than_half_of_what_another_reproduces_does_not_claim_a_group() -> None:
    cases = [differs(n, "ADD", *("few",) * (n < 1), "most") for n in range(3)]
    cases += [differs(n, op, "few") for n, op in enumerate(("MUL", "SUB", "TANH"), 3)]
    first, second = joint_causes(cases)
    assert {(first.name, first.operators), (second.name, second.operators)} == {
        ("few", ("MUL", "SUB", "TANH")),
        ("most", ("ADD",)),
    }


def test_without_failing_cases_there_is_nothing() -> None:
    passing = [Judged(case(1, "ADD"), CaseResult.PASSES)]
    assert (joint_causes(passing), unexplained(passing), refusals(passing)) == ((), (), ())


def test_cases_without_an_answer_are_apart_from_those_that_differ() -> None:
    cases = [differs(1, "ADD", "a"), Judged(case(2, "ADD"), CaseResult.ENDED, "signal 9")]
    assert [(row.result, row.reason) for row in unexplained(cases)] == [(CaseResult.ENDED, "signal 9")]


def test_refusals_are_grouped_by_reason() -> None:
    cases = [
        refused(1, "ADD", "operator 0 ADD: no kernel for int8 -> int8, version 2; nearest: ADD float32"),
        refused(2, "MUL", "operator 0 MUL: no kernel for int8 -> int8, version 3"),
        refused(3, "SUB", "out of memory"),
        refused(4, "SUB", ""),
    ]
    many, *single = refusals(cases)
    assert (many.reason, len(many.cases)) == ("operator 0 ADD: no kernel for int8 -> int8, version 2", 2)
    assert many.operators == ("ADD int8 -> int8", "MUL int8 -> int8")
    assert [one.reason for one in single] == ["out of memory", "no reason given"]


def test_reasons_of_any_text_are_kept_as_the_target_gave_them() -> None:
    texts = ["N OP TYPES", "operator N OP: no", "ADD", "0", "(?P<x>[", "\x1b[2J ADD 7", "; ADD"]
    groups = refusals([refused(number, "ADD", text) for number, text in enumerate(texts)])
    assert [one.reason for one in groups] == [*texts[:-1], "no reason given"]
    assert all(len(one.cases) == 1 for one in groups)


def test_reasons_differ_by_their_words_not_by_operators_and_numbers() -> None:
    pairs = [("ADD", "ADD: line 7"), ("SUB", "SUB: line 12"), ("SUB", "ADD: line 7"), ("ADD", "ADD: line x7")]
    groups = refusals([refused(number, op, text) for number, (op, text) in enumerate(pairs)])
    assert [[one.case.op for one in group.cases] for group in groups] == [["ADD", "SUB"], ["SUB"], ["ADD"]]
    assert groups[0].reason == "ADD: line 7"


def test_refusals_that_differ_in_names_and_addresses_are_one_reason() -> None:
    words = "Type tensor(int16) of parameter (out0__{0}:0) in node (Transpose__{0}_Dequant) at 0x7f{0}, C: {0}, in{1}"
    cases = [refused(k, "MEAN", words.format(100 + k, k % 3)) for k in range(9)]
    cases += [refused(20, "MEAN", words.format(1, 1).replace("int16", "int64"))]
    assert [len(group.cases) for group in refusals(cases)] == [9, 1]
