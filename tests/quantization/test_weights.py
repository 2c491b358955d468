"""Weights of decoders: places and roles, forms, rewriting, the pipeline, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import commands
from support.commands import validate
from support.each import each
from tflq.errors import CalibrationError, InputError, ModelError, OptionError, UnknownNameError
from tflq.model.ir import TensorType, view
from tflq.quantization.params import Params
from tflq.quantization.weights.forms import BlockScaling, Method, Role, compact, encode, weights_of, with_codes
from tflq.quantization.weights.recipe import (
    MODES,
    Layer,
    WeightRecipe,
    read_layer,
    weight_recipe_from,
    weights_document_of,
)

FLOAT = "golden/models/tiny_decoder_float.tflite"
TEXT = [[(7 * k + 3 * j) % 128 for k in range(20)] for j in range(8)]
NEAREST = Method(BlockScaling.GREATEST, gptq=False)


def test_weights_are_found_once_with_their_roles() -> None:
    model = tflq.load(FLOAT)
    weights = weights_of(model)
    roles = {weight.name: weight.role for weight in weights}
    assert roles["layer0/query/dense"] is roles["layer1/output/dense"] is Role.ATTENTION
    assert sum(role is Role.FEED_FORWARD for role in roles.values()) == 6
    assert [weight.role for weight in weights].count(Role.EMBEDDING) == 1
    assert [weight.role for weight in weights].count(Role.OUTPUT) == 1
    assert len({weight.buffer for weight in weights}) == len(weights)
    both = next(weight for weight in weights if weight.name == "layer0/query/dense")
    assert sorted(use.subgraph for use in both.uses) == [0, 1]


def test_a_constant_that_another_operator_reads_stays_float() -> None:
    model = tflq.load(FLOAT)
    weight = weights_of(model)[1]
    graph = model.subgraphs[0]
    reader = next(op for op in view(model, 0).ops if op.name == "ADD")
    operators = list(graph.operators)
    operators[reader.index] = replace(reader.record, inputs=(reader.inputs[0], weight.uses[0].tensor))
    changed = replace(model, subgraphs=(replace(graph, operators=tuple(operators)), *model.subgraphs[1:]))
    assert weight.buffer not in {one.buffer for one in weights_of(changed)}


@each("kind", [TensorType.INT8, TensorType.INT4])
@each("block", [0, 32])
@each("method", [Method(s, g) for s in BlockScaling for g in (False, True)], ids=str)
def test_codes_are_near_the_weights(kind: TensorType, block: int, method: Method) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6, 64)).astype(np.float32)
    rows[2] = 0
    inputs = rng.standard_normal((200, 64)) * np.linspace(0.1, 3, 64)
    made = encode(rows, kind, block, 0, method, inputs.T @ inputs)
    assert made.params.scale.size == (6 * 2 if block else 6)
    real = made.params.decode(made.codes)
    if block:
        real = made.params.decode(made.codes).reshape(rows.shape)
    assert not real[2].any()
    noise = np.square((real - rows) @ inputs.T).sum() / np.square(rows @ inputs.T).sum()
    assert noise < (2e-4 if kind == TensorType.INT8 else 3e-2)
    limit = 127 if kind == TensorType.INT8 else 7
    assert np.abs(made.codes).max() <= limit


def test_gptq_and_the_search_lower_the_error_of_products() -> None:
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((96, 96)) / 10
    inputs = rng.standard_normal((500, 96)) @ mixing
    rows = rng.standard_t(4, (32, 96)).astype(np.float32)

    def noise(method: Method) -> float:
        made = encode(rows, TensorType.INT4, 32, 0, method, inputs.T @ inputs)
        real = made.params.decode(made.codes).reshape(rows.shape)
        return float(np.square((real - rows) @ inputs.T).sum())

    nearest = noise(NEAREST)
    searched = noise(Method(BlockScaling.LEAST_ERROR, gptq=False))
    assert searched < nearest
    assert noise(Method(BlockScaling.LEAST_ERROR, gptq=True)) < 0.7 * searched


def test_codes_are_written_for_all_signatures() -> None:
    model = tflq.load(FLOAT)
    chosen = {w.buffer: (w, encode(w.rows, TensorType.INT4, 32, w.axis, NEAREST, None)) for w in weights_of(model)}
    made = with_codes(model, chosen, dynamic=True)
    data = tflq.save(made)
    assert len(data) < 0.4 * Path(FLOAT).stat().st_size
    for number in range(2):
        for op in view(made, number).ops:
            if op.name in ("FULLY_CONNECTED", "EMBEDDING_LOOKUP"):
                spec = view(made, number).tensors[op.inputs[1]]
                assert spec.type == TensorType.INT4
                assert spec.quantization is not None
                assert spec.quantization.details is not None
                scales = view(made, number).tensors[spec.quantization.details["scales"]]
                assert scales.shape == (spec.shape[0], spec.shape[1] // 32)
    for runner in (tflq.Interpreter(model_content=data).get_signature_runner(name) for name in ("decode", "prefill_8")):
        details = runner.get_input_details()
        outputs = runner(**{name: np.zeros(d["shape"], d["dtype"]) for name, d in details.items()})
        assert all(np.isfinite(value).all() for value in outputs.values())


def test_compacting_keeps_every_result() -> None:
    model = tflq.load(FLOAT)
    small = compact(model)
    assert len(small.buffers) <= len(model.buffers)
    a, b = tflq.Session(model), tflq.Session(small)
    np.testing.assert_array_equal(a.feed(TEXT[0][:12]), b.feed(TEXT[0][:12]))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_quantized_decoders_are_near_and_small(mode: str) -> None:
    made = tflq.quantize_weights(FLOAT, TEXT, mode)
    report = made.report
    assert report.bytes_after == len(tflq.save(made.model)) < 0.45 * report.bytes_before
    assert report.ranking[0].divergence == min(one.divergence for one in report.ranking)
    assert (
        {layer.form for layer in report.layers} >= {"int8, per channel"}
        if mode != "dynamicx4"
        else {"int4, blocks of 32"}
    )
    assert set(report.steps) == {"prefill_8", "decode"}
    sides = "litert-xnnpack", "litert-xnnpack"
    found = tflq.compare_sessions(FLOAT, made.model, between=sides, prompt=TEXT[0][:10], steps=8)
    noise = [step.logits.noise for step in found.scored if step.logits]
    assert np.mean(noise) > {"dynamic": 25, "mixed": 5, "dynamicx4": 2}[mode]


def test_layers_choose_forms() -> None:
    recipe = WeightRecipe(
        "int4", 32, (Layer("embedding", "int8"), Layer("attention", "int8"), Layer("layer1/query", "float32"))
    )
    weights = {weight.name: weight for weight in weights_of(tflq.load(FLOAT))}
    assert recipe.form(weights["tokens"]) == ("int8", 0)
    assert recipe.form(weights["layer0/query/dense"]) == ("int8", 0)
    assert recipe.form(weights["layer1/query/dense"]) == ("float32", 0)
    made = tflq.quantize_weights(FLOAT, TEXT[:2], replace(recipe, methods=(NEAREST,)))
    types = {spec.name: spec.type for spec in made.model.subgraphs[1].tensors}
    assert types["layer1/query/dense"] == TensorType.FLOAT32
    assert types["layer0/query/dense"] == TensorType.INT8


def test_equal_recipes_give_equal_bytes_and_documents_round_trip() -> None:
    recipe = replace(MODES["mixed"], methods=(NEAREST,), constant_names=False)
    assert weight_recipe_from(json.loads(json.dumps(weights_document_of(recipe)))) == recipe
    first, second = (tflq.save(tflq.quantize_weights(FLOAT, TEXT[:2], recipe).model) for _ in range(2))
    assert first == second
    assert b"layer0/query/dense\0" not in first


@pytest.mark.parametrize(
    "words",
    ["attention", "=int8", "attention=int4:x", "attention=int4:33", "attention=int3", "attention=int8:32", "(=int8"],
)
def test_layers_that_are_none(words: str) -> None:
    with pytest.raises((OptionError, UnknownNameError)):
        read_layer(words)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"schema": "tflq/recipe/1"},
        {"schema": "tflq/weight-recipe/1", "weight": "int8"},
        {"schema": "tflq/weight-recipe/1", "block": "32"},
        {"schema": "tflq/weight-recipe/1", "methods": []},
        {"schema": "tflq/weight-recipe/1", "methods": [{"scaling": "none"}]},
    ],
)
def test_documents_that_are_no_recipe(document: object) -> None:
    with pytest.raises((OptionError, UnknownNameError)):
        weight_recipe_from(document)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [[], [[1]], [[]], [[1, 128]], [[-1, 2]]])
def test_texts_that_do_not_fit(text: list[list[int]]) -> None:
    with pytest.raises(CalibrationError):
        tflq.quantize_weights(FLOAT, text, "dynamic")


def test_models_that_are_no_decoders() -> None:
    with pytest.raises(ModelError, match="several signatures"):
        tflq.quantize(FLOAT, [[np.zeros((1, 8), np.int32)]])
    with pytest.raises(ModelError, match="logits"):
        tflq.quantize_weights("golden/models/digits_lstm_float.tflite", TEXT)
    with pytest.raises(ModelError, match="no float weights"):
        tflq.quantize_weights(
            tflq.quantize_weights(FLOAT, TEXT[:1], replace(MODES["dynamic"], methods=(NEAREST,))).model, TEXT
        )
    with pytest.raises(UnknownNameError, match="mode"):
        tflq.quantize_weights(FLOAT, TEXT, "int8")


@pytest.mark.slow
def test_the_live_runtime_runs_what_is_written(tmp_path: Path) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    for mode in MODES:
        path = tmp_path / f"{mode}.tflite"
        tflq.quantize_weights(FLOAT, TEXT, mode).save(path)
        found = tflq.compare_sessions(path, between=("litert-ref", "runtime:litert-ref"), prompt=TEXT[0][:10], steps=4)
        assert found.same
        resolver = interpreter.OpResolverType.BUILTIN
        interpreter.Interpreter(str(path), experimental_op_resolver_type=resolver).allocate_tensors()


def run(*words: object) -> tuple[int, str]:
    result = commands.tflq("quantize", *words)
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out.tflite"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 12)
    words = (FLOAT, "--calibration", text, "--tokenizer", "bytes", "-o", out, "--recipe", "fast")
    code, output = run(*words, "--mode", "mixed", "--html", tmp_path / "page.html")
    assert code in (0, 1, 5), output
    assert "the same token in" in output
    assert "Weights" in (tmp_path / "page.html").read_text()
    code, output = run(*words, "--mode", "dynamicx4", "--block", "32", "--layer", "output=int8", "--force", "--json")
    document = json.loads(output[output.index("{") :])  # behind lines of progress, on a slow machine
    validate(document, "quantize-weights")
    assert next(layer["form"] for layer in document["layers"] if layer["role"] == "output") == "int8, per channel"
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"schema": "tflq/weight-recipe/1", "weights": "int4", "block": 32}))
    assert run(*words[:-1], recipe, "--force")[0] in (0, 1, 5)


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (("--mode", "int8"), "dynamic, dynamicx4, mixed"),
        (("--mode", "dynamic", "--block", "32"), "--block"),
        (("--input-type", "int8"), "--input-type"),
        (("--budget", "sqnr>=30"), "--budget"),
        (("--jobs", "2"), "--jobs"),
        (("--layer", "nothing"), "MATCH=TYPE"),
    ],
)
def test_misuse_of_the_command(tmp_path: Path, words: tuple[str, ...], pattern: str) -> None:
    text = tmp_path / "text.txt"
    text.write_text("text " * 20)
    code, output = run(FLOAT, "--calibration", text, "--tokenizer", "bytes", "-o", tmp_path / "out.tflite", *words)
    assert code == 2
    assert pattern in output
    assert not (tmp_path / "out.tflite").exists()


def test_options_for_decoders_are_refused_elsewhere(tmp_path: Path) -> None:
    code, output = run(
        "golden/models/digits_autoencoder_float.tflite",
        "--calibration",
        "golden/models/digits_test.npz",
        "-o",
        tmp_path / "o.tflite",
        "--layer",
        "attention=int8",
    )
    assert code == 2
    assert "--layer is for decoders" in output
    text = tmp_path / "text.txt"
    text.write_text("words, not numbers")
    with pytest.raises(InputError, match="tokenizer"):
        tflq.quantize_weights(FLOAT, text)


def test_block_parameters_decode_as_written() -> None:
    params = Params(TensorType.INT4, np.array([1, 2, 4, 8], np.float32), np.zeros(1, np.int64), block=2)
    np.testing.assert_array_equal(params.decode(np.ones((2, 4), np.int8)), [[1, 1, 2, 2], [4, 4, 8, 8]])
