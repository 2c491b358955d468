"""Find out which arithmetic a device has: here a simulated device that requantizes with a single rounding.

python examples/explain_a_device.py
"""

from pathlib import Path

import numpy as np

import tflq
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name

MODEL = Path(__file__).parents[1] / "golden" / "models" / "digits_mobilenet_int8.tflite"


def device_tensors(profile: str) -> dict[int, np.ndarray]:
    """Return every tensor of one run by tensor index, as a device's debug dump would hold them."""
    plan = make_plan(tflq.load(MODEL), by_name(profile))
    shape = plan.operands[plan.inputs[0]].shape
    image = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    return run(plan, {plan.inputs[0]: image}, keep_all=True).values


def main() -> None:
    """Print the operator whose difference from the reference kernels matters most, and the causes of its bits."""
    findings = tflq.explain(MODEL, device_tensors("litert-ref+single-rounding"), profile="litert-ref")
    explanation = findings.explanation
    if explanation is None:
        print("the dump has the same bits as litert-ref")
        return
    print(f"operator {explanation.index} differs, and its difference changes the outputs most")
    for cause in explanation.exact:
        print(f"{explanation.certainty.value}: all {cause.elements} elements are reproduced by: {cause.name}")


if __name__ == "__main__":
    main()
