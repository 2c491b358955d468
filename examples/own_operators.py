"""Operators of your own for the command line: `tflq run model.tflite --kernels examples/own_operators.py`.

tflq runs this file as your code. It states two operators in the two forms that there are:

- `OPERATORS`: callables by the operator's name, as `Interpreter(custom_op_registerers=...)` takes them. A callable gets
  the inputs as arrays and the operator's options as bytes, and returns an array for each output.
- `KERNELS`: rows as tflq's own operators have them, with types, versions, checks and promises. A row for a builtin
  operator takes the place of the profile's row of the same types.
"""

import numpy as np

from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.kernel import Kernel, Prepared


def otter_scale(x, options):
    """Return codes times the first byte of the options, saturated."""
    return np.clip(x.astype(np.int32) * options[0], -128, 127).astype(np.int8)


def prepare_clip(node, arithmetic):
    """Bind a clip of floats to [-1, 1]; shapes and types are checked here, before anything runs."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, lambda data, values: np.clip(values, np.float32(-1), np.float32(1)))


OPERATORS = {"OtterScale": otter_scale}
KERNELS = (Kernel("OtterClip", "float32 -> float32", prepare_clip, (1, 1)),)
