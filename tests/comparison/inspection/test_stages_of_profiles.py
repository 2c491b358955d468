"""An operator prepared by itself has the output stages that it has in the whole model, under every profile."""

from __future__ import annotations

from support import suites
from support.each import each
from tflq.comparison.inspection.operators import inspect
from tflq.comparison.inspection.prepared import constants_of
from tflq.comparison.inspection.profile_effects import profile_effects
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import PROFILES, by_name

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


@each("name", [name for name in PROFILES if not name.startswith("tf-1.15")])  # which refuse it
def test_stages_alone_are_those_in_the_model(name: str) -> None:
    """XNNPACK takes a convolution only if its weights are constant."""
    plan, found = make_plan(load(MODEL), by_name(name)), inspect(MODEL, name)
    compared = 0
    for step, operator in zip(plan.steps, found.operators, strict=True):
        assert step.prepared is not None
        assert operator.constants is not None
        stages = constants_of(step.prepared).stages
        assert operator.constants.stages == stages
        compared += len(stages)
    assert compared >= 15


def test_effects_name_stages_not_kernels_for_weights_that_vary() -> None:
    found = profile_effects(MODEL, "litert-ref", ["litert-xnnpack", "litert-opt"])
    convolutions = [one for one in found.operators if one.op == "CONV_2D"]
    assert {(e.profile, e.field, e.here.split()[0]) for one in convolutions for e in one.effects} == {
        ("litert-xnnpack", "output.pipeline.stage", "FloatRoundingWrapped"),
        ("litert-opt", "output.pipeline.stage", "HalfUpTwice"),
    }
