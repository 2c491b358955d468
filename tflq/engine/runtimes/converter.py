"""The program that converts a TensorFlow model to a float `.tflite` file, in a process of its own.

Usage: python converter.py SOURCE FILE. SOURCE is a Keras file (`.keras`, `.h5`) or the folder of a SavedModel. Its
signature is `serving_default`, or the only one. FILE must be in a temporary folder of its own. Exit status 3:
TensorFlow is not installed. If the parent ends, the pipe on stdin closes, and the process removes that folder and ends.
It is a stand-alone program: it needs only Python 3.9 and TensorFlow 2.18.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from typing import Any

#: The exit status without TensorFlow.
MISSING = 3

# Its own folder holds a module named tensorflow, which must not hide the real one.
_HERE = os.path.dirname(os.path.abspath(__file__))


def main(source: str, path: str) -> int:
    """Convert, and return the exit status."""
    folder = os.path.dirname(path)
    threading.Thread(target=end_with_parent, args=(folder,), daemon=True).start()
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    try:
        import tensorflow
    except ImportError as error:
        print(error)
        return MISSING
    if os.path.isdir(source):
        data = convert(tensorflow, source)
    else:
        saved = os.path.join(folder, "saved_model")
        tensorflow.keras.models.load_model(source, compile=False).export(saved, verbose=False)
        data = convert(tensorflow, saved)
    with open(path, "wb") as file:
        file.write(data)
    return 0


def end_with_parent(folder: str) -> None:
    """Wait until the other end of stdin is closed, remove the folder, and end at once."""
    os.read(0, 1)
    for _ in range(100):  # the conversion may still be writing into it
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
    os._exit(1)


def convert(tensorflow: Any, source: str) -> Any:
    """Return the bytes of the float model of a SavedModel."""
    model = tensorflow.saved_model.load(source)
    names = list(model.signatures)
    if "serving_default" not in names and len(names) != 1:
        raise SystemExit(f"the SavedModel has no signature serving_default, but {', '.join(names) or 'none'}")
    signature = model.signatures["serving_default" if "serving_default" in names else names[0]]
    _, arguments = signature.structured_input_signature
    specs = {name: _single(tensorflow, spec.shape, spec.dtype, name) for name, spec in arguments.items()}

    function = tensorflow.function(lambda **inputs: signature(**inputs)).get_concrete_function(**specs)
    return tensorflow.lite.TFLiteConverter.from_concrete_functions([function], model).convert()


def _single(tensorflow: Any, shape: Any, dtype: Any, name: str) -> Any:
    """Return an input of that shape, with an open batch dimension set to 1."""
    sizes = list(shape)
    sizes[:1] = [1 if size is None else size for size in sizes[:1]]
    return tensorflow.TensorSpec(sizes, dtype, name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
