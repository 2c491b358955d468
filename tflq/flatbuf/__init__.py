"""The `.tflite` format, and that of tflite-micro's dumps: bytes to values and back. Only here FlatBuffers are known."""

from tflq.flatbuf.limits import Limits
from tflq.flatbuf.reader import read, read_layer_by_layer
from tflq.flatbuf.writer import write

__all__ = ["Limits", "read", "read_layer_by_layer", "write"]
