"""Create the models that LiteRT's build makes for its interpreter_test.py. The argument is the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format


def graph_of(path: Path) -> tf.compat.v1.GraphDef:
    """Return the graph in a text file."""
    graph = tf.compat.v1.GraphDef()
    text_format.Parse(path.read_text(), graph)
    return graph


def converted(path: Path, inputs: list[str], quantized: bool = False) -> bytes:
    """Return the result of `tflite_convert` for a graph with these inputs and the output "output"."""
    tf.compat.v1.reset_default_graph()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph_of(path), name="")
        tensors = [session.graph.get_tensor_by_name(f"{name}:0") for name in (*inputs, "output")]
        converter = tf.compat.v1.lite.TFLiteConverter.from_session(session, tensors[:-1], tensors[-1:])
        if quantized:
            converter.inference_type = tf.uint8
            converter.quantized_input_stats = {"input": (0.0, 1.0)}
            converter.default_ranges_stats = (0, 255)
        return converter.convert()


class TwoSignatures(tf.Module):
    """x + 2 and x * 3."""

    @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
    def add(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return one signature."""
        return {"output_0": x + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([1], tf.float32, name="x")])
    def multiply(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the other."""
        return {"output_0": x * 3.0}


def two_signatures() -> bytes:
    """Return a model with the signatures add and multiply."""
    module = TwoSignatures()
    functions = [module.add.get_concrete_function(), module.multiply.get_concrete_function()]
    return tf.lite.TFLiteConverter.from_concrete_functions(functions, module).convert()


def main() -> None:
    """Write the models to the place where interpreter_test.py looks for them."""
    folder = Path(sys.argv[1]) / "tflite" / "python" / "testdata"
    made = {
        "permute_float": lambda: converted(folder / "permute.pbtxt", ["input"]),
        "permute_uint8": lambda: converted(folder / "permute.pbtxt", ["input"], quantized=True),
        "gather_string": lambda: converted(folder / "gather.pbtxt", ["input", "indices"]),
        "gather_string_0d": lambda: converted(folder / "gather_0d.pbtxt", ["input", "indices"]),
        "two_signatures": two_signatures,
    }
    for name, make in made.items():
        path = folder / f"{name}.tflite"
        if not path.exists():
            path.write_bytes(make())


if __name__ == "__main__":
    main()
