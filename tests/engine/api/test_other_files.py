"""Files in place of a model: named by content, with the next step. Models in C source are read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import commands, suites
from support.sweeping import few
from tflq.errors import FormatError, TflqError

MODEL = suites.ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite"
DATA = MODEL.read_bytes()


def archive(**members: bytes) -> bytes:
    from io import BytesIO

    with zipfile.ZipFile(target := BytesIO(), "w") as made:
        for name, content in members.items():
            made.writestr(name.replace("__", "/").replace("_", "."), content)
    return target.getvalue()


#: Content, and words of the answer.
FILES: dict[str, tuple[bytes, str]] = {
    "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", "an ONNX model.*onnx2tf"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(80), "a Keras model.*tflq quantize"),
    "model.keras": (archive(model_weights_h5=b"x", config_json=b"{}"), "a Keras model.*tflq quantize"),
    "model.pt": (archive(archive__data_pkl=b"x"), "a PyTorch file.*litert_torch"),
    "old.pth": (b"\x80\x02\x8a\nl\xfc\x9cF", "a PyTorch file"),
    "saved_model.pb": (b"\n\x05\x08\x01serve" + bytes(20), "the inside of a SavedModel.*folder"),
    "frozen.pb": (b"\n\x10\n\x01x\x12\x0bPlaceholder", "a TensorFlow graph"),
    "model.pte": (b"\x18\0\0\0ET12" + bytes(40), "ExecuTorch"),
    "model.gguf": (b"GGUF\x03\0\0\0" + bytes(40), "GGUF"),
    "model.safetensors": ((80).to_bytes(8, "little") + b'{"a":1}', "safetensors"),
    "page.tflite": (b"<!DOCTYPE html>\n<html>", "a web page"),
    "pointer.tflite": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "inputs.npy": (b"\x93NUMPY\x01\0" + bytes(60), "an array of NumPy.*model comes first"),
    "inputs.npz": (archive(x_npy=b"x"), "an archive of arrays.*model comes first"),
    "photo.png": (b"\x89PNG\r\n\x1a\n" + bytes(60), "an image.*--inputs"),
    "board.log": (b"I (1) main: output: 1, 2, 3\n", "a text.*model comes first"),
    "net.xml": (b'<?xml version="1.0"?>\n<net name="x">', "an OpenVINO model"),
    "document.json": (b'{"a": 1}', "JSON"),
    "model.tar": (bytes(257) + b"ustar\x0000" + bytes(80), "a tar archive.*tar xf"),
    "model.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(40), "7-Zip"),
    "model.xz": (b"\xfd7zXZ\0" + bytes(40), "xz archive"),
    "model.bz2": (b"BZh91AY&SY" + bytes(40), "bzip2"),
    "model.zst": (b"\x28\xb5\x2f\xfd" + bytes(40), "Zstandard"),
    "paper.pdf": (b"%PDF-1.7\n" + b"x" * 40, "a PDF"),
    "firmware.exe": (b"MZ" + bytes(90), "a program"),
    "a.out": (b"\xcf\xfa\xed\xfe" + bytes(90), "a program"),
    "libmodel.a": (b"!<arch>\nmodel.o/" + bytes(90), "a program"),
    "model.rknn": (b"RKNN" + bytes(90), "Rockchip"),
    "wide.h": ("const char m[] = {1}".encode("utf-16"), "UTF-16"),
    "model.tflite.gz": (b"\x1f\x8b\x08\0" + bytes(30), "gzip"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_kind_is_named_with_what_helps(name: str, tmp_path: Path) -> None:
    content, words = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words):
        tflq.load(path)
    for verb in ("inspect", "verify"):
        done = commands.tflq(verb, path)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output


def test_a_saved_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(FormatError, match="is a SavedModel"):
        tflq.load(tmp_path)


@pytest.mark.parametrize("seed", range(40))
def test_bytes_at_random_stay_bad_input(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    content, _ = list(FILES.values())[seed % len(FILES)]
    damaged = bytearray(content + rng.bytes(64))
    for at in rng.integers(0, len(damaged), 6):
        damaged[at] = rng.integers(256)
    (tmp_path / "x").write_bytes(bytes(damaged[: rng.integers(1, len(damaged))]))
    with pytest.raises(TflqError):
        tflq.load(tmp_path / "x")


def c_source(data: bytes, declaration: str, *, by: str = "0x{:02x}, ", tail: str = "") -> str:
    rows = ["  " + "".join(by.format(b) for b in data[k : k + 12]) for k in range(0, len(data), 12)]
    return f"{declaration} = {{\n" + "\n".join(rows) + f"\n}};{tail}\n"


SOURCES = {
    "xxd": c_source(DATA, "unsigned char digits_tflite[]", tail=f"\nunsigned int digits_tflite_len = {len(DATA)};"),
    "tflite-micro": '#include "model.h"\n// made by xxd\n'
    + c_source(DATA, "alignas(16) const unsigned char g_model[]"),
    "attributes": "#pragma once\n" + c_source(DATA, "const uint8_t g_model[20000] __attribute__((aligned(16)))"),
    "decimal": "#include <stdint.h>\n" + c_source(DATA, "const uint8_t g_model[] PROGMEM", by="{}, "),
    "a long licence": f"/*{'x' * 9000}*/" + c_source(DATA, "const unsigned char g_model[]"),
    "suffixes": c_source(DATA, "const uint8_t g_model[]", by="0x{:02X}U, "),
    "without =": c_source(DATA, "inline constexpr std::uint8_t kModel[] ").replace(" = {", "{"),
    "std::byte": c_source(DATA, "constexpr std::byte kModel[]", by="std::byte{{0x{:02x}}}, "),
    "signed": "const int8_t m[] = {" + ", ".join(map(str, np.frombuffer(DATA, np.int8))) + "};",
    "words": "const uint32_t m[] = {" + ", ".join(f"0x{word:08x}" for word in np.frombuffer(DATA, "<u4")) + "};",
    "a string": "const char m[] =\n"
    + "\n".join(f'"{"".join(f"{chr(92)}x{b:02x}" for b in DATA[k : k + 9])}"' for k in range(0, len(DATA), 9))
    + ";",
    "octal": 'const char m[] = "' + "".join(f"\\{b:03o}" for b in DATA) + '";',
    "braces in comments": "// a } here {\nconst char m[] = { /* }; */\n"
    + "".join(f"  0x{b:02x}, // {k} }};\n" for k, b in enumerate(DATA))
    + "};\n",
    "with others": c_source(bytes(range(64)), "const char other[64]") + c_source(DATA, "const char model[]"),
}


@pytest.mark.parametrize("name", few(SOURCES, *list(SOURCES)[::3]))
def test_a_model_in_c_source_is_a_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.cc"
    path.write_text(SOURCES[name])
    assert tflq.save(tflq.load(path)) == tflq.save(tflq.load(MODEL))
    assert commands.tflq("inspect", path).exit_code == 0


def test_source_that_is_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.h"
    path.write_text(SOURCES["xxd"][:30_000])
    with pytest.raises(FormatError, match="the array digits_tflite has no closing brace: the file is cut"):
        tflq.load(path)


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    path = tmp_path / "models.h"
    path.write_text(c_source(DATA, "const char one[]") + c_source(DATA, "const char two[]"))
    with pytest.raises(FormatError, match="holds 2 models; name one, as in FILE:one"):
        tflq.load(path)
    assert tflq.load(f"{path}:two").subgraphs
    with pytest.raises(FormatError, match="no array 'three' is a model"):
        tflq.load(f"{path}:three")


@pytest.mark.parametrize(
    "text",
    [
        "char x[] = {",
        "char x[] = {0x1c, 0, 0, 0, 0x54, 0x46, 0x4c, 0x33}",
        "char x[] = {1, 2, 300, 'a'};" * 9,
        "char " * 9000,
        "char /*" * 9000,
        'char a[] = "' + "\\x" * 9000,
        'char a[] = "' * 900,
        "// {" * 9000,
    ],
)
def test_source_without_a_whole_model_is_bad_input(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.c"
    path.write_text(text)
    with pytest.raises(TflqError):
        tflq.load(path)
