"""One-operator models for kernel tests, run by tflq and by LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opfuzz.one_operator import Array, T, build, data_of, in_second_union
from support import noting, running
from support.running import run_once
from tflq.engine.api.interpreter import Interpreter
from tflq.model.ir import CARRIER, TensorType

__all__ = ["Array", "T", "build", "data_of", "in_second_union"]

#: LiteRT's resolvers: that of the reference kernels, and the full one, for operators which the former lacks.
REFERENCE, FULL = "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def tflq(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of tflq under its default profile; the same bits when operators are bound to their arrays."""
    interpreter = Interpreter(model_content=model)
    outputs = run_once(interpreter, inputs)
    interpreter.reset_all_variables()
    interpreter.invoke()
    if interpreter._session(0)._state.routine:
        for detail, value in zip(interpreter.get_output_details(), outputs, strict=True):
            assert _agree(np.array(interpreter.get_tensor(detail["index"])), value).all(), "bound"
    return outputs


def allocate(model: bytes) -> None:
    """Prepare a model under tflq's default profile without running it."""
    Interpreter(model_content=model).allocate_tensors()


def litert(model: bytes, inputs: Sequence[Array], resolver: str = REFERENCE) -> list[Array]:
    """Outputs of LiteRT's reference kernels, in this process: a model that makes it abort ends the test run."""
    return run_once(running.litert(model, resolver), inputs)


def assert_same(model: bytes, inputs: Sequence[Array], note: object = "", resolver: str = REFERENCE) -> int:
    """Compare both, bit by bit (NaN equals NaN); gives the number of elements compared."""
    sizes = []
    for number, (got, want) in enumerate(zip(tflq(model, inputs), litert(model, inputs, resolver), strict=True)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (note, number)
        same = _agree(got, want)
        if not same.all():
            index = np.unravel_index(int(np.argmin(same)), same.shape)
            raise AssertionError(
                f"{note}: output {number}: {np.count_nonzero(~same)} of {same.size} differ, first at {index}: "
                f"got {got[index]!r}, LiteRT {want[index]!r}, inputs {[x.reshape(-1)[:8] for x in inputs]}"
            )
        sizes.append(same.size)
    noting.note(model, sizes)
    return sum(sizes)


def _agree(got: Array, want: Array) -> Array:
    """Where bits are the same, or both are NaN."""
    same = _bits(got) == _bits(want)
    return same | (np.isnan(got) & np.isnan(want)) if got.dtype.kind in "fc" else np.asarray(same)


def _bits(x: Array) -> Array:
    unsigned = {"f": f"u{x.dtype.itemsize}", "c": f"V{x.dtype.itemsize}"}.get(x.dtype.kind)
    return np.ascontiguousarray(x).view(unsigned).reshape(x.shape) if unsigned else x


def draw(rng: np.random.Generator, tensor: T, low: float = -4.0, high: float = 4.0) -> Array:
    """Random values of a tensor's type: the full range of codes, or reals between `low` and `high`."""
    dtype = CARRIER[TensorType[tensor.type.upper()]]
    shape = tuple(tensor.shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)
