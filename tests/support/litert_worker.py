"""Run models in LiteRT, reference kernels: reads lines `model<TAB>golden`, answers each with the outputs' digest.

A program of its own, since LiteRT ends its process on some models.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np
from ai_edge_litert import interpreter as litert


def outputs(model: str, golden: dict[str, np.ndarray], sample: str) -> list[np.ndarray]:
    """Outputs for a recorded sample, in order, from a fresh interpreter."""
    reference = litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(model, num_threads=1, experimental_op_resolver_type=reference)
    for i, detail in enumerate(interpreter.get_input_details()):
        value = golden[f"{sample}_in{i}"]
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for i, detail in enumerate(interpreter.get_input_details()):
        interpreter.set_tensor(detail["index"], golden[f"{sample}_in{i}"])
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def recorded(golden: dict[str, np.ndarray], sample: str) -> list[np.ndarray]:
    names = sorted((n for n in golden if n.startswith(f"{sample}_out")), key=lambda n: int(n.split("_out")[1]))
    return [golden[name] for name in names]


def digest(arrays: list[np.ndarray]) -> str:
    """Dtypes, shapes and bytes; all NaNs count as one."""
    total = hashlib.sha256()
    for array in arrays:
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        strings = array.dtype.kind in "SO"
        content = repr([bytes(value) for value in array.ravel()]).encode() if strings else array.tobytes()
        total.update(f"{'string' if strings else array.dtype}{array.shape}".encode() + content)
    return total.hexdigest()


def answer(model: str, golden_path: str) -> str:
    golden = dict(np.load(golden_path, allow_pickle=False))
    samples = sorted({name.split("_")[0] for name in golden})
    try:
        got = [digest(outputs(model, golden, sample)) for sample in samples]
    except Exception as error:
        return f"error {error!r}".replace("\n", " ")
    return "same" if got == [digest(recorded(golden, sample)) for sample in samples] else f"differs {got}"


if __name__ == "__main__":
    for line in sys.stdin:
        print("answer:", answer(*line.rstrip("\n").split("\t")), flush=True)
