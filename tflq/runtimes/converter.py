"""The program that converts a model of TensorFlow's to a float `.tflite` file, in a process of its own.

Usage: python converter.py SOURCE FILE. SOURCE is a Keras file (`.keras`, `.h5`) or the folder of a SavedModel, whose
signature `serving_default`, or the only one, is taken. Exit status 3: TensorFlow is not installed. It stands alone:
Python 3.9 and TensorFlow 2.18 are all it needs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

#: The exit status where there is no TensorFlow.
MISSING = 3

# Its own folder holds a module named tensorflow; it must not hide the real one.
_HERE = os.path.dirname(os.path.abspath(__file__))


def main(source: str, path: str) -> int:
    """Convert; the exit status."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    try:
        import tensorflow
    except ImportError as error:
        print(error)
        return MISSING
    if os.path.isdir(source):
        data = convert(tensorflow, source)
    else:
        with tempfile.TemporaryDirectory() as folder:
            tensorflow.keras.models.load_model(source, compile=False).export(folder, verbose=False)
            data = convert(tensorflow, folder)
    with open(path, "wb") as file:
        file.write(data)
    return 0


def convert(tensorflow: Any, source: str) -> Any:
    """The bytes of the float model of a SavedModel."""
    model = tensorflow.saved_model.load(source)
    names = list(model.signatures)
    if "serving_default" not in names and len(names) != 1:
        raise SystemExit(f"the SavedModel has no signature serving_default, but {', '.join(names) or 'none'}")
    signature = model.signatures["serving_default" if "serving_default" in names else names[0]]
    _, given = signature.structured_input_signature
    specs = {name: _single(tensorflow, spec.shape, spec.dtype, name) for name, spec in given.items()}

    function = tensorflow.function(lambda **inputs: signature(**inputs)).get_concrete_function(**specs)
    return tensorflow.lite.TFLiteConverter.from_concrete_functions([function], model).convert()


def _single(tensorflow: Any, shape: Any, dtype: Any, name: str) -> Any:
    """An input of that shape, a batch dimension that is open being 1."""
    sizes = list(shape)
    sizes[:1] = [1 if size is None else size for size in sizes[:1]]
    return tensorflow.TensorSpec(sizes, dtype, name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
