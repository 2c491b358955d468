"""How much operators compute: figures worked out by hand from the loops of their sources."""

from __future__ import annotations

from typing import Any

from support.each import each
from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.work import multiply_accumulates, work_of

Shape = tuple[int, ...]

N, T, I, C, O = 2, 5, 4, 3, 3  # noqa: E741
LSTM = [(N, T, I), *[(C, I)] * 4, *[(C, O)] * 4, *[None] * 7, (O, C)]
STEP = 4 * C * I + 4 * C * O + O * C


@each(
    ("op", "inputs", "output", "options", "expected"),
    [
        ("CONV_2D", [(1, 8, 8, 4), (6, 3, 3, 2)], (1, 6, 6, 6), {}, 6 * 6 * 6 * 3 * 3 * 2),
        ("CONV_3D", [(1, 4, 4, 4, 2), (2, 3, 3, 2, 5)], (1, 3, 2, 2, 5), {}, 3 * 2 * 2 * 5 * 2 * 3 * 3 * 2),
        ("CONV_3D_TRANSPOSE", [(5,), (2, 3, 3, 5, 2), (1, 3, 2, 2, 2)], (1, 4, 4, 4, 5), {}, 12 * 2 * 18 * 5),
        ("DEPTHWISE_CONV_2D", [(1, 8, 8, 4), (1, 3, 3, 8)], (1, 6, 6, 8), {}, 6 * 6 * 8 * 9),
        ("TRANSPOSE_CONV", [(4,), (6, 3, 3, 2), (1, 4, 4, 2)], (1, 8, 8, 6), {}, 4 * 4 * 2 * 6 * 9),
        ("FULLY_CONNECTED", [(7, 10), (4, 10)], (7, 4), {}, 7 * 4 * 10),
        ("BATCH_MATMUL", [(3, 2, 5), (3, 5, 4)], (3, 2, 4), {}, 3 * 2 * 4 * 5),
        ("BATCH_MATMUL", [(3, 5, 2), (3, 5, 4)], (3, 2, 4), {"adj_x": True}, 3 * 2 * 4 * 5),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", LSTM, (N, T, O), {}, N * T * STEP),
        ("LSTM", [(N, I), *LSTM[1:]], (N, O), {}, N * STEP),
        ("LSTM", [(N, I), (N, C), (4 * C, I + C), (4 * C,), (N, C)], (N, C), {}, N * 4 * C * (I + C)),
        ("RNN", [(N, I), (C, I), (C, C), (C,), (N, C)], (N, C), {}, N * (C * I + C * C)),
        ("SVDF", [(N, I), (6, I), (6, 5), (3,), (N, 30)], (N, 3), {}, N * (6 * I + 6 * 5)),
        ("EMBEDDING_LOOKUP_SPARSE", [(9,), (9, 2), (2,), (9,), (100, 4)], (3, 4), {}, 9 * 4),
        ("ADD", [(8,), (8,)], (8,), {}, 0),
    ],
)
def test_multiply_accumulates(
    op: str, inputs: list[Shape | None], output: Shape, options: dict[str, Any], expected: int
) -> None:
    assert multiply_accumulates(op, Sizes(inputs, [output], options)) == expected


def test_other_operators_count_passes_or_what_they_move() -> None:
    assert work_of("ADD", Sizes([(8, 3), (3,)], [(8, 3)], {})) == 24 + 3 + 24
    pool = {"filter_height": 3, "filter_width": 100}
    assert work_of("MAX_POOL_2D", Sizes([(1, 8, 8, 4)], [(1, 6, 8, 4)], pool)) == 6 * 8 * 4 * 3 * 8
