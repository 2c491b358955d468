from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.each import each
from tflq.comparison.inputs.generate import GENERATORS
from tflq.comparison.inputs.read import from_files, make_inputs
from tflq.errors import InputError, ShapeError, TflqError, TypeMismatchError, UnknownNameError
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Quantization, Subgraph, TensorSpec, TensorType


def model(
    *specs: TensorSpec, operators: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (), inputs: int = 0
):
    names = tuple(dict.fromkeys(op for op, _, _ in operators))
    return Model(
        3,
        tuple(OperatorCode(0, name) for name in names),
        (
            Subgraph(
                specs,
                tuple(range(inputs or len(specs))),
                (),
                tuple(Operator(names.index(op), ins, outs) for op, ins, outs in operators),
            ),
        ),
        (Buffer(),),
    )


IMAGE = TensorSpec("image", TensorType.UINT8, (1, 16, 16, 3))
SOUND = TensorSpec("sound", TensorType.INT16, (1, 400))


@each("name", sorted(GENERATORS))
@each("type_", [TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.BOOL])
def test_generators_fill_the_whole_code_range_and_nothing_else(name: str, type_: TensorType) -> None:
    spec = TensorSpec("x", type_, (2, 50, 50))
    made = make_inputs(model(spec), name, samples=8, seed=3)
    values = np.stack([sample[0] for sample in made.samples])
    carrier = {"bool": np.bool_}.get(type_.label, type_.label)
    assert (values.dtype, values.shape) == (np.dtype(carrier), (8, 2, 50, 50))
    low, high = (0, 1) if type_ == TensorType.BOOL else (np.iinfo(type_.label).min, np.iinfo(type_.label).max)
    near = 0 if name == "extremes" or type_ == TensorType.BOOL else (high - low) * 0.01
    assert low <= values.min() <= low + near
    assert high - near <= values.max() <= high
    if name == "extremes":
        assert set(np.unique(values).tolist()) == {low, high}


def test_a_smooth_input_changes_slowly() -> None:
    value = make_inputs(model(TensorSpec("x", TensorType.UINT8, (1, 200))), "smooth").samples[0][0].astype(int)
    assert np.abs(np.diff(value)).max() < 20 < np.ptp(value)


def test_equal_seeds_give_equal_inputs() -> None:
    def made(seed: int) -> list[bytes]:
        return [v.tobytes() for s in make_inputs(model(IMAGE, SOUND), "random", 2, seed).samples for v in s]

    assert made(1) == made(1) != made(2)
    assert len(set(made(1))) == 4


def test_float_ranges_come_from_the_consumer_or_the_record() -> None:
    codes = Quantization(np.float32([0.5]), np.int64([-28]))
    quantized = TensorSpec("q", TensorType.INT8, (1, 9), quantization=codes)
    spec = TensorSpec("x", TensorType.FLOAT32, (1, 3000))
    value = make_inputs(model(spec, quantized, operators=(("QUANTIZE", (0,), (1,)),), inputs=1)).samples[0][0]
    assert (-50 <= value.min() < -45, 70 < value.max() <= 77.5) == (True, True)
    record = Quantization(np.float32([]), np.int64([]), 0, np.float32([2]), np.float32([3]))
    value = make_inputs(model(TensorSpec("x", TensorType.FLOAT32, (1, 3000), quantization=record))).samples[0][0]
    assert (value.min() >= 2, value.max() <= 3) == (True, True)
    value = make_inputs(model(spec)).samples[0][0]
    assert (value.dtype, value.min() >= -1, value.max() <= 1) == (np.float32, True, True)


def test_indices_stay_inside_what_they_index() -> None:
    table = TensorSpec("table", TensorType.INT8, (5, 3))
    ids = TensorSpec("ids", TensorType.INT32, (400,))
    made = make_inputs(model(ids, table, operators=(("EMBEDDING_LOOKUP", (0, 1), (1,)),), inputs=1)).samples[0][0]
    assert set(made.tolist()) == set(range(5))


