"""Record the real LiteRT interpreter's results on the models of golden/models, into golden/recorded.

Needs the extra `litert`. Every golden holds inputs, all outputs, the model's SHA-256 and the provenance of the runtime.
The inputs are test digits for the networks made by make_models.py, quantized for each model's input.

    python tools/make_goldens.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tflq

ROOT = Path(__file__).resolve().parents[1] / "golden"
SAMPLES = 4


def digit_inputs(path: Path) -> list[dict[str, np.ndarray]]:
    """Return the first test digits, in the model's input type: real values in [0, 1], or their codes."""
    images = np.load(ROOT / "models" / "digits_test.npz")["images"][:SAMPLES].astype(np.float32) / np.float32(16)
    interpreter = tflq.Interpreter(str(path))
    (detail,) = interpreter.get_input_details()
    scale, zero_point = detail["quantization"]
    if scale:
        info = np.iinfo(detail["dtype"])
        images = np.clip(np.round(images / np.float32(scale)) + zero_point, info.min, info.max)
    return [{detail["name"]: image[None].astype(detail["dtype"])} for image in images]


def main() -> None:
    """Record every network of golden/models that was made from digits."""
    for path in sorted((ROOT / "models").glob("digits_*.tflite")):
        target = ROOT / "recorded" / f"{path.stem}.npz"
        target.parent.mkdir(exist_ok=True)
        tflq.record(path, against="litert-ref", inputs=digit_inputs(path), output=target)
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
