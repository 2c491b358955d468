"""Sessions: steps of decoders and of models with state, two sides compared, texts, and hostile input."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import commands
from support.commands import validate
from support.graphs import Graph, Op, build
from support.packages import litertlm
from support.single_op import T
from tflq.comparison.inspection.difference import decibels
from tflq.comparison.sessions.compare import bands_of
from tflq.comparison.sessions.plan import decoder_of, decoder_steps, mask_of
from tflq.comparison.sessions.text import read_tokens, tokenizer_of
from tflq.engine.runtimes import Invocation
from tflq.errors import FileAccessError, FormatError, InputError, OptionError, UnknownNameError
from tflq.model.flatbuf import read, write
from tflq.model.ir import SignatureDef, TensorType, view

INT8, FLOAT = (f"golden/models/tiny_decoder_{kind}.tflite" for kind in ("int8", "float"))
PROMPT = [72, 101, 108, 108, 111, 32, 119, 111, 114, 108]
REF = ("litert-ref", "litert-ref")


def run(*words: object) -> tuple[int, str]:
    result = commands.tflq("session", *words)
    return result.exit_code, result.output


def test_the_roles_of_a_decoder() -> None:
    decoder = decoder_of(tflq.load(INT8))
    assert decoder is not None
    assert (decoder.decode.signature, [r.signature for r in decoder.prefills]) == ("decode", ["prefill_8"])
    assert decoder.decode.caches == tuple(f"kv_cache_{kind}_{layer}" for kind in "kv" for layer in (0, 1))
    assert (decoder.vocabulary, decoder.context, decoder.decode.logits) == (128, 32, "logits")
    assert decoder_of(tflq.load("golden/models/digits_mobilenet_int8.tflite")) is None


def test_prefill_takes_whole_chunks_and_decode_the_rest() -> None:
    decoder = decoder_of(tflq.load(INT8))
    assert decoder is not None
    steps = decoder_steps(decoder, PROMPT, (), 3)
    assert [(at, step.signature, tuple(step.inputs.get("tokens", np.array([])).ravel())) for at, step in steps] == [
        (0, "prefill_8", tuple(PROMPT[:8])),
        (8, "decode", (PROMPT[8],)),
        (9, "decode", (PROMPT[9],)),
        (10, "decode", ()),
        (11, "decode", ()),
    ]
    whole = decoder_steps(decoder, PROMPT[:8], (5,), 2)
    assert [(at, int(step.inputs["tokens"][0, 0])) for at, step in whole[1:]] == [(7, PROMPT[7]), (8, 5)]


def test_a_session_is_the_same_as_steps_by_hand() -> None:
    session = tflq.Session(INT8)
    logits = session.feed(PROMPT)
    interpreter = tflq.Interpreter(INT8)
    caches = {f"kv_cache_{kind}_{layer}": np.zeros((1, 32, 2, 16), np.float32) for kind in "kv" for layer in (0, 1)}
    shapes = interpreter.get_signature_runner("decode").get_input_details()
    caches = {name: np.zeros(shapes[name]["shape"], np.float32) for name in caches}
    prefill = interpreter.get_signature_runner("prefill_8")
    caches = prefill(tokens=np.array([PROMPT[:8]], np.int32), input_pos=np.arange(8, dtype=np.int32), **caches)
    for at in (8, 9):
        out = interpreter.get_signature_runner("decode")(
            tokens=np.array([[PROMPT[at]]], np.int32), input_pos=np.array([at], np.int32), **caches
        )
        want = out.pop("logits")
        caches = out
    np.testing.assert_array_equal(logits, want.reshape(-1))
    first = session.generate(2)
    assert first[0] == int(logits.argmax())
    assert session.tokens == [*PROMPT, *first]


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["litert-ref", "litert-opt", "litert-xnnpack"])
def test_a_live_runtime_runs_the_same_session(runtime: str) -> None:
    pytest.importorskip("ai_edge_litert")
    found = tflq.compare_sessions(INT8, between=("runtime:litert-ref", f"runtime:{runtime}"), prompt=PROMPT, steps=4)
    assert found.same == (runtime == "litert-ref")
    assert found.agreement[1] == 5
    ours = tflq.compare_sessions(INT8, between=("litert-ref", "runtime:litert-ref"), prompt=PROMPT, steps=4)
    assert ours.same
    assert all(not band.differing for step in ours.steps for band in step.bands)
    assert sum(band.compared for step in ours.steps for band in step.bands) > 300


def test_the_first_difference_is_found_where_it_is() -> None:
    model = tflq.load(INT8)
    decoder = decoder_of(model)
    assert decoder is not None
    root = next(s.subgraph_index for s in model.signature_defs or () if s.signature_key == "decode")
    graph = model.subgraphs[root]
    place = next(op for op in view(model, root).ops if op.name == "FULLY_CONNECTED" and op.index > 40)
    weights = graph.tensors[place.inputs[1]]
    data = np.array(model.buffers[weights.buffer].data)
    data[:] = np.roll(data, 1)
    buffers = list(model.buffers)
    buffers.append(replace(buffers[weights.buffer], data=data))
    tensors = list(graph.tensors)
    tensors[place.inputs[1]] = replace(weights, buffer=len(buffers) - 1)
    graphs = list(model.subgraphs)
    graphs[root] = replace(graph, tensors=tuple(tensors))
    changed = replace(model, subgraphs=tuple(graphs), buffers=tuple(buffers))
    found = tflq.compare_sessions(model, changed, between=REF, prompt=PROMPT, steps=3)
    assert found.first is not None
    assert found.first.signature == "decode"
    assert found.first.operator == (place.index, "FULLY_CONNECTED")
    assert found.steps[0].same
    assert not found.same


def test_a_text_gives_perplexities() -> None:
    follow = [1, 2, 3, 4]
    found = tflq.compare_sessions(FLOAT, INT8, between=REF, prompt=PROMPT, follow=follow)
    assert len(found.scored) == 5
    session = tflq.Session(FLOAT)
    losses, known = [], [*PROMPT, *follow]
    session.feed(PROMPT[:8])
    for at in range(8, 13):
        logits = session.feed([known[at]]).astype(np.float64)
        losses.append(np.log(np.exp(logits - logits.max()).sum()) - (logits - logits.max())[known[at + 1]])
    assert found.perplexities is not None
    assert found.perplexities[0] == pytest.approx(math.exp(np.mean(losses)), rel=1e-9)


def test_free_sides_stop_where_their_texts_part() -> None:
    found = tflq.compare_sessions(FLOAT, INT8, between=REF, prompt=PROMPT, steps=20, free=True)
    if found.parted is not None:
        assert len(found.scored) == found.parted + 1
        assert found.texts[0][: found.parted] == found.texts[1][: found.parted]
    else:
        assert len(found.scored) == 21


def test_a_model_without_caches_runs_its_inputs() -> None:
    found = tflq.compare_sessions("golden/models/digits_lstm_int8.tflite", between=REF, steps=3)
    assert found.same
    assert [step.position for step in found.steps] == [0, 1, 2]
    assert {band.name for band in found.steps[0].bands} >= {"operators 0 to 6"}


def test_bands_lie_between_caches() -> None:
    bands = bands_of(tflq.load(INT8), "decode", ("kv_cache_k_0", "kv_cache_v_0", "kv_cache_k_1", "kv_cache_v_1"))
    assert bands.names == ("to cache 0", "cache 0 to 1", "after cache 1")
    assert list(bands.of_operator) == sorted(bands.of_operator)
    assert set(bands.of_operator) == {0, 1, 2}


def test_masks_hide_what_follows() -> None:
    decoder = decoder_of(tflq.load(INT8))
    assert decoder is not None
    spec = decoder.prefills[0].specs["kv_cache_k_0"]
    for kind, hidden in ((TensorType.FLOAT32, np.float32(-0.7) * np.finfo(np.float32).max), (TensorType.BOOL, False)):
        roles = replace(decoder.prefills[0], mask="mask", specs={"mask": replace(spec, shape=(1, 1, 8, 12), type=kind)})
        mask = mask_of(roles, 2)[0, 0]
        seen = mask if kind == TensorType.BOOL else mask == 0
        np.testing.assert_array_equal(seen, np.tril(np.ones((8, 12), bool), 2))
        assert mask[0, 3] == hidden
    with pytest.raises(InputError, match="mask"):
        mask_of(replace(roles, specs={"mask": replace(spec, type=TensorType.INT8)}), 0)


@pytest.mark.parametrize(
    ("reference", "other", "want"),
    [
        ([1.0, 2.0], [1.0, 2.0], math.inf),
        ([0.0, 0.0], [0.0, 1.0], -math.inf),
        ([math.inf, 1.0], [math.inf, 1.0], math.inf),
        ([math.nan, 3.0], [math.nan, 3.0], math.inf),
        ([math.inf, 1.0], [1.0, 1.0], -math.inf),
        ([3.0, 4.0], [3.0, 4.5], 20.0),
        ([], [], math.inf),
    ],
)
def test_decibels(reference: list[float], other: list[float], want: float) -> None:
    assert decibels(np.array(reference), np.array(other)) == pytest.approx(want)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"prompt": []}, "no token"),
        ({"prompt": [128]}, "0 to 127"),
        ({"prompt": [-1]}, "0 to 127"),
        ({"prompt": PROMPT, "steps": 24}, "at most 32"),
        ({"prompt": PROMPT, "steps": 0}, "at least one"),
        ({"inputs": [{}]}, "several signatures"),
        ({"inputs": [{}], "signature": "decode"}, "no value is given"),
        ({"inputs": [], "signature": "decode"}, "no step"),
    ],
)
def test_tokens_and_inputs_that_do_not_fit(options: dict[str, object], pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        tflq.compare_sessions(INT8, between=REF, **options)  # type: ignore[arg-type]


def test_names_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="litert-ref"):
        tflq.compare_sessions(INT8, between=("litert-ref", "runtime:nothing"))
    with pytest.raises(UnknownNameError, match="profile"):
        tflq.compare_sessions(INT8, between=("litert", "litert-ref"))
    with pytest.raises(UnknownNameError, match="signature"):
        tflq.compare_sessions(INT8, between=REF, inputs=[{}], signature="x")
    with pytest.raises(InputError, match="feed a prompt"):
        tflq.Session(INT8).generate(1)
    with pytest.raises(InputError, match="not a decoder"):
        tflq.Session("golden/models/digits_lstm_int8.tflite").feed([1])
    with pytest.raises(InputError, match="several signatures"):
        tflq.Session(INT8).step()


def test_files_of_tokens(tmp_path: Path) -> None:
    text, array = tmp_path / "a.txt", tmp_path / "a.npy"
    text.write_text("1, 2\n3 4")
    np.save(array, np.array([1, 2, 3, 4]))
    assert read_tokens(text) == read_tokens(array) == [1, 2, 3, 4]
    for content in ("1 two", "", "1.5"):
        text.write_text(content)
        with pytest.raises(InputError):
            read_tokens(text)
    text.write_bytes(b"\xff\xfe")
    with pytest.raises(FileAccessError):
        read_tokens(text)
    np.save(array, np.array([1.5]))
    with pytest.raises(InputError, match="integers"):
        read_tokens(array)


def test_tokenizers(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    plain = tokenizer_of("bytes", None)
    assert plain is not None
    assert plain.decode(plain.encode("né")) == "né"
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    file = tmp_path / "tokenizer.json"
    inner.save(str(file))
    found = tokenizer_of(str(file), None)
    assert found is not None
    assert found.encode("b a x") == [1, 0, 2]
    text = file.read_bytes()
    section = len(text).to_bytes(8, "little") + zlib.compress(text)
    path = tmp_path / "a.litertlm"
    model = ("TFLiteModel", Path(INT8).read_bytes(), {"model_type": "tf_lite_prefill_decode"})
    path.write_bytes(litertlm([("HF_Tokenizer_Zlib", section, {}), model]))
    packed = tokenizer_of(None, f"{path}:prefill_decode")
    assert packed is not None
    assert packed.encode("b a") == [1, 0]
    code, output = run(path, "--prompt", "a b a b", "--between", *REF, "--steps", 2)
    assert code == 0, output
    assert "both continue" in output
    for damaged in (section[:-3], (1 << 40).to_bytes(8, "little") + section[8:], b"x", section[:8] + b"no zlib"):
        path.write_bytes(litertlm([("HF_Tokenizer_Zlib", damaged, {}), model]))
        with pytest.raises(FormatError):
            tokenizer_of(None, path)
    file.write_text("{}")
    with pytest.raises(FormatError):
        tokenizer_of(str(file), None)
    file.write_bytes(b"no sentencepiece model")
    with pytest.raises((FormatError, OptionError)):
        tokenizer_of(str(file), None)


def test_the_command() -> None:
    code, output = run(INT8, "--between", *REF, "--steps", 3)
    assert code == 0
    assert output.startswith(f"SAME {INT8}: litert-ref and litert-ref, 1 × prefill_8, 5 × decode\n")
    code, output = run(INT8, "--between", "litert-ref", "litert-xnnpack", "--steps", 12)
    assert code == 1
    assert "first difference: step 0" in output
    assert len(output.splitlines()) <= 16
    code, output = run(FLOAT, INT8, "--between", *REF, "--text", "README.md", "--tokenizer", "bytes")
    assert code == 0
    assert "perplexity" in output


def test_the_document(tmp_path: Path) -> None:
    for words in (
        (INT8, "--between", *REF),
        (FLOAT, INT8, "--free", "--outputs-only"),
        ("golden/models/digits_lstm_int8.tflite",),
    ):
        code, output = run(*words, "--steps", 2, "--json")
        assert code in (0, 1), output
        validate(json.loads(output), "session")
    page = tmp_path / "session.html"
    assert run(INT8, "--html", page, "--steps", 2)[0] == 1
    assert "Signal to noise by step and layer" in page.read_text()


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (("--prompt", "x"), "needs a tokenizer"),
        (("--prompt", "x", "--tokens", "y"), "give one of"),
        (("--prompt", "", "--tokenizer", "bytes"), "no token"),
        (("--tokens", "nowhere.txt"), "nowhere.txt"),
        (("--inputs", "nowhere.npz", "--signature", "decode"), "nowhere.npz"),
        (("--tokenizer", "nowhere"), "nowhere"),
    ],
)
def test_misuse_of_the_command(words: tuple[str, ...], pattern: str) -> None:
    code, output = run(INT8, *words)
    assert code == 2
    assert pattern in output


def test_steps_of_a_signature_by_name() -> None:
    session = tflq.Session(INT8)
    outputs = session.step("decode", tokens=[[5]], input_pos=[0])
    again = session.step("decode", tokens=np.array([[6]], np.int32), input_pos=np.array([1], np.int32))
    assert not np.array_equal(outputs["kv_cache_k_0"], again["kv_cache_k_0"])
    np.testing.assert_array_equal(session.outputs["kv_cache_k_0"], again["kv_cache_k_0"])
    with pytest.raises(UnknownNameError):
        session.step("decode", token=[[5]])


def test_greedy_steps_need_an_earlier_output() -> None:
    from tflq.engine.api.signature import run_steps

    step = Invocation("decode", {}, (), {"tokens": ("logits", (1, 1))})
    with pytest.raises(InputError, match="no earlier step"):
        list(run_steps(tflq.load(INT8), "litert-ref", [step]))


def test_a_recorded_session_verifies_without_the_runtime(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    golden = tmp_path / "session.npz"
    code, output = run(INT8, "--between", "litert-ref", "runtime:litert-ref", "--steps", 3, "--record", golden)
    assert code == 0, output
    report = tflq.verify(INT8, golden)
    assert report.verdict.value == "same"
    assert len(tflq.compare_sessions(INT8, between=REF, steps=3).steps) == 6
    code, output = run(INT8, "--between", *REF, "--record", tmp_path / "other.npz")
    assert code == 2
    assert "--record needs" in output
    code, output = run(INT8, "--between", "litert-ref", "runtime:litert-ref", "--record", golden)
    assert code == 2
    assert "exists already" in output


def _single(op: str, output: str) -> bytes:
    """A model of one float operator, whose signature names its output."""
    graph = Graph([T("float32", (1, 4)), T("float32", (1, 4))], [0], [1], [Op(op, [0], [1])])
    named = SignatureDef("run", (("x", 0),), ((output, 1),), 0)
    return write(replace(read(build(graph)), signature_defs=(named,)))


def test_sides_without_a_common_output_are_not_the_same() -> None:
    found = tflq.compare_sessions(_single("RELU", "y"), _single("NEG", "z"), between=REF, steps=1)
    assert (found.same, found.verdict) == (False, "nothing compared")
    assert found.steps[0].lacking == ("y", "z")
