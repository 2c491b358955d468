"""Quantize a float network to int8 without TensorFlow, and compare both on images that it was not calibrated with.

python examples/quantize_a_network.py
"""

from pathlib import Path

import numpy as np

import tflq

GOLDEN = Path(__file__).parents[1] / "golden" / "models"


def accuracy(model: tflq.Model, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images (N, 8, 8, 1), in the model's own input type, whose largest output is their label."""
    interpreter = tflq.Interpreter(model_content=tflq.save(model))
    interpreter.allocate_tensors()
    source, target = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = source["quantization"]
    right = 0
    for image, label in zip(images, labels, strict=True):
        if scale:  # an integer input: from reals to codes
            image = np.clip(np.round(image / scale) + zero_point, -128, 127).astype(np.int8)
        interpreter.set_tensor(source["index"], image[None])
        interpreter.invoke()
        right += int(interpreter.get_tensor(target["index"]).argmax() == label)
    return right / len(images)


def main() -> None:
    """Print the accuracy of the float network and of the int8 network made from it."""
    digits = np.load(GOLDEN / "digits_test.npz")
    images, labels = (digits["images"] / 16).astype(np.float32), digits["labels"]
    source = tflq.load(GOLDEN / "digits_mobilenet_float.tflite")
    result = tflq.quantize(source, [[image[None]] for image in images[:100]], recipe="fast")
    print(f"float {accuracy(source, images[100:], labels[100:]):.3f}")
    print(f"int8  {accuracy(result.model, images[100:], labels[100:]):.3f}")


if __name__ == "__main__":
    main()
