"""Run one int8 model as two runtimes would, and count the output codes on which they disagree.

python examples/run_under_two_profiles.py
"""

from pathlib import Path

import numpy as np

import tflq

GOLDEN = Path(__file__).parents[1] / "golden" / "models"


def logits(profile: str, images: np.ndarray) -> np.ndarray:
    """Return the int8 outputs (N, 10) of the digits network under a profile, for int8 images (N, 8, 8, 1)."""
    interpreter = tflq.Interpreter(str(GOLDEN / "digits_mobilenet_int8.tflite"), profile=profile)
    interpreter.allocate_tensors()
    outputs = []
    for image in images:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[None])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
    return np.stack(outputs)


def main() -> None:
    """Print how many codes, and how many decisions, the reference kernels and XNNPACK disagree on."""
    pixels = np.load(GOLDEN / "digits_test.npz")["images"][:50]
    images = np.clip(pixels.astype(np.int16) * 16 - 128, -128, 127).astype(np.int8)
    reference, xnnpack = logits("litert-ref", images), logits("litert-xnnpack", images)
    codes = np.count_nonzero(reference != xnnpack)
    decisions = np.count_nonzero(reference.argmax(axis=1) != xnnpack.argmax(axis=1))
    print(f"{codes} of {reference.size} output codes differ, {decisions} of {len(images)} decisions")


if __name__ == "__main__":
    main()
