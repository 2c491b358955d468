"""A target of tflq's conformance suites. It is complete: it runs RESHAPE, and refuses everything else.

    tflq conform make -o suite.npz --level smoke
    tflq conform run suite.npz --target "python my_target.py"

Replace `run_model` by a call of your system; the rest is the protocol. It needs Python 3.9.
"""

from __future__ import annotations

import os
import sys

Shape = tuple[int, ...]
#: Type and shape of a tensor, and the same with its bytes.
Spec = tuple[str, Shape]
Value = tuple[str, Shape, bytes]

#: Bytes of an element of each type.
SIZES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "float16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8}


class Refused(Exception):
    """The system does not support a model. The text is the reason, which reports group: keep it general."""


def run_model(model: str, operator: str, inputs: list[Value], outputs: list[Spec]) -> list[bytes]:
    """Run a model once; return the bytes of its outputs, little endian, in C order.

    `model` is the path of the .tflite file, `operator` the lower-case name of its one operator. `inputs` is a list of
    (type, shape, bytes), `outputs` a list of (type, shape). Raise Refused if your system does not support the model.
    """
    if operator != "reshape" or len(inputs) != 1 or len(outputs) != 1:
        raise Refused(f"no kernel for {operator}")
    (kind, shape, data), (out_kind, out_shape) = inputs[0], outputs[0]
    if (kind, elements(shape)) != (out_kind, elements(out_shape)):
        raise Refused("RESHAPE to another number of elements")
    return [data]


def elements(shape: Shape) -> int:
    """Return the number of elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def answer(place: str) -> None:
    """Do one case: read case.txt and in0_0.bin ..., write out0_0.bin ..., each sample on its own."""
    samples, inputs, outputs = read_description(place)
    if not outputs:
        raise Refused("a model that a target must refuse")  # its operands do not fit each other: refuse it by its file
    operator = os.path.basename(place).partition("-")[2]  # cases are named NUMBER-operator
    results = {}
    for sample in range(samples):
        given = []
        for number, (kind, shape) in enumerate(inputs):
            with open(os.path.join(place, f"in{sample}_{number}.bin"), "rb") as file:
                given.append((kind, shape, file.read()))
        made = run_model(os.path.join(place, "model.tflite"), operator, given, outputs)
        for number, (kind, shape) in enumerate(outputs):
            data = made[number]
            if len(data) != elements(shape) * SIZES[kind]:
                raise ValueError(f"output {number} has {len(data)} bytes, not {kind} {shape}")
            results[f"out{sample}_{number}.bin"] = data
    for name, data in results.items():  # last, so that a failure leaves no half an answer
        with open(os.path.join(place, name), "wb") as file:
            file.write(data)


def read_description(place: str) -> tuple[int, list[Spec], list[Spec]]:
    """Return the number of samples, and (type, shape) of each input and each output."""
    samples = 0
    inputs: list[Spec] = []
    outputs: list[Spec] = []
    with open(os.path.join(place, "case.txt")) as text:
        for line in text:
            kind, first, *rest = line.split()
            if kind == "samples":
                samples = int(first)
            else:
                (inputs if kind == "input" else outputs).append((first, tuple(map(int, rest))))
    return samples, inputs, outputs


def main(folder: str) -> None:
    """Do every case that the folder lists. A crash costs one case: tflq then calls again for the cases after it."""
    with open(os.path.join(folder, "cases.txt")) as listed:
        names = listed.read().split()
    for name in names:
        place = os.path.join(folder, name)
        try:
            answer(place)
        except Refused as reason:
            with open(os.path.join(place, "refused.txt"), "w") as text:
                text.write(" ".join(str(reason).split()))


if __name__ == "__main__":
    main(sys.argv[-1])
