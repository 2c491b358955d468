"""The catalogue of reference kernels: every file is named, under the operators that it holds."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import tflq.kernels.reference as package
from tflq.kernels.leaky_relu.reference import KERNELS
from tflq.kernels.reference.registry import REFERENCE
from tflq.kernels.table import catalogue, table

FILES = [module.name for module in pkgutil.iter_modules(package.__path__) if module.name != "registry"]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_named_under_its_operators(name: str) -> None:
    for kernel in import_module(f"{package.__name__}.{name}").KERNELS:
        assert kernel in REFERENCE[kernel.op]


def test_every_operator_has_rows() -> None:
    assert all(REFERENCE[op] for op in REFERENCE)
    assert list(REFERENCE) == sorted(REFERENCE, key=str.lower)


def test_an_unknown_operator_is_a_key_error() -> None:
    assert "NO_SUCH" not in REFERENCE
    with pytest.raises(KeyError):
        catalogue("tflq.kernels.reference", {})["ADD"]


def test_two_rows_with_the_same_types_are_refused() -> None:
    with pytest.raises(ValueError, match="two kernels for LEAKY_RELU"):
        table(KERNELS, KERNELS)


def test_an_overlay_puts_its_rows_first_and_leaves_operators_out() -> None:
    ours = table(KERNELS[:1])
    over = REFERENCE.overlaid(ours).only(lambda op: op != "ADD")
    assert over["LEAKY_RELU"] == KERNELS
    assert over["SUB"] == REFERENCE["SUB"]
    assert "ADD" not in over
    assert len(over) == len(REFERENCE) - 1
