"""Matrices of codes that XNNPACK multiplies by floats, although the file dequantizes them first.

XNNPACK reads the codes instead if DEQUANTIZE has one scale and a zero point of 0, and nothing else reads its result.
Source: XNNPACK subgraph.c rewrite_dequant_bmm_at, in LiteRT 2.3; 2.1.0 does not have it, 2.1.6 does.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.interpreter.unpacking import is_left
from tflq.engine.kernels.delegation import does_take
from tflq.engine.kernels.kernel import Kernel, Node, Operand
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.profiles import Profile
from tflq.model.ir import GraphView, OperatorView, TensorType

_READS = xnnpack("litert-2.1")
_OP = "BATCH_MATMUL"


def matrices_of_codes(graph: GraphView, profile: Profile) -> dict[int, int]:
    """Return, by operator that may read a matrix of codes, the tensor of the codes."""
    if not _READS.holds(profile.runtime):
        return {}
    found = {op.index: _codes(graph, op, profile) for op in graph.ops if op.name == _OP and len(op.inputs) == 2}
    return {index: codes for index, codes in found.items() if codes is not None}


def of_codes(node: Node, kernel: Kernel, codes: Operand) -> Node:
    """Return the node that reads codes; the node itself if the kernel leaves it to another."""
    if not kernel.reads_codes or kernel.takes is None or not does_take(kernel, node):
        return node
    return replace(node, inputs=(node.inputs[0], codes), is_of_codes=True)


def _codes(graph: GraphView, op: OperatorView, profile: Profile) -> int | None:
    """Return the codes of an operator's second matrix; None if it reads floats."""
    matrix = op.inputs[1]
    maker = graph.maker(matrix)
    if maker is None or maker.name != "DEQUANTIZE" or len(maker.inputs) != 1:
        return None
    if len(graph.readers(matrix)) != 1 or op.inputs[0] == matrix or matrix in graph.outputs:
        return None
    codes = graph.tensors[maker.inputs[0]]
    is_narrow = codes.type == TensorType.INT8 and codes.quantization is not None
    if not is_narrow or codes.quantization is None or not len(codes.quantization.zero_point):
        return None
    if int(codes.quantization.zero_point[0]) or graph.data(maker.inputs[0]) is not None:
        return None
    return None if is_left(graph, maker, {}, profile) else maker.inputs[0]
