"""The protocol of targets (docs/target-protocol.md) for a runtime that Python can call. Needs NumPy only."""

import os
import sys

import numpy as np


def serve(load):
    """Do every case of the folder in the last argument.

    `load(path)` returns a function from the list of a model's inputs to the list of its outputs: arrays, or the bytes
    of arrays. An exception is a refusal, with its text as the reason.
    """
    folder = sys.argv[-1]
    with open(os.path.join(folder, "cases.txt")) as listed:
        names = listed.read().split()
    for name in names:
        place = os.path.join(folder, name)
        try:
            outputs = _done(load, place)
        except Exception as error:
            with open(os.path.join(place, "refused.txt"), "w") as text:
                text.write(" ".join(f"{type(error).__name__}: {error}".split())[:300])
            continue
        for file, value in outputs.items():
            value.tofile(os.path.join(place, file))


def _done(load, place):
    with open(os.path.join(place, "case.txt")) as text:
        rows = [line.split() for line in text]
    samples = next(int(words[1]) for words in rows if words[0] == "samples")
    shaped = [(words[0], np.dtype(words[1]), tuple(map(int, words[2:]))) for words in rows if words[0] != "samples"]
    inputs = [(dtype, shape) for kind, dtype, shape in shaped if kind == "input"]
    wanted = [(dtype, shape) for kind, dtype, shape in shaped if kind == "output"]
    run = load(os.path.join(place, "model.tflite"))
    outputs = {}
    for number in range(samples):
        given = []
        for position, (dtype, shape) in enumerate(inputs):
            data = np.fromfile(os.path.join(place, f"in{number}_{position}.bin"), dtype)
            given.append(data.reshape(shape))
        made = list(run(given))
        for position, (dtype, shape) in enumerate(wanted):
            value = made[position]
            value = np.frombuffer(value, dtype) if isinstance(value, bytes) else np.asarray(value)
            if value.dtype != dtype or value.size != int(np.prod(shape)):
                raise TypeError(f"output {position} is {value.dtype} {value.shape}, not {dtype} {shape}")
            outputs[f"out{number}_{position}.bin"] = np.ascontiguousarray(value)
    return outputs
