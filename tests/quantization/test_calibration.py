"""Calibration data from everything that may hold it, and what is refused."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.float_graphs import FloatGraph
from tflq.errors import CalibrationError, FileAccessError, InputError, OptionError
from tflq.model.ir import Model, SignatureDef, TensorType, view
from tflq.quantization.samples import Calibration, Scaling

Array = np.ndarray[Any, Any]


def one_input(*shape: int) -> Model:
    graph = FloatGraph(0)
    return graph.model([graph.unary("RELU", graph.given(*shape))])


def two_inputs() -> Model:
    graph = FloatGraph(0)
    a, b = graph.given(1, 3), graph.given(1, 3)
    made = graph.op("ADD", [a, b], {"fused_activation_function": 0})[0]
    signature = SignatureDef("serving_default", (("left", a), ("right", b)), (("sum", made),))
    return replace(graph.model([made]), signature_defs=(signature,))


def read(model: Model, source: Any, scaling: Scaling | None = None) -> list[list[Array]]:
    calibration = Calibration(model, source, scaling)
    first = [list(sample.values()) for sample in calibration]
    again = [list(sample.values()) for sample in calibration]
    assert len(first) == len(again)
    assert all(np.array_equal(a, b) for x, y in zip(first, again, strict=True) for a, b in zip(x, y, strict=True))
    return first


ROWS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


def saved_npy(folder: Path) -> Path:
    np.save(folder / "rows.npy", ROWS)
    return folder / "rows.npy"


def saved_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "rows.npz", x=ROWS, y=np.arange(4))
    return folder / "rows.npz"


def named_npz(folder: Path) -> Path:
    np.savez(folder / "rows.npz", t0=ROWS[:, None])
    return folder / "rows.npz"


def by_columns(folder: Path) -> Path:
    np.save(folder / "rows.npy", np.asfortranarray(ROWS))
    return folder / "rows.npy"


def numbered_npz(folder: Path) -> Path:
    np.savez(folder / "rows.npz", **{f"s{k}_in0": row[None] for k, row in enumerate(ROWS)})
    return folder / "rows.npz"


def folder_of_arrays(folder: Path) -> Path:
    for k, row in enumerate(ROWS):
        np.save(folder / f"{k}.npy", row[None] if k % 2 else row)
    (folder / "notes.txt").write_text("not data")
    return folder


def folder_of_archives(folder: Path) -> Path:
    for k, row in enumerate(ROWS):
        np.savez(folder / f"{k}.npz", t0=row[None])
    return folder


SOURCES: list[Callable[[Path], Any]] = [
    saved_npy,
    by_columns,
    saved_npz,
    named_npz,
    numbered_npz,
    folder_of_arrays,
    folder_of_archives,
    lambda _: ROWS,
    lambda _: {"t0": ROWS},
    lambda _: [[row[None]] for row in ROWS],
    lambda _: [(row[None],) for row in ROWS],
    lambda _: [{"t0": row[None]} for row in ROWS],
    lambda _: [{0: row[None]} for row in ROWS],
    lambda _: [row[None] for row in ROWS],
    lambda _: [ROWS[:3], ROWS[3:]],  # samples that hold several rows
    lambda _: ([row[None]] for row in ROWS),  # can be iterated once
    lambda _: lambda: ([row[None]] for row in ROWS),
    lambda _: [[row[None].astype(np.float64)] for row in ROWS],
]


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_samples_as_often_as_asked(source: Callable[[Path], Any], tmp_path: Path) -> None:
    samples = read(one_input(1, 2, 3), source(tmp_path))
    assert [len(sample) for sample in samples] == [1] * 4
    assert all(sample[0].dtype == np.float32 and sample[0].shape == (1, 2, 3) for sample in samples)
    assert np.array_equal(np.concatenate([sample[0] for sample in samples]), ROWS)


def test_inputs_are_known_by_tensor_and_by_signature(tmp_path: Path) -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, 12, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "both.npz", right=b, t0=a)
    by_row = [{"right": y[None], "left": x[None]} for x, y in zip(a, b, strict=True)]
    in_order = [(x[None], y[None]) for x, y in zip(a, b, strict=True)]
    for source in (tmp_path / "both.npz", {"left": a, "t1": b}, by_row, [[a, b]], in_order):
        samples = read(two_inputs(), source)
        assert [[v.tolist() for v in sample] for sample in samples] == [
            [[a[k].tolist()], [b[k].tolist()]] for k in (0, 1)
        ]


def test_a_model_of_several_rows_takes_them_whole() -> None:
    samples = read(one_input(4, 2, 3), [[ROWS], [ROWS + 1]])
    assert [sample[0].shape for sample in samples] == [(4, 2, 3)] * 2


def test_an_iterator_is_read_no_further_than_asked() -> None:
    taken: list[int] = []

    def endless() -> Iterator[list[Array]]:
        while True:
            taken.append(len(taken))
            yield [ROWS[:1]]

    stream = iter(Calibration(one_input(1, 2, 3), endless()))
    next(stream), next(stream)
    assert taken == [0, 1]


def test_scaling_is_mean_and_std_in_float32() -> None:
    stored = np.array([[[0, 128, 255], [1, 2, 3]]], np.uint8)
    (sample,) = read(one_input(1, 2, 3), stored, Scaling.of([0, 1, 2], 255))
    wanted = (stored.astype(np.float32) - np.float32([0, 1, 2])) / np.float32(255)
    assert np.array_equal(sample[0], wanted)
    with pytest.raises(OptionError, match="one per channel"):
        read(one_input(1, 2, 3), stored, Scaling.of([1, 2], 1))
    for mean, std in ((0.0, 0.0), (np.nan, 1.0), (0.0, [1.0, 0.0])):
        with pytest.raises(OptionError, match="finite"):
            Scaling.of(mean, std)


def image_folder(folder: Path) -> list[Array]:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    pixels = [random.integers(0, 256, (6, 8, 3), dtype=np.uint8) for _ in range(2)]
    for k, values in enumerate(pixels):
        image.fromarray(values).save(folder / f"{k}.png")
    return pixels


def test_images_are_pixels_and_scaled_where_asked(tmp_path: Path) -> None:
    pixels = image_folder(tmp_path)
    samples = read(one_input(1, 6, 8, 3), tmp_path)
    assert [np.array_equal(sample[0][0], values) for sample, values in zip(samples, pixels, strict=True)] == [True] * 2
    scaled = read(one_input(1, 6, 8, 3), tmp_path, Scaling.of(127.5, 127.5))
    assert np.array_equal(scaled[0][0][0], (pixels[0].astype(np.float32) - 127.5) / np.float32(127.5))


def test_images_of_other_proportions_are_cut_and_resized(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, 2:6] = 200  # the centred square
    image.fromarray(pixels).save(tmp_path / "a.png")
    (sample,) = read(one_input(1, 2, 2, 1), tmp_path)
    assert np.array_equal(sample[0], np.full((1, 2, 2, 1), 200))
    with pytest.raises(CalibrationError, match=r"sample 0, t0: takes no image"):
        read(one_input(1, 6), tmp_path)
    (tmp_path / "b.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="not a readable image"):
        read(one_input(1, 2, 2, 3), tmp_path)


REFUSED = [
    ([], "there are no samples"),
    (np.zeros((0, 2, 3), np.float32), "there are no samples"),
    ([[ROWS[:1]], [np.zeros((1, 3, 2))]], r"sample 1, t0: shape does not match: expected \[1, 2, 3\], got \[1, 3, 2\]"),
    ([[ROWS[:1]], [np.where(ROWS[:1] == 4, np.nan, ROWS[:1])]], r"sample 1, t0: holds nan at \[0, 1, 1\]"),
    ([[ROWS[:1].astype(np.float64) * 1e38]], r"sample 0, t0: holds inf"),
    ([[ROWS[:1]], [ROWS[:1], ROWS[:1]]], r"sample 1: number of inputs: expected 1, got 2"),
    ([[ROWS[:1]], {"other": ROWS[:1]}], r"sample 1, other: there is no input of that name: expected t0"),
    ([{}], r"sample 0, t0: no value is given"),
    ([[ROWS[:1].astype(np.int32)]], r"sample 0, t0: holds no floats; mean and std"),
    ([[np.array([["a"]])]], r"sample 0, t0: shape"),
    ([[ROWS[:1]], 5], r"sample 1: is not a list or dict of arrays"),
    ({"t0": ROWS, "t1": ROWS}, "t1: there is no input of that name"),
]


@each(("source", "message"), REFUSED)
def test_bad_data_is_refused_by_sample_and_tensor(source: Any, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        list(Calibration(one_input(1, 2, 3), source))


def test_inputs_of_different_lengths_are_refused() -> None:
    with pytest.raises(CalibrationError, match="different numbers of samples"):
        list(Calibration(two_inputs(), {"left": np.zeros((2, 3), np.float32), "right": np.zeros((3, 3), np.float32)}))


def test_integer_inputs_take_integers_that_fit() -> None:
    graph = FloatGraph(0)
    index = graph._tensor((1, 2), "int32")
    graph.inputs.append(index)
    model = graph.model([graph.op("CAST", [index], {"in_data_type": 2, "out_data_type": 0})[0]])
    assert view(model).tensors[index].type == TensorType.INT32
    (sample,) = read(model, [[np.array([[1, 2]])]])
    assert sample[0].dtype == np.int32
    for wrong in (np.array([[1, 2**40]]), np.array([[0.5, 1]])):
        with pytest.raises(CalibrationError, match=r"sample 0, t0: type does not match"):
            list(Calibration(model, [[wrong]]))


def test_broken_files_are_refused(tmp_path: Path) -> None:
    model = one_input(1, 2, 3)
    with pytest.raises(FileAccessError):
        list(Calibration(model, tmp_path / "missing.npz"))
    for name in ("broken.npy", "broken.npz"):
        (tmp_path / name).write_bytes(b"\x93NUMPY nothing")
        with pytest.raises(InputError, match=r"not a readable \.np"):
            list(Calibration(model, tmp_path / name))
    (tmp_path / "data.csv").write_text("1,2")
    with pytest.raises(CalibrationError, match="kind of file"):
        list(Calibration(model, tmp_path / "data.csv"))
    np.save(tmp_path / "objects.npy", np.array([None, 1]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        list(Calibration(model, tmp_path / "objects.npy"))
    np.savez(tmp_path / "short.npz", x=ROWS)
    with zipfile.ZipFile(tmp_path / "short.npz") as archive:
        data = archive.read("x.npy")
    with zipfile.ZipFile(tmp_path / "short.npz", "w") as archive:
        archive.writestr("x.npy", data[:-4])
    with pytest.raises(InputError, match="too short"):
        list(Calibration(model, tmp_path / "short.npz"))
