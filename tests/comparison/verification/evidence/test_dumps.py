"""Dumps from anywhere: folders, C files, golden files of several samples, tflite-micro's layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import suites
from support.each import each
from tflq.comparison.evidence.c_arrays import c_arrays
from tflq.comparison.evidence.dumps import dump_of, load_dump, load_dumps
from tflq.comparison.evidence.inputs import given_inputs
from tflq.comparison.inputs.read import make_inputs
from tflq.devices.suites.draft import T, build
from tflq.diagnosis.localization import localize
from tflq.engine.api.files import load
from tflq.engine.profiles import by_name
from tflq.errors import InputError, OptionError, ShapeError, TflqError, TypeMismatchError
from tflq.model.flatbuf import read
from tflq.model.ir import Buffer, Model, Subgraph, TensorSpec, TensorType, view

Array = NDArray[Any]
MOBILENET = suites.ROOT / "golden/models/digits_mobilenet_int8.tflite"
LAYERS = suites.ROOT / "golden/dumps/digits_mobilenet_int8.layer_by_layer.bin"
RECORDED = suites.ROOT / "golden/recorded/digits_mobilenet_int8.npz"


@pytest.fixture(scope="module")
def model() -> Model:
    return load(MOBILENET)


# --- tflite-micro's layer by layer ----------------------------------------------------------------------------------


def test_what_tflite_micros_tool_wrote_is_what_its_profile_computes(model: Model) -> None:
    found = localize(model, load_dump(model, LAYERS), by_name("tflm"), "cumulative")
    assert len(found) == len(view(model).ops)
    assert all(o.differences and not o.differs and not o.reason for o in found)


def test_a_layer_by_layer_file_of_another_model_is_refused() -> None:
    with pytest.raises(InputError, match="another model"):
        load_dump(load(suites.ROOT / "golden/models/digits_autoencoder_int8.tflite"), LAYERS)


@pytest.mark.parametrize("length", [0, 3, 40, 1000, 70000])
def test_a_broken_layer_by_layer_file_is_refused(model: Model, tmp_path: Path, length: int) -> None:
    (tmp_path / "broken").write_bytes(LAYERS.read_bytes()[:length])
    with pytest.raises(TflqError):
        load_dump(model, tmp_path / "broken")


def test_layer_by_layer_bytes_at_random_never_end_in_another_error(model: Model, tmp_path: Path) -> None:
    rng, data = np.random.default_rng(0), bytearray(LAYERS.read_bytes())
    for _ in range(200):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 8):
            changed[at] = int(rng.integers(0, 256))
        (tmp_path / "fuzzed").write_bytes(changed)
        try:
            load_dump(model, tmp_path / "fuzzed")
        except TflqError:
            continue


MILLI = float(np.float32(1e-3))


# --- C files --------------------------------------------------------------------------------------------------------


def c_array(text: str, dtype: type, size: int) -> list[Any]:
    (found,) = c_arrays(text)
    return found.array(np.dtype(dtype), size).tolist()


@each(
    ("text", "dtype", "expected"),
    [
        ("int8_t x[3] = {1, -2, 127};", np.int8, [1, -2, 127]),
        ("const int8_t x[] PROGMEM = { 0x01, 0xFE, 0x7f, };", np.int8, [1, -2, 127]),
        ("alignas(16) static const int8_t x[1][3] = {{1, -2,\n 127}};", np.int8, [1, -2, 127]),
        ('int8_t x[3] __attribute__((aligned(16), section(".data"))) = {1,-2,127};', np.int8, [1, -2, 127]),
        ("/* = { 9 }; */ int8_t x[3] = {1, // { 5 };\n -2 /* , 3 */, 127};", np.int8, [1, -2, 127]),
        ("std::array<int8_t, 3> x = {{ 1, -2, 127 }};", np.int8, [1, -2, 127]),
        ("namespace a { struct S { int b; }; const int8_t x[N] = {(int8_t)0xff, 0b11, 010}; }", np.int8, [-1, 3, 8]),
        ("uint8_t x[] = {0, 255u};", np.uint8, [0, 255]),
        ("int16_t x[] = {-32768, 0xffff};", np.int16, [-32768, -1]),
        ("int32_t x[] = {-2147483648L, 2147483647};", np.int32, [-(2**31), 2**31 - 1]),
        ("float x[] = {1.5f, -2, 1e-3F, -INFINITY, 0x1p-2f};", np.float32, [1.5, -2, MILLI, -np.inf, 0.25]),
        ("bool x[] = {true, false};", np.bool_, [True, False]),
        ("unsigned char x[] = {\n 0xfe, 0xff, 0xff, 0xff, 0x01, 0, 0, 0};\nunsigned x_len = 8;", np.int32, [-2, 1]),
        ("unsigned char x[] = { 0x00, 0x00, 0xc0, 0x3f };", np.float32, [1.5]),
    ],
)
def test_arrays_in_c_are_read_as_a_compiler_would(text: str, dtype: type, expected: list[Any]) -> None:
    assert c_array(text, dtype, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("int8_t x[] = {256};", np.int8),
        ("int8_t x[] = {-129};", np.int8),
        ("uint8_t x[] = {-1};", np.uint8),
        ("int8_t x[] = {1.5};", np.int8),
        ("int8_t x[] = {A, B};", np.int8),
        ("float x[] = {one};", np.float32),
    ],
)
def test_what_is_no_code_of_the_type_is_refused(text: str, dtype: type) -> None:
    with pytest.raises(InputError):
        c_array(text, dtype, 1)


def test_a_c_array_without_an_end_is_refused() -> None:
    with pytest.raises(InputError, match="no end"):
        c_arrays("int8_t x[] = {1, 2")


def as_c(name: str, value: Array) -> str:
    return f"const int8_t {name}[{value.size}] = {{{', '.join(map(str, value.reshape(-1).tolist()))}}};\n"


def spelled(model: Model, tensor: int) -> str:
    return "".join(c if c.isalnum() else "_" for c in view(model).tensors[tensor].name or "")


def test_one_c_file_may_hold_the_whole_dump(model: Model, tmp_path: Path) -> None:
    whole = load_dump(model, LAYERS)
    chosen = sorted(whole.tensors)[:4]
    text = "".join(as_c(spelled(model, t), whole.tensors[t]) for t in chosen[:3]) + as_c(
        f"t{chosen[3]}", whole.tensors[chosen[3]]
    )
    (tmp_path / "dump.h").write_text("#pragma once\n" + text + "int8_t stranger[1] = {1};\n")
    found = load_dump(model, tmp_path / "dump.h")
    assert found.unknown == ("stranger",)
    assert {t: v.tolist() for t, v in found.tensors.items()} == {t: whole.tensors[t].tolist() for t in chosen}


def test_a_folder_mixes_files_of_all_kinds(model: Model, tmp_path: Path) -> None:
    whole = load_dump(model, LAYERS)
    a, b, c, d, e = sorted(whole.tensors)[:5]
    np.save(tmp_path / f"{a}.npy", whole.tensors[a])
    whole.tensors[b].tofile(tmp_path / f"tensor_{b}.raw")
    (tmp_path / f"{c}.c").write_text(as_c("out", whole.tensors[c]))
    (tmp_path / "two.inc").write_text(as_c(f"t{d}", whole.tensors[d]) + as_c(spelled(model, e), whole.tensors[e]))
    (tmp_path / "notes.txt").write_text("not a tensor")
    found = load_dump(model, tmp_path)
    assert {t: v.tolist() for t, v in found.tensors.items()} == {t: whole.tensors[t].tolist() for t in (a, b, c, d, e)}


# --- several samples --------------------------------------------------------------------------------


def test_every_sample_of_a_golden_file_is_a_dump(model: Model) -> None:
    dumps = load_dumps(model, RECORDED)
    with np.load(RECORDED) as entries:
        inputs = [entries[f"s{k}_in0"] for k in range(len(dumps)) if f"s{k}_in0" in entries]
    assert len(dumps) == len(inputs) > 1
    for k, value in enumerate(inputs):
        np.testing.assert_array_equal(load_dump(model, RECORDED, k).tensors[view(model).inputs[0]], value)
    with pytest.raises(OptionError, match="sample"):
        load_dump(model, RECORDED, len(dumps))


def test_an_archive_may_number_its_samples(model: Model, tmp_path: Path) -> None:
    whole = load_dump(model, LAYERS)
    tensor = min(whole.tensors)
    np.savez(tmp_path / "two.npz", **{f"s{k}_t{tensor}": whole.tensors[tensor] + np.int8(k) for k in (0, 1)})
    found = load_dumps(model, tmp_path / "two.npz")
    assert len(found) == 2
    for k in (0, 1):
        np.testing.assert_array_equal(found[k].tensors[tensor], whole.tensors[tensor] + np.int8(k))


def test_inputs_that_a_recording_lacks_are_taken_from_another() -> None:
    conv = load(suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite")
    recorded = suites.ROOT / "golden/singleop/recorded"
    other = recorded / "tie_conv_i8_0@litert-opt.npz"
    alone, fed = load_dumps(conv, other), load_dumps(conv, other, inputs=recorded / "tie_conv_i8_0.npz")
    (tensor,) = view(conv).inputs
    assert all(tensor not in dump.tensors for dump in alone)
    with np.load(recorded / "tie_conv_i8_0.npz") as entries:
        for k, dump in enumerate(fed):
            np.testing.assert_array_equal(dump.tensors[tensor], entries[f"s{k}_in0"])


# --- shapes ---------------------------------------------------------------------------------------------------------


def of_one_tensor(**facts: Any) -> Model:
    graph = Subgraph((TensorSpec("x", TensorType.INT32, **facts),), (0,), (), ())
    return Model(3, (), (graph,), (Buffer(),))


@pytest.mark.parametrize("has_rank", [False, True])
def test_a_scalar_stays_one(tmp_path: Path, has_rank: bool) -> None:
    model = of_one_tensor(shape=(), has_rank=has_rank)
    (tmp_path / "x.c").write_text("int x[] = {7};")
    np.savez(tmp_path / "x.npz", x=np.int32(7))
    for name in ("x.c", "x.npz"):
        value = load_dump(model, tmp_path / name).tensors[0]
        assert (value.shape, int(value)) == ((), 7)


def test_a_tensor_of_open_rank_has_the_dumps_shape() -> None:
    given = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert dump_of(of_one_tensor(shape=()), {"x": given}).tensors[0].shape == (2, 3)
    assert dump_of(of_one_tensor(shape=()), {"x": given[:1, :1]}).tensors[0].shape == (1, 1)
    with pytest.raises(InputError, match="shape"):
        dump_of(of_one_tensor(shape=(), has_rank=True), {"x": given})


def test_inputs_have_the_models_shape_and_type(model: Model) -> None:
    (tensor,) = view(model).inputs
    shape = view(model).tensors[tensor].shape
    assert dump_of(model, {tensor: np.zeros(shape, np.int8).reshape(-1)}).tensors[tensor].shape == shape
    for value in (np.zeros((2, *shape[1:]), np.int8), np.zeros(shape, np.complex64), np.zeros(shape, "S1")):
        with pytest.raises((ShapeError, TypeMismatchError)):
            dump_of(model, {tensor: value})


# --- a row for each sample ------------------------------------------------------------------------------------------


def two_inputs() -> tuple[Model, Array, Array, Array]:
    """A model of two inputs named x0 and x1, and six samples of both and of the output."""
    model = read(build("ADD", [T("int8", (1, 4), 0.5, 0)] * 2, [T("int8", (1, 4), 0.5, 0)], ("AddOptions", {})))
    rng = np.random.default_rng(0)
    one, other = (rng.integers(-50, 50, (6, 4), np.int8) for _ in range(2))
    return model, one, other, one + other


@pytest.mark.parametrize("shape", [(6, 4), (6, 1, 4)])
def test_named_arrays_may_have_a_row_for_each_sample(tmp_path: Path, shape: tuple[int, ...]) -> None:
    model, *arrays = two_inputs()
    names = [spec.name or "" for spec in view(model).tensors]
    np.savez(tmp_path / "d.npz", note=3, **{n: a.reshape(shape) for n, a in zip(names, arrays, strict=True)})
    dumps = load_dumps(model, tmp_path / "d.npz")
    assert [d.unknown for d in dumps] == [("note",)] * 6
    assert [[d.tensors[t].tolist() for t in range(3)] for d in dumps] == [
        [a[k : k + 1].tolist() for a in arrays] for k in range(6)
    ]
    np.savez(tmp_path / "in.npz", **{names[k]: arrays[k].reshape(shape) for k in range(2)})
    np.save(tmp_path / f"{names[2]}.npy", arrays[2].reshape(shape))
    beside = load_dumps(model, tmp_path / f"{names[2]}.npy", inputs=str(tmp_path / "in.npz"))
    assert [d.tensors[1].tolist() for d in beside] == [d.tensors[1].tolist() for d in dumps]


def test_rows_for_other_numbers_of_samples_are_refused(tmp_path: Path) -> None:
    model, one, other, out = two_inputs()
    names = [spec.name or "" for spec in view(model).tensors]
    np.savez(tmp_path / "d.npz", **dict(zip(names, (one, other[:5], out), strict=True)))
    with pytest.raises(ShapeError):
        load_dumps(model, tmp_path / "d.npz")
    with pytest.raises(InputError, match="other numbers of samples"):
        make_inputs(model, _saved(tmp_path, names, one, other[:5]))


def _saved(folder: Path, names: list[str], *arrays: Array) -> Path:
    np.savez(folder / "in.npz", **dict(zip(names, arrays, strict=False)))
    return folder / "in.npz"


def test_a_macro_behind_an_array_takes_no_time() -> None:
    macro = "SECTION_DTCM_UNINITIALIZED_ALIGNED_" * 30
    assert [a.name for a in c_arrays(f"int8_t other[3] {macro};\nint8_t x[3] {macro} = {{1, 2, 3}};")] == ["x"]


def test_two_files_of_one_tensor_in_a_folder_are_refused(model: Model, tmp_path: Path) -> None:
    np.save(tmp_path / "1.npy", np.zeros((1, 4, 4, 8), np.int8))
    (tmp_path / "1.bin").write_bytes(bytes(128))
    with pytest.raises(InputError, match="two files for '1'"):
        load_dumps(model, tmp_path)


def test_names_that_only_look_like_samples_are_no_samples(model: Model, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", my_in0=np.zeros((1, 8, 8, 1), np.int8), other=np.zeros(3))
    with pytest.raises(InputError, match="no entry is named"):
        given_inputs(model, tmp_path / "in.npz")
