"""Deployment on targets: refusals, what XNNPACK takes, oldest releases."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from support.each import each
from support.suites import ROOT
from tflq.diagnosis.linting.deployment import delegation, deployment, oldest_releases
from tflq.diagnosis.linting.lint import lint
from tflq.engine.api.files import load
from tflq.engine.profiles import by_name
from tflq.errors import UnknownNameError
from tflq.model.ir.signatures import roots

GOLDEN = ROOT / "golden"
MOBILENET = GOLDEN / "models" / "digits_mobilenet_int8.tflite"
#: Groups of operators that LiteRT 2.3's XNNPACK runs of the first subgraph, as the interpreter counts them.
GROUPS = {
    "models/digits_mobilenet_int8": 1,
    "models/digits_mobilenet_int16x8": 0,
    "models/digits_lstm_int8": 2,
    "models/digits_unet_float": 1,
    "models/tiny_decoder_int8": 2,
    "singleop/models/softmax_u8_7": 0,
    "singleop/models/relu_i8_1": 0,
}


@each("name", GROUPS)
def test_xnnpack_takes_the_groups_that_the_interpreter_counts(name: str) -> None:
    model = load(GOLDEN / f"{name}.tflite")
    found = delegation(model, by_name("litert-xnnpack"), roots(model)[0].signature)
    assert found.partitions == GROUPS[name]
    assert (len(found.left) == found.operators) == (found.partitions == 0)


@pytest.mark.slow
@each(
    "path",
    sorted((GOLDEN / "models").glob("*.tflite")) + sorted((GOLDEN / "singleop" / "models").glob("*.tflite"))[::6],
)
def test_groups_are_those_of_a_live_interpreter(path: Path) -> None:
    model = load(path)
    try:
        live = tflq.record(path, "litert-xnnpack", samples=1)
    except tflq.TflqError as error:
        pytest.skip(str(error))
    found = delegation(model, by_name("litert-xnnpack"), roots(model)[0].signature)
    assert found.partitions == sum(live.runtime.delegated)


def test_a_target_that_refuses_names_the_operator() -> None:
    model = load(GOLDEN / "models" / "tiny_decoder_int8.tflite")
    found = deployment(model, "tflm", by_name("tflm"))
    assert found.refused.startswith("operator 15 FULLY_CONNECTED: unsupported")
    assert (found.arena, found.methods, found.delegation) == (None, (), None)


def test_what_is_known_depends_on_the_target() -> None:
    model = load(MOBILENET)
    known = {}
    for name in ("tflm", "tflm-cmsis-nn", "litert-xnnpack", "litert-ref"):
        found = deployment(model, name, by_name(name))
        known[name] = (found.refused, found.arena is not None, bool(found.methods), found.delegation is not None)
    assert known == {
        "tflm": ("", True, True, False),
        "tflm-cmsis-nn": ("", False, True, False),
        "litert-xnnpack": ("", False, False, True),
        "litert-ref": ("", False, False, False),
    }


def test_the_release_before_the_oldest_refuses() -> None:
    oldest = oldest_releases(load(MOBILENET))
    assert [(one.family, one.release) for one in oldest] == [
        ("TensorFlow Lite and LiteRT", "tf-2.3"),
        ("tflite-micro", "tflm-2026.2"),
    ]
    assert oldest[0].decides.startswith("tf-1.15 refuses operator 0 RESIZE_BILINEAR")
    assert oldest[1].decides == ""


def test_several_targets_are_answered_in_their_order() -> None:
    found = lint(MOBILENET, ("cmsis-nn", "litert-xnnpack"))
    assert [one.target for one in found.targets] == ["cmsis-nn", "litert-xnnpack"]
    assert lint(MOBILENET).targets == lint(MOBILENET).oldest == ()
    with pytest.raises(UnknownNameError):
        lint(MOBILENET, ("tflm", "nothing"))
