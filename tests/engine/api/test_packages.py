"""Packages of models: sections, names, external buffers, and hostile files."""

from __future__ import annotations

import io
import json
import os
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from referencing import Registry, Resource

import tflq
from support import commands
from support.packages import litertlm
from tflq.engine.api.files import package
from tflq.errors import FormatError, InputError, ModelError, UnknownNameError
from tflq.model.ir import Record, view
from tflq.model.ir.model import data_text

MODEL = Path("golden/models/digits_lstm_int8.tflite")
TOKENIZER = ("SP_Tokenizer", b"spiece", {})


def decoder(data: bytes, model_type: str = "tf_lite_prefill_decode") -> tuple[str, bytes, dict[str, str]]:
    return "TFLiteModel", data, {"model_type": model_type}


@pytest.fixture
def model_bytes() -> bytes:
    return MODEL.read_bytes()


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


@pytest.mark.slow
def test_the_only_model_is_found_under_every_name(tmp_path: Path, model_bytes: bytes) -> None:
    path = written(tmp_path / "a.litertlm", litertlm([TOKENIZER, decoder(model_bytes)]))
    for name in ("", ":1", ":prefill_decode", ":TF_LITE_PREFILL_DECODE", ":tflitemodel"):
        assert tflq.save(tflq.load(path + name)) == tflq.save(tflq.load(MODEL))
    assert tflq.inspect(path).model.sha256 == tflq.inspect(MODEL).model.sha256
    found = package(path)
    assert found is not None
    assert [(s.name, s.kind) for s in found.sections] == [
        ("SP_Tokenizer", "SP_Tokenizer"),
        ("prefill_decode", "TFLiteModel"),
    ]
    assert dict(found.entries) == {"author": "tests"}


def test_bytes_of_a_package_are_a_source(model_bytes: bytes) -> None:
    data = litertlm([decoder(model_bytes)])
    assert tflq.save(tflq.load(data)) == tflq.save(tflq.load(MODEL))


def test_one_of_several_models_must_be_named(tmp_path: Path, model_bytes: bytes) -> None:
    path = written(tmp_path / "a.litertlm", litertlm([decoder(model_bytes), decoder(model_bytes, "tf_lite_embedder")]))
    with pytest.raises(InputError, match=r"a\.litertlm:prefill_decode, .*:embedder"):
        tflq.load(path)
    assert len(view(tflq.load(path + ":embedder")).ops) == len(view(tflq.load(MODEL)).ops)
    with pytest.raises(UnknownNameError, match="prefill_decode"):
        tflq.load(path + ":decoder")


def test_models_of_one_type_are_numbered(tmp_path: Path, model_bytes: bytes) -> None:
    path = written(tmp_path / "a.litertlm", litertlm([decoder(model_bytes), decoder(model_bytes)]))
    with pytest.raises(InputError, match="prefill_decode_0"):
        tflq.load(path)
    tflq.load(path + ":prefill_decode_1")


def test_a_section_that_is_no_model_is_refused(tmp_path: Path, model_bytes: bytes) -> None:
    path = written(tmp_path / "a.litertlm", litertlm([TOKENIZER, decoder(model_bytes)]))
    with pytest.raises(InputError, match="SP_Tokenizer"):
        tflq.load(path + ":0")
    with pytest.raises(InputError, match="no model"):
        tflq.load(litertlm([TOKENIZER]))
    with pytest.raises(FormatError, match="no package"):
        tflq.load(f"{MODEL}:0")


def test_task_archives(tmp_path: Path, model_bytes: bytes) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("TF_LITE_PREFILL_DECODE", model_bytes)
        archive.writestr("TOKENIZER_MODEL", b"spiece")
        archive.writestr("empty", b"")
    path = written(tmp_path / "a.task", data.getvalue())
    found = package(path)
    assert found is not None
    assert [(s.name, s.kind) for s in found.sections] == [
        ("prefill_decode", "TFLiteModel"),
        ("TOKENIZER_MODEL", "SP_Tokenizer"),
        ("empty", "GenericBinaryData"),
    ]
    assert tflq.save(tflq.load(path)) == tflq.save(tflq.load(MODEL))
    assert bytes(found.section("SP_Tokenizer").read()) == b"spiece"


def test_a_file_whose_name_holds_a_colon_is_a_file(tmp_path: Path, model_bytes: bytes) -> None:
    (tmp_path / "a").write_bytes(b"x")
    assert tflq.load(written(tmp_path / "a:b", model_bytes))


