"""Certainty is earned: telling elements, stimuli and rivals, on rules and on small devices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.devices import REF, dump, explained, names_of, one
from support.single_op import T
from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation, Spots
from tflq.diagnosis.certainty import Certainty, Weighed
from tflq.diagnosis.hypotheses import Hypothesis, HypothesisKind, are_equal
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes.device import Under
from tflq.engine.profiles import by_name
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.explain import explain_document, explain_report
from tflq.model.ir import Model

Array = NDArray[Any]
CODES = np.arange(-128, 128, dtype=np.int8)


def rescale(size: int = 256, real: float = 0.3125) -> Model:
    """A model that multiplies codes by `real`."""
    return one("QUANTIZE", [T("int8", (size,), real, 0)], T("int8", (size,), 1.0, 0), ("QuantizeOptions", {}))


@pytest.mark.parametrize(("tried", "certain", "likely"), [(1, 10, 1), (2, 11, 2), (100, 17, 8), (1024, 20, 11)])
def test_the_telling_elements_that_are_needed(tried: int, certain: int, likely: int) -> None:
    """tried * 2**-n is at most 2**-10, or 2**-1."""
    for n, certainty in ((certain, Certainty.CERTAIN), (likely, Certainty.LIKELY), (likely - 1, Certainty.NONE)):
        assert (
            Weighed(n, 2, {HypothesisKind.MISTAKE: tried}).reaches(HypothesisKind.MISTAKE, is_doubted=False)
            == certainty
        )
    assert tried * 2.0**-certain <= 2**-10 < tried * 2.0 ** -(certain - 1)


def test_values_far_away_are_more_evidence() -> None:
    """Four elements at distances 1, 2, 4 and 4: four bits, and one and two for the distances, each once."""
    x = np.array([9, 30, 60, 90], np.int8)
    model = one("RELU", [T("int8", (4,), 0.5, 0)], T("int8", (4,), 0.5, 0))
    found = explained(model, dump(model, [x], [x + np.array([1, 2, 4, -4], np.int8)]))
    assert found.explanation is not None
    evidence = found.explanation.evidence
    assert (evidence.telling, evidence.far, evidence.bits) == (4, 3, 7)


def explanation(members: int, telling: int, **more: Any) -> Explanation:
    cause = more.pop("cause", {})
    known = tuple(Hypothesis(HypothesisKind.MISTAKE, f"mistake {k}", Under(REF)) for k in range(members))
    evidence = Weighed(telling, more.pop("stimuli", 2), {HypothesisKind.MISTAKE: 100})
    return Explanation(0, "litert-ref", 60, 100, (Cause(known, 100, 100, **cause),), evidence, **more)


@pytest.mark.parametrize(
    ("found", "verdict", "doubt"),
    [
        (explanation(1, 17), "explained", None),
        (explanation(1, 16), "likely", "16 bits of evidence, of 17 needed"),
        (explanation(1, 7), "cannot tell", "7 bits of evidence, of 17 needed"),
        (explanation(1, 15, assumed=(3,)), "cannot tell", "15 bits of evidence, of 34 needed"),
        (explanation(1, 17, stimuli=1), "likely", "one input"),
        (explanation(2, 17), "likely", "2 hypotheses give the same bits"),
        (explanation(2, 17, cause={"is_proved": True}), "explained", None),
        (explanation(1, 33, assumed=(3,)), "likely", "33 bits of evidence, of 34 needed"),
        (explanation(1, 34, assumed=(3,)), "explained", None),
        (explanation(1, 33, cause={"not_at": (1,)}), "likely", "of 34 needed"),
    ],
)
def test_what_makes_one_cause_certain(found: Explanation, verdict: str, doubt: str | None) -> None:
    assert found.verdict.value == verdict
    assert (found.certainty == Certainty.CERTAIN) == (doubt is None)
    assert [text for text in found.doubts if doubt and doubt in text] or doubt is None
    assert bool(list(found.doubts)) == (doubt is not None)


def test_a_mistake_that_few_elements_show_is_possible_only() -> None:
    few, many = (
        Explanation(
            0, "litert-ref", 100 - n, 100, explanation(1, 1).causes, Weighed(1, 2, {HypothesisKind.MISTAKE: 100})
        )
        for n in (7, 8)
    )
    assert [cause.name for cause in few.ranking.possible] == ["mistake 0"]
    assert (few.exact, many.ranking.possible) == ((), ())
    assert [cause.name for cause in many.exact] == ["mistake 0"]
    assert few.verdict == many.verdict == CauseVerdict.UNTOLD


def test_far_too_little_names_no_cause_where_inputs_were_computed() -> None:
    found = explanation(1, 15, assumed=(3,))
    assert (found.exact, found.ranking.less_likely) == ((), ())
    assert [cause.name for cause in found.ranking.possible] == ["mistake 0"]


def test_one_differing_element_names_no_cause_as_likely() -> None:
    """-4 / 8 = -0.5: only this code is half-way, and several roundings of it fit."""
    x = np.array([-4, *range(-120, 121, 8)], np.int8)
    made = np.array([math.floor(c / 8 + 0.5) for c in x.tolist()], np.int8)
    model = rescale(x.size, 1 / 8)
    found = explained(model, dump(model, [x], [made]))
    assert found.explanation is not None
    assert found.explanation.evidence.telling == 1
    assert found.explanation.certainty == Certainty.NONE
    said = "\n".join(line.text for line in lines_of(explain_report(found)))
    assert "Certain" not in said
    document = explain_document(found)["explanation"]
    assert document["certainty"] == "none"
    assert document["evidence"]["telling"] == 1


def test_the_same_input_many_times_is_one_piece_of_evidence() -> None:
    x = np.full(256, -8, np.int8)
    model = rescale()
    found = explained(model, dump(model, [x], [np.full(256, -2, np.int8)]))
    assert found.explanation is not None
    assert (found.explanation.elements, found.explanation.evidence.telling) == (256, 1)
    again = explained(model, *[dump(model, [x], [np.full(256, -2, np.int8)])] * 3)
    assert again.explanation is not None
    assert again.explanation.evidence.telling == 1


@pytest.mark.slow
def test_a_cause_is_certain_where_all_codes_prove_its_names_equal() -> None:
    """Rounded towards minus infinity, in fixed point and in float64: the same on all 256 codes."""
    made = np.floor(CODES * 0.3125).astype(np.int8)
    model = rescale()
    found = explained(model, dump(model, [CODES], [made]))
    assert found.explanation is not None
    names = names_of(found)
    assert "rounds towards minus infinity, in fixed point" in names
    assert "rounds towards minus infinity, in float64" in names
    assert found.explanation.exact[0].is_proved
    assert found.explanation.verdict == CauseVerdict.EXPLAINED
    assert any("Certain" in line.text for line in lines_of(explain_report(found)))


def dense_rows(rows: int) -> tuple[Model, Array, Array]:
    """A FULLY_CONNECTED of many units and few rows, and the codes of a device that leaves the bias out."""
    rng = np.random.default_rng(0)
    weights, bias = rng.integers(-127, 128, (64, 8)), rng.integers(3000, 9000, 64)
    model = one(
        "FULLY_CONNECTED",
        [
            T("int8", (rows, 8), 0.5, 0),
            T("int8", (64, 8), 1 / 64, 0, 0, weights),
            T("int32", (64,), 1 / 128, 0, 0, bias),
        ],
        T("int8", (rows, 64), 4.0, 0),
        ("FullyConnectedOptions", {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}),
    )
    x = rng.integers(-128, 128, (rows, 8)).astype(np.int8)
    sums = x.astype(np.int64) @ weights.T
    reals = sums / 512
    made = np.clip(np.sign(reals) * np.floor(np.abs(reals) + 0.5), -128, 127).astype(np.int8)
    return model, x, made


def test_one_input_alone_leaves_a_doubt() -> None:
    doubts = []
    for rows in (1, 3):
        model, x, made = dense_rows(rows)
        found = explained(model, dump(model, [x], [made]))
        assert found.explanation is not None
        assert "bias missing" in names_of(found)
        doubts.append("all telling elements come from one input" in list(found.explanation.doubts))
    assert doubts == [True, False]


def test_names_of_the_same_kernel_and_constants_are_one_cause() -> None:
    """Profiles that share a kernel are proved equal; the explanation need not tell them apart."""
    model, x, _ = dense_rows(3)
    alone = operator_alone(model, dump(model, [x], [np.zeros((3, 64), np.int8)]), 0, REF)

    def named(*names: str) -> list[Hypothesis]:
        return [Hypothesis(HypothesisKind.PROFILE, name, Under(by_name(name))) for name in names]

    assert are_equal(named("litert-xnnpack", "litert-2.0-xnnpack"), alone)
    assert not are_equal(named("tflm", "litert-xnnpack"), alone)


def test_places_are_those_of_all_samples() -> None:
    """Channel 0 differs in one sample, channel 2 in another; both count."""
    model = one("RELU", [T("int8", (1, 4), 0.5, 0)], T("int8", (1, 4), 0.5, 0))
    x = np.array([[9, 8, 7, 6]], np.int8)
    dumps = []
    for channel in (0, 2):
        made = x.copy()
        made[0, channel] += 1
        dumps.append(dump(model, [x], [made]))
    found = explained(model, *dumps)
    assert found.explanation is not None
    assert found.explanation.places == Spots(4, (0, 2))
