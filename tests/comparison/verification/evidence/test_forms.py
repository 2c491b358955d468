"""Forms of evidence: one tensor in an `.npy`, arrays of any name, zip archives; and archives that are hostile."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq import load_golden, verify
from tflq.comparison.evidence import forms
from tflq.comparison.evidence.dumps import load_dumps
from tflq.engine.api.files import load
from tflq.errors import FileAccessError, InputError, LimitError, TflqError
from tflq.model.ir import Model, view

MOBILENET = suites.ROOT / "golden/models/digits_mobilenet_int8.tflite"
RECORDED = load_golden(suites.ROOT / "golden/recorded/digits_mobilenet_int8.npz")
OUTPUT = 52


@pytest.fixture(scope="module")
def model() -> Model:
    return load(MOBILENET)


@pytest.fixture(scope="module")
def outputs() -> list[np.ndarray]:
    found = [one.outputs[0] for one in RECORDED.observations[:3]]
    return [value for value in found if value is not None]


def read(model: Model, path: Path) -> list[np.ndarray]:
    return [dump.tensors[OUTPUT] for dump in load_dumps(model, path)]


def test_an_npy_has_a_row_for_each_sample(model: Model, outputs: list[np.ndarray], tmp_path: Path) -> None:
    np.save(tmp_path / "anything.npy", np.concatenate(outputs))
    np.testing.assert_array_equal(read(model, tmp_path / "anything.npy"), outputs)
    np.save(tmp_path / "flat.npy", outputs[0][0])
    np.testing.assert_array_equal(read(model, tmp_path / "flat.npy"), outputs[:1])


def test_an_array_of_any_name_is_the_output_that_it_fits(
    model: Model, outputs: list[np.ndarray], tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", arr_0=np.concatenate(outputs))
    np.testing.assert_array_equal(read(model, tmp_path / "a.npz"), outputs)
    numbers = ", ".join(map(str, outputs[0].reshape(-1)))
    (tmp_path / "log.c").write_text(f"static const int8_t my_result[] = {{{numbers}}};")
    np.testing.assert_array_equal(read(model, tmp_path / "log.c"), outputs[:1])


@pytest.mark.parametrize("form", ["a.npz", "a.zip"])
def test_arrays_of_any_names_are_input_and_output(
    model: Model, outputs: list[np.ndarray], tmp_path: Path, form: str
) -> None:
    fed = [one.inputs[0] for one in RECORDED.observations[:3]]
    arrays = {"images": np.concatenate(fed), "predictions": np.concatenate(outputs)}
    np.savez(tmp_path / "a.npz", **arrays)
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    packed(tmp_path / "a.zip", {f"{name}.npy": (tmp_path / f"{name}.npy").read_bytes() for name in arrays})
    np.testing.assert_array_equal(read(model, tmp_path / form), outputs)
    found = [dump.tensors[view(model).inputs[0]] for dump in load_dumps(model, tmp_path / form)]
    np.testing.assert_array_equal(found, fed)


def test_an_array_that_fits_several_tensors_is_asked_for_by_name(tmp_path: Path) -> None:
    ops = [Op("ABS", (0,), (1,)), Op("NEG", (0,), (2,))]
    two = load(build(Graph([T("float32", (1, 4))] * 3, (0,), (1, 2), ops)))
    np.save(tmp_path / "y.npy", np.zeros((1, 4), np.float32))
    with pytest.raises(InputError, match=r"fits 2 tensors .*name it"):
        load_dumps(two, tmp_path / "y.npy")
    np.savez(tmp_path / "y.npz", other=np.zeros((3, 3, 3), np.float32))
    with pytest.raises(InputError, match="no entry names a tensor"):
        load_dumps(two, tmp_path / "y.npz")


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_a_zip_archive_is_what_it_holds(model: Model, outputs: list[np.ndarray], tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.concatenate(outputs))
    one = packed(tmp_path / "one.zip", {"run/out.npy": (tmp_path / "y.npy").read_bytes(), "readme.txt": b"hello"})
    np.testing.assert_array_equal(read(model, one), outputs)
    names = {f"dump/t{OUTPUT}.bin": outputs[0].tobytes(), "dump/t51.bin": bytes(10)}
    several = load_dumps(model, packed(tmp_path / "several.zip", names))
    np.testing.assert_array_equal(several[0].tensors[OUTPUT], outputs[0])
    assert set(several[0].tensors) == {51, OUTPUT}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "nothing that can be read"),
        ({"readme.md": b"hello"}, "nothing that can be read"),
        ({"a/t52.bin": bytes(10), "b/t52.bin": bytes(10)}, "two files"),
        ({"t52.npy": b"no array"}, "t52"),
    ],
)
def test_archives_of_other_files_are_refused(
    model: Model, tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_dumps(model, packed(tmp_path / "a.zip", files))


def test_nothing_leaves_the_folder_that_an_archive_is_unpacked_to(model: Model, tmp_path: Path) -> None:
    names = ["../t52.bin", "/tmp/t52.bin", "..\\t52.bin", "a/../../t52.bin"]
    for name in names:
        dumps = load_dumps(model, packed(tmp_path / "a.zip", {name: bytes(10)}))
        assert OUTPUT in dumps[0].tensors
    assert sorted(p.name for p in tmp_path.parent.glob("t52*")) == []


def test_an_archive_that_unpacks_to_too_much_is_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "_MOST_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t52.bin", bytes((1 << 20) + 1))
    with pytest.raises(LimitError, match="unpacks to more"):
        load_dumps(model, tmp_path / "bomb.zip")


def test_damaged_archives_end_in_one_kind_of_error(model: Model, tmp_path: Path) -> None:
    whole = packed(tmp_path / "a.zip", {"t52.bin": bytes(10)}).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut.zip").write_bytes(whole[:length])
        with pytest.raises(TflqError):
            load_dumps(model, tmp_path / "cut.zip")
    with pytest.raises(FileAccessError):
        load_dumps(model, tmp_path / "absent.zip")


def test_verify_takes_what_explain_takes(model: Model, outputs: list[np.ndarray], tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.concatenate(outputs))
    inputs = [[one.inputs[0]] for one in RECORDED.observations[:3]]
    report = verify(MOBILENET, tmp_path / "y.npy", inputs=inputs)
    assert report.verdict.value == "same"
    assert report.compared == 30
    outputs[1] = outputs[1].copy()
    outputs[1][0, 3] ^= 1
    np.savez(tmp_path / "y.npz", wrong=np.concatenate(outputs))
    assert verify(MOBILENET, tmp_path / "y.npz", inputs=inputs).verdict.value == "differs"
    assert view(model).outputs == (OUTPUT,)
