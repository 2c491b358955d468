"""The adapter against recorded outputs of the same runtime."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from support import suites
from tflq.engine.runtimes import by_name
from tflq.errors import RuntimeFailed
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Quantization, Record, Subgraph, TensorSpec, TensorType

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

SINGLE = suites.ROOT / "golden" / "singleop"
INDEX = json.loads((SINGLE / "index.json").read_text())


def recorded(entry: dict[str, str], golden: Path) -> tuple[list[tuple[np.ndarray, ...]], list[list[np.ndarray]]]:
    arrays = dict(np.load(golden, allow_pickle=False))
    count = len({key.split("_")[0] for key in arrays})

    def values(k: int, kind: str) -> list[np.ndarray]:
        return [arrays[f"s{k}_{kind}{i}"] for i in range(sum(key.startswith(f"s{k}_{kind}") for key in arrays))]

    return [tuple(values(k, "in")) for k in range(count)], [values(k, "out") for k in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("entry", INDEX[::20], ids=[Path(e["model"]).stem for e in INDEX[::20]])
def test_reference_outputs_are_the_recorded_ones(entry: dict[str, str]) -> None:
    samples, wanted = recorded(entry, SINGLE / entry["golden"])
    execution = by_name("litert-ref").run([(SINGLE / entry["model"]).read_bytes()] * 2, samples)
    for outputs in execution.outputs:
        for got, want in zip(outputs, wanted, strict=True):
            assert [(v.dtype, v.tobytes()) for v in got] == [(v.dtype, v.tobytes()) for v in want]


def test_a_run_says_exactly_what_ran() -> None:
    entry = next(e for e in INDEX if "conv_i8" in e["model"])
    samples, _ = recorded(entry, SINGLE / entry["golden"])
    model = (SINGLE / entry["model"]).read_bytes()
    plain = by_name("litert-ref").run([model], samples[:1]).description
    delegated = by_name("litert-xnnpack", threads=2).run([model], samples[:1]).description
    assert (plain.package, plain.resolver, plain.threads) == ("ai-edge-litert", "BUILTIN_REF", 1)
    assert (plain.delegate, plain.delegated) == ("", (0,))
    assert (delegated.resolver, delegated.delegate, delegated.threads) == ("BUILTIN", "XNNPACK", 2)
    assert delegated.delegated == (1,)
    assert plain.version == by_name("litert-ref").describe().version


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_model_that_aborts_the_runtime_is_a_result() -> None:
    """The fixed-point softmax checks that its sum of exponentials stays below 512: 600 equal classes abort it."""
    scale, zero = np.float32([1e-4]), np.int64([0])
    out = Quantization(np.float32([1 / 256]), np.int64([-128]))
    model = Model(
        3,
        (OperatorCode(25, "SOFTMAX", 2),),
        (
            Subgraph(
                (
                    TensorSpec("x", TensorType.INT8, (1, 600), 0, Quantization(scale, zero)),
                    TensorSpec("y", TensorType.INT8, (1, 600), 0, out),
                ),
                (0,),
                (1,),
                (Operator(0, (0,), (1,), Record("SoftmaxOptions", {"beta": 1.0})),),
            ),
        ),
        (Buffer(),),
    )
    from tflq.engine.api.files import save

    with pytest.raises(RuntimeFailed, match=r"aborted with SIG.* while invoking of model 0, sample 0"):
        by_name("litert-ref").run([save(model)], [(np.zeros((1, 600), np.int8),)])
