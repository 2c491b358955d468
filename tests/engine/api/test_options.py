"""Constructor options: honoured, or refused with an error that names them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

import tflq
from support import suites
from support.each import each
from tflq.engine.profiles import PROFILES
from tflq.errors import InputError, LimitError, OptionError, UnknownNameError

PATH = next((suites.ROOT / "golden" / "singleop").rglob("add_i8_0.tflite"))


class Other(Enum):
    SOMETHING = 2


@each(
    ("name", "value"),
    [
        ("experimental_delegates", [object()]),
        ("experimental_default_delegate_latest_features", True),
        ("custom_op_registerers", ["Register"]),
        ("custom_op_registerers", {"MyOp": 3}),
        ("num_threads", 0),
        ("num_threads", -3),
        ("num_threads", "2"),
        ("num_threads", 1.0),
        ("num_threads", True),
        ("experimental_op_resolver_type", "BUILTIN_REF"),
        ("experimental_op_resolver_type", 4),
        ("experimental_op_resolver_type", True),
        ("experimental_op_resolver_type", Other.SOMETHING),
    ],
)
def test_refused(name: str, value: Any) -> None:
    with pytest.raises(OptionError) as error:
        tflq.Interpreter(str(PATH), **{name: value})
    assert error.value.name == name
    assert name in str(error.value)


@each(
    "options",
    [
        {"experimental_delegates": []},
        {"experimental_delegates": None},
        {"num_threads": 4},
        {"experimental_op_resolver_type": None},
        {"experimental_op_resolver_type": 2},
        {"experimental_op_resolver_type": tflq.OpResolverType.BUILTIN_REF},
        {"experimental_disable_delegate_clustering": True},
        {"experimental_compress_quantization_zero_points": True},
        {"experimental_disable_delegate_node_fusion": True},
        {"experimental_force_delegate_node_profiling": True},
        {"profile": "litert-ref"},
        {"profile": PROFILES["litert-ref"]},
    ],
)
def test_accepted(options: dict[str, Any]) -> None:
    interpreter = tflq.Interpreter(str(PATH), **options)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.profile is PROFILES["litert-ref"]


@pytest.mark.parametrize(
    ("resolver", "profile"),
    [
        ("AUTO", "litert-xnnpack"),
        ("BUILTIN", "litert-xnnpack"),
        ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-opt"),
        ("BUILTIN_REF", "litert-ref"),
    ],
)
def test_a_resolver_means_a_profile(resolver: str, profile: str) -> None:
    foreign = Enum("OpResolverType", "AUTO BUILTIN BUILTIN_REF BUILTIN_WITHOUT_DEFAULT_DELEGATES", start=0)
    for value in (tflq.OpResolverType[resolver], foreign[resolver], tflq.OpResolverType[resolver].value):
        assert tflq.Interpreter(str(PATH), experimental_op_resolver_type=value).profile.name == profile


def test_an_explicit_profile_wins_and_a_contradiction_is_named() -> None:
    with pytest.warns(UserWarning, match=r"BUILTIN means profile 'litert-xnnpack', but profile='tflm'"):
        interpreter = tflq.Interpreter(str(PATH), None, None, None, tflq.OpResolverType.BUILTIN, profile="tflm")
    assert interpreter.profile.name == "tflm"


def test_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="litert-ref"):
        tflq.Interpreter(str(PATH), profile="litert-reference")


@pytest.mark.parametrize("profile", [3, ["litert-ref"]])
def test_what_is_no_profile(profile: Any) -> None:
    with pytest.raises((UnknownNameError, TypeError)):
        tflq.Interpreter(str(PATH), profile=profile)


def test_memory_limit() -> None:
    interpreter = tflq.Interpreter(str(PATH), memory_limit=1000)
    with pytest.raises(LimitError, match="1000 bytes"):
        interpreter.allocate_tensors()
    with pytest.raises(TypeError):
        tflq.Interpreter(str(PATH), memory_limit="1 GiB")  # type: ignore[arg-type]


def test_one_model_and_only_one() -> None:
    with pytest.raises(InputError):
        tflq.Interpreter()
    with pytest.raises(InputError):
        tflq.Interpreter(str(PATH), PATH.read_bytes())
    with pytest.raises(TypeError, match="model_path"):
        tflq.Interpreter(model_content=str(PATH))
    with pytest.raises(TypeError, match="path"):
        tflq.Interpreter(PATH.read_bytes())


def test_a_loaded_model_can_be_the_content() -> None:
    model = tflq.load(PATH)
    assert len(tflq.Interpreter(model_content=model).get_input_details()) == 2
