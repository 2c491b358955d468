"""RESIZE_BILINEAR of the optimized resolver against live LiteRT: floats, enlarged twice and otherwise."""

from __future__ import annotations

import numpy as np

import tflq
from support.each import each
from support.single_op import FULL, T, build, litert


@each("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@each("size", [(6, 10), (7, 11), (2, 3), (12, 5), (3, 5), (1, 1)])
@each("depth", [1, 4, 13, 45])
def test_floats(options: dict[str, bool], size: tuple[int, int], depth: int) -> None:
    x = np.random.default_rng(depth).standard_normal((2, 3, 5, depth)).astype(np.float32)
    operands = [T("float32", x.shape), T("int32", (2,), value=size)]
    y = T("float32", (2, *size, depth))
    model = build("RESIZE_BILINEAR", operands, [y], ("ResizeBilinearOptions", options), version=3)
    runner = tflq.Interpreter(model_content=model, profile="litert-opt")
    runner.allocate_tensors()
    runner.set_tensor(0, x)
    runner.invoke()
    (want,) = litert(model, [x], FULL)
    np.testing.assert_array_equal(runner.get_tensor(2).view(np.uint32), want.view(np.uint32))
