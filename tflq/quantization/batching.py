"""Change a model with a batch of one so that it takes any number of samples along axis 0.

Constants in the file fix the batch if they hold shapes: RESHAPE to [1, 49, 3, 16]. Here the batch becomes -1. A shape
that lost the batch on the way, such as [49, 48] computed from [1, 49, 3, 16], gets it back in front: [-1, 49, 48].
FULLY_CONNECTED then keeps its dimensions. The caller must check that samples together give the same bits as samples
apart: axes count from the front, and operators may look at all rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.model.ir import Buffer, Model, Operator, OperatorView, TensorType, view, with_graph


def batchable(model: Model) -> Model:
    """Return the model with changed shape constants and options; tensors and operators keep their numbers."""
    graph = view(model)
    tensors, buffers, operators = list(graph.tensors), list(model.buffers), list[Operator]()
    for operator in graph.ops:
        name = operator.builtin
        made = operator.output().shape if operator.outputs else ()
        if name == "RESHAPE" and _is_fixed(operator):
            shape = (-1, *(made[1:] if made[:1] == (1,) else made))
            buffers.append(Buffer(np.array(shape, np.int32).view(np.uint8)))
            tensors.append(replace(graph.tensors[operator.inputs[1]], shape=(len(shape),), buffer=len(buffers) - 1))
            operators.append(replace(operator.record, inputs=(operator.inputs[0], len(tensors) - 1)))
        elif name == "FULLY_CONNECTED" and made[:1] != (1,) and operator.record.options is not None:
            options = operator.record.options
            options = replace(options, fields={**options.fields, "keep_num_dims": True})
            operators.append(replace(operator.record, options=options))
        else:
            operators.append(operator.record)
    changed = replace(graph.record, tensors=tuple(tensors), operators=tuple(operators))
    return replace(with_graph(model, changed), buffers=tuple(buffers))


def _is_fixed(operator: OperatorView) -> bool:
    """Return whether a RESHAPE takes computed values to a shape that the file holds."""
    if len(operator.inputs) != 2 or -1 in operator.inputs:
        return False
    graph, (data, shape) = operator.graph, operator.inputs
    return (
        graph.data(data) is None
        and graph.data(shape) is not None
        and graph.tensors[shape].type == TensorType.INT32
        and 0 not in operator.output().shape
    )
