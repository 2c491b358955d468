"""Nothing is written that the reader refuses, or reads as something else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from support import flatbuf_models as models
from support.flatbuf_structure import differences
from support.model_values import with_anything, with_odd_values
from tflq.errors import FormatError, LimitError, TflqError
from tflq.model.flatbuf import ReadLimits, read, write
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    SignatureDef,
    Subgraph,
    TensorSpec,
    TensorType,
    UnknownField,
)

BASES = [models.leaky_relu(), models.convolution(), models.rich(), models.outside(), *models.option_models()]
NAMES = ["leaky_relu", "convolution", "rich", "outside", "options", "options_2"]
#: Variants of each: more of the small ones.
ROUNDS = [300, 300, 100, 300, 30, 60]
BASES_AND_ROUNDS = pytest.mark.parametrize(("base", "rounds"), [*zip(BASES, ROUNDS, strict=True)], ids=NAMES)


@BASES_AND_ROUNDS
def test_odd_values_are_refused_or_read_as_they_were_written(base: Model, rounds: int) -> None:
    written = 0
    for seed in range(rounds):
        model = with_odd_values(base, seed)
        try:
            content = write(model)
        except TflqError:
            continue
        written += 1
        assert not [line for line in differences(model, read(content)) if not _says_nothing(line)], seed
        for max_inside in (0,) if seed % 10 == 0 else ():
            read(write(model, max_inside=max_inside))
    assert rounds / 4 < written < rounds


def _says_nothing(difference: str) -> bool:
    """Where bytes lie that are not there; and whether eight bytes of an unknown field could be an offset, which depends
    on the file around them.
    """
    return difference.endswith("external: True != False") or "UnknownField" in difference


@BASES_AND_ROUNDS
def test_values_of_wrong_types_are_refused_or_can_be_read(base: Model, rounds: int) -> None:
    refused = 0
    for seed in range(rounds):
        try:
            write(with_anything(base, seed))  # which reads what it wrote
        except TflqError:
            refused += 1
    assert refused > rounds / 2


def test_a_file_that_the_reader_would_find_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.model.flatbuf.writer.read", partial(read, limits=ReadLimits(tables=3)))
    with pytest.raises(LimitError, match=r"the file would be refused: more than 3 tables"):
        write(models.convolution())


def _model(**fields: Any) -> Model:
    return Model(**{"version": 3, "operator_codes": (), "subgraphs": (), "buffers": (), **fields})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (_model(operator_codes=(OperatorCode(0, "CONV_2D"),)), "0 is ADD"),
        (_model(metadata_buffer=((1, 2), (3, 4))), "not a list of numbers"),
        (_model(buffers=(Buffer(np.zeros((2, 2), np.uint8)),)), "not a list of numbers"),
        (_model(signature_defs=(SignatureDef("s", ((None, 1),), ()),)), "without a name"),  # type: ignore[arg-type]
        (_model(description=5), "does not fit"),
        (_model(buffers=7), "does not fit"),
        (_model(unknown=(UnknownField("Model", 2, bytes(8), True),)), "a number that is taken"),
        (_model(unknown=(UnknownField("Model", 1 << 30, bytes(8), True),)), "a number that .* cannot be"),
        (_model(unknown=(UnknownField("Model", 50, bytes(8), True),) * 2), "a number that is taken"),
        (_model(unknown=(5,)), "is not an unknown field"),
    ],
)
def test_values_that_a_file_cannot_hold(broken: Model, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        write(broken)


def test_an_option_is_rounded_to_the_float_that_the_file_holds() -> None:
    options = models.record("LeakyReluOptions", alpha=0.1)
    graph = Subgraph((), (), (), (Operator(0, (), (), options),))
    content = write(_model(operator_codes=(models.code("LEAKY_RELU"),), subgraphs=(graph,)))
    (operator,) = read(content).subgraphs[0].operators
    assert operator.options is not None
    assert operator.options["alpha"] == np.float32(0.1)


def test_equal_scales_and_zero_points_are_stored_once() -> None:
    def file(*points: int) -> bytes:
        quantizations = [Quantization(np.full(64, 0.5 + p, np.float32), np.full(64, p), 0) for p in points]
        tensors = tuple(TensorSpec(f"t{k}", TensorType.INT8, (64,), 0, q) for k, q in enumerate(quantizations))
        base = models.leaky_relu()
        return write(
            replace(base, subgraphs=(replace(base.subgraphs[0], tensors=tensors, inputs=(), outputs=(), operators=()),))
        )

    apart, alike = file(1, 2, 3), file(2, 2, 2)
    assert len(apart) - len(alike) == 2 * 64 * (4 + 8) + 2 * 2 * 4  # elements and lengths
    for tensor in read(alike).subgraphs[0].tensors:
        assert tensor.quantization is not None
        np.testing.assert_array_equal(tensor.quantization.zero_point, np.full(64, 2))
