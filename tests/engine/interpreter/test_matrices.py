"""BATCH_MATMUL of floats by a dequantized matrix under XNNPACK: the codes are read where nothing else reads floats."""

from __future__ import annotations

from typing import Any

import numpy as np

import tflq
from support.each import each
from support.graphs import Graph, Op, build
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, litert
from tflq.comparison.results import Verdict
from tflq.comparison.verification.verifying import verify
from tflq.engine.interpreter.fusions import fusions
from tflq.engine.profiles import by_name
from tflq.model.ir import view
from tflq.proof import Word, prove

Array = np.ndarray[Any, Any]


def model(adjoint: bool = False, zero_point: int = 0, kind: str = "int8", also: bool = False) -> bytes:
    """DEQUANTIZE of a matrix, then BATCH_MATMUL; `also` gives the dequantized matrix out."""
    shape = (2, 7, 40) if adjoint else (2, 40, 7)
    tensors = [
        T("float32", (2, 5, 40)),
        T(kind, shape, scale=[0.02], zero_point=[zero_point]),
        T("float32", shape),
        T("float32", (2, 5, 7)),
    ]
    options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": adjoint})
    ops = [Op("DEQUANTIZE", [1], [2], version=2), Op("BATCH_MATMUL", [0, 2], [3], options)]
    return build(Graph(tensors, [0, 1], [3, 2] if also else [3], ops))


def inputs(seed: int, kind: str = "int8", adjoint: bool = False, tiny: bool = False) -> list[Array]:
    rng = np.random.default_rng([8, seed])
    low = -128 if kind == "int8" else 0
    x = (rng.standard_normal((2, 5, 40)) * (1e-37 if tiny else 3)).astype(np.float32)
    return [x, rng.integers(low, low + 256, (2, 7, 40) if adjoint else (2, 40, 7)).astype(kind)]


@has_xnnpack_profile
@each("seed", range(6))
@each(
    "form",
    [{}, {"adjoint": True}, {"zero_point": 3}, {"kind": "uint8"}, {"also": True}],
    ids=["plain", "adjoint", "zero point", "uint8", "given out"],
)
def test_products_are_the_runtimes(form: dict[str, Any], seed: int) -> None:
    file = model(**form)
    fed = inputs(seed, form.get("kind", "int8"), form.get("adjoint", False), tiny=seed == 5)
    assert_same(run(file, fed, XNNPACK or ""), litert(file, fed, "BUILTIN"), str(form))


def test_where_codes_are_read() -> None:
    own, earlier = by_name("litert-xnnpack"), by_name("litert-2.0-xnnpack")
    assert fusions(view(tflq.load(model())), own).codes == {1: 1}
    assert fusions(view(tflq.load(model())), own).together[1] == (0,)
    assert fusions(view(tflq.load(model())), earlier).codes == {}
    for form in ({"zero_point": 3}, {"kind": "uint8"}, {"also": True}):
        assert fusions(view(tflq.load(model(**form))), own).codes == {}  # type: ignore[arg-type]


@has_xnnpack_profile
def test_verdicts_know_both_ways() -> None:
    assert verify(model(), "litert-xnnpack").verdict == Verdict.SAME  # all tensors are outputs there
    proof = prove(model(), ["litert-ref", "litert-xnnpack"]).operators[1]
    assert (proof.word, proof.methods) == (Word.UNDECIDED, ("litert-xnnpack computes it in one go with operator 0",))