def with_external_constants(data: bytes) -> tuple[bytes, bytes]:
    """Return the model with every constant in an external buffer, and the bytes of these buffers."""
    model = tflq.load(data)
    weights, records, graphs = b"", [], []
    for graph in model.subgraphs:
        tensors = []
        for tensor in graph.tensors:
            content = model.buffers[tensor.buffer].data
            if content is not None and content.size:
                records.append(
                    Record(
                        "ExternalBuffer",
                        {
                            "id": len(records) + 1,
                            "group": 0,
                            "offset": len(weights),
                            "length": content.size,
                            "packing": None,
                        },
                    )
                )
                weights += content.tobytes()
                tensor = replace(tensor, buffer=0, external_buffer=len(records))
            tensors.append(tensor)
        graphs.append(replace(graph, tensors=tuple(tensors)))
    group = (Record("ExternalBufferGroup", {"name": "weights"}),)
    model = replace(model, subgraphs=tuple(graphs), external_buffers=tuple(records), external_buffer_groups=group)
    return tflq.save(model), weights


def test_external_buffers_come_from_the_section_of_weights(tmp_path: Path, model_bytes: bytes) -> None:
    outside, weights = with_external_constants(model_bytes)
    with pytest.raises(ModelError, match="litertlm"):
        tflq.inspect(outside)
    whole = written(
        tmp_path / "a.litertlm",
        litertlm([decoder(outside), ("TFLiteWeights", weights, {"model_type": "tf_lite_prefill_decode"})]),
    )
    outputs = []
    for source in (str(MODEL), whole):
        interpreter = tflq.Interpreter(source)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        interpreter.set_tensor(details["index"], np.arange(64, dtype=np.int8).reshape(details["shape"]))
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_array_equal(*outputs)
    with pytest.raises(FormatError, match="external buffer"):
        tflq.load(
            litertlm([decoder(outside), ("TFLiteWeights", weights[:-1], {"model_type": "tf_lite_prefill_decode"})])
        )
    with pytest.raises(InputError, match="weights"):
        tflq.load(litertlm([decoder(outside)]))


def test_inspect_lists_the_sections(tmp_path: Path, model_bytes: bytes) -> None:
    path = written(tmp_path / "a.litertlm", litertlm([TOKENIZER, decoder(model_bytes)]))
    shown = commands.tflq("inspect", path)
    assert shown.exit_code == 0
    assert "SP_Tokenizer" in shown.output
    assert "117 operators" in shown.output
    assert f"Next: tflq inspect {path}:prefill_decode" in shown.output
    document = json.loads(commands.tflq("inspect", path, "--json").output)
    registry = Registry().with_resource(
        "inspect.schema.json", Resource.from_contents(json.loads(data_text("inspect.schema.json")))
    )
    jsonschema.Draft202012Validator(json.loads(data_text("package.schema.json")), registry=registry).validate(document)
    assert len(document["sections"][1]["model"]["operators"]) == 117


@pytest.mark.parametrize("version", [(0, 9, 0), (2, 0, 0)])
def test_other_versions_are_refused(model_bytes: bytes, version: tuple[int, int, int]) -> None:
    with pytest.raises(FormatError, match="version"):
        tflq.load(litertlm([decoder(model_bytes)], version))


@pytest.mark.slow
def test_damaged_headers_are_typed_errors(model_bytes: bytes) -> None:
    data = litertlm([TOKENIZER, decoder(model_bytes)])
    for size in (*range(0, 420, 7), 16 << 10, len(data) - (16 << 10)):
        with pytest.raises(tflq.TflqError):
            tflq.load(data[:size])
    draws = np.random.default_rng(0)
    for _ in range(500):
        damaged = bytearray(data[: 16 << 10])
        for at in draws.integers(8, 420, 3):
            damaged[at] = draws.integers(256)
        with suppress(tflq.TflqError):
            tflq.load(bytes(damaged) + data[16 << 10 :])


def test_damaged_archives_are_typed_errors(model_bytes: bytes) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.tflite", model_bytes)
    whole = data.getvalue()
    draws = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for at in draws.integers(4, len(whole), 3):
            damaged[at] = draws.integers(256)
        with suppress(tflq.TflqError):
            tflq.load(bytes(damaged))
    with pytest.raises(tflq.TflqError):
        tflq.load(b"PK\x03\x04")


@pytest.mark.skipif("TFLQ_SHARED" not in os.environ, reason="TFLQ_SHARED names no folder of shared material")
def test_a_package_of_the_official_builder() -> None:
    path = Path(os.environ["TFLQ_SHARED"]) / "suites/modern/_repro/gemma_dyn8.litertlm"
    found = package(path)
    assert found is not None
    assert [s.kind for s in found.sections] == ["LlmMetadataProto", "HF_Tokenizer_Zlib", "TFLiteModel"]
    assert [s.signature_key for s in tflq.load(path).signature_defs or ()] == ["prefill_16", "decode"]
