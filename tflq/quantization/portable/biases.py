"""Give every convolution and dense operator a bias: an odd one makes its accumulators odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.facts.rules import RULES
from tflq.model.ir import Buffer, Model, TensorSpec, TensorType, view, with_graph


def with_biases(model: Model) -> Model:
    """Return the float model with biases of zeros where operators with weights have none."""
    graph = view(model)
    tensors, buffers, operators = list(graph.tensors), list(model.buffers), list(graph.record.operators)
    for op in graph.ops:
        rule = RULES.get(op.name)
        weights = None if rule is None else rule.weights
        if weights is None or weights.bias is None or weights.axis is None or len(op.inputs) <= weights.weights:
            continue
        inputs = (*op.inputs, *(-1 for _ in range(weights.bias + 1 - len(op.inputs))))
        shape = graph.tensors[inputs[weights.weights]].shape if inputs[weights.weights] >= 0 else ()
        if inputs[weights.bias] >= 0 or len(shape) <= weights.axis:
            continue
        zeros = np.zeros(shape[weights.axis], np.float32)
        buffers.append(Buffer(zeros.view(np.uint8)))
        name = f"{graph.tensors[op.outputs[0]].name or op.name}/bias"
        tensors.append(TensorSpec(name, TensorType.FLOAT32, zeros.shape, len(buffers) - 1))
        filled = list(inputs)
        filled[weights.bias] = len(tensors) - 1
        operators[op.index] = replace(operators[op.index], inputs=tuple(filled))
    record = replace(graph.record, tensors=tuple(tensors), operators=tuple(operators))
    return replace(with_graph(model, record), buffers=tuple(buffers))
