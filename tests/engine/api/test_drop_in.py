"""The same calls on tflq and on LiteRT: the same values, or the same kind of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq.errors import InputError

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

KINDS = (ValueError, RuntimeError, TypeError, NotImplementedError)

Scenario = Callable[[Any], Any]


def model() -> str:
    return str(next((suites.ROOT / "golden" / "singleop").rglob("leaky*.tflite")))


def ours(**options: Any) -> Any:
    return tflq.Interpreter(model(), **options)


def theirs(**options: Any) -> Any:
    resolver = litert.OpResolverType.BUILTIN_REF
    return litert.Interpreter(model(), experimental_op_resolver_type=resolver, **options)


def outcome(scenario: Scenario, interpreter: Any) -> Any:
    """What the scenario gives, or which of the built-in kinds of error it ends with."""
    try:
        return scenario(interpreter)
    except KINDS as error:
        return {kind for kind in KINDS if isinstance(error, kind)}


def allocated(scenario: Scenario) -> Scenario:
    def run(interpreter: Any) -> Any:
        interpreter.allocate_tensors()
        return scenario(interpreter)

    return run


def value_for(interpreter: Any, shape: Any = None, dtype: Any = None) -> Any:
    detail = interpreter.get_input_details()[0]
    shape = tuple(detail["shape"]) if shape is None else shape
    count = int(np.prod(shape))
    return (np.arange(count) % 251).astype(dtype or detail["dtype"]).reshape(shape)


def output(interpreter: Any) -> Any:
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def run_once(i: Any) -> Any:
    i.set_tensor(0, value_for(i))
    i.invoke()
    return output(i)


def run_resized(i: Any) -> Any:
    shape = [3, *i.get_input_details()[0]["shape"][1:]]
    i.resize_tensor_input(0, shape)
    before = i.get_input_details()[0]["shape"].tolist()
    i.allocate_tensors()
    return before, run_once(i), i.get_output_details()[0]["shape"].tolist()


def resize_and_invoke(i: Any) -> Any:
    i.resize_tensor_input(0, [3, *i.get_input_details()[0]["shape"][1:]])
    i.invoke()


def resize_to_same_and_invoke(i: Any) -> Any:
    i.set_tensor(0, value_for(i))
    i.resize_tensor_input(0, i.get_input_details()[0]["shape"])
    i.invoke()
    return output(i)


def resize_strictly(i: Any) -> Any:
    i.resize_tensor_input(0, [7, *i.get_input_details()[0]["shape"][1:]], strict=True)


def write_through_view(i: Any) -> Any:
    i.tensor(0)()[...] = value_for(i)
    i.invoke()
    return np.array(i.tensor(i.get_output_details()[0]["index"])())


def set_keeps_its_copy(i: Any) -> Any:
    value = value_for(i)
    i.set_tensor(0, value)
    value[...] = 0
    i.invoke()
    return i.get_tensor(0), output(i)


def got_array_is_a_copy(i: Any) -> Any:
    first = run_once(i)
    first[...] = 0
    return output(i)


def allocate_again(i: Any) -> Any:
    i.set_tensor(0, value_for(i))
    i.allocate_tensors()
    i.invoke()
    return output(i)


def hold_an_array(scenario: Scenario) -> Scenario:
    def run(i: Any) -> Any:
        held = i.tensor(0)()[..., :1]  # a slice counts as well
        result = outcome(scenario, i)
        del held
        return result, i._safe_to_run()

    return run


BEFORE_ALLOCATION: list[Scenario] = [
    lambda i: i.invoke(),
    lambda i: output(i),
    lambda i: i.get_tensor(1),
    lambda i: i._safe_to_run(),
    lambda i: i._get_full_signature_list(),
    lambda i: i._get_tensor_details(0, 0)["name"],
    lambda i: i._signature_defs,
    lambda i: i._delegates,
    lambda i: i.get_tensor(0),
    lambda i: i.set_tensor(0, value_for(i)),
    lambda i: i.tensor(0)(),
    lambda i: i.reset_all_variables(),
    lambda i: i.get_signature_list(),
    lambda i: i.get_signature_runner(),
    lambda i: i.get_signature_runner("none"),
    lambda i: i.get_tensor_details(3),
    lambda i: i.get_tensor_details(-1),
    lambda i: i._get_op_details(77),
    lambda i: i.num_subgraphs(),
    lambda i: i.allocate_tensors(),
]

AFTER_ALLOCATION: list[Scenario] = [
    run_once,
    run_resized,
    resize_to_same_and_invoke,
    write_through_view,
    set_keeps_its_copy,
    got_array_is_a_copy,
    allocate_again,
    resize_and_invoke,
    hold_an_array(lambda i: i.invoke()),
    hold_an_array(lambda i: i.allocate_tensors()),
    hold_an_array(lambda i: i.resize_tensor_input(0, [1])),
    hold_an_array(lambda i: i.get_tensor(0).shape),
    hold_an_array(lambda i: i._safe_to_run()),
    lambda i: output(i).shape,
    lambda i: i.set_tensor(i.get_output_details()[0]["index"], np.zeros_like(output(i))),
    lambda i: i.set_tensor(0, value_for(i, dtype=np.float64)),
    lambda i: i.set_tensor(0, value_for(i, dtype=np.int16)),
    lambda i: i.set_tensor(0, value_for(i)[None]),
    lambda i: i.set_tensor(0, value_for(i)[..., :-1]),
    lambda i: i.set_tensor(0, value_for(i).tolist()),
    lambda i: i.set_tensor(0, None),
    lambda i: i.set_tensor(0, "text"),
    lambda i: i.set_tensor(0, [[1], [1, 2]]),
    lambda i: i.set_tensor(np.int64(0), value_for(i)),
    lambda i: i.set_tensor(99, value_for(i)),
    lambda i: i.set_tensor(-1, value_for(i)),
    lambda i: i.set_tensor("0", value_for(i)),
    lambda i: i.set_tensor(0.0, value_for(i)),
    lambda i: i.set_tensor(0, value_for(i)[..., ::-1]),
    lambda i: i.get_tensor(99),
    lambda i: i.get_tensor(-1),
    lambda i: i.get_tensor("0"),
    lambda i: i.get_tensor(0, 3),
    lambda i: i.get_tensor(0, -1),
    lambda i: i.get_tensor(0, subgraph_index=0).shape,
    lambda i: i.resize_tensor_input(99, [1]),
    lambda i: i.resize_tensor_input(0, [[1, 2]]),
    lambda i: i.resize_tensor_input(0, 3),
    lambda i: i.resize_tensor_input(0, "text"),
]


@each("scenario", range(len(BEFORE_ALLOCATION)))
def test_before_allocation(scenario: int) -> None:
    call = BEFORE_ALLOCATION[scenario]
    assert_same_outcome(outcome(call, ours()), outcome(call, theirs()))


@each("scenario", range(len(AFTER_ALLOCATION)))
def test_after_allocation(scenario: int) -> None:
    call = allocated(AFTER_ALLOCATION[scenario])
    assert_same_outcome(outcome(call, ours()), outcome(call, theirs()))


@pytest.mark.parametrize("scenario", [lambda i: resize_strictly(i), lambda i: i.resize_tensor_input(0, [-1, 3])])
def test_resizes_that_both_refuse(scenario: Scenario) -> None:
    """LiteRT's documentation promises a ValueError; what it raises is a RuntimeError. tflq's error is both."""
    assert outcome(scenario, ours()) == {ValueError, RuntimeError}
    assert outcome(scenario, theirs()) == {RuntimeError}


def assert_same_outcome(got: Any, want: Any) -> None:
    if isinstance(want, set):
        assert isinstance(got, set)
        assert want <= got
    elif isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same_outcome(a, b)
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.flags.writeable) == (want.dtype, want.shape, want.flags.writeable)
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want


def test_constructor_refuses_what_litert_refuses() -> None:
    with pytest.raises(ValueError):
        tflq.Interpreter()
    with pytest.raises(ValueError):
        tflq.Interpreter(model(), b"TFL3")
    with pytest.raises(ValueError):
        tflq.Interpreter(model_content=b"no model")
    with pytest.raises(ValueError):
        ours(num_threads=0)
    with pytest.raises(ValueError):
        ours(num_threads=1.5)
    with pytest.raises(ValueError):
        ours(experimental_op_resolver_type="BUILTIN_REF")
    with pytest.raises(TypeError):
        tflq.Interpreter(5)  # type: ignore[arg-type]


def test_every_keyword_of_litert_is_accepted() -> None:
    import inspect

    names = [n for n in inspect.signature(litert.Interpreter.__init__).parameters if n != "self"]
    assert list(inspect.signature(tflq.Interpreter.__init__).parameters)[1 : len(names) + 1] == names


def test_litert_enum_is_understood() -> None:
    ours(experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF).allocate_tensors()
    assert ours(experimental_op_resolver_type=litert.OpResolverType.BUILTIN).profile.name == "litert-xnnpack"


def test_has_every_public_method_of_litert() -> None:
    names = {n for n in dir(litert.Interpreter) if not n.startswith("_")}
    assert names <= set(dir(tflq.Interpreter))


def test_ragged_rows_have_a_typed_error() -> None:
    runner = tflq.Interpreter(str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"))
    signature = runner.get_signature_runner()
    (name,) = signature.get_input_details()
    with pytest.raises(InputError, match="rows differ"):
        signature(**{name: [[1, 2], [3]]})
