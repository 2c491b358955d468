"""Bytes of activations over the steps, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from support import suites
from tflq.comparison.inspection.operators import live_bytes
from tflq.engine.api.files import load
from tflq.model.ir import view

UNET = suites.ROOT / "golden" / "models" / "digits_unet_int8.tflite"


def test_a_skip_connection_is_held_until_it_is_read() -> None:
    model = load(UNET)
    graph = view(model)

    def size(tensor: int) -> int:
        total = 1
        for extent in graph.tensors[tensor].shape:
            total *= extent
        return total  # all activations are int8

    first = graph.op(0)
    assert live_bytes(model)[0] == size(graph.inputs[0]) + size(first.outputs[0])
    made = {t: i for i, o in enumerate(graph.ops) for t in o.outputs}
    read = {t: i for i, o in enumerate(graph.ops) for t in o.inputs if t in made}
    step = 4
    held = [t for t, at in made.items() if at <= step <= read.get(t, at)]
    assert any(made[t] < step - 1 for t in held), "no skip connection reaches over this step"
    assert live_bytes(model)[step] == sum(map(size, held))


def test_graph_outputs_are_held_to_the_end() -> None:
    model = load(UNET)
    graph = view(model)
    early = graph.op(0).outputs[0]
    tapped = replace(model, subgraphs=(replace(graph.record, outputs=(*graph.outputs, early)),))
    assert live_bytes(tapped)[-1] > live_bytes(model)[-1]
