"""The program that converts a model to a float `.tflite` file, in a process of its own.

Usage: python converter.py CONVERTER BATCH SOURCE FILE. CONVERTER is `tensorflow` for a Keras file or the folder of a
SavedModel, whose signature is `serving_default` or the only one, or `onnx2tf` for an ONNX file. BATCH is `open` or
`one`: whether a batch that the model leaves open stays open. FILE must be in a temporary folder of its own; next to it,
a JSON document names the converter and its version, and an .npz holds random inputs and what the source computes of
them: `i/NAME` and `o/NAME`. Exit status 3: the converter is not installed; 5: it does not take an open batch. If the
parent ends, the pipe on stdin closes, and the process removes that folder and ends. It is a stand-alone program: it
needs only Python 3.9, and TensorFlow 2.18 or onnx2tf 1.29.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import threading
from typing import Any

#: The exit status without the converter, and if it does not take an open batch.
MISSING, CANNOT = 3, 5

# Its own folder holds a module named tensorflow, which must not hide the real one.
_HERE = os.path.dirname(os.path.abspath(__file__))


def main(name: str, batch: str, source: str, path: str) -> int:
    """Convert, and return the exit status."""
    folder = os.path.dirname(path)
    threading.Thread(target=end_with_parent, args=(folder,), daemon=True).start()
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    if importlib.util.find_spec(name) is None:
        return MISSING
    module = importlib.import_module(name)
    try:
        return (of_tensorflow if name == "tensorflow" else of_onnx)(module, batch == "open", source, path)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1


def of_tensorflow(tensorflow: Any, is_open: bool, source: str, path: str) -> int:
    """Convert a Keras file or a SavedModel, and return the exit status."""
    saved = source
    if not os.path.isdir(source):
        folder = os.path.dirname(path)
        saved, named = os.path.join(folder, "saved_model"), keras_file(source, folder)
        export(tensorflow, tensorflow.keras.models.load_model(named, compile=False), is_open, saved)
    model = tensorflow.saved_model.load(saved)
    names = list(model.signatures)
    if "serving_default" not in names and len(names) != 1:
        raise SystemExit(f"the SavedModel has no signature serving_default, but {', '.join(names) or 'none'}")
    signature = model.signatures["serving_default" if "serving_default" in names else names[0]]
    try:
        data = convert(tensorflow, model, signature, is_open)
    except Exception:
        if not is_open:
            raise
        return CANNOT
    _, arguments = signature.structured_input_signature
    given = {name: draw(spec.shape, spec.dtype.as_numpy_dtype) for name, spec in arguments.items()}
    results = signature(**{name: tensorflow.constant(value) for name, value in given.items()})
    write(data, path, f"TensorFlow {tensorflow.__version__}", given, {k: v.numpy() for k, v in results.items()})
    return 0


def keras_file(source: str, folder: str) -> str:
    """Return the path of a Keras file under a name by which Keras knows its format."""
    with open(source, "rb") as file:
        suffixes = (".h5", ".hdf5") if file.read(4) == b"\x89HDF" else (".keras",)
    if source.endswith(suffixes):
        return source
    return shutil.copyfile(source, os.path.join(folder, f"source{suffixes[0]}"))


def export(tensorflow: Any, keras: Any, is_open: bool, saved: str) -> None:
    """Write a Keras model as a SavedModel; loops of recurrent layers convert only if a batch of 1 is traced."""
    if is_open or not getattr(keras, "inputs", None):
        keras.export(saved, verbose=False)
        return
    specs = [_single(tensorflow, given.shape, given.dtype, given.name) for given in keras.inputs]
    archive = tensorflow.keras.export.ExportArchive()
    archive.track(keras)
    archive.add_endpoint(
        "serving_default", lambda *inputs: keras(inputs[0] if len(inputs) == 1 else list(inputs)), input_signature=specs
    )
    archive.write_out(saved, verbose=False)


def _single(tensorflow: Any, shape: Any, dtype: Any, name: str) -> Any:
    """Return an input of that shape, with an open batch dimension set to 1."""
    sizes = list(shape)
    sizes[:1] = [1 if size is None else size for size in sizes[:1]]
    return tensorflow.TensorSpec(sizes, dtype, name)


def convert(tensorflow: Any, model: Any, signature: Any, is_open: bool) -> Any:
    """Return the bytes of the float model of a signature, with an open batch dimension open or set to 1."""
    _, arguments = signature.structured_input_signature
    specs = {
        name: tensorflow.TensorSpec(spec.shape, spec.dtype, name)
        if is_open
        else _single(tensorflow, spec.shape, spec.dtype, name)
        for name, spec in arguments.items()
    }
    function = tensorflow.function(lambda **inputs: signature(**inputs)).get_concrete_function(**specs)
    return tensorflow.lite.TFLiteConverter.from_concrete_functions([function], model).convert()


def of_onnx(onnx2tf: Any, is_open: bool, source: str, path: str) -> int:
    """Convert an ONNX file, and return the exit status.

    A copy is converted, with its external data inside: onnx2tf may write a simplified model over its source.
    """
    import numpy
    import onnx  # type: ignore[import-not-found, unused-ignore]

    folder = os.path.dirname(path)
    copy, made = os.path.join(folder, "model.onnx"), os.path.join(folder, "made")
    model = onnx.load(source)
    if not model.graph.node:
        raise SystemExit("the file holds no operators")
    onnx.save(model, copy)
    os.chdir(folder)
    pictures = numpy.random.default_rng(0).random((20, 128, 128, 3), numpy.float32)
    numpy.save("calibration_image_sample_data_20x128x128x3_float32.npy", pictures)  # version 1 would download others
    batch = {} if is_open else {"batch_size": 1}
    try:
        onnx2tf.convert(input_onnx_file_path=copy, output_folder_path=made, non_verbose=True, **batch)
        with open(os.path.join(made, "model_float32.tflite"), "rb") as file:
            data = file.read()
    except (Exception, SystemExit) as error:
        if is_open:
            return CANNOT
        print(error)
        return 1
    given, results = compute_by_onnx(model)
    write(data, path, f"onnx2tf {onnx2tf.__version__}", given, results)
    return 0


def compute_by_onnx(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return random inputs of an ONNX model and its outputs, computed by ONNX Runtime or by ONNX's own kernels."""
    import onnx

    constants = {constant.name for constant in model.graph.initializer}
    given = {}
    for value in model.graph.input:
        if value.name not in constants:
            kind = value.type.tensor_type
            sizes = [size.dim_value or None for size in kind.shape.dim]
            given[value.name] = draw(sizes, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    try:
        import onnxruntime

        results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    except ImportError:
        from onnx.reference import ReferenceEvaluator  # type: ignore[import-not-found, unused-ignore]

        results = ReferenceEvaluator(model).run(None, given)
    return given, {value.name: results[index] for index, value in enumerate(model.graph.output)}


def draw(shape: Any, dtype: Any) -> Any:
    """Return random values: open sizes are 1, integers 0 or 1."""
    import numpy

    sizes = [1 if size is None else int(size) for size in shape]
    random = numpy.random.default_rng(0)
    values = random.random(sizes) if numpy.dtype(dtype).kind == "f" else random.integers(0, 2, sizes)
    return values.astype(dtype)


def write(data: bytes, path: str, by: str, given: dict[str, Any], results: dict[str, Any]) -> None:
    """Write the model, the converter's name and version, and values to check the model with."""
    import numpy

    start = os.path.splitext(path)[0]
    with open(path, "wb") as file:
        file.write(data)
    with open(f"{start}.json", "w") as text:
        json.dump({"by": by}, text)
    values = {f"{kind}/{name}": value for kind, held in (("i", given), ("o", results)) for name, value in held.items()}
    numpy.savez(f"{start}.npz", **values)


def end_with_parent(folder: str) -> None:
    """Wait until the other end of stdin is closed, remove the folder, and end at once."""
    os.read(0, 1)
    for _ in range(100):  # the conversion may still be writing into it
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