def test_a_computed_shape_is_the_one_the_file_expects() -> None:
    specs = (
        TensorSpec("shape", TensorType.INT32, (2,)),
        TensorSpec("x", TensorType.INT8, (6,)),
        TensorSpec("y", TensorType.INT8, (2, 3)),
    )
    made = make_inputs(model(*specs, operators=(("RESHAPE", (1, 0), (2,)),), inputs=2))
    assert made.samples[0][0].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("op", "position", "shape", "wanted"),
    [
        ("FILL", 0, (3,), [1, 2, 3]),
        ("MEAN", 1, (2,), [0, 0]),
        ("PAD", 1, (2, 2), [[0, 0], [0, 0]]),
        ("SLICE", 2, (2,), [-1, -1]),
        ("TRANSPOSE", 1, (3,), [0, 1, 2]),
        ("TILE", 1, (2,), [1, 1]),
        ("TOPK_V2", 1, (), 1),
    ],
)
def test_what_says_where_or_how_much_is_harmless(
    op: str, position: int, shape: tuple[int, ...], wanted: object
) -> None:
    specs = (
        TensorSpec("where", TensorType.INT64, shape),
        TensorSpec("x", TensorType.INT8, (2, 3)),
        TensorSpec("y", TensorType.INT8, (2, 3)),
    )
    operands = tuple(0 if i == position else 1 for i in range(3))
    value = make_inputs(model(*specs, operators=((op, operands, (2,)),), inputs=1)).samples[0][0]
    assert (value.dtype, value.tolist()) == (np.int64, wanted)


def test_arrays_by_name_and_by_position() -> None:
    image, sound = np.zeros((1, 16, 16, 3), np.uint8), np.ones((1, 400), np.int16)
    for given in ({"sound": sound, "image": image}, [image, sound]):
        made = make_inputs(model(IMAGE, SOUND), given)
        assert [v.dtype for v in made.samples[0]] == [np.uint8, np.int16]
    assert made.facts.samples == 1


def test_several_samples() -> None:
    images = [np.full((1, 16, 16, 3), k, np.uint8) for k in range(3)]
    for given in ([{"image": v} for v in images], [[v] for v in images], [(v,) for v in images]):
        assert [s[0].max() for s in make_inputs(model(IMAGE), given).samples] == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"image": np.zeros((1, 16, 16, 3), np.int8)}, TypeMismatchError),
        ({"image": np.zeros((16, 16, 3), np.uint8)}, ShapeError),
        ({"picture": np.zeros(1, np.uint8)}, UnknownNameError),
        ({}, InputError),
        ([], InputError),
        ("no such thing", UnknownNameError),
    ],
)
def test_what_does_not_fit_is_refused(given: object, error: type[TflqError]) -> None:
    with pytest.raises(error):
        make_inputs(model(IMAGE), given)  # type: ignore[arg-type]


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        make_inputs(model(IMAGE), samples=0)


def test_an_open_shape_takes_any_size() -> None:
    spec = TensorSpec("x", TensorType.INT8, (1, 4), shape_signature=(-1, 4))
    assert make_inputs(model(spec), [np.zeros((7, 4), np.int8)]).samples[0][0].shape == (7, 4)
    with pytest.raises(ShapeError):
        make_inputs(model(spec), [np.zeros((7, 5), np.int8)])


def test_files(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, 1, 16, 16, 3), np.uint8)
    np.save(tmp_path / "one.npy", values[0])
    np.save(tmp_path / "stacked.npy", values)
    np.save(tmp_path / "batch.npy", values[:, 0])
    (tmp_path / "raw.rgb").write_bytes(values.tobytes())
    np.savez(tmp_path / "named.npz", image=values[0])
    np.savez(tmp_path / "numbered.npz", **{f"s{k}_in0": values[k] for k in range(3)})
    np.savez(tmp_path / "only.npz", pictures=values)
    np.savez(tmp_path / "x.npz", x=values, labels=np.arange(3))
    counts = {"one.npy": 1, "stacked.npy": 3, "batch.npy": 3, "raw.rgb": 3, "named.npz": 1, "numbered.npz": 3}
    counts |= {"only.npz": 3, "x.npz": 3}
    for name, count in counts.items():
        made = make_inputs(model(IMAGE), tmp_path / name)
        assert [s[0].tobytes() for s in made.samples] == [v.tobytes() for v in values[:count]], name
    made = from_files(model(IMAGE), {"image": tmp_path / "one.npy"})
    assert made.samples[0][0].tobytes() == values[0].tobytes()


def test_broken_files_are_typed_errors(tmp_path: Path) -> None:
    pickled = np.array([{}], object)
    np.save(tmp_path / "pickled.npy", pickled, allow_pickle=True)
    np.savez(tmp_path / "pickled.npz", image=pickled, allow_pickle=True)
    for name, data in {
        "x.npy": b"\x93NUMPY",
        "x.npz": b"PK\3\4broken",
        "x.raw": b"12345",
        "y.npz": b"",
        "x.txt": bytes(64),
    }.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder.npz").mkdir()
    for name in ("pickled.npy", "pickled.npz", "x.npy", "x.npz", "x.raw", "y.npz", "folder.npz", "x.txt"):
        with pytest.raises(TflqError):
            make_inputs(model(IMAGE), tmp_path / name)


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_a_scalar_is_given_one(name: str) -> None:
    assert make_inputs(model(TensorSpec("x", TensorType.FLOAT32, ())), name).samples[0][0].shape == ()
