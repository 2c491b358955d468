"""Values in and out: strings, sub-byte types, empty and scalar tensors, and arrays that stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support import graphs as g
from support.each import each
from support.single_op import T
from support.toys import PROFILE, graph, ints, quantized, tensor
from tflq.errors import (
    InputError,
    ResizeError,
    ShapeError,
    StateError,
    TypeMismatchError,
    UnknownNameError,
    UnsupportedError,
)
from tflq.model.ir import Model, SignatureDef, TensorType


def ready(model: Model, **options: Any) -> tflq.Interpreter:
    interpreter = tflq.Interpreter(model_content=model, profile=PROFILE, **options)
    interpreter.allocate_tensors()
    return interpreter


def copy_of(type_: TensorType, shape: tuple[int, ...]) -> tflq.Interpreter:
    return ready(graph([tensor(type_, shape), tensor(type_, shape)], [("COPY", [0], [1])], [0], [1]))


def through(type_: TensorType, value: Any, shape: tuple[int, ...] | None = None) -> Any:
    interpreter = copy_of(type_, np.shape(value) if shape is None else shape)
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    return interpreter.get_tensor(1)


@each(("type_", "dtype"), [(t, t.label) for t in TensorType if t.label in np.sctypeDict] + [(TensorType.BOOL, "bool")])
def test_plain_types_come_back_as_they_went_in(type_: TensorType, dtype: str) -> None:
    value = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    got = through(type_, value)
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([b"one", b"", b"three"]),
        np.array(["one", "", "three"]),
        np.array([b"one", "", "three"], object),
        ["one", "", "three"],
    ],
    ids=["S", "U", "object", "list"],
)
def test_strings_come_back_as_bytes_objects(value: Any) -> None:
    got = through(TensorType.STRING, value)
    assert got.dtype == np.dtype(object)
    assert got.tolist() == [b"one", b"", b"three"]


def test_text_goes_in_as_utf8() -> None:
    assert through(TensorType.STRING, np.array(["ä€"])).tolist() == ["ä€".encode()]


@pytest.mark.parametrize("value", [np.array([1]), np.array([None], object), np.array([2.5], object), [b"a", b"b"]])
def test_what_is_no_string(value: Any) -> None:
    with pytest.raises(InputError):
        through(TensorType.STRING, value, (1,))


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        through(TensorType.STRING, np.array(["\ud800"]))


@pytest.mark.parametrize(
    ("type_", "dtype", "codes", "beyond"),
    [
        (TensorType.INT4, np.int8, [-8, 0, 7], 8),
        (TensorType.INT4, np.int8, [-8, 0, 7], -9),
        (TensorType.UINT4, np.uint8, [0, 9, 15], 16),
        (TensorType.INT2, np.int8, [-2, 0, 1], 2),
    ],
)
def test_sub_byte_types_travel_one_to_a_byte(type_: TensorType, dtype: Any, codes: list[int], beyond: int) -> None:
    got = through(type_, np.array(codes, dtype))
    assert got.dtype == dtype
    assert got.tolist() == codes
    with pytest.raises(InputError, match="out of range"):
        through(type_, np.array([beyond], dtype))
    with pytest.raises(TypeMismatchError):
        through(type_, np.array(codes, np.int16))


@pytest.mark.parametrize("type_", [TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_eight_bit_floats_are_raw_bytes(type_: TensorType, dtype: Any) -> None:
    got = through(type_, np.array([1, 100], dtype))
    assert got.dtype == np.int8
    assert got.tolist() == [1, 100]


def test_another_byte_order_is_no_other_type() -> None:
    assert through(TensorType.INT32, np.array([1, -2], ">i4")).tolist() == [1, -2]


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_empty_tensors_are_empty_arrays(shape: tuple[int, ...]) -> None:
    interpreter = copy_of(TensorType.INT8, shape)
    interpreter.set_tensor(0, np.zeros(shape, np.int8))
    interpreter.invoke()
    assert interpreter.get_tensor(0).shape == interpreter.get_tensor(1).shape == shape
    assert interpreter.tensor(1)().shape == shape


def test_tensors_without_dimensions_are_scalars() -> None:
    got = through(TensorType.INT16, np.int16(-7))
    assert isinstance(got, np.int16)
    assert got == -7


def test_strings_before_they_are_set_are_empty() -> None:
    assert copy_of(TensorType.STRING, (2,)).get_tensor(0).tolist() == [b"", b""]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (ints(1, 2, 3), ShapeError),
        (ints(1), ShapeError),
        (ints(1, 2)[None], ShapeError),
        (np.int32(1), ShapeError),
        (np.array([1.0, 2.0]), TypeMismatchError),
        ([1, 2], TypeMismatchError),
        (None, TypeMismatchError),
        ("ab", TypeMismatchError),
        ([[1], [2, 3]], InputError),
        (object(), TypeMismatchError),
    ],
)
def test_values_that_do_not_fit(value: Any, error: type[Exception]) -> None:
    interpreter = copy_of(TensorType.INT32, (2,))
    with pytest.raises(error, match="t0"):
        interpreter.set_tensor(0, value)


TWICE = graph([tensor(), tensor(), tensor()], [("COPY", [0], [1]), ("COPY", [1], [2])], [0], [2])


def test_outputs_do_not_follow_later_inputs() -> None:
    """COPY gives its input itself; what the caller sees must not be that memory."""
    interpreter = ready(TWICE)
    interpreter.set_tensor(0, ints(1, 2))
    interpreter.invoke()
    view = interpreter.tensor(2)()
    interpreter.set_tensor(0, ints(8, 9))
    interpreter.tensor(0)()[...] = 7
    assert interpreter.get_tensor(2).tolist() == view.tolist() == [1, 2]


def test_results_belong_to_the_caller() -> None:
    interpreter = ready(TWICE)
    interpreter.set_tensor(0, ints(1, 2))
    interpreter.invoke()
    interpreter.get_tensor(2)[...] = 0
    interpreter.get_tensor(0)[...] = 0
    assert interpreter.get_tensor(2).tolist() == interpreter.get_tensor(0).tolist() == [1, 2]
    interpreter.tensor(2)()[...] = 0  # LiteRT's memory of outputs can be written to, until the next run
    assert interpreter.get_tensor(2).tolist() == [0, 0]
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [1, 2]
    strict = ready(TWICE, strict=True)
    strict.invoke()
    with pytest.raises(ValueError):
        strict.tensor(2)()[...] = 0


def test_constants_cannot_be_written_to() -> None:
    model = graph([tensor(), tensor(buffer=1), tensor()], [("ADD", [0, 1], [2])], [0], [2], [ints(5, 6).tobytes()])
    interpreter = ready(model)
    with pytest.raises(ValueError):
        interpreter.tensor(1)()[...] = 0
    with pytest.raises(InputError):
        interpreter.set_tensor(1, ints(0, 0))
    interpreter.get_tensor(1)[...] = 0
    interpreter.set_tensor(0, ints(1, 1))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [6, 7]


def test_an_array_from_tensor_follows_the_input() -> None:
    interpreter = ready(TWICE)
    get = interpreter.tensor(0)
    get()[...] = [3, 4]
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [3, 4]
    assert get().tolist() == [3, 4]


def test_intermediate_tensors_are_kept_on_request_only() -> None:
    plain, keeping = ready(TWICE, strict=True), ready(TWICE, strict=True, experimental_preserve_all_tensors=True)
    for interpreter in (plain, keeping):
        interpreter.set_tensor(0, ints(1, 2))
        with pytest.raises(StateError, match="invoke"):
            interpreter.get_tensor(1)
        interpreter.invoke()
    with pytest.raises(StateError, match="experimental_preserve_all_tensors"):
        plain.get_tensor(1)
    assert keeping.get_tensor(1).tolist() == [1, 2]


def test_what_a_run_did_not_keep_reads_as_zeros() -> None:
    interpreter = ready(TWICE)
    assert interpreter.get_tensor(2).tolist() == [0, 0]
    interpreter.set_tensor(0, ints(1, 2))
    interpreter.invoke()
    with pytest.warns(UserWarning, match="experimental_preserve_all_tensors"):
        assert interpreter.get_tensor(1).tolist() == [0, 0]
    assert interpreter.get_tensor(2).tolist() == [1, 2]


def test_what_no_operator_reads_stays_in_memory() -> None:
    """LiteRT releases a tensor after its last reader, so that one without any is there after each run."""
    model = g.build(
        g.Graph(
            [T("float32", (3,))] * 3, inputs=(0,), outputs=(2,), ops=[g.Op("ABS", (0,), (1,)), g.Op("NEG", (0,), (2,))]
        )
    )
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    ours = tflq.Interpreter(model_content=model, strict=True)
    theirs = litert.Interpreter(model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    for number in range(4):  # from the third on as a routine
        for interpreter in (ours, theirs):
            interpreter.set_tensor(0, np.float32([-1, 2, -3]) + np.float32(number))
            interpreter.invoke()
        for index in range(3):
            assert ours.get_tensor(index).tolist() == theirs.get_tensor(index).tolist()


def test_calls_out_of_order() -> None:
    interpreter = tflq.Interpreter(model_content=TWICE, profile=PROFILE)
    for call in (interpreter.invoke, lambda: interpreter.get_tensor(0), lambda: interpreter.tensor(0)()):
        with pytest.raises(StateError, match="allocate_tensors"):
            call()


def test_resizing_asks_for_a_new_allocation_and_keeps_other_inputs() -> None:
    model = graph([tensor(), tensor(), tensor()], [("ADD", [0, 1], [2])], [0, 1], [2])
    interpreter = ready(model)
    interpreter.set_tensor(1, ints(10, 20))
    interpreter.resize_tensor_input(0, (1,))
    with pytest.raises(StateError):
        interpreter.invoke()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ints(5))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [15, 25]


@pytest.mark.parametrize("shape", [[-1], [[1]], 3, "ab", [1.5], [None], [[1], [1, 2]]])
def test_shapes_that_are_none(shape: Any) -> None:
    with pytest.raises(InputError):
        ready(TWICE).resize_tensor_input(0, shape)


def test_only_inputs_are_resized() -> None:
    with pytest.raises(InputError):
        ready(TWICE).resize_tensor_input(2, [3])
    with pytest.raises(InputError, match="only inputs can be resized"):
        ready(TWICE).resize_tensor_input(3, [3])


def test_strict_resizing_follows_the_signature() -> None:
    model = graph([tensor(shape=(1, 4), shape_signature=(-1, 4)), tensor()], [("COPY", [0], [1])], [0], [1])
    interpreter = ready(model)
    interpreter.resize_tensor_input(0, [6, 4], strict=True)
    interpreter.allocate_tensors()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [6, 4]
    for shape in ([6, 5], [6], [6, 4, 1]):
        with pytest.raises(ResizeError, match="leaves open"):
            interpreter.resize_tensor_input(0, shape, strict=True)


VARIABLE = graph(
    [
        tensor(TensorType.INT8),
        tensor(TensorType.INT8, is_variable=True, quantization=quantized(1, -3)),
        tensor(TensorType.INT8),
    ],
    [("ACCUMULATE", [0, 1], [2])],
    [0],
    [2],
)


def test_variables() -> None:
    interpreter = ready(VARIABLE)
    interpreter.set_tensor(0, np.array([1, 2], np.int8))
    assert interpreter.get_tensor(1).tolist() == [-3, -3]
    interpreter.invoke()
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == interpreter.get_tensor(2).tolist() == [-1, 1]
    interpreter.allocate_tensors()  # nothing has changed, so nothing is reset
    assert interpreter.get_tensor(1).tolist() == [-1, 1]
    interpreter.reset_all_variables()
    assert interpreter.get_tensor(1).tolist() == [-3, -3]
    assert interpreter.get_tensor(2).tolist() == [-1, 1]


def test_variables_can_be_set_without_touching_outputs() -> None:
    """ACCUMULATE gives one array as output and as new value."""
    interpreter = ready(VARIABLE)
    interpreter.invoke()
    interpreter.set_tensor(1, np.array([50, 60], np.int8))
    interpreter.tensor(1)()[0] = 40
    assert interpreter.get_tensor(2).tolist() == [-3, -3]
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [40, 60]


def test_a_resize_resets_variables() -> None:
    interpreter = ready(VARIABLE)
    interpreter.set_tensor(0, np.array([1, 2], np.int8))
    interpreter.invoke()
    interpreter.resize_tensor_input(0, [1])
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(1).tolist() == [-3, -3]


def test_a_failed_allocation_leaves_the_interpreter_unallocated() -> None:
    model = graph([tensor(), tensor()], [("NOTHING", [0], [1])], [0], [1])
    interpreter = tflq.Interpreter(model_content=model, profile=PROFILE)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="NOTHING"):
            interpreter.allocate_tensors()
    with pytest.raises(StateError):
        interpreter.invoke()


def test_an_unmade_shape_shows_after_the_run() -> None:
    model = graph([tensor(shape=(3,)), tensor(shape=())], [("POSITIVE", [0], [1])], [0], [1])
    interpreter = ready(model)
    interpreter.set_tensor(0, ints(-1, 4, 5))
    interpreter.invoke()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [2]


SIGNED = graph(
    [tensor(), tensor(), tensor()],
    [("ADD", [0, 1], [2])],
    [0, 1],
    [2],
    signatures=[SignatureDef("sum", (("x", 0), ("a", 1)), (("total", 2),))],
)


def test_signature_runner() -> None:
    interpreter = tflq.Interpreter(model_content=SIGNED, profile=PROFILE)
    assert interpreter.get_signature_list() == {"sum": {"inputs": ["a", "x"], "outputs": ["total"]}}
    run = interpreter.get_signature_runner()
    assert {name: value.tolist() for name, value in run(x=ints(1, 2), a=ints(3, 4)).items()} == {"total": [4, 6]}
    assert run(x=ints(1, 2, 3), a=ints(3, 4, 5))["total"].tolist() == [4, 6, 8]
    assert list(run.get_input_details()) == ["a", "x"]
    assert run.get_output_details()["total"]["index"] == 2


def test_signature_runner_refusals() -> None:
    interpreter = tflq.Interpreter(model_content=SIGNED, profile=PROFILE)
    run = interpreter.get_signature_runner("sum")
    with pytest.raises(InputError, match="expected 2 vs provided 1"):
        run(x=ints(1))
    with pytest.raises(UnknownNameError, match="a, x"):
        run(x=ints(1), b=ints(1))
    with pytest.raises(TypeMismatchError):
        run(x=[1], a=ints(1))
    with pytest.raises(UnknownNameError, match="sum"):
        interpreter.get_signature_runner("product")
    with pytest.raises(InputError):
        ready(TWICE).get_signature_runner()


def test_strings_of_other_packages_are_refused_as_in_litert() -> None:
    """A tensor of TensorFlow, say, which NumPy could make an array of."""

    class Strings:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array(["a", "b"])

    interpreter = copy_of(TensorType.STRING, (2,))
    with pytest.raises(ValueError, match=r"^Passed in value type is not a numpy array, got type Strings"):
        interpreter.set_tensor(0, Strings())
