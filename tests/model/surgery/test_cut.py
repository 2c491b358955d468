"""Parts of models: what they read and give out, that LiteRT loads them, and that they give the whole's bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support import suites
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.errors import UnknownNameError
from tflq.model.ir import view
from tflq.model.surgery.cut import extract

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
UNET = suites.ROOT / "golden" / "models" / "digits_unet_int8.tflite"


def test_operators_are_named_by_index_range_type_and_tensor() -> None:
    model = load(MODEL)
    graph = view(model)
    name = graph.tensors[graph.op(2).outputs[0]].name
    assert name
    assert extract(model, ["2"])[1] == extract(model, [name])[1] == (2,)
    assert extract(model, [f"1..{name}"])[1] == extract(model, ["1", "2"])[1] == (1, 2)
    types = [o.builtin for o in graph.ops]
    assert extract(model, ["CONV_2D"])[1] == tuple(i for i, t in enumerate(types) if t == "CONV_2D")


@pytest.mark.parametrize("word", ["99", "nobody", "2..nobody"])
def test_an_unknown_operator_is_refused(word: str) -> None:
    with pytest.raises(UnknownNameError):
        extract(load(MODEL), [word])


def test_what_is_not_used_is_left_out() -> None:
    whole = load(MODEL)
    part, _ = extract(whole, ["0"])
    assert len(part.operator_codes) == len(view(part).ops) == 1
    assert len(save(part)) < len(save(whole)) / 2


@pytest.mark.parametrize("path", [MODEL, UNET], ids=["mobilenet", "unet"])
@pytest.mark.parametrize("words", [["0"], ["1..4"], ["3..99"], ["0", "5"]], ids=str)
def test_litert_gives_the_bits_of_the_whole(path: object, words: list[str]) -> None:
    """LiteRT runs the part on what LiteRT's whole model computed there; the part's outputs are the whole's tensors."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    whole = load(path)  # type: ignore[arg-type]
    graph = view(whole)
    words = [word.replace("99", str(len(graph.ops) - 1)) for word in words]
    part, chosen = extract(whole, words)
    names = [t.name for t in graph.tensors]
    assert len(set(names)) == len(names)
    resolver = interpreter.OpResolverType.BUILTIN_REF

    def started(data: bytes) -> object:
        made = interpreter.Interpreter(
            model_content=data, experimental_op_resolver_type=resolver, experimental_preserve_all_tensors=True
        )
        made.allocate_tensors()
        return made

    spec = graph.tensors[graph.inputs[0]]
    value = np.random.default_rng(7).integers(-128, 128, spec.shape).astype(np.int8)
    full, small = started(save(whole)), started(save(part))
    full.set_tensor(graph.inputs[0], value)
    full.invoke()
    cut_graph = view(part)
    for tensor in cut_graph.inputs:
        small.set_tensor(tensor, full.get_tensor(names.index(cut_graph.tensors[tensor].name)))
    small.invoke()
    assert cut_graph.outputs
    for tensor in cut_graph.outputs:
        expected = full.get_tensor(names.index(cut_graph.tensors[tensor].name))
        assert np.array_equal(small.get_tensor(tensor), expected)
    assert [o.builtin for o in cut_graph.ops] == [graph.op(i).builtin for i in chosen]
    feeds = {t: full.get_tensor(names.index(cut_graph.tensors[t].name)) for t in cut_graph.inputs}
    ours = run(make_plan(part, PROFILES["litert-ref"]), feeds)
    assert all(np.array_equal(ours.values[t], small.get_tensor(t)) for t in cut_graph.outputs)


def test_types_are_named_in_any_case_and_suggested() -> None:
    model = load(MODEL)
    assert extract(model, ["Conv_2d"])[1] == extract(model, ["CONV_2D"])[1]
    for word in ("CONV2D", "conv2d"):
        with pytest.raises(UnknownNameError, match="did you mean CONV_2D"):
            extract(model, [word])
    (graph, *_), output = model.subgraphs, view(model).op(1).outputs[0]
    tensors = tuple(replace(t, name="conv_2d") if k == output else t for k, t in enumerate(graph.tensors))
    renamed = replace(model, subgraphs=(replace(graph, tensors=tensors),))
    assert extract(renamed, ["conv_2d"])[1] == (1,), "a tensor's own name goes before a type in another case"
