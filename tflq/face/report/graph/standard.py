"""Colourings and sections that every page about one model has: MACs, promises, element types; memory over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tflq.comparison.inspection.live_memory import live_bytes
from tflq.comparison.inspection.operators import Inspection, OperatorFacts, inspect
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.engine.profiles import Profile
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.graph.drawing import model_picture
from tflq.face.report.graph.panels import Extra, nothing, operator_panels
from tflq.face.report.html.charts import line
from tflq.face.report.html.parts import figure, section
from tflq.face.report.numbers import bytes_text
from tflq.model.ir import GraphView, Model, signed, view

_PROMISES = {"exact": "good", "exact on the same libm": "cool2", "close": "warning"}
#: Shades of element types; those that are not here are "unknown".
_TYPES = {"int8": "good", "uint8": "cool2", "int16": "cool4", "float32": "hot3", "float16": "hot2", "int32": "cool1"}


@dataclass(frozen=True, slots=True, eq=False)
class ModelView:
    """A model and its inspection: everything that pages draw and list of its operators."""

    model: Model
    inspection: Inspection

    @property
    def graph(self) -> GraphView:
        """View of the model's first subgraph."""
        return view(self.model)


def view_of(source: Source | Model, profile: str | Profile = "litert-ref", signature: str | None = None) -> ModelView:
    """Read a model and prepare a signature's operators under a profile: by default the first one's.

    Raises what `subject` and `inspect` raise.
    """
    return ModelView(signed(subject(source).model, signature)[0].model, inspect(source, profile, signature))


def graph_section(
    view: ModelView, colourings: Sequence[Colouring] = (), extra: Extra = nothing, focus: int | None = None
) -> Markup:
    """Draw the model, coloured by what the page is about first; `extra` is what the page adds to operators' panels."""
    every = [*colourings, *facts_of(view.inspection)]
    return model_picture(view.model, every, operator_panels(view.model, view.inspection, extra), focus)


def facts_of(inspection: Inspection) -> tuple[Colouring, ...]:
    """Return the colourings that need no run of the model."""
    macs = {operator.index: float(operator.macs) for operator in inspection.operators}
    total = inspection.macs or 1
    shares = {index: f"{value / total:.1%} of MACs" if value else "" for index, value in macs.items()}
    return (
        scale("multiply-accumulates", macs, "MACs", hue="cool", texts=shares),
        states(
            f"exactness under {inspection.profile}",
            {operator.index: _promise(operator) for operator in inspection.operators},
        ),
        states("element type of the result", {o.index: _type(inspection, o) for o in inspection.operators}),
    )


def _promise(operator: OperatorFacts) -> tuple[str, str]:
    if operator.promise is None:
        return "bad", "not supported"
    return _PROMISES.get(operator.promise.word, "unknown"), operator.promise.word


def _type(inspection: Inspection, operator: OperatorFacts) -> tuple[str, str]:
    outputs = [t for t in operator.outputs if 0 <= t < len(inspection.tensors)]
    kind = inspection.tensors[outputs[0]].type if outputs else "none"
    return _TYPES.get(kind, "unknown"), kind


def memory_section(model: Model) -> Markup:
    """Return a chart of the bytes of activations over the steps, with the operator at which most are held."""
    steps = live_bytes(model)
    if not steps:
        return Markup("")
    largest = max(steps)
    chart = line(
        steps,
        "bytes of activations held at each operator",
        bytes_text(largest),
        ("operator 0", f"operator {len(steps) - 1}"),
        "operators in execution order",
    )
    caption = (
        f"activations held while each operator runs; most at operator {steps.index(largest)}: {bytes_text(largest)}"
    )
    return section("memory", "Memory", figure(chart, caption))
